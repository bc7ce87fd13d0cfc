"""Watching: events of one session as mail of another, on a clock that jumps (M-125…M-128)."""

import asyncio
import threading
from typing import Any

import duckdb  # noqa: F401 - a memory room that is reopened is asked in SQL, and imports it then
import pytest

from office.rooms import Talk, in_room, lives, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import FromSystem, WatchedEvent
from postroom_runtime.contracts.errors import ConfigError, PostroomError, UnknownRecipient
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session


async def deploy_prod(target: str) -> str:
    """Deploy."""
    return f"deployed to {target}"


async def look(place: str) -> str:
    """Look."""
    return f"saw {place}"


@script
def works(turn: ScriptTurn) -> Talk:
    yield call("look", place="here")
    yield call("deploy_prod", target="staging")
    return "all done"


WORKER = Agent("worker", model=works, tools=[deploy_prod, look])


def pair(room: Room, **knobs: Any) -> tuple[Session, Session]:
    """A boss and its worker; the boss says back what it reads."""
    boss = room.spawn(Agent("boss", model="echo", **knobs), name="bea")
    return boss, room.spawn(WORKER, name="ann", parent=boss)


def events(session: Session) -> list[str]:
    return [e.body.event for e in session.mail() if isinstance(e.body, WatchedEvent)]


def test_m125_matching_events_come_as_mail_in_order_and_wake_the_watcher() -> None:
    """M-125, M-43: from the system, and it reads a header with JSON under it."""

    async def main(room: Room) -> None:
        boss, ann = pair(room)
        watch = room.watch(ann, into="bea", events=["run.stopped", "tool.completed"])
        assert (watch.id, watch.session, watch.into) == ("w-0001", ann.id, boss.id)
        ann.send("go")
        await room.wait()
        assert events(boss) == ["tool.completed", "tool.completed", "run.stopped"]
        assert {str(e.sender) for e in boss.mail()} == {str(FromSystem("watch:w-0001"))}
        (last,) = [e for e in boss.mail() if e.seq == 3]
        assert (
            f"[mail {last.id}: session {ann.id} run.stopped]\n"
            '{"name":"ann","reason":"answer","rounds":3,"text":"all done"}'
        ) in "\n\n".join(read(boss))
        (now,) = room.watches()
        assert (now.forwarded, now.dropped) == (3, 0)

    in_room(main)


def test_a_wait_for_all_waits_for_what_is_still_being_forwarded() -> None:
    """The watcher has read it all when everybody is idle."""

    async def main(room: Room) -> None:
        boss, ann = pair(room)
        room.watch(ann, into=boss, events=["run.stopped"])
        for _ in range(5):
            ann.send("go")
            result = await room.wait()
            assert result.left == ()
            assert boss.unread == 0
        assert len(events(boss)) == 5

    in_room(main)


def test_m126_a_glob_picks_tools() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        room.watch(ann, into=boss, events=["tool.completed", "run.stopped"], tool="deploy_*")
        ann.send("go")
        await room.wait()
        told = [e.body.data for e in boss.mail() if isinstance(e.body, WatchedEvent)]
        assert [data.get("tool") for data in told] == ["deploy_prod", None]

    in_room(main)


def test_m125_what_was_stored_before_the_watch_is_not_forwarded() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        room.delivery.broadcast.subscribe(lambda event: None)
        ann.send("go")  # its event is still on the way to whoever listens
        room.watch(ann, into=boss, events=["mail.accepted"])
        ann.send("again")
        await ticks()
        told = [e.body.data for e in boss.mail() if isinstance(e.body, WatchedEvent)]
        assert [data["text"] for data in told[:1]] == ["again"]

    in_room(main)


# ── It ends ──


