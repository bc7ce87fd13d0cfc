"""The owner inbox as people read it: a feed of entries, stored first and then live."""

import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, overload

from postroom_runtime.contracts.entries import QUIET
from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.ids import inbox_agent, inbox_key
from postroom_runtime.contracts.journal import Row, RowKind, kind_of
from postroom_runtime.signals.bell import wait_until

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

OWNER = "owner"
"""The viewer whose cursor is the owner's own."""


_SHOWN: Final = frozenset({RowKind.ENTRY, RowKind.APPROVAL, RowKind.SESSION})
"""Rows that cards are drawn from."""


class Feed(Sequence[Envelope]):
    """The entries of one agent's owner inbox, or of all agents', oldest first (I-1, I-14).

    It is always up to date: each look reads what is stored by then. Reading changes nothing; only
    :meth:`mark_read` moves the viewer's cursor, which is stored with the inbox. ``entry.body`` has an
    entry's ``type``, ``content`` and ``metadata``.

    Args:
        room: The room.
        agents: Gives the agents whose inboxes it shows.
        agent: The one agent it is about; '' for all.
        viewer: Whose cursor counts.
    """

    def __init__(
        self,
        room: "Room",
        agents: Callable[[], Sequence[str]],
        agent: str = "",
        viewer: str = OWNER,
    ) -> None:
        self._room, self._agents = room, agents
        self.agent = agent
        self.viewer = viewer

    def __repr__(self) -> str:
        of = f"inbox of {self.agent}" if self.agent else "inbox of all agents"
        return f"{of}: {len(self)} entries, {self.unread} unread"

    def __len__(self) -> int:
        return len(self.history())

    @overload
    def __getitem__(self, at: int) -> Envelope: ...

    @overload
    def __getitem__(self, at: slice) -> list[Envelope]: ...

    def __getitem__(self, at: int | slice) -> Envelope | list[Envelope]:
        """Return an entry, or several, counted from the oldest."""
        return self.history()[at]

    def history(self) -> list[Envelope]:
        """Return every entry, oldest first: how a card was answered too (I-31)."""
        return self.after({})

    def after(self, cursors: Mapping[str, int]) -> list[Envelope]:
        """Return the entries with ``seq`` above the cursor of their agent, oldest first."""
        inbox = self._room.owner_inbox
        found = [inbox.entries(agent, cursors.get(agent, 0)) for agent in self._agents()]
        # Each inbox is in its own order already, whatever the clock did.
        return list(heapq.merge(*found, key=lambda entry: entry.accepted_at))

    async def subscribe(self, *, history: bool = True) -> AsyncIterator[Envelope]:
        """Yield the stored entries, then those to come: no gap, no repeat (I-14, I-20).

        Args:
            history: Begin with what is stored; else with what comes next.
        """
        self._room.attach()
        cursors: dict[str, int] = {} if history else self._ends()
        delivery = self._room.delivery
        bell = delivery.bell(inbox_key(self.agent)) if self.agent else delivery.room_bell
        while True:
            fresh = await wait_until(lambda: self.after(cursors) or None, bell)
            for entry in fresh or ():
                cursors[inbox_agent(entry.session)] = entry.seq
                yield entry

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call ``heard`` when something is stored that cards are drawn from; return how to stop that.

        Args:
            heard: Called in whatever thread stored it, under the store's lock: it only hands on.
        """
        return self._room.storage.bells(lambda rows: heard() if any(map(_shows, rows)) else None)

    # ── what the viewer has seen ──

    def seen(self) -> dict[str, int]:
        """Return the viewer's cursor in the inbox of each agent; 0 at first."""
        inbox = self._room.owner_inbox
        return {agent: inbox.seen(agent, self.viewer) for agent in self._agents()}

    @property
    def unread(self) -> int:
        """How many entries the viewer has not marked as read; answers to cards are no news (I-37)."""
        return sum(
            not (isinstance(entry.body, Notification) and entry.body.type in QUIET)
            for entry in self.after(self.seen())
        )

    def mark_read(self, upto: Envelope | None = None) -> None:
        """Move the viewer's cursor: to the end, or to one entry of its agent's inbox.

        Raises:
            StoreFailed: It could not be stored.
        """
        ends = self._ends() if upto is None else {inbox_agent(upto.session): upto.seq}
        for agent, seq in ends.items():
            if agent in self._agents():
                self._room.owner_inbox.mark(agent, self.viewer, seq)

    def _ends(self) -> dict[str, int]:
        return {inbox_agent(entry.session): entry.seq for entry in self.history()}


def _shows(row: Row) -> bool:
    return kind_of(row.session, row.record) in _SHOWN
