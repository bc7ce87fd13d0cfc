"""Broadcast events to any number of readers; a slow one holds nobody."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from postroom_runtime.contracts.event import LIVE_ONLY, Event
from postroom_runtime.contracts.ids import SessionId

Hear = Callable[[Event], None]


class Broadcast:
    """One stream of events. Loop-bound; events come in commit order."""

    def __init__(self) -> None:
        self._hearers: dict[int, tuple[SessionId | None, Hear]] = {}
        self._keys = 0

    @property
    def heard(self) -> bool:
        """Whether anybody listens: building an event for nobody can be spared."""
        return bool(self._hearers)

    def subscribe(self, hear: Hear, session: SessionId | None = None) -> Callable[[], None]:
        """Call ``hear`` with each event of ``session`` (None: of all); return how to stop that.

        ``hear`` runs on the loop and must return at once; it never raises.
        """
        self._keys += 1
        key = self._keys
        self._hearers[key] = (session, hear)
        return lambda: self._hearers.pop(key, None) and None

    def publish(self, event: Event) -> None:
        """Hand ``event`` to everybody who listens to its session."""
        for session, hear in tuple(self._hearers.values()):
            if session is None or session == event.session:
                hear(event)

    async def stream(
        self, stored: Callable[[], list[Event]], session: SessionId | None, since: int
    ) -> AsyncIterator[Event]:
        """Yield stored events after ``since``, then live ones: no gap, no repeat.

        Args:
            stored: Reads the stored events with ``seq > since``, ascending.
            session: Whose events; None for all.
            since: ``seq`` of the last event already seen.
        """
        waiting: deque[Event] = deque()
        arrived = asyncio.Event()

        def hear(event: Event) -> None:
            waiting.append(event)
            arrived.set()

        # Subscribed before the stored ones are read: what comes meanwhile is in both, never in none.
        stop = self.subscribe(hear, session)
        try:
            last = since
            for event in stored():
                last = max(last, event.seq)
                yield event
            while True:
                while waiting:
                    event = waiting.popleft()
                    if event.kind in LIVE_ONLY:
                        # Heard after the stored ones were read, so it is news, also where it repeats
                        # the number of a row that was told later than it could be read.
                        yield event if event.seq >= last else replace(event, seq=last)
                    elif event.seq > last:
                        last = event.seq
                        yield event
                arrived.clear()
                await arrived.wait()
        finally:
            stop()