def test_m127_a_watch_ends_with_its_time() -> None:
    """M-127: 600 s by default."""

    async def main(room: Room) -> None:
        boss, ann = pair(room)
        first = room.watch(ann, into=boss, events=["run.stopped"], ttl=5)
        second = room.watch(ann, into=boss, events=["run.started"])
        assert (first.ttl, second.ttl) == (5, 600)
        await asyncio.sleep(4.9)
        assert len(room.watches()) == 2
        await asyncio.sleep(0.2)
        assert [w.id for w in room.watches()] == ["w-0002"]
        ann.send("go")
        await room.wait()
        assert events(boss) == ["run.started"]
        await asyncio.sleep(600)
        assert room.watches() == []
        assert not room.delivery.broadcast.heard

    in_room(main)


@pytest.mark.parametrize("which", ["ann", "bea"])
def test_m127_a_watch_ends_with_either_session(which: str) -> None:
    async def main(room: Room) -> None:
        _, ann = pair(room)
        cat, dan = room.spawn("echo", name="cat"), room.spawn("echo", name="dan")
        room.watch(ann, into="bea")
        kept = room.watch(cat, into=dan)
        room.session(which).close()
        assert room.watches() == [kept]
        await ticks()
        assert room.watches() == [kept]
        assert set(room.watching._table) == {kept.id}

    in_room(main)


def test_the_last_words_of_a_closed_session_are_still_forwarded() -> None:
    """Its run was under way: the watcher hears how it ended."""

    async def main(room: Room) -> None:
        @script
        def slow(turn: ScriptTurn) -> Talk:
            yield call("nap")
            return "late"

        async def nap() -> str:
            """Nap."""
            await asyncio.sleep(60)
            return "slept"

        boss = room.spawn("echo", name="bea")
        ann = room.spawn(Agent("slow", model=slow, tools=[nap]), "go", name="ann", parent=boss)
        room.watch(ann, into=boss, events=["run.stopped"])
        await asyncio.sleep(1)
        ann.close()
        await boss.wait()
        await ticks()
        assert events(boss) == ["run.stopped"]
        assert room.watches() == []

    in_room(main)


def test_m126_unwatch_ends_it_and_says_what_it_forwarded() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        watch = room.watch(ann, into=boss, events=["run.started"])
        ann.send("go")
        await room.wait()
        assert room.unwatch(watch.id).forwarded == 1
        ann.send("go")
        await room.wait()
        assert events(boss) == ["run.started"]
        with pytest.raises(ConfigError, match="no watch 'w-0001' is under way: it is over"):
            room.unwatch(watch.id)
        room.watch(ann, into=boss)
        with pytest.raises(ConfigError, match=r"no watch 'w-0009'.*Under way: w-0002\."):
            room.unwatch("w-0009")

    in_room(main)


def test_a_closed_room_forwards_nothing_more() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        room.watch(ann, into=boss)
        ann.send("go")
        room.close()
        await ticks()
        assert room.watching._table == {}
        with pytest.raises(PostroomError, match="is closed"):
            room.watch(ann, into=boss)

    in_room(main)


# ── Its bounds ──


def test_m127_a_33rd_watch_of_one_watcher_is_refused() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        for _ in range(32):
            room.watch(ann, into=boss)
        with pytest.raises(ConfigError, match="bea has 32 watches, the most") as refused:
            room.watch(ann, into=boss)
        assert "w-0001 to w-0032" in str(refused.value)
        room.watch(boss, into=ann)  # each watcher has its own
        room.unwatch("w-0007")
        room.watch(ann, into=boss)

    in_room(main)


def test_m127_a_session_does_not_watch_itself_nor_who_is_gone() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        with pytest.raises(ConfigError, match="ann cannot watch itself"):
            room.watch(ann, into=ann)
        with pytest.raises(UnknownRecipient, match="Did you mean 'ann'"):
            room.watch("anne", into=boss)
        ann.close()
        for gone in ("ann", ann):
            with pytest.raises(UnknownRecipient, match="is closed"):
                room.watch(gone, into=boss)
            with pytest.raises(UnknownRecipient, match="is closed"):
                room.watch(boss, into=gone)

    in_room(main)


