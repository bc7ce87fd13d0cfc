"""The kernel's loop: which one it is, how to be quiet on it, and how to keep it listening."""

import asyncio
import contextlib
import contextvars
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")

BEAT_SECONDS: Final = 0.2
"""How often the loop is woken while sessions live."""


def home_loop(ip: Any) -> asyncio.AbstractEventLoop | None:
    """Return the loop on which a shell runs its cells, and sessions live.

    Asked anew each time: an extension that a profile loads comes before the kernel has its loop.

    Args:
        ip: The shell.

    Returns:
        None in a kernel that has no loop yet; a room then lives on the loop of its first spawn.
        The loop of a plain terminal runs only while a cell awaits, or at the prompt by
        ``%gui asyncio``.
    """
    kernel = getattr(ip, "kernel", None)
    if kernel is not None:
        return getattr(getattr(kernel, "io_loop", None), "asyncio_loop", None)
    from IPython.core.async_helpers import get_asyncio_loop

    plain: asyncio.AbstractEventLoop = get_asyncio_loop()
    return plain


def quiet_context(ip: Any) -> contextvars.Context:
    """Return a context whose prints belong to no cell.

    A task prints into the cell it was made in, for ever. What sessions print is nobody's output, so
    they run with an empty parent header; ipykernel then sends it nowhere.

    Args:
        ip: The shell; a plain terminal has no cells and nothing changes there.
    """
    context = contextvars.copy_context()
    set_parent = getattr(ip, "set_thread_parent", None)
    if set_parent is not None:
        context.run(set_parent, {})
    elif getattr(ip, "kernel", None) is not None:
        context.run(_mute_before_7_4, ip)
    return context


def _mute_before_7_4(ip: Any) -> None:
    for stream in (sys.stdout, sys.stderr, ip.display_pub):
        header = getattr(stream, "_parent_header", None)
        if isinstance(header, contextvars.ContextVar):
            header.set({})


class Heartbeat:
    """Wakes the loop while there is a reason, so that a kernel interrupt is noticed in time.

    ipykernel hands an interrupt to the loop without waking it: a cell that awaits something slow
    would end seconds later, or never.

    Args:
        loop: The kernel's loop, asked for anew each time; None when there is none to wake.
        alive: Whether there is still a reason.
    """

    def __init__(
        self, loop: Callable[[], asyncio.AbstractEventLoop | None], alive: Callable[[], bool]
    ) -> None:
        self._loop = loop
        self._alive = alive
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to beat, if it does not already. Without effect on another loop's thread."""
        loop = self._loop()
        if self._next is not None or loop is None or loop.is_closed():
            return
        if threading.current_thread() is threading.main_thread():
            self._next = loop.call_later(BEAT_SECONDS, self._beat)

    def stop(self) -> None:
        """Beat no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _beat(self) -> None:
        self._next = None
        if self._alive():
            self.start()


def settle(loop: asyncio.AbstractEventLoop | None) -> None:
    """Let tasks that were cancelled end, on a loop that nothing else will run any more."""
    if loop is not None and not loop.is_running() and not loop.is_closed():
        loop.run_until_complete(asyncio.sleep(0))


async def on_loop(loop: asyncio.AbstractEventLoop | None, work: Coroutine[Any, Any, T]) -> T:
    """Await work on the loop it belongs to, from whichever loop a cell runs on.

    A console may have a second shell in the kernel, with a thread and a loop of its own.

    Args:
        loop: Where the work belongs; None for the loop that runs here.
        work: What to await.
    """
    if loop is None or loop is asyncio.get_running_loop():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@contextlib.contextmanager
def interruptible(ip: Any) -> Iterator[None]:
    """Let ^C cancel the task that waits in here, in a plain terminal.

    There ^C raises out of the loop and leaves the cell behind, asleep; the rest of it would run
    during the next wait. A kernel cancels the cell by itself.

    Args:
        ip: The shell.
    """
    task = asyncio.current_task()
    here = threading.current_thread() is threading.main_thread()
    if task is None or not here or getattr(ip, "kernel", None) is not None:
        yield
        return
    loop = asyncio.get_running_loop()

    def cancel(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
