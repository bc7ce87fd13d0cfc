"""A loop on the virtual clock where a seed decides the order of everything that is ready.

Code that is right only in the order in which asyncio happens to run things fails under some seed,
and fails again whenever that seed is run.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial
from random import Random
from typing import Any, TypeVar

from postroom_runtime.testing.virtual import VirtualClockLoop

T = TypeVar("T")


class _Shuffled:
    """The queue of ready handles, of which each tick's are handed out in a seeded order.

    What asyncio promises stays: handles of one task keep their order, so do the callbacks of one
    future and those that were given to ``call_soon`` by hand. Timers due at the same moment do not.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._tick: list[asyncio.Handle] = []
        """What is left of this tick, last first."""
        self._later: list[asyncio.Handle] = []

    def append(self, handle: asyncio.Handle) -> None:
        self._later.append(handle)

    def popleft(self) -> asyncio.Handle:
        if not self._tick:
            ready, self._later = self._later, []
            self._tick = self._shuffled(ready)
        return self._tick.pop()

    def __len__(self) -> int:
        return len(self._tick) + len(self._later)

    def clear(self) -> None:
        self._tick, self._later = [], []

    def _shuffled(self, ready: list[asyncio.Handle]) -> list[asyncio.Handle]:
        if len(ready) < 2:
            return ready
        owners = [_owner(handle) for handle in ready]
        waiting: dict[int, deque[asyncio.Handle]] = {}
        for owner, handle in zip(owners, ready, strict=True):
            waiting.setdefault(owner, deque()).append(handle)
        self._random.shuffle(owners)
        return [waiting[owner].popleft() for owner in owners][::-1]


_BY_HAND = 0


def _owner(handle: Any) -> int:
    """Return a number that handles share which must keep their order."""
    if isinstance(handle, asyncio.TimerHandle):
        return id(handle)
    owner = getattr(handle._callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return id(owner)
    if handle._args and isinstance(handle._args[0], asyncio.Future):
        return id(handle._args[0])
    return _BY_HAND


class SeededLoop(VirtualClockLoop):
    """A loop on the virtual clock that shuffles what is ready in each tick.

    Args:
        seed: The same seed gives the same order in every process.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._ready = _Shuffled(Random(seed))


def run_seeded(main: Coroutine[Any, Any, T], seed: int) -> T:
    """Run ``main`` to its end on a loop whose order ``seed`` decides; return what it returns.

    Raises:
        RuntimeError: Everything waits and no timer is set: the test would hang.
    """
    with asyncio.Runner(loop_factory=partial(SeededLoop, seed)) as runner:
        return runner.run(main)
