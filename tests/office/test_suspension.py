"""Suspended calls: attach, detach, interrupt, wait, poll, cancel, pause; every result read once."""

import asyncio
import contextlib
import json
from typing import Any

import pytest

from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.calls.context import progress
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import run_virtual


async def nap(seconds: float, say: str = "") -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return say or f"slept {seconds:g}"


async def report(seconds: float, n: int = 60) -> str:
    """Sleep, reporting."""
    for i in range(n):
        progress(i + 1, n, f"step {i + 1}")
    await asyncio.sleep(seconds)
    return "reported"


def attach(seconds: float, tool: str = "nap") -> dict[str, Any]:
    rule = {"tool": tool, "disposition": {"tag": "runAsync", "attachSeconds": seconds}}
    return {"rules": [rule]}


def clock() -> float:
    return asyncio.get_running_loop().time()


def everything(s: Session) -> str:
    """All that its model ever read."""
    turns = s.transcript()
    return "\n".join([t.text for t in turns if t.role is Role.USER]) + "\n".join(
        m.content for t in turns for m in t.results
    )


def naps(*seconds: float, then: Any = None) -> Any:
    """A script that naps once for each, all in one turn, then says what it reads."""

    @script
    def napper(turn: ScriptTurn) -> Talk:
        if "go" not in turn.text:
            return f"read: {turn.text}"
        got = yield [call("nap", seconds=s) for s in seconds]
        if then is not None:
            more = yield then
            return f"{got} then {more}"
        return str(got)

    return napper


def placeholder(id: str, why: str) -> dict[str, str]:
    return {
        "status": "running",
        "tool_call_id": id,
        "detached": why,
        "message": (
            "Its result will arrive as mail. Use wait, get-tool-call-status or cancel-tool-call."
        ),
    }


def test_m6_m59_m62_a_call_detaches_when_its_time_is_up_and_comes_back_as_mail() -> None:
    """M-6, M-59, M-62, M-72: one second looks synchronous, twenty give a placeholder at ten."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(1, 20), tools=[nap], policy=attach(10)), "go")
        await asyncio.sleep(10.5)
        turns = s.transcript()
        quick, slow = turns[2].results
        assert (quick.content, quick.state) == ("slept 1", CallState.COMPLETED)
        assert json.loads(slow.content) == placeholder("call_0002", "still running after 10s")
        assert (s.status, s.idle) == (SessionStatus.WAITING, False)

        await s.wait()
        assert clock() == 20
        (envelope,) = s.transcript()[4].mail
        assert read(s)[2] == f"[mail {envelope.id}: tool call call_0002 (nap) completed]\nslept 20"
        assert (s.status, s.end_reason) == (SessionStatus.IDLE, EndReason.ANSWER)
        assert everything(s).count("slept 20") == 1

    in_room(main)


def test_m60_a_call_with_no_attach_time_is_always_a_placeholder() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(0), tools=[nap], policy=attach(0)), "go")
        await s.wait()
        (message,) = s.transcript()[2].results
        assert json.loads(message.content) == placeholder("call_0001", "still running after 0s")
        assert everything(s).count("slept 0") == 1

    in_room(main)


def test_m57_run_sync_stays_attached_as_long_as_it_takes() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(3600), tools=[nap]), "go")
        await s.wait(timeout=None)
        assert (clock(), s.transcript()[2].results[0].content) == (3600, "slept 3600")

    in_room(main)


def test_m61_at_a_deadline_only_the_expired_calls_detach() -> None:
    async def main(room: Room) -> None:
        async def two(seconds: float) -> str:
            """Sleep."""
            return await nap(seconds)

        async def five(seconds: float) -> str:
            """Sleep."""
            return await nap(seconds)

        policy = {"rules": [*attach(2, "two")["rules"], *attach(5, "five")["rules"]]}

        @script
        def mixed(turn: ScriptTurn) -> Talk:
            if turn.text == "go":
                yield [
                    call("two", seconds=30),
                    call("five", seconds=4),
                    call("nap", seconds=8),
                ]
            return "done"

        s = room.spawn(Agent("m", model=mixed, tools=[two, five, nap], policy=policy), "go")
        await asyncio.sleep(7)
        assert len(s.transcript()) == 2  # still attached to the third
        await asyncio.sleep(2)
        contents = [m.content for m in s.transcript()[2].results]
        assert json.loads(contents[0])["detached"] == "still running after 2s"
        assert contents[1:] == ["slept 4", "slept 8"]

    in_room(main)


def test_m58_the_yield_strategies_of_run_async() -> None:
    async def main(room: Room) -> None:
        policy = {"default": {"tag": "runAsync"}}

        async def when_answered(name: str, strategy: Any) -> float:
            agent = Agent(
                name,
                model=naps(2, 9),
                tools=[nap],
                policy=policy,
                async_yield_strategy=strategy,
            )
            began = clock()
            s = room.spawn(agent, "go")
            while len(s.transcript()) < 4:
                await asyncio.sleep(0.25)
            return round(clock() - began)

        assert await when_answered("all", "yieldWhenAllDone") == 9
        assert await when_answered("any", "yieldOnAnyProgress") == 2
        timeout = {"tag": "yieldOnTimeout", "milliseconds": 5000}
        assert await when_answered("time", timeout) == 5

    in_room(main)


def test_m75_an_interrupt_detaches_all_attached_calls_and_asks_the_model_at_once() -> None:
    """M-75, M-5."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(10, 20, 30), tools=[nap]), "go")
        await asyncio.sleep(3)
        s.interrupt("never mind")
        await ticks()
        user = s.transcript()[2]
        assert clock() == 3
        assert [json.loads(m.content)["detached"] for m in user.results] == ["interrupted"] * 3
        assert user.text == "never mind"
        assert len(s.life.table.open_calls()) == 3
        await s.wait()
        for seconds in (10, 20, 30):
            assert everything(s).count(f"slept {seconds}") == 1

    in_room(main)


