"""The owner inbox as a feed: what stands in it, who is told when, and what has been seen."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts.envelopes import AT
from office.deploying import deploy, deployer, deploying
from office.rooms import in_room, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.errors import ConfigError, InboxReadOnly
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import inbox_key
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.feed import Feed
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.storage.memory_storage import MemoryStorage


def note(entry: Envelope) -> Notification:
    assert isinstance(entry.body, Notification)
    return entry.body


def types(feed: Feed) -> list[str]:
    return [note(entry).type for entry in feed]


def feed_row(room: Room, type: str) -> int:
    """Return the row of the first entry of that type."""
    rows = room.storage.rows(kinds=(RowKind.ENTRY,))
    return next(r.n for r in rows if isinstance(r.record, Envelope) and note(r.record).type == type)


async def next_text(feed: Any) -> str:
    entry: Envelope = await anext(feed)
    return entry.text


# ── which inboxes there are ──


def test_i3_i4_i5_i17_an_agent_has_one_inbox_from_its_first_moment() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("reviewer"))
        feed = room.inbox("reviewer")
        assert (list(feed), len(feed), feed.unread) == ([], 0, 0)
        record = room.storage.records()[inbox_key("reviewer")]
        assert (record.name, record.agent, record.hidden) == ("inbox", "reviewer", True)
        assert record.options["source"] == {
            "kind": "inbox",
            "platform": "inbox",
            "type": "system",
            "interactive": False,
        }
        head = room.storage.head()
        room.define(Agent("reviewer", instructions="anew"))
        assert room.storage.head() == head
        assert room.inbox("echo").agent == "echo"

    in_room(main)


def test_i18_a_file_without_inboxes_gets_them_once() -> None:
    """I-18: opening it again adds nothing, and changes no moment."""
    kept = SessionRecord(id="s-0001", name="old", agent="reviewer", version=1, created_at=AT)
    storage = MemoryStorage()
    storage.commit("s-0001", epoch=1, version=0, rows=(kept,)).result()

    heads = []
    for _ in range(3):
        storage = MemoryStorage(rows=storage.rows())
        room = Room(storage, name="memory", now=lambda: AT)
        assert list(room.inbox("reviewer")) == []
        heads.append([(r.n, r.at) for r in storage.rows(kinds=(RowKind.SESSION,))])
    assert sum(n.startswith("inbox@") for n in storage.records()) == 2  # reviewer and echo
    assert heads[0] == heads[1] == heads[2]


def test_i1_the_feed_and_what_was_seen_of_it_survive_the_kernel(tmp_path: Path) -> None:
    """I-1, I-37."""
    path = tmp_path / "lab.mail.duckdb"
    with open_room(path) as room:
        room.notify("echo", "one", metadata={"free": 3})
        room.notify("echo", "two")
        room.inbox("echo").mark_read(room.inbox("echo")[0])
    with open_room(path) as room:
        feed = room.inbox("echo")
        assert [entry.text for entry in feed] == ["one", "two"]
        assert note(feed[0]).metadata == {"free": 3}
        assert feed.unread == 1
        sql = room.sql("select agent, content from inbox order by seq").fetchall()
        assert sql == [("echo", "one"), ("echo", "two")]  # I-14


def test_an_agent_that_does_not_exist_has_no_feed() -> None:
    async def main(room: Room) -> None:
        with pytest.raises(
            ConfigError, match=r"no agent 'ecko' has an inbox\. Did you mean 'echo'"
        ):
            room.inbox("ecko")

    in_room(main)


# ── reading ──


def test_i14_a_feed_is_a_sequence_of_its_entries_and_never_old() -> None:
    async def main(room: Room) -> None:
        feed = room.inbox("echo")
        for n in range(3):
            room.notify("echo", f"entry {n}")
        assert [entry.text for entry in feed] == ["entry 0", "entry 1", "entry 2"]
        assert (feed[0].text, feed[-1].text, len(feed[1:])) == ("entry 0", "entry 2", 2)
        assert feed[0] in feed
        assert repr(feed) == "inbox of echo: 3 entries, 3 unread"

    in_room(main)


def test_the_feed_of_all_agents_is_in_the_order_of_writing() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("reviewer"))
        feed = room.inbox()
        for agent, text in (("echo", "a"), ("reviewer", "b"), ("echo", "c"), ("reviewer", "d")):
            room.notify(agent, text)
        assert [entry.text for entry in feed] == ["a", "b", "c", "d"]
        room.define(Agent("late"))
        room.notify("late", "e")
        assert feed[-1].text == "e"
        assert repr(feed) == "inbox of all agents: 5 entries, 5 unread"

    in_room(main)


def test_i14_i17_a_subscriber_hears_the_stored_then_the_new_with_no_gap_and_no_repeat() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("new"))
        empty = room.inbox("new").subscribe()
        waiting = asyncio.ensure_future(anext(empty))
        await ticks()
        assert not waiting.done()
        room.notify("new", "first")
        assert (await waiting).text == "first"

        room.notify("echo", "a")
        room.notify("echo", "b")
        stream = room.inbox("echo").subscribe()
        assert await next_text(stream) == "a"
        room.notify("echo", "c")
        assert [await next_text(stream) for _ in range(2)] == ["b", "c"]
        waiting = asyncio.ensure_future(anext(stream))
        await ticks()
        room.notify("new", "of another agent")
        await ticks()
        assert not waiting.done()
        await asyncio.to_thread(room.notify, "echo", "from a thread")
        assert (await waiting).text == "from a thread"

    asyncio.run(_real(main))


async def _real(main: Any) -> None:
    async with open_room() as room:
        await main(room)


def test_i29_every_subscriber_hears_everything_of_all_agents_too() -> None:
    async def main(room: Room) -> None:
        room.notify("echo", "before")
        streams = [room.inbox().subscribe(), room.inbox().subscribe()]
        later = room.inbox().subscribe(history=False)
        late = asyncio.ensure_future(anext(later))
        await ticks()
        room.define(Agent("new"))
        room.notify("new", "after")
        for stream in streams:
            assert [await next_text(stream) for _ in range(2)] == ["before", "after"]
        assert (await late).text == "after"

    in_room(main)


def test_i20_the_live_event_comes_when_the_entry_is_in_the_history() -> None:
    async def main(room: Room) -> None:
        heard: list[tuple[Event, int]] = []
        room.delivery.broadcast.subscribe(
            lambda event: heard.append((event, len(room.inbox("echo"))))
        )
        room.attach()
        room.notify("echo", "look", metadata={"a": 1})
        await ticks()
        ((event, stored),) = [each for each in heard if each[0].kind == EventKind.NOTIFICATION]
        assert (event.session, stored) == ("inbox@echo", 1)
        assert event.data["entry"]["body"] == {
            "kind": "notification",
            "content": "look",
            "metadata": {"a": 1},
        }

    in_room(main)


# ── what was seen ──


def test_i37_each_viewer_has_a_cursor_and_no_entry_is_touched() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("reviewer"))
        for agent in ("echo", "echo", "reviewer"):
            room.notify(agent, "look")
        mine, hers = room.inbox(), room.feed(None, "ada")
        before = mine.history()
        mine.mark_read(before[0])
        assert (mine.unread, hers.unread, room.inbox("echo").unread) == (2, 3, 1)
        mine.mark_read()
        assert (mine.unread, hers.unread) == (0, 3)
        mine.mark_read(before[0])  # never back
        assert mine.unread == 0
        head = room.storage.head()
        mine.mark_read()
        assert room.storage.head() == head
        assert mine.history() == before
        room.notify("echo", "new")
        assert mine.unread == 1

    in_room(main)


# ── cards ──


def test_i28_i31_an_answer_stands_in_the_feed_with_its_card_and_is_no_news() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(deployer(), "go")
        await s.wait()
        feed = room.inbox("coder")
        assert (types(feed), feed.unread) == (["approval"], 1)
        streams = [feed.subscribe(history=False), feed.subscribe(history=False)]
        waits = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await ticks()
        room.approve("ap-0001", by="view")
        entries = [await wait for wait in waits]

        assert entries[0] == entries[1] == feed[-1]
        assert types(feed) == ["approval", "approval_resolved"]
        assert feed[-1].text == "ap-0001 approved by view"
        assert note(feed[-1]).metadata == {
            "approval": "ap-0001",
            "session": s.id,
            "tool": "deploy",
            "decision": "approved",
            "resolved_by": "view",
        }
        assert note(feed[0]).metadata["approval"] == "ap-0001"
        assert feed.unread == 1  # the card, not its answer
        rows = room.storage.rows(after=feed_row(room, "approval"))
        kinds = [
            str(row.record.kind) if isinstance(row.record, Event) else type(row.record).__name__
            for row in rows
        ]
        at = kinds.index("Approval")
        assert kinds[at : at + 3] == ["Approval", "Envelope", "Envelope"]  # one commit

    in_room(main)


@pytest.mark.parametrize("end", ["deny", "complete", "stop", "close"])
def test_i28_i31_however_a_question_ends_its_card_is_marked_once(end: str) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(deployer(), "go")
        await s.wait()
        match end:
            case "deny":
                room.deny("ap-0001", "no")
            case "complete":
                room.complete("ap-0001", "by hand")
            case "stop":
                s.cancel("call_0001")
            case "close":
                s.close()
        await ticks(50)
        (told,) = [e for e in room.inbox("coder") if note(e).type == "approval_resolved"]
        state = {"deny": "denied", "complete": "completed"}.get(end, "cancelled")
        assert note(told).metadata["decision"] == state
        assert room.approvals(None)[0].state == state

    in_room(main)


def test_i32_an_answer_inline_leaves_the_inbox_as_it_was() -> None:
    """A call that the agent's own ``approve`` answers is no question to the owner."""

    async def main(room: Room) -> None:
        async def never(name: str, arguments: Any) -> bool:
            return False

        agent = Agent("coder", model=deploying, tools=[deploy], approve=never)
        s = room.spawn(agent, "go")
        await s.wait()
        assert s.calls()[0].state == "failed"
        assert list(room.inbox("coder")) == []

    in_room(main)


