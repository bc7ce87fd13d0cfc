"""Broadcast events to any number of readers; a slow one holds nobody."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

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
            live = False
            while True:
                while waiting:
                    event = waiting.popleft()
                    # A live-only event repeats the seq of a stored one, so only stored ones are told
                    # apart by it; those heard before the stored ones were read are older news.
                    if event.seq > last or (live and event.seq == last and event.kind in LIVE_ONLY):
                        last = max(last, event.seq)
                        yield event
                live = True
                arrived.clear()
                await arrived.wait()
        finally:
            stop()
