"""Questions to the owner that run out of time: each is refused once, in this kernel or the next."""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context
from datetime import datetime
from typing import Final

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError, PostroomError
from postroom_runtime.mail.approvals import ApprovalDesk

log = logging.getLogger("postroom")

DAY: Final = 24 * 3600.0
"""Seconds a question may be answered, where nothing else is said."""

YEAR: Final = 366 * DAY
"""Seconds a question may be answered, at most."""

_AGAIN: Final = 60.0
"""Seconds until an expiry is tried again that could not be stored."""


def check_approval_seconds(seconds: object) -> float | None:
    """Return how long a question may be answered, in seconds; None for ever.

    Raises:
        ConfigError: Not a number above 0 and at most a year, nor None.
    """
    if seconds is None:
        return None
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if number and 0 < seconds <= YEAR:  # type: ignore[operator]
        return float(seconds)  # type: ignore[arg-type]
    raise ConfigError(
        f"approval_seconds={seconds!r} will not do: give a number of seconds above 0, at most "
        f"{YEAR:.0f} (a year), or None for no end. The default is {DAY:.0f} (a day).",
        value=seconds,
    )


class Expiry:
    """Refuses questions when their time is up. Loop-bound, but for ``sweep``.

    Args:
        desk: Where the questions are.
        now: The room's clock.
    """

    def __init__(self, desk: ApprovalDesk, now: Callable[[], datetime]) -> None:
        self._desk, self._now = desk, now
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def sweep(self) -> None:
        """Refuse what ran out of time while no kernel had the room open.

        Raises:
            StoreFailed: What is not refused is still open.
        """
        for approval in self._desk.overdue():
            self._desk.expire(approval.id)

    def attach(self, loop: asyncio.AbstractEventLoop, context: Context | None) -> None:
        """Live on ``loop`` from now on, with every question that is open."""
        self._loop, self._context = loop, context
        self._handles.clear()
        for approval in self._desk.all():
            self.watch(approval)

    def watch(self, approval: Approval) -> None:
        """Refuse ``approval`` when its time is up."""
        if approval.expires_at is not None:
            self._arm(approval.id, (approval.expires_at - self._now()).total_seconds())

    def settled(self, id: str) -> None:
        """It was answered: let it be."""
        if (handle := self._handles.pop(id, None)) is not None:
            handle.cancel()

    def close(self) -> None:
        """Let all of them be."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            for id in tuple(self._handles):
                self.settled(id)

    def _arm(self, id: str, seconds: float) -> None:
        if self._loop is not None:
            self._handles[id] = self._loop.call_later(
                max(0.0, seconds), self._due, id, context=self._context
            )

    def _due(self, id: str) -> None:
        self._handles.pop(id, None)
        if self._desk.find(id).state is not ApprovalState.PENDING:
            return
        try:
            self._desk.expire(id)
        except AlreadyAnswered:
            pass  # in this very moment
        except PostroomError as error:
            log.error("%s could not expire: %s", id, error)
            self._arm(id, _AGAIN)
