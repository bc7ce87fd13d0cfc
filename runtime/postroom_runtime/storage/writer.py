"""The one thread that writes a room: whatever was queued during one group is the next group."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.storage.pending import Wakes, wake

U = TypeVar("U")

MAX_GROUP = 2048
"""Units written in one group."""
SOFT_LIMIT = 4096
"""Waiting units at which threads are held back."""
HARD_LIMIT = 65_536
"""Waiting units at which a loop's sends are refused."""
CROWD = 16
"""Units in a group after which the next one is given time to gather; fewer get none."""
GLANCE_SECONDS = 0.0005
MOST_GLANCES = 10


class Writer(Generic[U]):
    """Writes units in the order they were queued, one group at a time.

    The next group is not begun before the one before it is settled: when it failed, the units behind
    it, which build on it, have failed too by then.

    Args:
        lock: The store's; held by whoever calls ``enqueue``, and while ``settle`` runs.
        write: Write a group, without the lock; return why it failed.
        settle: Publish a group, or take it back; a failed one comes with all that is queued behind
            it. Notes in the last argument who waits on a loop.
        finish: Called once, when all is written and nothing more will come.
    """

    def __init__(
        self,
        lock: threading.Lock,
        write: Callable[[Sequence[U]], StoreFailed | None],
        settle: Callable[[Sequence[U], StoreFailed | None, Wakes], None],
        finish: Callable[[], None],
    ) -> None:
        self._lock = lock
        self._write = write
        self._settle = settle
        self._finish = finish
        self.settled = threading.Condition(lock)
        """Notified when a group is settled: what a pending's ``result`` waits for."""
        self._work = threading.Condition(lock)
        self._queue: deque[U] = deque()
        self._idle = False
        self._last_size = 0
        self._ending = False
        # A daemon, so that a forgotten room never keeps the interpreter alive; it is closed at exit.
        self._thread = threading.Thread(target=self._run, name="postroom-writer", daemon=True)
        self._thread.start()

    def enqueue(self, unit: U) -> None:
        """Queue ``unit`` behind all others; under the lock."""
        self._queue.append(unit)
        if self._idle:
            self._idle = False
            self._work.notify()

    def hold_back(self) -> None:
        """Let a thread that sends faster than the disk writes wait until the queue is shorter.

        A loop is never held back, for it is the user's kernel.

        Raises:
            StoreFailed: It is a loop, and the queue is far too long.
        """
        if len(self._queue) < SOFT_LIMIT:
            return
        if not _in_a_loop():
            with self.settled:
                self.settled.wait_for(lambda: len(self._queue) < SOFT_LIMIT)
        elif len(self._queue) >= HARD_LIMIT:
            raise StoreFailed(
                "nothing was stored",
                f"{len(self._queue)} units wait for the disk already",
                "Await some receipts, and send again.",
            )

    def end(self) -> None:
        """Write what is queued, finish, and end the thread; without the lock. Twice is harmless."""
        with self._lock:
            self._ending = True
            self._work.notify()
        self._thread.join()

    def abandon(self, lock: threading.Lock) -> None:
        """Go on with a lock of one's own in a forked child, where the thread does not exist."""
        # Whoever held the old one when the process was forked is not here to give it back.
        self._lock = lock
        self._work = self.settled = threading.Condition(lock)

    def _run(self) -> None:
        while (group := self._next_group()) is not None:
            failed = self._write(group)
            wakes: Wakes = {}
            with self._lock:
                if failed is not None:
                    group += self._queue
                    self._queue.clear()
                self._settle(group, failed, wakes)
                self.settled.notify_all()
            wake(wakes)
        self._finish()

    def _next_group(self) -> list[U] | None:
        with self._lock:
            while not self._queue:
                if self._ending:
                    return None
                self._idle = True
                self._work.wait()
        if self._last_size >= CROWD:
            self._let_gather()
        with self._lock:
            size = self._last_size = min(len(self._queue), MAX_GROUP)
            return [self._queue.popleft() for _ in range(size)]

    def _let_gather(self) -> None:
        """Wait while the queue grows: a crowd that was answered together comes back together.

        Begun at once, its first few would be a group of their own and the rest the next one, two
        plans and two waits for the disk instead of one.
        """
        seen = 0
        for _ in range(MOST_GLANCES):
            if not seen < len(self._queue) < MAX_GROUP:
                return
            seen = len(self._queue)
            time.sleep(GLANCE_SECONDS)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