# ── nobody writes ──


def test_i10_i13_every_way_to_write_is_refused_with_its_own_code() -> None:
    async def main(room: Room) -> None:
        tried: list[str] = []

        @script
        def writing(turn: ScriptTurn) -> Any:
            for to in ("inbox", "Inbox", "inbox@a"):
                tried.append((yield call("send-message", to=to, text="hi")))  # noqa: PERF401
            return "tried"

        s = room.spawn(Agent("a", model=writing, mail_scope="all"), "go")
        await s.wait()
        assert len(tried) == 3
        assert all("inbox_read_only, 403" in words for words in tried)

        room.notify("a", "look")
        entry = room.inbox("a")[0]
        for write in (
            lambda: room.send("inbox", "hi"),
            lambda: room.send("inbox@a", "hi"),
            lambda: room.send(s.id, "hi", sender="inbox"),
            lambda: room.send("inbox", "hi", sender=s),
            lambda: room.withdraw(entry.id),
            lambda: room.session("inbox"),
            lambda: room.session("INBOX@a"),
            lambda: room.spawn("echo", parent="inbox"),
        ):
            with pytest.raises(InboxReadOnly) as refused:
                write()
            assert (refused.value.code, refused.value.status) == ("inbox_read_only", 403)
        with pytest.raises(InboxReadOnly):
            await room.asend("inbox", "hi")
        with pytest.raises(ConfigError, match="there is no mail"):
            room.withdraw(entry.id, sender=s)
        with pytest.raises(ConfigError, match="reserved for the owner inbox"):
            room.spawn("echo", name="Inbox")  # I-3
        assert room.inbox("a").history() == [entry]
        assert entry.sender.kind == "system"

    in_room(main)
