"""What goes on although its call has ended: tasks and threads that ignore a cancellation (M-73)."""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio.to_thread

from postroom_runtime.calls.context import current_call
from postroom_runtime.contracts.ids import CallId

PATIENCE_SECONDS = 5.0
"""How long a call that was told to end may tidy up before it is left to itself."""

A_MOMENT = 0.2
"""Seconds in which a task that heeds its cancellation has ended, as a rule."""

NOTE = "it ignores the cancellation so far; what it returns is discarded"

_THREAD = "; its thread cannot be stopped and goes on, what it returns is discarded"


class Strays:
    """The tasks told to end and the threads of the calls of one session, until each really ends.

    Args:
        changed: Called on the loop when one of them has ended.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._tasks: dict[CallId, set[asyncio.Task[Any]]] = defaultdict(set)
        self._threads: Counter[CallId] = Counter()
        self._counting = threading.Lock()

    def __contains__(self, call: CallId) -> bool:
        return call in self._tasks or self._threads[call] > 0

    def words(self, call: CallId) -> str:
        """Return what the result of a call that is just being ended says of its thread, if any."""
        return _THREAD if self._threads[call] > 0 else ""

    def watch(self, call: CallId, task: asyncio.Task[Any]) -> None:
        """Count ``task``, which was told to end, as going on until it has ended. Loop-bound."""
        if task.done() or task in self._tasks.get(call, ()):
            return
        self._tasks[call].add(task)

        def over(task: asyncio.Task[Any]) -> None:
            self._tasks[call].discard(task)
            if not self._tasks[call]:
                del self._tasks[call]
            if not task.cancelled():
                task.exception()  # nobody waits for it any more, so nobody is told
            self._changed()

        task.add_done_callback(over)

    async def settle(self, call: CallId, seconds: float = A_MOMENT) -> None:
        """Wait until the tasks of ``call`` have ended, so many seconds at most."""
        if tasks := self._tasks.get(call):
            await asyncio.wait(tuple(tasks), timeout=seconds)

    async def in_thread(
        self, function: Callable[..., Any], kwargs: Mapping[str, Any], *args: Any
    ) -> Any:
        """Return ``function(*args, **kwargs)`` from a worker thread, in the context of the call.

        A cancelled caller goes on at once; the thread cannot be stopped and what it returns is dropped.
        """
        call, loop = current_call().call, asyncio.get_running_loop()

        def work() -> Any:
            # Counted by the thread itself: one that was cancelled before its turn never begins.
            self._count(call, 1)
            try:
                return function(*args, **kwargs)
            finally:
                self._count(call, -1)
                with suppress(RuntimeError):  # it may outlive the loop
                    loop.call_soon_threadsafe(self._changed)

        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    def _count(self, call: CallId, by: int) -> None:
        with self._counting:
            self._threads[call] += by
            if not self._threads[call]:
                del self._threads[call]
