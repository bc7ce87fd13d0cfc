"""The link between an owner inbox and its views: one feed per inbox, any number of readers.

Its views answer cards, steer the sessions they are about and mark what was seen. Nothing they say
is ever written into an inbox: whatever else they ask is refused as read-only (I-11).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from postroom_runtime.contracts.errors import ConfigError, InboxReadOnly
from postroom_runtime.contracts.ids import OWNER_INBOX
from postroom_runtime.contracts.spending import measure_of
from postroom_widgets.edits import edited_call
from postroom_widgets.hub import Hub
from postroom_widgets.inbox_model import REACH
from postroom_widgets.inbox_state import InboxState
from postroom_widgets.reader import Message, Reader
from postroom_widgets.view_rows import Row

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session

BY: Final = "view"
"""Through what an approval is answered here."""


def command(agent: str = "") -> str:
    """Return the magic that shows an inbox."""
    return f"%inbox {agent}".strip()


class InboxFeed(Hub):
    """An owner inbox as cards, folded once and pushed to all its views. Lives on the room's loop.

    Args:
        room: The room.
        agent: Whose inbox; '' for those of all agents.
    """

    room: "Room"
    orders = ("approve", "deny", "resume", "close", "raise", "read", "revoke", "discuss")

    def __init__(self, room: "Room", agent: str = "") -> None:
        self.room, self.feed = room, room.inbox(agent or None)
        self.state: InboxState = InboxState(agent)
        self._heard = self._again = False
        again = command(agent)
        self.broken = f"This view broke; the kernel's log says why. Run {again} again."
        self.ended = f"The room was closed, so this view is over. Open it, then run {again}."
        super().__init__(f"inbox of {agent}" if agent else "inbox of all agents")

    # ── What is watched ──

    def catch_up(self) -> InboxState:
        """Fold what is stored up to now, without waiting for the loop; return the state."""
        return self.fold()

    def fold(self) -> InboxState:
        """Take in what is new, and look how the open cards stand; return the state."""
        # A room takes over what it stored only after it was told of: it is looked at twice.
        self._heard, looked = False, self._heard
        if not self.room.closed:
            state, people = self.state, self.room.people()
            state.take(self.feed.after(state.cursors), people)
            state.look(self.room.approvals(None), people, self.feed.seen())
            state.count(room=self.room.name, permissions=self._permissions())
        self._again = looked
        return self.state

    def _permissions(self) -> list[Row]:
        agent = self.feed.agent
        return [
            {
                "id": each.id,
                "tool": each.tool,
                "where": each.agent if each.allow == "agent" else each.session_name,
                "reach": REACH[each.allow],
                "args": dict(each.arguments) if each.arguments is not None else None,
                "by": each.granted_by,
                "at": each.granted_at.isoformat() if each.granted_at else None,
            }
            for each in self.room.permissions()
            if agent in ("", each.agent)
        ]

    async def listen(self) -> None:
        """Hear what is stored, until the task ends."""
        stop = self.feed.listen(lambda: self.room.hop(self._news))
        try:
            self._news()
            await asyncio.get_running_loop().create_future()
        finally:
            stop()

    def _news(self) -> None:
        self._heard = True
        self.soon()

    @property
    def busy(self) -> bool:
        """Whether something was heard that may not be taken over yet."""
        return self._again

    # ── Words of the views ──

    def other(self, reader: Reader, message: Message) -> None:
        """Refuse whatever would write: an inbox has no send box (I-11)."""
        refusal = InboxReadOnly(OWNER_INBOX)
        code = {"code": refusal.code, "status": refusal.status}
        reader.post({"op": "refused", "id": message.get("id"), "words": str(refusal), **code})

    def do(self, op: str, message: Message) -> Message | None:
        """Do what a button says."""
        orders: Mapping[str, Callable[[Message], Message | None]] = {
            "approve": self._approve,
            "deny": self._deny,
            "resume": self._resume,
            "close": self._close,
            "raise": self._raise,
            "read": self._read,
            "revoke": self._revoke,
            "discuss": self._discuss,
        }
        try:
            return orders[op](message)
        finally:
            self._news()

    def _approve(self, message: Message) -> None:
        id, room = str(message.get("approval")), self.room
        args = edited_call(room.approvals(), id, message.get("edits"))
        room.approve(id, args, always=message.get("always") or False, by=BY)

    def _deny(self, message: Message) -> None:
        self.room.deny(str(message.get("approval")), str(message.get("reason") or ""), by=BY)

    def _row(self, message: Message) -> Row:
        key = str(message.get("card"))
        row = self.state.get(key)
        if row.get("kind") != "card":
            raise ConfigError(f"{key!r} is no card of this inbox.", value=key)
        return row

    def _steer(self, message: Message) -> "Session":
        return self.room.session(str(self._row(message).get("session")))

    def _resume(self, message: Message) -> None:
        self._steer(message).resume()

    def _close(self, message: Message) -> None:
        self._steer(message).close()

    def _raise(self, message: Message) -> None:
        """Let all sessions of the room spend as much again as a cap allowed, and this one go on."""
        row = self._row(message)
        called = str(row.get("knob"))
        measure = measure_of(called) if called.startswith("room.") else None
        if measure is None:
            raise ConfigError("this card is about no cap of the room.", value=row.get("knob"))
        knob = measure.knob
        now = getattr(self.room, knob)
        if now is not None:
            setattr(self.room, knob, max(now, row.get("used", 0)) + row["limit"])
        self._steer(message).resume()

    def _read(self, message: Message) -> None:
        self.feed.mark_read()

    def _revoke(self, message: Message) -> None:
        self.room.revoke(str(message.get("permission")), by=BY)

    def _discuss(self, message: Message) -> Message:
        session = self.room.discuss(str(self._row(message)["entry"]))
        return {"session": session.id, "name": session.name}


_feeds: "WeakValueDictionary[tuple[int, str], InboxFeed]" = WeakValueDictionary()


def inbox_feed_of(room: "Room", agent: str = "") -> InboxFeed:
    """Return the feed of an inbox, the same for all its views.

    Raises:
        ConfigError: No agent of that slug has an inbox.
    """
    feed = _feeds.get((id(room), agent))
    if feed is None or feed.room is not room:
        feed = _feeds[id(room), agent] = InboxFeed(room, agent)
    return feed
