"""When an agent may read its own owner inbox, and what lands there by itself (I-1, I-2, I-12, I-15)."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.envelopes import AT
from inbox_guard import guarded
from office.busy_room import fill
from office.rooms import in_room, lives, said
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    Envelope,
    FromSession,
    FromSystem,
    FromUser,
    Notification,
    Priority,
    Sender,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.principal import Principal
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.own_inbox import OwnInbox
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.stepper.ownership import owner_driven

SECRET = "the owner alone should look at this"


@script
def reading(turn: ScriptTurn) -> Any:
    """Read the inbox, and whatever else is asked for in the first line."""
    if "nap" in turn.text:
        yield call("nap")
    wanted = yield call("session-read", session="inbox")
    missing = yield call("session-read", session="zzzz")
    return json.dumps([wanted, missing])


async def nap() -> str:
    """Sleep."""
    await asyncio.sleep(10)
    return "slept"


def reader(**knobs: Any) -> Agent:
    given: dict[str, Any] = {"mail_scope": "all", "wake_on": ["user", "tool", "parent", "peer"]}
    return Agent("reader", tools=[nap], **{"model": reading, **given, **knobs})


async def got(s: Session) -> tuple[bool, Any]:
    """Return whether the last run read the inbox, and what it got."""
    await s.wait()
    wanted, missing = json.loads(said(s)[-1])
    if isinstance(wanted, dict):
        return True, wanted
    assert wanted.replace("inbox", "X") == missing.replace("zzzz", "X")
    return False, wanted


def in_room_of(act: Callable[[Room, Session], Any], **knobs: Any) -> None:
    async def main(room: Room) -> None:
        room.define(Agent("other"))
        s = room.spawn(reader(**knobs), name="r")
        room.notify("reader", SECRET, metadata={"a": 1})
        room.notify("other", "of another agent")
        await act(room, s)

    in_room(main)


# ── I-15 ──


@pytest.mark.reads_inbox
def test_i15_in_a_turn_of_its_owner_an_agent_reads_its_own_inbox() -> None:
    async def act(room: Room, s: Session) -> None:
        room.send("r", "what is in there?")
        read_it, inbox = await got(s)
        assert read_it
        (entry,) = room.inbox("reader")
        assert inbox == {
            "id": "inbox",
            "agent": "reader",
            "entries_in_all": 1,
            "entries": [
                {
                    "id": entry.id,
                    "type": "notification",
                    "text": SECRET,
                    "metadata": {"a": 1},
                    "at": entry.accepted_at.isoformat(),
                }
            ],
        }
        assert room.inbox("reader").unread == 1  # looking is not the owner's looking

    in_room_of(act)


def test_i15_a_turn_of_a_peer_a_child_or_a_timer_gets_the_answer_of_a_missing_session() -> None:
    async def act(room: Room, s: Session) -> None:
        peer = room.spawn("echo", name="peer")
        room.define(Agent("writer", mail_scope="all"))
        writer = room.spawn("writer", name="writer")
        room.send("r", "read it", sender=writer)
        assert not (await got(s))[0]
        room.after(5, s, "read it")
        await asyncio.sleep(6)
        assert len(said(s)) >= 2
        assert not (await got(s))[0]
        assert peer.idle

    in_room_of(act)


@pytest.mark.parametrize("role", ["user", "guest", "admin"])
def test_i15_a_turn_of_another_person_does_not_read_it(role: str) -> None:
    async def act(room: Room, s: Session) -> None:
        room.as_(Principal("ada", role)).send("r", "read it")
        assert not (await got(s))[0]

    in_room_of(act)


@pytest.mark.parametrize("who", ["user", "timer"])
def test_i15_a_run_of_the_owner_that_has_heard_somebody_else_reads_no_more(who: str) -> None:
    async def act(room: Room, s: Session) -> None:
        room.send("r", "take a nap first")
        await asyncio.sleep(1)
        if who == "user":
            room.as_(Principal("ada")).send("r", "and me?")
        else:
            room.after(1, s, "and me?")
        assert not (await got(s))[0]

    in_room_of(act)


@pytest.mark.reads_inbox
def test_i15_a_letter_of_an_agent_meanwhile_takes_nothing_from_the_owner() -> None:
    async def act(room: Room, s: Session) -> None:
        writer = room.spawn(Agent("writer", mail_scope="all"), name="writer")
        room.send("r", "take a nap first")
        await asyncio.sleep(1)
        room.send("r", "by the way", sender=writer)
        assert (await got(s))[0]

    in_room_of(act)


def test_i15_who_could_have_started_a_run_besides_the_owner_counts() -> None:
    async def act(room: Room, s: Session) -> None:
        writer = room.spawn(Agent("writer", mail_scope="all"), name="writer")
        s.pause()
        await s.wait()
        room.send("r", "read it", sender=writer)
        room.send("r", "read it")
        s.resume()
        assert not (await got(s))[0]

    in_room_of(act)


def test_i15_between_runs_nobody_reads_whoever_the_last_one_was_for() -> None:
    """A call that was held back and runs at rest is nobody's turn."""

    @script
    def silent(turn: ScriptTurn) -> str:
        return "ok"

    async def act(room: Room, s: Session) -> None:
        await s.ask("hello")
        assert OwnInbox(s.life, room.owner_inbox).read("inbox", 5) is None

    in_room_of(act, model=silent)


