"""A letter that a call sent says how far it got, though no event of the sender tells of it."""

import asyncio

from office.rooms import Talk, in_room, lives
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_widgets.link import Feed
from postroom_widgets.static_html import static_html
from postroom_widgets.static_text import static_text
from postroom_widgets.view_rows import Row
from postroom_widgets.view_state import ViewState
from widgets.fake_sessions import FakeSession
from widgets.story import Story, request
from widgets.test_link import BATCH, Front, watched

CALL = "c:call_0001"


def wrote(story: Story | None = None, id: str = "call_0001", seq: int = 4) -> Story:
    """Tell of a session that wrote a letter to coder."""
    story = story or Story()
    story.mail("ask coder")
    story.run().heard().said("", request(id, "send-message", to="coder", text="why?"))
    story.started(id, "send-message", to="coder", text="why?")
    story.finished(id, "send-message", {"id": f"m-{seq:04x}", "seq": seq, "session": "s-0003"})
    return story


def sent(feed: Feed, key: str = CALL) -> Row:
    found: Row = feed.state.rows[key]["sent"]
    return found


def told(state: ViewState, words: str) -> bool:
    return words in static_text(state) and words in static_html(state)


def test_a_letter_that_is_read_meanwhile_says_in_which_turn_of_its_reader() -> None:
    """M-22, M-47."""

    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        await asyncio.sleep(BATCH)
        assert sent(feed) == {"mail": "m-0004", "to": "s-0003", "name": "coder", "seq": 4}
        assert told(feed.state, "m-0004 to coder · queued, not delivered yet")
        session.room.reads_mail("s-0003", 3)
        await asyncio.sleep(BATCH)
        assert "read" not in sent(feed)

        session.room.reads_mail("s-0003", 4, turn=2)
        await asyncio.sleep(BATCH)
        assert sent(feed)["turn"] == 2
        assert told(feed.state, "m-0004 to coder · delivered in its turn 2")
        last = front.of("rows")[-1]["rows"]
        assert [row["key"] for row in last] == [CALL]

    watched(main, wrote())


def test_a_view_that_opens_later_knows_it_at_once_and_looks_once() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        session.room.reads_mail("s-0003", 5, turn=2)
        session.room.reads["s-0003"][4] = 2
        later = Feed(session)
        assert [sent(later, key)["turn"] for key in (CALL, "c:call_0002")] == [2, 2]
        ((reader, letters, after),) = session.room.looks
        assert (reader, letters) == ("s-0003", [4, 5])
        asked = next(e for e in session.story.events if "calls" in str(e.data.get("turn")))
        assert 0 < after <= asked.seq, "what is older cannot have read them"
        later.catch_up()
        assert len(session.room.looks) == 1

    watched(main, wrote(wrote(), "call_0002", 5))


def test_nobody_is_listened_to_unless_a_letter_is_unread() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        room, front = session.room, Front(feed)
        await asyncio.sleep(BATCH)
        assert room.listeners == []
        wrote(session.story)
        session.tell()
        await asyncio.sleep(BATCH)
        assert len(room.listeners) == 1

        room.reads_mail("s-0003", 4, turn=2)
        await asyncio.sleep(BATCH)
        assert room.listeners == []

        wrote(session.story, "call_0002", 9)
        session.tell()
        await asyncio.sleep(BATCH)
        assert len(room.listeners) == 1
        feed.leave(front.reader)
        await asyncio.sleep(BATCH)
        assert room.listeners == []

    watched(main)


def test_what_others_do_wakes_no_view_that_waits_for_somebody_else() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        Front(feed)
        await asyncio.sleep(BATCH)
        woken: list[float] = []
        feed.soon = lambda delay=BATCH: woken.append(delay)  # type: ignore[method-assign]
        session.room.reads_mail("s-0001", 9)
        await asyncio.sleep(0)
        assert woken == []
        session.room.reads_mail("s-0003", 1)
        await asyncio.sleep(0)
        assert woken == [BATCH]

    watched(main, wrote())


def test_a_letter_that_nobody_will_read_says_so() -> None:
    """M-134."""

    async def main(session: FakeSession, feed: Feed) -> None:
        session.room.reads_mail("s-0003", 3, status=SessionStatus.CLOSED)
        assert told(Feed(session).state, "m-0004 to coder · closed before it was read")

    watched(main, wrote())


def test_a_letter_that_said_nothing_to_the_model_is_delivered_in_no_turn() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        session.room.reads_mail("s-0003", 4)
        state = Feed(session).state
        assert sent(Feed(session)) == {
            "mail": "m-0004",
            "to": "s-0003",
            "name": "coder",
            "seq": 4,
            "read": True,
        }
        assert told(state, "m-0004 to coder · delivered")

    watched(main, wrote())


@script
def asks(turn: ScriptTurn) -> Talk:
    _ = yield call("send-message", to="coder", text="why?")
    return "asked"


def spawned(room: Room) -> Feed:
    room.spawn(Agent("coder", model="echo", wake_on=["user", "peer"]), name="coder")
    lead = room.spawn(Agent("lead", model=asks, mail_scope="all"), name="lead")
    return Feed(lead)


def test_a_room_tells_of_a_letter_live_and_after_a_restart() -> None:
    """M-47, M-91."""

    async def before(room: Room) -> None:
        feed = spawned(room)
        room.session("coder").pause()
        Front(feed)
        await room.session("lead").ask("go")
        await asyncio.sleep(BATCH)
        assert told(feed.catch_up(), "· queued, not delivered yet")
        room.session("coder").resume()
        await room.wait()
        await asyncio.sleep(BATCH)
        (key,) = (row["key"] for row in feed.state.ordered() if row.get("sent"))
        turn = feed.state.rows[key]["sent"]["turn"]
        (read,) = (t for t in room.session("coder").transcript() if t.mail)
        assert turn == read.index
        assert told(feed.state, f"to coder · delivered in its turn {turn}")

    async def after(room: Room) -> None:
        assert told(Feed(room.session("lead")).state, "to coder · delivered in its turn 1")

    lives(before, after)


def test_where_a_letter_was_read_first_counts() -> None:
    async def main(room: Room) -> None:
        feed = spawned(room)
        await room.session("lead").ask("go")
        await room.wait()
        coder = room.session("coder")
        (mail,) = coder.mail()
        assert room.turns_reading(coder.id, [mail.seq, 99]) == {mail.seq: 1}
        assert room.turns_reading(coder.id, []) == {}
        assert room.turns_reading("s-9999", [1]) == {}
        read = room.storage.rows(coder.id, (RowKind.TURN,))[0].n
        assert room.turns_reading(coder.id, [mail.seq], read - 1) == {mail.seq: 1}
        assert room.turns_reading(coder.id, [mail.seq], read) == {}
        assert feed.catch_up().letters == frozenset()

    in_room(main)