def test_m81_normal_mail_never_detaches_anything() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(10), tools=[nap]), "go")
        await asyncio.sleep(1)
        s.send("no hurry")
        await asyncio.sleep(8)
        assert len(s.transcript()) == 2
        await s.wait()
        assert s.transcript()[2].results[0].content == "slept 10"
        assert s.transcript()[2].text == "no hurry"

    in_room(main)


def test_m38_an_interrupt_in_the_tick_of_the_last_completion_shows_that_call_s_result() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(5), tools=[nap]), "go")
        await ticks()
        loop = asyncio.get_running_loop()
        loop.call_at(5, lambda: s.interrupt("now"))
        await s.wait()
        user = s.transcript()[2]
        assert (user.results[0].content, user.text) == ("slept 5", "now")
        assert everything(s).count("slept 5") == 1

    in_room(main)


def test_six_results_in_one_tick_arrive_once_each_in_finish_order() -> None:
    async def main(room: Room) -> None:
        seconds = (5, 5, 5, 5, 5, 5)
        agent = Agent("n", model=naps(*seconds), tools=[nap], policy=attach(1), max_concurrency=6)
        s = room.spawn(agent, "go")
        await s.wait()
        finished = [e.body.call for e in s.mail() if e.body.kind == "tool_call_finished"]  # type: ignore[union-attr]
        assert sorted(finished) == [f"call_000{n}" for n in range(1, 7)]
        told = [e.body.call for t in s.transcript() for e in t.mail if e.sender.kind == "tool"]  # type: ignore[union-attr]
        assert told == finished
        assert everything(s).count("slept 5") == 6
        assert sum(len(t.mail) for t in s.transcript()) == 7

    in_room(main)


def test_m65_m76_wait_returns_on_any_mail_which_is_read_in_the_same_turn() -> None:
    async def main(room: Room) -> None:
        waiting = [call("wait", timeout_seconds=60)]
        waiting[0] = call("wait", **{"for": "mail", "timeout_seconds": 60})
        s = room.spawn(Agent("n", model=naps(500, then=waiting), tools=[nap], policy=attach(1)))
        s.send("go")
        await asyncio.sleep(5)
        s.send("wake up")
        await ticks()
        user = s.transcript()[4]
        assert json.loads(user.results[0].content) == {"woken_by": "mail"}
        assert user.text == "wake up"
        assert user.results[0].state is CallState.COMPLETED
        assert everything(s).count("woken_by") == 1

    in_room(main)