def test_i4_i15_the_inbox_of_another_agent_is_unknown_even_to_the_owner_s_turn() -> None:
    @script
    def prying(turn: ScriptTurn) -> Any:
        other = yield call("session-read", session="inbox@other")
        missing = yield call("session-read", session="zzzz")
        return json.dumps([other, missing])

    async def act(room: Room, s: Session) -> None:
        room.send("r", "go")
        await s.wait()
        other, missing = json.loads(said(s)[-1])
        assert other.replace("inbox@other", "X") == missing.replace("zzzz", "X")

    in_room_of(act, model=prying)


def test_i7_an_owner_s_turn_does_not_find_inboxes_by_listing_or_search() -> None:
    @script
    def looking(turn: ScriptTurn) -> Any:
        listed = yield call("list-sessions")
        found = yield call("search-sessions", query="owner alone")
        return json.dumps([[each["name"] for each in listed], found])

    async def act(room: Room, s: Session) -> None:
        room.send("r", "go")
        await s.wait()
        assert json.loads(said(s)[-1]) == [["r"], []]
        assert [each.name for each in room.sessions()] == ["r"]
        assert len(room.sessions(inbox=True)) == 4  # the owner's own listing has them

    in_room_of(act, model=looking)


# ── whose word a run is the answer to, alone ──


def mail(sender: Sender, body: Body, seq: int = 1) -> Envelope:
    return Envelope(
        id=f"m-{seq}",
        seq=seq,
        session="s-0001",
        sender=sender,
        priority=Priority.NORMAL,
        hops=0,
        accepted_at=AT,
        body=body,
    )


def turns(*letters: list[Envelope]) -> list[Turn]:
    return [
        Turn(index=n, role=Role.USER, text="x", mail=tuple(mails))
        for n, mails in enumerate(letters, 1)
    ]


OWNERS = mail(FromUser(), UserMessage("go"))
PEERS = mail(FromSession("s-0002", "a"), AgentMessage("go"))
OTHERS = [
    mail(FromUser("ada"), UserMessage("go")),
    mail(FromSystem("timer:t-0001"), UserMessage("go")),
]
QUIET = [
    PEERS,
    mail(FromSystem("watch:w-0001"), WatchedEvent("s-0002", "run.stopped")),
    mail(FromSystem("x"), ToolCallFinished("call_0001", "t", "completed")),
]


