"""A loop whose clock jumps to the next timer when nothing is ready.

A test of a five-minute time-out takes no time on it, and its seconds are exact. It serves loop code
only: on a loop that waits for a thread or a socket the clock would jump over the waiting.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

_BEGINNING = datetime(2025, 1, 1, tzinfo=UTC)


class _JumpingSelector(selectors.SelectSelector):
    """Polls without blocking, and takes every wait as passed."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: every task waits and no timer is set")
            self.seconds += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` starts at 0.0 and jumps over every wait, in seconds."""

    def __init__(self) -> None:
        self._jumper = _JumpingSelector()
        super().__init__(self._jumper)

    def time(self) -> float:
        """Return the seconds passed on this loop's own clock."""
        return self._jumper.seconds


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end on a loop whose clock jumps; return what it returns.

    Raises:
        RuntimeError: Everything waits and no timer is set: the test would hang.
    """
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)


def virtual_now() -> datetime:
    """Return the moment on the running loop's clock, in UTC: the ``now`` of a room in a test.

    The clock starts with 2025; without a running loop it stands there.
    """
    loop = asyncio._get_running_loop()
    return _BEGINNING + timedelta(seconds=loop.time() if loop is not None else 0.0)