@pytest.mark.parametrize(
    ("arguments", "answer", "after"),
    [
        ({"for": "any-call", "timeout_seconds": 60}, {"woken_by": "call"}, 7),
        ({"for": ["call_0001"], "timeout_seconds": 60}, {"woken_by": "call"}, 7),
        ({"for": "mail", "timeout_seconds": 3}, {"woken_by": "timeout"}, 4),
        ({"for": ["call_0099"]}, "there is no tool call 'call_0099' of yours", 1),
    ],
)
def test_m65_what_ends_a_wait(arguments: Any, answer: Any, after: float) -> None:
    async def main(room: Room) -> None:
        then = [call("wait", **arguments)]
        s = room.spawn(Agent("n", model=naps(7, then=then), tools=[nap], policy=attach(1)), "go")
        while len(s.transcript()) < 5:
            await asyncio.sleep(0.25)
        (message,) = s.transcript()[4].results
        told = message.value
        if isinstance(answer, dict):
            assert told["woken_by"] == answer["woken_by"]
            if told["woken_by"] == "call":
                assert told["tool_call_id"] == "call_0001"
        else:
            assert answer in told
        assert abs(clock() - after) < 0.5

    in_room(main)


def test_m66_a_wait_is_capped_and_two_that_wait_for_each_other_both_return() -> None:
    async def main(room: Room) -> None:
        @script
        def waiter(turn: ScriptTurn) -> Talk:
            got = yield call("wait", **{"for": "mail", "timeout_seconds": 100_000})
            return str(got)

        a = room.spawn(Agent("w", model=waiter), "go", name="a")
        b = room.spawn("w", "go", name="b")
        await room.wait(timeout=None)
        assert clock() == 300
        assert said(a)[-1] == said(b)[-1] == "{'woken_by': 'timeout'}"
        nothing = room.spawn(
            Agent("x", model=naps(then=[call("wait", **{"for": "any-call"})]), tools=[nap]), "go"
        )
        await nothing.wait()
        assert "nothing" in said(nothing)[-1]

    in_room(main)


def test_m63_m8_a_result_read_by_a_status_call_comes_as_one_line() -> None:
    async def main(room: Room) -> None:
        status = [call("get-tool-call-status", tool_call_id="call_0001", wait_for_completion=True)]
        s = room.spawn(Agent("n", model=naps(5, then=status), tools=[nap], policy=attach(1)), "go")
        await s.wait()
        assert everything(s).count("slept 5") == 1
        assert "tool call call_0001 (nap) completed, already read]" in everything(s)

    in_room(main)


def test_m67_status_of_a_running_call_shows_its_state_and_progress() -> None:
    """M-2, M-67: sixty reports are no mail; the last fifty are kept."""

    async def main(room: Room) -> None:
        @script
        def looker(turn: ScriptTurn) -> Talk:
            if turn.text != "go":
                return "ok"
            yield call("report", seconds=9)
            got = yield call("get-tool-call-status", tool_call_id="call_0001", progress=True)
            listed = yield call("list-running-tool-calls")
            return json.dumps([got, listed])

        s = room.spawn(Agent("l", model=looker, tools=[report], policy=attach(1, "report")), "go")
        await asyncio.sleep(2)
        got, listed = json.loads(said(s)[3])
        assert got["status"] == "running"
        assert [p["done"] for p in got["progress"]] == list(range(11, 61))
        assert [c["tool_call_id"] for c in listed] == ["call_0001"]
        await s.wait()
        assert len(s.mail()) == 1 + 3

    in_room(main)


