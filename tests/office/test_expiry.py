"""Questions that nobody answers in time: refused once, on a clock that jumps and over restarts."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from office.rooms import Talk, read, ticks
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Notification
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import run_virtual

HOUR = 3600.0
DAY = 24 * HOUR

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()


class Clock:
    """A wall clock that goes with the loop, and on from life to life."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> datetime:
        loop = asyncio._get_running_loop()
        seconds = self.passed + (loop.time() if loop is not None else 0.0)
        return datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


async def deploy(target: str) -> str:
    """Deploy."""
    ran.append(target)
    return f"deployed {target}"


POLICY = {"rules": [{"tool": "deploy", "disposition": {"tag": "defer", "reason": "may I?"}}]}


@script
def deploying(turn: ScriptTurn) -> Talk:
    if turn.text.startswith("deploy"):
        yield [call("deploy", target=each) for each in turn.text.split()[1:]]
    return "done"


CODER = Agent("coder", model=deploying, tools=[deploy], policy=POLICY)


def on_a_clock(main: Callable[[Room], Awaitable[None]], clock: Clock | None = None) -> None:
    async def opened() -> None:
        async with open_room(now=clock or Clock()) as room:
            await main(room)

    run_virtual(opened())


async def asking(room: Room, *targets: str) -> Session:
    s = room.spawn(CODER, " ".join(["deploy", *targets]))
    await s.wait()
    return s


def states(room: Room) -> list[str]:
    return [str(a.state) for a in room.approvals(None)]


def test_a_question_that_nobody_answers_in_a_day_is_refused_and_its_agent_is_told_why() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        (asked,) = room.approvals()
        assert asked.asked_at is not None
        assert asked.expires_at == asked.asked_at + timedelta(days=1)
        await asyncio.sleep(DAY - 1)
        assert states(room) == ["pending"]
        await asyncio.sleep(2)
        await s.wait()
        assert states(room) == ["expired"]
        (ended,) = s.calls()
        words = "Tool 'deploy' was not approved: the question expired, nobody answered within 24 h"
        assert (ended.state, ended.result) == (CallState.FAILED, words)
        assert read(s)[-1].endswith(words)
        with pytest.raises(AlreadyAnswered, match="ap-0001 was already expired; that stands"):
            room.approve("ap-0001")
        assert ran == []

    on_a_clock(main)


def test_i28_an_expired_card_is_closed_in_the_inbox() -> None:
    async def main(room: Room) -> None:
        await asking(room, "prod")
        await asyncio.sleep(DAY + 1)
        entry = room.inbox("coder")[-1].body
        assert isinstance(entry, Notification)
        assert (entry.type, entry.content) == ("approval_resolved", "ap-0001 expired")
        assert entry.metadata["decision"] == "expired"

    on_a_clock(main)


@pytest.mark.parametrize("answer", ["approve", "deny", "complete", "cancel"])
def test_what_was_answered_does_not_expire(answer: str) -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        match answer:
            case "approve":
                room.approve("ap-0001")
            case "deny":
                room.deny("ap-0001")
            case "complete":
                room.complete("ap-0001", "by hand")
            case _:
                s.cancel("call_0001")
        await s.wait()
        before = (states(room), len(room.inbox("coder")), s.calls())
        await asyncio.sleep(2 * DAY)
        assert (states(room), len(room.inbox("coder")), s.calls()) == before
        assert "expired" not in before[0]

    on_a_clock(main)


def test_the_time_can_be_set_for_questions_to_come() -> None:
    async def main(room: Room) -> None:
        assert room.approval_seconds == DAY
        s = await asking(room, "a")
        room.approval_seconds = 90
        s.send("deploy b")
        await s.wait()
        room.approval_seconds = None
        s.send("deploy c")
        await s.wait()
        await asyncio.sleep(91)
        assert states(room) == ["pending", "expired", "pending"]
        assert "nobody answered within 90 s" in read(s)[-1]
        await asyncio.sleep(30 * DAY)
        assert states(room) == ["expired", "expired", "pending"]
        assert room.approvals()[0].expires_at is None

    on_a_clock(main)


@pytest.mark.parametrize("seconds", [0, -1, "90", True, float("nan"), float("inf"), 1e9])
def test_a_time_that_is_none_is_refused_with_the_rule(seconds: Any) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match=r"approval_seconds=.*number of seconds above 0"):
            room.approval_seconds = seconds
        with pytest.raises(ConfigError, match="approval_seconds"):
            open_room(approval_seconds=seconds)
        assert room.approval_seconds == DAY

    on_a_clock(main)


def test_a_room_is_opened_with_the_time_its_owner_takes() -> None:
    assert open_room().approval_seconds == DAY
    assert open_room(approval_seconds=60).approval_seconds == 60
    assert open_room(approval_seconds=None).approval_seconds is None


