"""Orders that come at an awkward moment: stop, pause, cancel, approve, close (M-84…M-86, M-91, M-97, M-134)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    ContinuationResult,
    Control,
    FromSession,
    FromUser,
    Outgoing,
    Pause,
    Priority,
    ToolCallFinished,
    UserMessage,
)
from postroom_runtime.contracts.errors import AlreadyAnswered
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.storage.clock import utc_now
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import run_virtual

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()


async def deploy(target: str) -> str:
    """Deploy."""
    ran.append(target)
    return f"deployed {target}"


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


POLICY = {
    "rules": [
        {"tool": "deploy", "disposition": {"tag": "defer", "reason": "sure?"}},
        {"tool": "nap", "disposition": {"tag": "runAsync", "attachSeconds": 0}},
    ]
}


def agent(*calls: Any, **knobs: Any) -> Agent:
    """One that calls these at "go", and thinks for ten seconds at "think"."""

    @script
    async def caller(turn: ScriptTurn) -> str:
        if turn.text == "think":
            await asyncio.sleep(10)
        return f"read: {turn.text}"

    @script
    def going(turn: ScriptTurn) -> Talk:
        if turn.text == "go" and calls:
            got = yield list(calls)
            return f"got {len(got)}"
        return f"read: {turn.text}"

    return Agent("a", model=going if calls else caller, tools=[deploy, nap], policy=POLICY, **knobs)


def states(s: Session) -> list[CallState]:
    return [each.state for each in s.calls()]


def clock() -> float:
    return asyncio.get_running_loop().time()


# ── Stop ──


def test_a_stop_while_a_run_only_waits_ends_what_runs_in_the_background() -> None:
    """M-85."""

    async def main(room: Room) -> None:
        s = room.spawn(agent(call("nap", seconds=1000), call("deploy", target="x")), "go")
        await asyncio.sleep(5)
        assert s.status is SessionStatus.WAITING
        s.stop()
        await s.wait()
        assert clock() == 5
        assert states(s) == [CallState.CANCELLED] * 2
        assert (s.status, s.end_reason) == (SessionStatus.IDLE, EndReason.STOPPED)
        assert [a.state for a in room.approvals(None)] == [ApprovalState.CANCELLED]
        turns = len(s.transcript())
        await asyncio.sleep(60)
        assert len(s.transcript()) == turns  # the ends wake nobody

    in_room(main)


def test_a_stop_in_a_completion_ends_what_runs_in_the_background_too() -> None:
    """M-85."""

    async def main(room: Room) -> None:
        @script
        async def slow(turn: ScriptTurn) -> Any:
            if turn.text == "go":
                return [call("nap", seconds=1000)]
            await asyncio.sleep(50)
            return "late"

        s = room.spawn(Agent("a", model=slow, tools=[nap], policy=POLICY), "go")
        await asyncio.sleep(5)
        assert states(s) == [CallState.RUNNING]
        s.stop()
        await s.wait()
        assert (clock(), states(s), said(s)[1:]) == (5, [CallState.CANCELLED], [])

    in_room(main)


def test_a_stopped_turn_says_of_each_call_that_it_was_cancelled() -> None:
    """M-85: also of one that had no attach time."""

    async def main(room: Room) -> None:
        async def hold(seconds: float) -> str:
            """Hold the turn."""
            return await nap(seconds)

        calls = [call("nap", seconds=100), call("hold", seconds=100), call("deploy", target="x")]
        one = agent(*calls)
        s = room.spawn(Agent("a", model=one.model, tools=[deploy, nap, hold], policy=POLICY), "go")
        await asyncio.sleep(1)
        s.stop()
        await s.wait()
        assert [m.state for m in s.transcript()[2].results] == [CallState.CANCELLED] * 3
        await asyncio.sleep(1)
        assert s.mail(unread=True) == []

    in_room(main)


# ── Interrupt and pause ──


def control(s: Session, *bodies: Any) -> None:
    """Put mail into its box in one breath."""
    storage = s.room.storage
    for outcome in storage.accept(
        [
            Outgoing(session=s.id, sender=FromUser(), body=body, priority=Priority.INTERRUPT)
            for body in bodies
        ]
    ):
        outcome.result()


def test_an_interrupt_behind_a_pause_does_not_cut_the_completion_for_ever() -> None:
    """M-78, M-82: it stands behind an order that ends the run, and is read by the next one."""

    async def main(room: Room) -> None:
        s = room.spawn(agent(interrupt_completions=True), "think")
        await asyncio.sleep(1)
        control(s, Control(Pause()), UserMessage("and this"))
        await asyncio.sleep(20)
        assert (s.status, said(s)) == (SessionStatus.PAUSED, ["read: think"])
        s.resume()
        await s.wait()
        assert said(s)[1:] == ["read: and this"]

    in_room(main)


def test_interrupts_cut_no_more_completions_than_there_are_rounds() -> None:
    """M-78: or they would spend without bound."""

    async def main(room: Room) -> None:
        asked: list[str] = []

        @script
        async def slow(turn: ScriptTurn) -> str:
            asked.append(turn.text)
            await asyncio.sleep(10)
            return "done"

        child = room.spawn(
            Agent("a", model=slow, interrupt_completions=True, max_iterations=3), "go"
        )
        parent = FromSession("s-0009", "boss")
        for _ in range(20):
            await asyncio.sleep(1)
            room.storage.accept(
                [
                    Outgoing(
                        session=child.id,
                        sender=parent,
                        body=AgentMessage("more"),
                        priority=Priority.INTERRUPT,
                    )
                ]
            )[0].result()
        await child.wait(timeout=60)
        assert len(asked) == 4  # three are cut, the last one is left to answer
        assert child.status is SessionStatus.CAPPED

    in_room(main)


# ── Approvals ──


def test_an_approval_that_is_answered_while_a_run_waits_lets_its_call_run() -> None:
    """M-72, M-97: and the run waits on."""

    async def main(room: Room) -> None:
        s = room.spawn(agent(call("nap", seconds=100), call("deploy", target="x")), "go")
        await asyncio.sleep(5)
        room.approve("ap-0001")
        await asyncio.sleep(1)
        assert ran == ["x"]
        assert s.running
        await s.wait()
        assert clock() == 100
        assert "\n".join(read(s)).count("deployed x") == 1
        assert "\n".join(read(s)).count("slept 100") == 1

    in_room(main)


@pytest.mark.parametrize("paused", [False, True])
def test_an_approval_answered_behind_mail_that_waits_lets_its_call_run(paused: bool) -> None:
    """M-96, M-97: the mail before it is read when its time comes."""

    async def main(room: Room) -> None:
        s = room.spawn(agent(call("deploy", target="x"), wake_on=["user"]), "go")
        await s.wait()
        if paused:
            s.pause()
            await ticks()
            s.send("later")
        else:
            room.storage.accept(
                [Outgoing(session=s.id, sender=FromSession("s-9", "p"), body=AgentMessage("later"))]
            )[0].result()
        await ticks()
        turns = len(s.transcript())
        room.approve("ap-0001")
        await s.wait()
        assert ran == ["x"]
        assert len(s.transcript()) == turns
        assert [e.body.kind for e in s.mail(unread=True)][1:] == [ContinuationResult.kind]

    in_room(main)


def test_m84_calls_are_cancelled_by_an_order_behind_mail_that_waits() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(agent(call("nap", seconds=1000)), "go")
        await asyncio.sleep(1)
        s.pause()
        await ticks()
        s.send("later")
        await ticks()
        s.cancel("call_0001")
        await ticks()
        assert (states(s), s.status) == ([CallState.CANCELLED], SessionStatus.PAUSED)

    in_room(main)


def reopened(storage: MemoryStorage) -> MemoryStorage:
    return MemoryStorage(rows=storage.rows())


def life(storage: MemoryStorage, act: Callable[[Room], Any]) -> None:
    """Let a kernel live on what the last one stored."""

    async def main() -> None:
        room = Room(storage, name="memory", now=utc_now)
        room.attach()
        await act(room)

    run_virtual(main())


def test_m91_an_answer_of_the_last_kernel_waits_for_a_word_in_this_one() -> None:
    one = agent(call("deploy", target="x"))

    async def asks(room: Room) -> None:
        await room.spawn(one, "go").wait()

    async def approves(room: Room) -> None:
        room.approve("ap-0001")  # its agent is not defined: nobody reads the answer

    async def looks(room: Room) -> None:
        room.define(one)
        await asyncio.sleep(60)
        assert ran == []
        assert room.session("a").idle

    async def goes_on(room: Room) -> None:
        room.define(one)
        room.session("a").resume()
        await room.session("a").wait()
        assert ran == ["x"]
        assert "\n".join(read(room.session("a"))).count("deployed x") == 1

    storage = MemoryStorage()
    for act in (asks, approves, looks, goes_on):
        life(storage, act)
        storage = reopened(storage)


def test_an_answer_given_in_this_kernel_is_a_word_in_it() -> None:
    """M-91, M-97."""
    one = agent(call("deploy", target="x"))

    async def asks(room: Room) -> None:
        await room.spawn(one, "go").wait()

    async def approves(room: Room) -> None:
        room.define(one)
        room.approve("ap-0001")
        await room.session("a").wait()
        assert ran == ["x"]

    storage = MemoryStorage()
    for act in (asks, approves):
        life(storage, act)
        storage = reopened(storage)


def test_m91_a_paused_session_that_any_mail_resumes_is_not_resumed_by_a_restart() -> None:
    one = agent(call("nap", seconds=1000), resume_on_any_mail=True)

    async def pauses(room: Room) -> None:
        s = room.spawn(one, "go")
        await asyncio.sleep(1)
        s.pause()
        await ticks()
        assert s.status is SessionStatus.PAUSED

    async def looks(room: Room) -> None:
        room.define(one)
        s = room.session("a")
        turns = len(s.transcript())
        await asyncio.sleep(60)
        assert (states(s), len(s.transcript())) == ([CallState.ORPHANED], turns)
        s.send("well?")
        await s.wait()
        assert "orphaned" in read(s)[-1]

    storage = MemoryStorage()
    for act in (pauses, looks):
        life(storage, act)
        storage = reopened(storage)


# ── Close ──


def finished(s: Session) -> list[str]:
    ends = (ToolCallFinished, ContinuationResult)
    return [each.body.call for each in s.mailbox.unread(0) if isinstance(each.body, ends)]


@pytest.mark.parametrize("waiting", [True, False])
def test_m134_a_closed_session_leaves_no_call_and_no_question_open(waiting: bool) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(agent(call("nap", seconds=1000), call("deploy", target="x")), "go")
        await asyncio.sleep(1)
        if not waiting:
            s.pause()
            await ticks()
        s.close()
        await ticks()
        assert s.status is SessionStatus.CLOSED
        assert states(s) == [CallState.CANCELLED] * 2
        stored = {
            row.record.id: row.record.state
            for row in room.storage.rows(s.id)
            if isinstance(row.record, Call)
        }
        assert set(stored.values()) == {CallState.CANCELLED}
        assert sorted(finished(s)) == ["call_0001", "call_0002"]
        assert room.approvals() == []
        with pytest.raises(AlreadyAnswered, match="already cancelled"):
            room.approve("ap-0001")
        await asyncio.sleep(2000)
        assert ran == []

    in_room(main)


# ── Looking from another thread ──


class Slow(MemoryStorage):
    """A store that reads slowly for everybody but the main thread."""

    reading, go = threading.Event(), threading.Event()

    def rows(self, *args: Any, **given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self.reading.set()
            assert self.go.wait(30)
        return super().rows(*args, **given)


def test_a_session_that_another_thread_just_looks_at_is_not_taken_for_empty() -> None:
    """M-64: its mail would be passed over as told already, and a result lost."""
    one = agent(call("nap", seconds=5))

    async def goes(room: Room) -> None:
        s = room.spawn(one, "go")
        await asyncio.sleep(1)
        s.pause()
        await asyncio.sleep(60)
        assert len(s.mail(unread=True)) == 1

    async def looks(room: Room) -> None:
        s = room.session("a")
        looking = threading.Thread(target=s.calls)
        looking.start()
        assert Slow.reading.wait(30)
        threading.Timer(0.1, Slow.go.set).start()
        assert len(s.mail(unread=True)) == 1
        assert len(s.transcript()) == 4
        looking.join()

    first = MemoryStorage()
    life(first, goes)
    life(Slow(rows=first.rows()), looks)


def test_m82_who_waits_after_a_pause_at_rest_finds_the_session_paused() -> None:
    """M-82: an order that is not taken in yet is something to wait for."""

    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi")
        await s.wait()
        s.pause()
        result = await s.wait(timeout=5)
        assert s.status is SessionStatus.PAUSED
        assert result.text == "echo is paused"

    in_room(main)
