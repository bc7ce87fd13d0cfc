"""Tell the loop what the store published: ring the bells, then broadcast the events.

The store publishes in whatever thread decided or wrote, under its lock. Here its rows change over to
the loop, in commit order, by one hop for everything that is waiting.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context

from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Row
from postroom_runtime.mail.journal_events import event_of
from postroom_runtime.signals.bell import Bell
from postroom_runtime.signals.events import Broadcast


class Delivery:
    """The bells of all sessions of a room, and its one stream of events.

    Until a loop is attached rows only wait: nothing on a loop can have asked for them yet.
    """

    def __init__(self) -> None:
        self.broadcast = Broadcast()
        self.followers: Callable[[SessionId], Iterable[SessionId]] = lambda session: ()
        """Whom what happens in a session may reach: rung with it, once its rows have been told."""
        self._bells: dict[SessionId, Bell] = {}
        self._room_bell = Bell()
        self._rows: deque[Row] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None
        self._scheduled = False
        self.last = 0
        """``n`` of the last row told: live-only events carry it."""

    def attach(self, loop: asyncio.AbstractEventLoop, context: Context | None) -> None:
        """Deliver on ``loop`` from now on, in ``context``; what waited goes first."""
        self._loop, self._context = loop, context
        # A hop that was due on a loop before this one, now closed, is made anew.
        self._scheduled = bool(self._rows)
        if self._scheduled:
            loop.call_soon_threadsafe(self._drain, context=context)

    def bell(self, session: SessionId) -> Bell:
        """Return the bell rung after every change of ``session``: mail, turns, calls, status."""
        if (bell := self._bells.get(session)) is None:
            bell = self._bells[session] = Bell()
        return bell

    @property
    def room_bell(self) -> Bell:
        """The bell rung after every change of any session."""
        return self._room_bell

    def ring(self, session: SessionId) -> None:
        """Ring for a change that no row tells of. Call on the loop."""
        if bell := self._bells.get(session):
            bell.ring()
        self._room_bell.ring()

    def untold(self, session: SessionId) -> bool:
        """Tell whether something that happened in ``session`` has not been told to the listeners."""
        return any(row.session == session for row in tuple(self._rows))

    def hear(self, rows: Sequence[Row]) -> None:
        """Take rows just published: the listener of the store. Any thread; never blocks."""
        loop = self._loop
        if loop is not None and asyncio._get_running_loop() is loop and not self._rows:
            # On the loop the bells ring at once; events wait, since whoever hears them may call the
            # store, whose lock is held here.
            for row in rows:
                if bell := self._bells.get(row.session):
                    bell.ring()
            self._room_bell.ring()
            if not self.broadcast.heard:
                self.last = rows[-1].n
                return
        self._rows.extend(rows)
        # Read again behind the rows: a loop attached meanwhile has either seen them or is seen here.
        if (loop := self._loop) is not None and not self._scheduled:
            self._scheduled = True
            try:
                loop.call_soon_threadsafe(self._drain, context=self._context)
            except RuntimeError:  # the loop was closed: nobody is left to be told
                self._scheduled = False

    def _drain(self) -> None:
        self._scheduled = False
        touched: dict[SessionId, None] = {}
        while self._rows:
            row = self._rows.popleft()
            self.last = row.n
            touched[row.session] = None
            if self.broadcast.heard and (event := event_of(row)) is not None:
                self.broadcast.publish(event)
        for session in touched:
            for rung in (session, *self.followers(session)):
                if bell := self._bells.get(rung):
                    bell.ring()
        self._room_bell.ring()

    def live(self, event: Event) -> None:
        """Broadcast an event that is never stored. Call on the loop."""
        if self.broadcast.heard:
            self.broadcast.publish(event)
