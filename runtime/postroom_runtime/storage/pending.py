"""Outcomes that are settled once: at once in memory, by the writer thread on disk.

``concurrent.futures`` would do, at five times the price: each of its futures brings a condition of
its own, and waking a task takes one message to the loop per future instead of one per group.
"""

import asyncio
import threading
from collections.abc import Generator, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")

Wakes: TypeAlias = "dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]]"
"""The futures to wake, by the loop they belong to."""

_Waiters: TypeAlias = "list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]]"


class Settled(Generic[T]):
    """An outcome that was there from the start."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self, timeout: float | None = None) -> T:
        """Return the outcome."""
        return self._value

    def __await__(self) -> Generator[Any, None, T]:
        """Return the outcome without giving way to other tasks."""
        return self._value
        yield  # makes this a generator, as awaiting demands


class Refused(Generic[T]):
    """A refusal that was there from the start."""

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error = error

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self, timeout: float | None = None) -> T:
        """Raise the refusal."""
        raise self._error.with_traceback(None)

    def __await__(self) -> Generator[Any, None, T]:
        """Raise the refusal."""
        raise self._error.with_traceback(None)
        yield  # makes this a generator, as awaiting demands


class Waiting(Generic[T]):
    """An outcome that another thread will settle.

    ``settled`` is the condition that thread notifies; its lock guards all pendings of a store.
    """

    __slots__ = ("_done", "_error", "_settled", "_value", "_waiters")

    def __init__(self, settled: threading.Condition) -> None:
        self._settled = settled
        self._done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._waiters: _Waiters | None = None

    def done(self) -> bool:
        """Tell whether it is settled."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Block this thread until it is settled; return the outcome or raise its error.

        Raises:
            TimeoutError: Not settled within ``timeout`` seconds.
        """
        if not self._done:
            with self._settled:
                if not self._settled.wait_for(self.done, timeout):
                    raise TimeoutError(f"the store has not answered within {timeout:g} s.")
        return self._outcome()

    def __await__(self) -> Generator[Any, None, T]:
        """Wait on the running loop; a cancelled waiter undoes nothing."""
        if not self._done:
            loop = asyncio.get_running_loop()
            future: asyncio.Future[None] = loop.create_future()
            with self._settled:
                # Looked at again: it may have been settled while this thread waited for the lock.
                if registered := not self._done:
                    self._waiters = [*(self._waiters or ()), (loop, future)]
            if registered:
                yield from future
        return self._outcome()

    def settle(self, value: T, wakes: Wakes) -> None:
        """Settle it with ``value``, under the lock; note in ``wakes`` who waits on a loop."""
        self._value = value
        self._end(wakes)

    def fail(self, error: Exception, wakes: Wakes) -> None:
        """Settle it with ``error``, under the lock; note in ``wakes`` who waits on a loop."""
        self._error = error
        self._end(wakes)

    def _end(self, wakes: Wakes) -> None:
        self._done = True
        if self._waiters is not None:
            for loop, future in self._waiters:
                wakes.setdefault(loop, []).append(future)
            self._waiters = None

    def _outcome(self) -> T:
        if self._error is not None:
            # Without this, every waiter would add its own frames to the one error they share.
            raise self._error.with_traceback(None)
        return self._value  # type: ignore[return-value]  # settled without error: it is a T


def wake(wakes: Wakes) -> None:
    """Wake the waiting tasks of each loop with one message to it; call it without the lock."""
    for loop, futures in wakes.items():
        try:
            loop.call_soon_threadsafe(_ring, futures)
        except RuntimeError:
            # The loop is closed: whoever waited there is gone, and the outcome stands.
            pass


def _ring(futures: Iterable["asyncio.Future[None]"]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