def test_m68_m73_cancel_ends_a_call_once_and_its_late_result_is_discarded() -> None:
    async def main(room: Room) -> None:
        stubborn_ended: list[bool] = []

        async def stubborn() -> str:
            """Ignore cancellation."""
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                await asyncio.sleep(5)
                stubborn_ended.append(True)
            return "late"

        @script
        def canceller(turn: ScriptTurn) -> Talk:
            if turn.text != "go":
                return "ok"
            yield call("stubborn")
            first = yield call("cancel-tool-call", tool_call_id="call_0001")
            second = yield call("cancel-tool-call", tool_call_id="call_0001")
            seen = yield [
                call("get-tool-call-status", tool_call_id="call_0001"),
                call("list-running-tool-calls"),
            ]
            yield call("wait", **{"for": "mail", "timeout_seconds": 20})
            later = yield [
                call("get-tool-call-status", tool_call_id="call_0001"),
                call("list-running-tool-calls"),
            ]
            return json.dumps([first, second, seen, later])

        s = room.spawn(
            Agent("c", model=canceller, tools=[stubborn], policy=attach(1, "stubborn")), "go"
        )
        await s.wait()
        await asyncio.sleep(20)
        answers = next(text for text in said(s) if text.startswith("["))
        first, second, seen, later = json.loads(answers)
        goes_on = {
            "still_running": True,
            "note": "it ignores the cancellation so far; what it returns is discarded",
        }
        assert first == {
            "tool_call_id": "call_0001",
            "cancelled": True,
            "previous_status": "running",
            **goes_on,
        }
        assert second == {
            "tool_call_id": "call_0001",
            "cancelled": False,
            "previous_status": "cancelled",
            **goes_on,
        }
        status, listed = seen
        assert (status["status"], status["still_running"]) == ("cancelled", True)
        assert listed == [
            {
                "tool_call_id": "call_0001",
                "tool": "stubborn",
                "status": "cancelled",
                "arguments": {},
                **goes_on,
            }
        ]
        status, listed = later
        assert (status["status"], "still_running" in status, listed) == ("cancelled", False, [])
        assert stubborn_ended == [True]
        assert "late" not in everything(s)
        assert s.calls()[0].state is CallState.CANCELLED
        ends = [e for e in s.mail() if getattr(e.body, "call", "") == "call_0001"]
        assert len(ends) == 1

    in_room(main)


@pytest.mark.parametrize("how", ["session", "room", "stop"])
def test_m73_nothing_waits_for_a_tool_that_ignores_its_cancellation(how: str) -> None:
    """M-73, M-85: a stop frees the session, closing ends it, and the tool goes on to nobody."""
    returned: list[float] = []

    async def main() -> None:
        async def deaf() -> str:
            """Ignore cancellation, again and again."""
            until = clock() + 1000
            while clock() < until:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(until - clock())
            returned.append(clock())
            return "late"

        @script
        def once(turn: ScriptTurn) -> Talk:
            if turn.text != "go":
                return f"read: {turn.text}"
            yield call("deaf")
            return "ok"

        async with open_room() as room:
            agent = Agent("d", model=once, tools=[deaf], max_concurrency=1)
            s = room.spawn(agent, "go")
            await asyncio.sleep(5)
            if how == "room":
                room.close()
            elif how == "session":
                s.close()
                await ticks()
                assert s.closed
            else:
                s.stop()
                await ticks()
                assert [c.id for c in s.life.lingering()] == ["call_0001"]
                assert (await room.drain(20)).quiet
                assert clock() == 10
                s.send("are you there?")
                await s.wait()
                assert said(s)[-1].endswith("are you there?")
                await asyncio.sleep(1000)
                assert (s.life.lingering(), "late" in everything(s)) == ([], False)
                assert s.calls()[0].state is CallState.CANCELLED
        await asyncio.sleep(1000)

    run_virtual(main())
    assert returned == [1000]


def test_m84_calls_are_cancelled_by_mail_at_once() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(50, 60, 2), tools=[nap]), "go")
        await asyncio.sleep(3)
        s.cancel("call_0001", "call_0002", "call_0099")
        await s.wait()
        assert clock() == 3
        states = [m.state for m in s.transcript()[2].results]
        assert states == [CallState.CANCELLED, CallState.CANCELLED, CallState.COMPLETED]

    in_room(main)


