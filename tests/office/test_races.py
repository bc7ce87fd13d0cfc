"""What goes wrong only when two things happen at one moment: each found by a seeded schedule."""

import asyncio
from typing import Any

from office.rooms import Talk, in_room, lives, read, ticks
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import CrashingStorage, run_seeded, virtual_now

ASK = {"tool": "deploy", "disposition": {"tag": "defer", "reason": "may it?"}}
AT_ONCE = {"tool": "nap", "disposition": {"tag": "runAsync", "attachSeconds": 0}}


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


async def deploy(target: str) -> str:
    """Deploy."""
    return f"deployed to {target}"


def everything(s: Session) -> str:
    """All that its model ever read."""
    return "\n".join([*read(s), *(m.content for t in s.transcript() for m in t.results)])


def calling(*steps: Any) -> Any:
    """A script that calls these, one turn each, then says done; and that to all later mail."""

    @script
    def caller(turn: ScriptTurn) -> Talk:
        if turn.text == "go":
            for step in steps:
                _ = yield step
        return "done"

    return caller


def test_m64_a_deferred_call_answered_by_hand_beside_an_attached_one_is_read_once() -> None:
    """Its result is in its tool message by then, and must not come as mail too."""

    async def main(room: Room) -> None:
        both = [call("deploy", target="x"), call("nap", seconds=5)]
        agent = Agent("a", model=calling(both), tools=[deploy, nap], policy={"rules": [ASK]})
        s = room.spawn(agent, "go")
        await asyncio.sleep(1)
        room.complete("ap-0001", "by hand")
        await s.wait()
        assert [m.content for m in s.transcript()[2].results] == ["by hand", "slept 5"]
        assert everything(s).count("by hand") == 1

    in_room(main)


def test_m63_a_deferred_result_read_by_a_status_call_comes_as_one_line() -> None:
    async def main(room: Room) -> None:
        status = call("get-tool-call-status", tool_call_id="call_0001", wait_for_completion=True)
        agent = Agent(
            "a",
            model=calling(call("deploy", target="x"), [status, call("nap", seconds=5)]),
            tools=[deploy, nap],
            policy={"rules": [ASK]},
        )
        s = room.spawn(agent, "go")
        await asyncio.sleep(1)
        room.complete("ap-0001", "by hand")
        await s.wait()
        assert everything(s).count("by hand") == 1
        assert "deferred call call_0001 (deploy) completed, already read]" in everything(s)

    in_room(main)


def test_m68_a_call_that_holds_the_last_place_can_be_looked_at_and_cancelled() -> None:
    async def main(room: Room) -> None:
        told = [
            call("get-tool-call-status", tool_call_id="call_0001"),
            call("list-running-tool-calls"),
            call("cancel-tool-call", tool_call_id="call_0001"),
        ]
        agent = Agent(
            "a",
            model=calling(call("nap", seconds=1000), told),
            tools=[nap],
            policy={"rules": [AT_ONCE]},
            max_concurrency=1,
        )
        s = room.spawn(agent, "go")
        await s.wait()
        assert asyncio.get_running_loop().time() == 0
        status, listed, cancelled = (m.value for m in s.transcript()[4].results)
        assert isinstance(status, dict) and isinstance(cancelled, dict)
        assert (status["status"], cancelled["cancelled"]) == ("running", True)
        assert isinstance(listed, list) and len(listed) > 0

    in_room(main)


def test_m67_an_interrupt_ends_a_status_call_that_waits_with_what_is_known_by_then() -> None:
    """It is sugar for wait: it answers, and its answer does not come as mail later."""

    async def main(room: Room) -> None:
        status = call("get-tool-call-status", tool_call_id="call_0001", wait_for_completion=True)
        agent = Agent(
            "a",
            model=calling(call("nap", seconds=20), status),
            tools=[nap],
            policy={"rules": [AT_ONCE]},
        )
        s = room.spawn(agent, "go")
        await asyncio.sleep(5)
        s.interrupt("well?")
        await ticks()
        (message,) = s.transcript()[4].results
        assert isinstance(message.value, dict)
        assert (message.value["status"], s.transcript()[4].text) == ("running", "well?")
        assert message.state is CallState.COMPLETED
        await s.wait()
        assert everything(s).count("slept 20") == 1

    in_room(main)


def test_m65_a_pause_ends_a_wait_and_its_answer_is_in_its_tool_message() -> None:
    async def main(room: Room) -> None:
        waits = call("wait", **{"for": "mail", "timeout_seconds": 60})
        s = room.spawn(Agent("a", model=calling(waits)), "go")
        await asyncio.sleep(5)
        s.pause()
        await ticks()
        assert s.status is SessionStatus.PAUSED
        assert [m.value for m in s.transcript()[2].results] == [{"woken_by": "control"}]

    in_room(main)


def test_m71_calls_of_a_paused_session_are_orphaned_too_when_their_kernel_ends() -> None:
    """A pause detaches calls, which go on; nothing but a kernel's start can tell that they died."""
    agent = Agent("a", model=calling(call("nap", seconds=1000)), tools=[nap])

    async def first(room: Room) -> None:
        s = room.spawn(agent, "go")
        await ticks()
        s.pause()
        await ticks()
        assert (s.status, len(s.life.table.open_calls())) == (SessionStatus.PAUSED, 1)

    async def second(room: Room) -> None:
        room.define(agent)
        s = room.session("a")
        assert s.status is SessionStatus.PAUSED
        assert [c.state for c in s.calls()] == [CallState.ORPHANED]
        await ticks()
        assert s.idle
        s.resume()
        await s.wait()
        assert everything(s).count("orphaned: the kernel ended while nap ran") == 1

    lives(first, second)


