"""Let a task sleep until some state it names has changed.

On one event loop nothing changes between two awaits, so "read the state and sleep until it changes"
is: look; if nothing, listen; look again. The bell carries no value and remembers nothing, so a
wake-up cannot be lost and nothing has to be cancelled in order to wait (M-25).
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Bell:
    """Rung after every change to the state it guards; wakes whoever listens. Loop-bound."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[asyncio.Future[None]] = []

    def ring(self) -> None:
        """Wake everybody who listens now. Call on the loop."""
        if self._listeners:
            listeners, self._listeners = self._listeners, []
            for listener in listeners:
                if not listener.done():
                    listener.set_result(None)

    def listen(self) -> asyncio.Future[None]:
        """Return a future that the next ring settles. Look at the state before you await it."""
        listener = asyncio.get_running_loop().create_future()
        self._listeners.append(listener)
        return listener

    def forget(self, listener: asyncio.Future[None]) -> None:
        """Stop listening, after a time-out or a cancellation."""
        if listener in self._listeners:
            self._listeners.remove(listener)


async def wait_until(
    look: Callable[[], T | None], bell: Bell, timeout: float | None = None
) -> T | None:
    """Return what ``look`` finds, looking again at each ring.

    Args:
        look: Returns what was waited for, or None. There is no await between it and the listening.
        bell: Rung after each change ``look`` could see.
        timeout: Seconds of loop time; None waits for ever, 0 looks once.

    Returns:
        What ``look`` found, or None when time was up and a last look found nothing.
    """
    if (found := look()) is not None or (timeout is not None and timeout <= 0):
        return found
    try:
        async with asyncio.timeout(timeout):
            while True:
                listener = bell.listen()
                try:
                    await listener
                finally:
                    bell.forget(listener)
                if (found := look()) is not None:
                    return found
    except TimeoutError:
        return look()
