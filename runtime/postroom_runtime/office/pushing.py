"""Push the entries of owner inboxes to their agents' channels: behind everything, and as well as it goes.

Each channel has a queue and a task of its own while there is something to push: a slow one holds up
no other, and a thousand entries are not a thousand requests at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from postroom_runtime.contracts.entries import QUIET
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import inbox_agent
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.mail.channels import PUSH_SECONDS, Channels, Push, push_of, targets
from postroom_runtime.storage.codec import from_json

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

MOST_WAITING: Final = 1000
"""Pushes that may wait on one channel; beyond, the oldest are let go."""

log = logging.getLogger("postroom")


class Pushing:
    """The channels of a room at work. Loop-bound, but for ``channels``.

    It listens to the room's events only while there is a channel. An event is told when its entry is
    stored, so a push never comes before the entry and the live event (I-19…I-21).

    Args:
        room: The room.
    """

    def __init__(self, room: "Room") -> None:
        self._room = room
        self.channels = Channels(lambda: room.hop(self._listen))
        self._queues: dict[str, deque[Push]] = {}
        self._busy: set[str] = set()
        self._stop: Callable[[], None] | None = None

    def _listen(self) -> None:
        if self.channels and self._stop is None:
            self._stop = self._room.delivery.broadcast.subscribe(self._hear)
        elif not self.channels and self._stop is not None:
            self._stop()
            self._stop = None

    def _hear(self, event: Event) -> None:
        if event.kind != EventKind.NOTIFICATION:
            return
        try:
            entry = from_json(RowKind.ENTRY, event.data["entry"])
            if isinstance(entry, Envelope):
                self._take(entry)
        except Exception:  # whoever wrote the entry must not fail because somebody is told of it
            log.exception("an entry of %s could not be pushed", event.session)

    def _take(self, entry: Envelope) -> None:
        agent = inbox_agent(entry.session)
        definition = self._room.roster.get(agent)
        if definition is None or getattr(entry.body, "type", "") in QUIET:
            return
        for name in targets(definition.agent.notifications):
            if name not in self.channels:
                log.debug("%s has no channel %r: %s stays in the inbox", agent, name, entry.id)
                continue
            queue = self._queues.setdefault(name, deque())
            queue.append(push_of(entry, name))
            if len(queue) > MOST_WAITING:
                log.warning("channel %s is slow: %s was not pushed", name, queue.popleft().id)
            if name not in self._busy:
                self._busy.add(name)
                if self._room.task(self._work(name), f"channel:{name}") is None:
                    self._busy.discard(name)

    async def _work(self, name: str) -> None:
        queue = self._queues[name]
        try:
            while queue:
                push = queue.popleft()
                channel = self.channels.get(name)
                if channel is None:
                    continue  # taken away meanwhile
                seconds = float(getattr(channel, "seconds", PUSH_SECONDS))
                try:
                    async with asyncio.timeout(seconds):
                        await channel.send(push)
                except TimeoutError as error:
                    words = str(error) or f"it took longer than {seconds:g} s"
                    log.warning("channel %s did not take %s: %s", name, push.id, words)
                except Exception as error:  # a channel may do anything; the entry is in the inbox
                    log.warning(
                        "channel %s did not take %s: %s: %s",
                        name,
                        push.id,
                        type(error).__name__,
                        error,
                    )
        finally:
            self._busy.discard(name)