def test_m125_a_full_mailbox_drops_and_counts_and_the_watched_goes_on() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room, mailbox_max_unread=2)
        boss.pause()
        await ticks()
        room.watch(ann, into=boss, events=["tool.started", "tool.completed"])
        ann.send("go")
        await ann.wait()
        assert said(ann)[-1] == "all done"
        (watch,) = room.watches()
        assert (watch.forwarded, watch.dropped) == (2, 2)
        assert "mailbox of" in watch.why_dropped
        assert "2 forwarded, 2 dropped" in str(watch)

    in_room(main)


def test_m125_a_watch_that_breaks_never_raises_into_the_emitter(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        room.watch(ann, into=boss)
        heard: list[Event] = []
        room.delivery.broadcast.subscribe(heard.append)

        def breaks(outgoing: object) -> None:
            raise RuntimeError("no")

        monkeypatch.setattr(room.router, "deliver", breaks)
        ann.send("go")
        await ann.wait()
        await ticks()
        assert said(ann)[-1] == "all done"
        assert EventKind.RUN_STOPPED in [event.kind for event in heard]

    in_room(main)
    assert "could not be forwarded" in caplog.text


def test_nobody_listens_while_nothing_is_watched() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)
        assert not room.delivery.broadcast.heard
        watch = room.watch(ann, into=boss)
        assert room.delivery.broadcast.heard
        room.unwatch(watch.id)
        assert not room.delivery.broadcast.heard

    in_room(main)


# ── Waking ──


@pytest.mark.parametrize(
    ("wake_on", "wakes"), [(("child",), True), (("user", "tool", "parent", "peer"), False)]
)
def test_m94_an_event_wakes_as_mail_of_the_watched_session_would(
    wake_on: tuple[str, ...], wakes: bool
) -> None:
    """M-94: of a child here; the watch says when it would not."""

    async def main(room: Room) -> None:
        boss, ann = pair(room, wake_on=wake_on)
        watch = room.watch(ann, into=boss, events=["run.stopped"])
        assert watch.note == ("" if wakes else "waits: wake_on of bea has no 'child'")
        ann.send("go")
        await room.wait()
        assert (len(said(boss)), boss.unread) == ((1, 0) if wakes else (0, 1))

    in_room(main)


def test_m94_a_peer_s_events_wait_by_default() -> None:
    async def main(room: Room) -> None:
        ann, bob = room.spawn("echo", name="ann"), room.spawn("echo", name="bob")
        assert "no 'peer'" in str(room.watch(ann, into=bob, events=["run.stopped"]))
        ann.send("hi")
        await room.wait()
        assert (len(said(bob)), bob.unread) == (0, 1)

    in_room(main)


# ── Loops end by rule (trap 8) ──


def mutual(room: Room, **knobs: Any) -> tuple[Session, Session]:
    agent = Agent("echoes", model="echo", wake_on=("user", "peer"), **knobs)
    ann, bob = room.spawn(agent, name="ann"), room.spawn(agent, name="bob")
    room.watch(ann, into=bob, events=["run.stopped"], ttl=1e6)
    room.watch(bob, into=ann, events=["run.stopped"], ttl=1e6)
    return ann, bob


def test_trap_8_two_that_watch_each_other_stop_at_the_hops() -> None:
    """M-108, M-109, M-125: the refused event is dropped, counted, and told to the owner once."""

    async def main(room: Room) -> None:
        ann, bob = mutual(room, max_mail_hops=5)
        ann.send("go")
        result = await room.wait(timeout=1e5)
        assert result.left == ()
        assert sorted(e.hops for e in (*ann.mail(), *bob.mail())) == [0, 0, 1, 2, 3, 4, 5]
        assert [(w.forwarded, w.dropped) for w in room.watches()] == [(3, 1), (3, 0)]
        (entry,) = room.inbox("echoes")
        assert entry.text.startswith("w-0001 forwards nothing of ann to bob for now: mail would")

        ann.send("go on")  # a word from the owner: it goes on, and ends again
        result = await room.wait(timeout=1e5)
        assert (result.left, "go on" in read(ann)) == ((), True)

    in_room(main)


