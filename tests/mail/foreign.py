"""Hosts of the Inbox protocol, as their owners write them."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class QueueInbox:
    """A mailbox a host writes to and a run reads from."""

    def __init__(self, *texts: str) -> None:
        self._pending, self._lock = deque(texts), threading.Lock()
        self.labels: list[str | None] = []
        """What its readers were opened as."""
        self.drains = 0

    def send(self, text: str) -> None:
        with self._lock:
            self._pending.append(text)

    @property
    def left(self) -> list[str]:
        return list(self._pending)

    def reader(self, agent: str | None = None) -> Callable[[], list[str]]:
        self.labels.append(agent)

        def drain() -> list[str]:
            self.drains += 1
            with self._lock:
                pending = list(self._pending)
                self._pending.clear()
                return pending

        return drain


class RoutedInbox:
    """A mailbox whose messages are for one run, by its name."""

    def __init__(self) -> None:
        self._per_agent: dict[str | None, list[str]] = {}

    def send(self, agent: str, text: str) -> None:
        self._per_agent.setdefault(agent, []).append(text)

    def reader(self, who: str | None = None) -> Callable[[], list[str]]:
        return lambda: self._per_agent.pop(who, [])


class BroadcastInbox:
    """A log of messages, of which each reader has its own cursor, from when it was opened."""

    def __init__(self) -> None:
        self._log: list[str] = []
        self.labels: list[str | None] = []

    def send(self, text: str) -> None:
        self._log.append(text)

    def reader(self, agent: str | None = None) -> Callable[[], list[str]]:
        self.labels.append(agent)
        at = len(self._log)

        def drain() -> list[str]:
            nonlocal at
            fresh, at = self._log[at:], len(self._log)
            return fresh

        return drain


class Giving:
    """An inbox whose drain gives one thing, again and again, or raises it."""

    def __init__(self, given: Any) -> None:
        self.given, self.drains, self.opened = given, 0, 0

    def reader(self, agent: str | None = None) -> Callable[[], Any]:
        self.opened += 1

        def drain() -> Any:
            self.drains += 1
            if isinstance(self.given, BaseException):
                raise self.given
            return self.given() if callable(self.given) else self.given

        return drain


class NoArgument:
    """An inbox of an older protocol, whose reader takes no name."""

    def __init__(self) -> None:
        self.opened = 0

    def reader(self) -> Callable[[], list[str]]:
        self.opened += 1
        return list