def test_m82_m83_m86_pause_stops_at_the_next_point_and_resume_goes_on() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("n", model=naps(10), tools=[nap]), "go")
        await asyncio.sleep(2)
        s.send("three")
        s.send("four")
        s.pause()
        await ticks()
        assert s.status is SessionStatus.PAUSED
        last = s.transcript()[-1]
        assert (last.text, json.loads(last.results[0].content)["detached"]) == (
            "three\n\nfour",
            "paused",
        )
        assert s.cursor == 4
        receipt = s.send("while paused")
        assert receipt.recipient_status == "paused"
        await asyncio.sleep(20)
        assert s.status is SessionStatus.PAUSED
        assert s.unread == 2  # the word, and the result of the call that ran on

        s.resume()
        await s.wait()
        assert str(s.status) == "idle"
        assert everything(s).count("slept 10") == 1
        assert everything(s).count("while paused") == 1

    in_room(main)


def test_m82_pause_cancels_calls_and_any_mail_resumes_where_a_knob_says_so() -> None:
    async def main(room: Room) -> None:
        agent = Agent(
            "n",
            model=naps(10),
            tools=[nap],
            pause_cancels_calls=True,
            resume_on_any_mail=True,
        )
        s = room.spawn(agent, "go")
        await asyncio.sleep(2)
        s.pause()
        await ticks()
        assert [c.state for c in s.calls()] == [CallState.CANCELLED]
        s.send("hello")
        await s.wait()
        assert s.status is SessionStatus.IDLE

    in_room(main)


def test_m78_an_interrupt_may_cut_a_completion_and_amends_the_head_turn() -> None:
    """M-78, M-40, D5: no second user turn, and what was asked is stored before it is asked again."""

    async def main(room: Room) -> None:
        asked: list[tuple[str, str]] = []

        @script
        async def slow(turn: ScriptTurn) -> str:
            stored = [r.record for r in room.storage.rows(s.id) if hasattr(r.record, "role")]
            asked.append((turn.text, getattr(stored[-1], "text", "")))
            await asyncio.sleep(10)
            return f"answer to {turn.text}"

        s = room.spawn(Agent("s", model=slow, interrupt_completions=True), "one")
        await asyncio.sleep(4)
        s.interrupt("two")
        await s.wait()
        assert clock() == 14
        assert asked == [("one", "one"), ("one\n\ntwo", "one\n\ntwo")]
        assert [t.role for t in s.transcript()] == [Role.USER, Role.MODEL]
        assert [e.text for e in s.transcript()[0].mail] == ["one", "two"]

    in_room(main)


def test_m79_by_default_an_interrupt_waits_for_the_completion() -> None:
    async def main(room: Room) -> None:
        @script
        async def slow(turn: ScriptTurn) -> str:
            await asyncio.sleep(10)
            return f"answer to {turn.text}"

        s = room.spawn(Agent("s", model=slow), "one")
        await asyncio.sleep(4)
        s.interrupt("two")
        await s.wait()
        assert said(s) == ["answer to one", "answer to two"]

    in_room(main)


def test_a_tool_s_own_attach_time_is_a_first_rule() -> None:
    from postroom_runtime.calls.tool import tool

    async def main(room: Room) -> None:
        slow = tool(name="nap", attach_seconds=0.5)(nap)
        s = room.spawn(Agent("n", model=naps(5), tools=[slow]), "go")
        await asyncio.sleep(1)
        detached = json.loads(s.transcript()[2].results[0].content)["detached"]
        assert detached == "still running after 0.5s"

    in_room(main)


def test_a_failing_sibling_never_drops_a_suspended_call() -> None:
    async def main(room: Room) -> None:
        async def boom() -> str:
            """Fail."""
            raise ValueError("boom")

        @script
        def pair(turn: ScriptTurn) -> Talk:
            if turn.text != "go":
                return "ok"
            got = yield [call("nap", seconds=5), call("boom")]
            return str(got)

        s = room.spawn(Agent("p", model=pair, tools=[nap, boom], policy=attach(1)), "go")
        await s.wait()
        assert everything(s).count("slept 5") == 1
        assert everything(s).count("ValueError: boom") == 1

    in_room(main)