def test_trap_8_two_that_watch_each_other_stop_at_the_rounds() -> None:
    """M-111: where the hops would let them go on."""

    async def main(room: Room) -> None:
        ann, bob = mutual(room, max_mail_hops=10_000, max_autonomous_rounds=6)
        ann.send("go")
        result = await room.wait(timeout=1e5)
        assert result.left == ()
        assert SessionStatus.CAPPED in (ann.status, bob.status)
        assert len(said(ann)) + len(said(bob)) <= 13
        entries = room.inbox("echoes")
        assert entries
        assert all("rounds with no word from you" in entry.text for entry in entries)

    in_room(main)


def test_trap_8_watched_mail_that_is_answered_there_stops_at_the_hops() -> None:
    """Who watches another's mail and writes to it for each, while it does not read."""

    async def main(room: Room) -> None:
        @script
        def nags(turn: ScriptTurn) -> Talk:
            yield call("send-message", to="bob", text="mail for you")
            return "nagged"

        bob = room.spawn("echo", name="bob")
        bob.pause()
        await ticks()
        knobs: dict[str, Any] = {
            "wake_on": ("user", "peer"),
            "mail_scope": "all",
            "max_iterations": 100,
        }
        ann = room.spawn(Agent("nag", model=nags, **knobs), name="ann")
        room.watch(bob, into=ann, events=["mail.accepted"], ttl=1e6)
        bob.send("hello")
        result = await room.wait(timeout=1e5)
        assert result.left == ()
        assert max(e.hops for e in ann.mail()) == 16
        assert [entry.text for entry in room.inbox("nag") if "hops" in entry.text]

    in_room(main)


def test_trap_8_completions_that_start_calls_stop_at_the_rounds() -> None:
    """A watched call ends, the watcher calls a tool, which is watched in turn."""

    async def main(room: Room) -> None:
        @script
        def calls(turn: ScriptTurn) -> Talk:
            yield call("look", place="there")
            return "looked"

        agent = Agent(
            "looker",
            model=calls,
            tools=[look],
            wake_on=("user", "peer"),
            max_mail_hops=10_000,
            max_autonomous_rounds=10,
        )
        ann, bob = room.spawn(agent, name="ann"), room.spawn(agent, name="bob")
        room.watch(ann, into=bob, events=["tool.completed"], ttl=1e6)
        room.watch(bob, into=ann, events=["tool.completed"], ttl=1e6)
        ann.send("go")
        result = await room.wait(timeout=1e5)
        assert result.left == ()
        assert EndReason.CAPPED in (ann.end_reason, bob.end_reason) or SessionStatus.CAPPED in (
            ann.status,
            bob.status,
        )
        assert room.inbox("looker")

    in_room(main)


# ── Threads and lives ──


def test_a_watch_may_be_begun_and_ended_from_any_thread() -> None:
    async def main(room: Room) -> None:
        boss, ann = pair(room)

        def elsewhere() -> None:
            watch = room.watch(ann, into=boss, events=["run.stopped"], ttl=5)
            room.unwatch(watch.id)
            room.watch(ann, into=boss, events=["run.stopped"], ttl=5)
            ann.send("go")

        thread = threading.Thread(target=elsewhere)
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0)
        await asyncio.sleep(1)
        assert events(boss) == ["run.stopped"]
        await asyncio.sleep(5)
        assert room.watches() == []

    in_room(main)


def test_m127_watches_are_in_memory_and_their_numbers_go_on() -> None:
    """A number under which mail is stored is not used for another watch."""

    async def first(room: Room) -> None:
        boss, ann = pair(room)
        room.watch(ann, into=boss)
        room.watch(ann, into=boss, events=["run.stopped"])
        room.after(1, boss, "tick")
        ann.send("go")
        await room.wait()
        await asyncio.sleep(2)

    async def second(room: Room) -> None:
        room.define(WORKER)
        assert (room.watches(), room.timers()) == ([], [])
        assert room.watch("ann", into="bea").id == "w-0003"
        assert room.after(1, "ann", "tick").id == "t-0002"

    lives(first, second)
