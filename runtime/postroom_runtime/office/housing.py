"""Where a room lives, as the room tells it: its loop, its tasks, and ``with`` around it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextvars import Context
from types import TracebackType
from typing import Any, Self

from postroom_runtime.office.home import Home


class Housing(ABC):
    """The loop a room lives on; :class:`Room` is the rest."""

    _home: Home

    @abstractmethod
    def close(self) -> None:
        """Close the room."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The loop it lives on; None before its first spawn or await."""
        return self._home.loop

    @property
    def context(self) -> Context | None:
        """What its tasks run in."""
        return self._home.context

    def attach(self) -> None:
        """Live on the running loop from now on, unless it lives on one already.

        Raises:
            PostroomError: Called on another loop than the room's.
        """
        self._home.attach()

    def hop(self, function: Callable[..., object], *args: Any) -> None:
        """Run ``function(*args)`` on the room's loop, from any thread; at once when on it."""
        self._home.hop(function, *args)

    def task(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any] | None:
        """Run ``work`` as a task on the room's loop; what it raises is logged, never lost."""
        return self._home.task(work, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self.attach()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