def test_an_answer_that_comes_after_its_time_is_refused_although_no_timer_has_fired() -> None:
    """A machine that slept: the clock has gone on, the loop has not."""
    clock = Clock()

    async def main(room: Room) -> None:
        s = await asking(room, "a", "b")
        clock.passed += DAY
        for answer in (room.approve, lambda key: room.complete(key, "by hand")):
            with pytest.raises(AlreadyAnswered, match="ap-0001 was already expired"):
                answer("ap-0001")
        await s.wait()
        assert states(room) == ["expired", "pending"]
        assert (ran, s.calls()[0].state) == ([], CallState.FAILED)

    on_a_clock(main, clock)


# ── over a restart ──


def lives(*acts: tuple[Callable[[Room], Awaitable[None]], float]) -> None:
    """Run each act in a kernel life of its own over one journal, with so many seconds after it."""
    storage, clock = MemoryStorage(), Clock()
    for act, seconds in acts:
        storage = MemoryStorage(rows=storage.rows())
        room = Room(storage, name="memory", now=clock)

        async def life(room: Room = room, act: Callable[[Room], Awaitable[None]] = act) -> float:
            room.attach()
            await act(room)
            return asyncio.get_running_loop().time()

        clock.passed += run_virtual(life()) + seconds


async def _asks(room: Room) -> None:
    await asking(room, "prod")


def test_what_ran_out_of_time_while_no_kernel_was_there_is_refused_when_the_room_is_opened() -> (
    None
):
    async def looks(room: Room) -> None:
        assert states(room) == ["expired"]
        entries = len(room.inbox("coder"))
        assert entries == 2
        room.define(CODER)
        s = room.session("coder")
        s.resume()
        await s.wait()
        assert [c.state for c in s.calls()] == [CallState.FAILED]
        assert "the question expired" in read(s)[-1]
        assert len(room.inbox("coder")) == entries

    async def looks_again(room: Room) -> None:
        assert (states(room), len(room.inbox("coder"))) == (["expired"], 2)

    lives((_asks, DAY + 1), (looks, 0), (looks_again, 0))
    assert ran == []


def test_a_question_has_the_rest_of_its_time_after_a_restart() -> None:
    async def waits(room: Room) -> None:
        room.define(CODER)
        await asyncio.sleep(13 * HOUR)
        assert states(room) == ["pending"]
        await asyncio.sleep(2 * HOUR)
        assert states(room) == ["expired"]
        assert [c.state for c in room.session("coder").calls()] == [CallState.FAILED]

    lives((_asks, 10 * HOUR), (waits, 0))


def test_a_question_that_expires_while_its_agent_is_not_defined_is_refused_when_it_is() -> None:
    async def waits(room: Room) -> None:
        await asyncio.sleep(DAY)
        assert states(room) == ["expired"]
        assert [c.state for c in room.session("coder").calls()] == [CallState.DEFERRED]
        room.define(CODER)
        await ticks()
        assert [c.state for c in room.session("coder").calls()] == [CallState.FAILED]

    lives((_asks, HOUR), (waits, 0))


def test_a_question_answered_in_the_next_kernel_does_not_expire_there() -> None:
    async def answers(room: Room) -> None:
        room.define(CODER)
        room.approve("ap-0001")
        await asyncio.sleep(2 * DAY)
        assert states(room) == [str(ApprovalState.APPROVED)]
        assert ran == ["prod"]

    lives((_asks, HOUR), (answers, 0))


def test_a_question_that_expired_in_a_kernel_without_its_agent_ends_its_call_in_the_next() -> None:
    """The kernel ends before its session hears of it; the first run here takes it up (M-91)."""

    async def looks(room: Room) -> None:
        assert states(room) == ["expired"]

    async def goes_on(room: Room) -> None:
        room.define(CODER)
        s = room.session("coder")
        s.resume()
        await s.wait()
        assert [c.state for c in s.calls()] == [CallState.FAILED]
        assert "the question expired" in read(s)[-1]

    lives((_asks, DAY + 1), (looks, 0), (goes_on, 0))


def test_a_question_that_was_answered_leaves_no_timer_behind() -> None:
    """Where nothing is left to come, the loop of a test says so; it does not go on for a day first."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def main(room: Room) -> None:
        loops.append(asyncio.get_running_loop())
        await asking(room, "a", "b")
        room.approve("ap-0001")
        room.session("coder").cancel("call_0002")
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="deadlock"):
        on_a_clock(main)
    assert loops[0].time() < HOUR


def test_the_picture_of_a_room_shows_an_expired_question_as_nobody_s_answer() -> None:
    async def main(room: Room) -> None:
        await asking(room, "prod")
        await asyncio.sleep(DAY + 1)
        told = [line.split() for line in repr(room.sequence()).splitlines()]
        assert ["coder", "expired", "deploy", "[approval,", "ap-0001]"] in told

    on_a_clock(main)
