"""Views and the owner inbox: no view writes to one, and none stumbles over what it does not know."""

import asyncio
from typing import Any, cast

import pytest

from office.rooms import in_room, ticks
from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.office.room import Room
from postroom_widgets.link import Feed
from postroom_widgets.view_model import fold
from postroom_widgets.view_state import opened
from widgets.fake_sessions import FakeSession
from widgets.story import Story
from widgets.test_link import BATCH, Front, watched


class Inbox(FakeSession):
    """An owner inbox, for a view that thinks it is a session."""

    id = "inbox@echo"
    post_office: Room

    async def asend(self, text: str, **more: Any) -> Receipt:
        return await self.post_office.asend(self.id, text)


def test_i11_a_view_s_message_to_an_inbox_is_refused_with_the_same_words() -> None:
    async def main(room: Room) -> None:
        inbox = Inbox()
        inbox.post_office = room
        front = Front(Feed(inbox))
        front.send("a-1", "let me write")
        await ticks(50)
        (refused,) = front.of("refused")
        assert refused["id"] == "a-1"
        assert "'inbox@echo' is the owner inbox" in refused["words"]
        assert "inbox_read_only, 403" in refused["words"]
        assert list(room.inbox("echo")) == []
        for task in tuple(inbox.room.tasks):
            task.cancel()

    in_room(main)


@pytest.mark.parametrize("kind", ["notification", "approval_pending", "new"])
def test_i33_a_view_passes_over_an_event_that_it_does_not_know(kind: str) -> None:
    story = Story()
    story.mail("hello")
    state = fold(opened("s-0002", name="rev", agent="reviewer", model="m"), story.events, {})
    event = story.event(cast("EventKind", kind), entry={"body": {"content": "x"}})
    later = fold(state, [event], {})
    assert later.rows == state.rows


def test_i33_a_view_goes_on_behind_an_event_that_it_does_not_know() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        await ticks()
        session.story.event(cast("EventKind", "brand.new"), anything=1)
        session.story.mail("behind it")
        session.tell()
        await asyncio.sleep(BATCH)
        assert front.rows()

    watched(main)


def test_i16_a_notification_is_one_row_of_the_journal_told_as_one_event() -> None:
    """I-16: no transport of its own: a row, an event, the feed of everybody."""

    async def main(room: Room) -> None:
        room.attach()
        heard: list[str] = []
        await ticks()
        room.delivery.broadcast.subscribe(lambda event: heard.append(str(event.kind)))
        head = room.storage.head()
        room.notify("echo", "look")
        await ticks()
        assert room.storage.head() == head + 1
        assert [row.n for row in room.storage.rows(kinds=(RowKind.ENTRY,))] == [head + 1]
        assert heard == ["notification"]

    in_room(main)