def test_m63_a_result_that_a_status_call_tells_by_mail_is_told_once() -> None:
    """A status call that is itself detached answers by mail, beside the mail of what it looked at."""

    async def stay(seconds: float) -> str:
        """Sleep, attached."""
        await asyncio.sleep(seconds)
        return "stayed"

    async def main(room: Room) -> None:
        status = call("get-tool-call-status", tool_call_id="call_0001", wait_for_completion=True)
        policy = {
            "default": {"tag": "runAsync", "attachSeconds": 0},
            "rules": [{"tool": "stay", "disposition": {"tag": "runSync"}}],
        }
        agent = Agent(
            "a",
            model=calling(call("nap", seconds=5), [status, call("stay", seconds=9)]),
            tools=[nap, stay],
            policy=policy,
        )
        s = room.spawn(agent, "go")
        await s.wait()
        assert everything(s).count("slept 5") == 1
        assert "tool call call_0001 (nap) completed, already read]" in everything(s)

    in_room(main)


def test_m91_what_an_earlier_kernel_approved_waits_for_the_first_run_also_of_a_paused_session() -> (
    None
):
    agent = Agent(
        "a", model=calling(call("deploy", target="x")), tools=[deploy], policy={"rules": [ASK]}
    )

    async def first(room: Room) -> None:
        s = room.spawn(agent, "go")
        await s.wait()
        s.pause()
        await ticks()

    async def second(room: Room) -> None:
        room.approve("ap-0001")  # nothing comes of it: the agent is not defined in this kernel

    async def third(room: Room) -> None:
        room.define(agent)
        s = room.session("a")
        await ticks()
        assert s.idle
        assert [c.state for c in s.calls()] == [CallState.DEFERRED]
        s.resume()
        await s.wait()
        assert [c.state for c in s.calls()] == [CallState.COMPLETED]
        assert everything(s).count("deployed to x") == 1

    lives(first, second, third)


def test_an_answer_in_the_breath_of_the_question_is_not_lost() -> None:
    """The task that asked is not over yet when the owner's word lets its call go on."""

    async def main() -> None:
        room = Room(CrashingStorage(), name="memory", now=virtual_now)
        agent = Agent(
            "a",
            model=calling(call("deploy", target="x")),
            tools=[deploy],
            policy={"rules": [ASK]},
        )

        def at_once(event: Event) -> None:
            if event.kind == EventKind.APPROVAL_REQUESTED:
                room.approve("ap-0001")

        room.delivery.broadcast.subscribe(at_once)
        s = room.spawn(agent, "go")
        await s.wait()
        assert [c.state for c in s.calls()] == [CallState.COMPLETED]

    for seed in range(30):
        run_seeded(main(), seed)


def _slow(seconds: float) -> Any:
    @script
    async def slow(turn: ScriptTurn) -> str:
        await asyncio.sleep(seconds)
        return f"answer to {turn.text}"

    return slow


def test_m82_a_pause_behind_the_word_that_cuts_a_completion_is_obeyed() -> None:
    """R4 is a receive point: the word is kept in a stored turn, and nothing is asked (M-86)."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("a", model=_slow(10), interrupt_completions=True), "one")
        await asyncio.sleep(1)
        s.interrupt("two")
        s.pause()
        await asyncio.sleep(60)
        assert (s.status, s.cursor) == (SessionStatus.PAUSED, 3)
        assert read(s) == ["one", "two"]
        assert len(s.transcript()) == 2
        s.resume()
        await s.wait()
        assert len(s.transcript()) == 3

    in_room(main)


def test_m85_a_stop_that_comes_while_a_completion_is_being_cut_is_obeyed() -> None:
    async def main() -> None:
        room = Room(CrashingStorage(), name="memory", now=virtual_now)
        calls = [call("nap", seconds=1000), call("nap", seconds=0)]

        @script
        async def slow(turn: ScriptTurn) -> Any:
            if turn.text == "go":
                return calls
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                s.stop()
                raise
            return "done"

        agent = Agent(
            "a",
            model=slow,
            tools=[nap],
            policy={"rules": [AT_ONCE]},
            interrupt_completions=True,
        )
        s = room.spawn(agent, "go")
        await asyncio.sleep(1)
        s.interrupt("well?")
        await asyncio.sleep(60)
        assert s.end_reason == EndReason.STOPPED
        assert s.life.table.open_calls() == []
        room.close()

    run_seeded(main(), 1)


def test_m84_an_order_to_cancel_that_is_read_between_two_turns_is_obeyed() -> None:
    """Nobody waits for anything then: the next turn reads past it."""

    async def main(late: int) -> None:
        room = Room(CrashingStorage(lag=lambda: 3), name="memory", now=virtual_now)

        @script
        async def thinking(turn: ScriptTurn) -> Any:
            if turn.text == "go":
                return call("nap", seconds=1000)
            await asyncio.sleep(2)
            return "done"

        agent = Agent("a", model=thinking, tools=[nap], policy={"rules": [AT_ONCE]})
        s = room.spawn(agent, "go")
        await asyncio.sleep(1)
        s.send("more")
        await asyncio.sleep(1)
        await ticks(late)
        s.cancel("call_0001")
        await asyncio.sleep(1)
        assert [c.state for c in s.calls()] == [CallState.CANCELLED]
        room.close()

    for late in range(12):
        run_seeded(main(late), late)
