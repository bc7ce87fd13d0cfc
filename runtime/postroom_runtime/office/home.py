"""Where a room lives: its event loop, the context its tasks run in, and the tasks that are no session."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from postroom_runtime.contracts.errors import PostroomError

log = logging.getLogger("postroom")


class Home:
    """One loop, taken once: the one given, else the one running at the first spawn or await.

    Args:
        loop: The loop to live on, running or not; None waits for the first that runs.
        context: What tasks run in, so that their prints reach no cell; None is the caller's.
        moved_in: Called with the loop once it is taken.
        moved_out: Called when that loop was closed and another takes its place.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None,
        context: Context | None,
        moved_in: Callable[[asyncio.AbstractEventLoop], None],
        moved_out: Callable[[], None],
    ) -> None:
        self.loop, self.context = loop, context
        self.attached = False
        self._moved_in, self._moved_out = moved_in, moved_out
        self._tasks: set[asyncio.Task[Any]] = set()

    def attach(self) -> None:
        """Live on the running loop from now on, unless there is one already.

        Raises:
            PostroomError: Called on another loop than the one taken.
        """
        running = asyncio._get_running_loop()
        if self.loop is not None and self.loop.is_closed() and running is not None:
            self._moved_out()
            self.loop, self.attached = None, False
        if not self.attached:
            self.loop = self.loop or running
            if self.loop is not None:
                self.attached = True
                self._moved_in(self.loop)
        elif running is not None and running is not self.loop:
            raise PostroomError(
                "the room lives on another event loop. Use room.send from here, or "
                "asyncio.run_coroutine_threadsafe(…, room.loop)."
            )

    def hop(self, function: Callable[..., object], *args: Any) -> None:
        """Run ``function(*args)`` on the loop, from any thread; at once when on it or without one."""
        if self.loop is None or asyncio._get_running_loop() is self.loop:
            function(*args)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *args, context=self.context)

    def task(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any] | None:
        """Run ``work`` as a task; what it raises is logged, never lost. None without a loop."""
        if self.loop is None or self.loop.is_closed():
            work.close()
            return None
        context = self.context.copy() if self.context is not None else None
        task = self.loop.create_task(work, name=f"postroom:{name}", context=context)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    def leave(self) -> None:
        """Cancel the tasks."""
        if self.loop is not None and not self.loop.is_closed():
            for task in tuple(self._tasks):
                task.cancel()