def test_i15_it_fails_closed() -> None:
    always: Callable[[Envelope], bool] = lambda mail: True  # noqa: E731
    assert not owner_driven([], always)
    assert not owner_driven(turns([]), always)
    assert not owner_driven([Turn(index=1, role=Role.MODEL, text="x")], always)
    assert not owner_driven(turns([PEERS]), always)
    assert not owner_driven(turns([PEERS], [OWNERS]), always)
    assert not owner_driven(turns([OWNERS, PEERS]), always)
    assert owner_driven(turns([OWNERS, PEERS]), lambda mail: mail is not PEERS)
    assert not owner_driven(turns([mail(FromUser(), Notification("go"))]), always)


@given(
    st.lists(st.lists(st.sampled_from([OWNERS, *QUIET]), max_size=3), max_size=3),
    st.sampled_from(OTHERS),
    st.data(),
)
def test_i15_no_run_that_has_heard_another_person_is_its_owner_s(
    rest: list[list[Envelope]], other: Envelope, data: st.DataObject
) -> None:
    run = [[OWNERS], *rest]
    assert owner_driven(turns(*run), lambda mail: True)
    place = data.draw(st.integers(0, len(run) - 1))
    run[place] = [*run[place], other]
    assert not owner_driven(turns(*run), lambda mail: False)


# ── nothing runs, nothing is read ──


def test_i12_i35_a_thousand_entries_start_nothing_and_are_all_there() -> None:
    """I-12, I-35, trap 9: no run, no turn, no bound, one entry each."""

    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi")
        await s.wait()
        before = room.storage.count(RowKind.TURN), room.storage.count(RowKind.EVENT)
        with guarded() as guard:
            for n in range(1000):
                room.notify("echo", f"notification number {n}")
            result = await room.drain()
        assert result.quiet
        assert guard.requests == 0
        assert (room.storage.count(RowKind.TURN), room.storage.count(RowKind.EVENT)) == before
        assert s.unread == 0
        assert [e.text for e in room.inbox("echo")] == [
            f"notification number {n}" for n in range(1000)
        ]
        assert (await s.ask("still there?")).text == "echo: still there?"

    in_room(main)


def test_i2_no_request_of_a_whole_busy_scenario_contains_inbox_text() -> None:
    """I-2: failures, budgets, approvals, refusals and notifications by the hundred."""

    async def main(room: Room) -> None:
        with guarded() as guard:
            for slug in ("planner", "reviewer", "coder", "writer"):
                room.define(Agent(slug))
                for n in range(10):
                    room.notify(slug, f"{slug}: the disk is {n} % full")
            await fill(room)
            for session in room.sessions():
                session.resume()
                await session.ask("What is in your inbox? What is in yours?")
            await room.drain()
        assert guard.leaked == []
        assert guard.requests > 20
        assert len(guard.entries) > 40
        types = {e.body.type for e in room.inbox() if isinstance(e.body, Notification)}
        assert types >= {"notification", "failed", "approval", "approval_resolved"}

    in_room(main)


@pytest.mark.reads_inbox
def test_the_guard_of_all_tests_sees_what_a_model_reads() -> None:
    async def act(room: Room, s: Session) -> None:
        with guarded() as guard:
            room.notify("reader", SECRET * 2)
            room.send("r", "read it")
            await s.wait()
        assert guard.leaked == [SECRET * 2]

    in_room_of(act)


# ── what lands by itself ──


def entries(room: Room, agent: str, type: str) -> list[Notification]:
    return [
        entry.body
        for entry in room.inbox(agent)
        if isinstance(entry.body, Notification) and entry.body.type == type
    ]


def test_i1_a_failure_lands_once_with_what_to_do() -> None:
    @script
    def fragile(turn: ScriptTurn) -> str:
        raise ValueError("cannot digest")

    async def main(room: Room) -> None:
        s = room.spawn(Agent("frail", model=fragile), "eat")
        await s.wait()
        (failed,) = entries(room, "frail", "failed")
        assert failed.content == (
            "frail failed: ValueError: cannot digest\n"
            "%resume frail lets it try again; %transcript frail shows how far it came."
        )
        assert entries(room, "frail", "poisoned") == []

    in_room(main)


def test_i1_mail_that_fails_a_run_twice_lands_once_and_new_mail_anew() -> None:
    @script
    def fragile(turn: ScriptTurn) -> str:
        if "poison" in turn.text:
            raise ValueError("cannot digest")
        return "fine"

    async def main(room: Room) -> None:
        s = room.spawn(Agent("frail", model=fragile), "poison")
        await s.wait()
        assert entries(room, "frail", "poisoned") == []
        for _ in range(3):
            s.resume()
            await s.wait()
        (poisoned,) = entries(room, "frail", "poisoned")
        assert poisoned.metadata["mail"] == ["m-0001"]
        assert "has failed twice on the same mail (m-0001)" in poisoned.content
        assert "%resume frail" in poisoned.content
        assert len(entries(room, "frail", "failed")) == 4

        assert (await s.ask("bread")).text == "fine"
        for _ in range(2):
            room.send("frail", "poison again")
            await s.wait()
        assert len(entries(room, "frail", "poisoned")) == 2

    in_room(main)


def test_i1_a_guard_that_denied_because_it_failed_lands_once() -> None:
    """I-1: so does an ``approve`` that failed; a guard that denies does not."""

    async def guard(tool: str) -> str:
        """Guard."""
        raise RuntimeError("no list of the allowed")

    @script
    def napping(turn: ScriptTurn) -> Any:
        yield call("nap")
        return "done"

    decorators = [{"tag": "before", "hook": {"tool": "guard"}}]
    policy = {"wrappers": [{"match": {"tool": "nap"}, "decorators": decorators}]}

    async def broken(name: str, arguments: Any) -> bool:
        raise RuntimeError("no list")

    async def never(name: str, arguments: Any) -> bool:
        return False

    async def main(room: Room) -> None:
        one = room.spawn(Agent("one", model=napping, tools=[nap, guard], policy=policy), "go")
        two = room.spawn(Agent("two", model=napping, tools=[nap], approve=broken), "go")
        three = room.spawn(Agent("three", model=napping, tools=[nap], approve=never), "go")
        await room.wait([one, two, three])
        (entry,) = entries(room, "one", "guard")
        assert "the guard guard failed, so nap was not run" in entry.content
        assert entry.content.endswith("Mend the guard, then let one try again: write to it.")
        assert entry.metadata["call"] == one.calls()[0].id
        (entry,) = entries(room, "two", "guard")
        assert "approve failed: RuntimeError: no list; so nap was not run" in entry.content
        assert entries(room, "three", "guard") == []

    in_room(main)


def test_i1_a_call_that_the_kernel_s_end_cut_off_lands_once() -> None:
    @script
    def napping(turn: ScriptTurn) -> Any:
        yield call("nap")
        return "done"

    agent = Agent("napper", model=napping, tools=[nap])

    async def first(room: Room) -> None:
        room.spawn(agent, "go", name="n")
        await asyncio.sleep(1)

    async def later(room: Room) -> None:
        (entry,) = entries(room, "napper", "orphaned")
        assert entry.content.startswith("nap (call_0001) of n was cut off by the end of the kernel")
        assert "%resume n" in entry.content
        assert entry.metadata["call"] == "call_0001"

    lives(first, later, later)


def test_i1_budget_and_autonomy_caps_land_with_what_to_do() -> None:
    @script
    def endless(turn: ScriptTurn) -> Any:
        while True:
            yield call("list-running-tool-calls")

    async def main(room: Room) -> None:
        s = room.spawn(Agent("busy", model=endless, max_iterations=2), "go")
        t = room.spawn(Agent("alone", model=endless, max_autonomous_rounds=2), "go")
        u = room.spawn(Agent("dear", model=endless, max_requests=2), "go")
        await room.wait([s, t, u])
        assert {x.status for x in (s, t, u)} == {SessionStatus.CAPPED}
        for slug, knob in (
            ("busy", "max_iterations"),
            ("alone", "max_autonomous_rounds"),
            ("dear", "max_requests"),
        ):
            (entry,) = entries(room, slug, "budget")
            assert entry.metadata["knob"] == knob
            assert "Write to it" in entry.content or knob in entry.content

    in_room(main)
