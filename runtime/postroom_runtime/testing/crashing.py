"""A store that takes its time, and in which the kernel dies at a chosen effect."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Generic, TypeVar

from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Record, Row
from postroom_runtime.storage.box import Box
from postroom_runtime.storage.clock import Clock
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.storage.numbering import Promise, make_row, receipt_for
from postroom_runtime.storage.pending import Settled
from postroom_runtime.storage.protocol import Committed, Pending
from postroom_runtime.testing.virtual import virtual_now

T = TypeVar("T")


class KernelDied(BaseException):
    """The kernel is dead: whoever blocks for its store gets this, whoever awaits waits for ever."""


class CrashingStorage(MemoryStorage):
    """A memory room's journal with the delays of one on disk, and a moment of death.

    Mail and commits are decided at once and in order. Each is published ``lag()`` ticks of the loop
    later, still in order, and acknowledged ``lag()`` ticks after that: what a store does that writes
    in a thread of its own, so that its readers may know of an effect before its author does.

    At the ``dies_at``-th effect the kernel dies: nothing is stored, told or acknowledged any more.
    What ``rows()`` gives then is what the next kernel finds: ``MemoryStorage(rows=dead.rows())``.

    Args:
        now: The clock that stamps mail and rows.
        rows: The journal of an earlier room, to go on from.
        dies_at: Which effect, an accepted mail or a commit, counted from 1; None: it lives on.
        stored: Whether that effect is stored, and only its acknowledgement is lost.
        lag: Gives a number of ticks each time; with 0 all is done at once.
    """

    def __init__(
        self,
        now: Clock = virtual_now,
        rows: Iterable[Row] = (),
        *,
        dies_at: int | None = None,
        stored: bool = False,
        lag: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(now, rows)
        self.dies_at, self.stored = dies_at, stored
        self.effects = 0
        """How many were stored so far, the last one of a dead kernel included."""
        self.died = asyncio.Event()
        """Set when the kernel is dead."""
        self._lag = lag
        self._decided: deque[_Late[Any]] = deque()
        self._pumping = False

    @property
    def dead(self) -> bool:
        """Whether the kernel is dead."""
        return self.died.is_set()

    def accept(self, batch: Sequence[Outgoing]) -> list[Pending[Receipt]]:
        """Do what a memory room does, later; nothing once the kernel is dead."""
        if self.dead:
            return [_Late(self, None) for _ in batch]
        return super().accept(batch)

    def commit(
        self,
        session: SessionId,
        *,
        epoch: int,
        version: int | None,
        cursor: int | None = None,
        rows: Sequence[Record] = (),
        mail: Sequence[Outgoing] = (),
    ) -> Pending[Committed]:
        """Do what a memory room does, later; nothing once the kernel is dead."""
        if self.dead:
            return _Late(self, None)
        return super().commit(
            session, epoch=epoch, version=version, cursor=cursor, rows=rows, mail=mail
        )

    # ── decided; under the lock ──

    def _keep_mail(self, envelope: Envelope, box: Box, mail: Outgoing) -> Pending[Receipt]:
        self._n += 1
        self._receipts.add(envelope)
        row = make_row(self._n, envelope.session, envelope.accepted_at, envelope)
        promise = Promise(
            session=envelope.session,
            version=0,
            rows=[row],
            mail=[],
            texts=(),
            receipts=[],
            record=None,
            before=None,
            cursor=0,
        )
        return self._later(_Late(self, promise, receipt_for(envelope, mail.note)))

    def _keep_repeat(self, receipt: Receipt, box: Box) -> Pending[Receipt]:
        if receipt.seq <= box.published:
            return Settled(receipt)
        return self._later(_Late(self, None, receipt))

    def _keep_commit(self, promise: Promise) -> Pending[Committed]:
        outcome = Committed(promise.version, tuple(promise.receipts))
        return self._later(_Late(self, promise, outcome))

    def _later(self, late: "_Late[T]") -> "_Late[T]":
        self._decided.append(late)
        loop = asyncio._get_running_loop()
        late.ticks = 0 if loop is None else self._lag()
        if late.ticks == 0 and len(self._decided) == 1:
            self._store_next()
            late.settle()
        elif not self._pumping and loop is not None:
            self._pumping = True
            loop.call_soon(self._pump, loop)
        return late

    def _store_next(self) -> None:
        """Publish what was decided first."""
        late = self._decided.popleft()
        if late.promise is not None and not self.dead:
            dying = self.effects + 1 == self.dies_at
            if dying:
                self.died.set()
            if not dying or self.stored:
                self.effects += 1
                super()._keep_commit(late.promise)
        late.stored = not self.dead

    def _tell(self, rows: Sequence[Row]) -> None:
        if not self.dead:
            super()._tell(rows)

    # ── time goes by ──

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        """A tick has passed: store what is due, and let its authors know in their turn."""
        with self._lock:
            if self._decided:
                self._decided[0].ticks -= 1
            while self._decided and self._decided[0].ticks <= 0:
                late = self._decided[0]
                self._store_next()
                self._acknowledge(loop, late, self._lag())
            self._pumping = bool(self._decided)
        if self._pumping:
            loop.call_soon(self._pump, loop)

    def _acknowledge(self, loop: asyncio.AbstractEventLoop, late: "_Late[Any]", ticks: int) -> None:
        if ticks > 0:
            loop.call_soon(self._acknowledge, loop, late, ticks - 1)
        else:
            late.settle()

    def flush(self) -> None:
        """Store all that is decided, at once: somebody blocks for it."""
        with self._lock:
            while self._decided:
                late = self._decided[0]
                self._store_next()
                late.settle()


class _Late(Generic[T]):
    """An outcome that is known and not yet told; with no promise and no value it never is."""

    def __init__(
        self, storage: CrashingStorage, promise: Promise | None, value: T | None = None
    ) -> None:
        self._storage, self.promise, self._value = storage, promise, value
        self.ticks = 0
        self.stored = False
        self._done = False
        self._waiters: list[asyncio.Future[None]] = []

    def settle(self) -> None:
        """Tell it, if it was stored by a kernel that lives."""
        if self.stored and not self._storage.dead:
            self._done = True
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def done(self) -> bool:
        """Tell whether it is told."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Have it stored now, and return it.

        Raises:
            KernelDied: The kernel is dead.
        """
        if not self._done:
            self._storage.flush()
        if not self.stored or self._storage.dead:
            raise KernelDied
        return self._value  # type: ignore[return-value]  # stored: there is a value

    def __await__(self) -> Generator[Any, None, T]:
        """Wait on the running loop; for ever when the kernel is dead."""
        if not self._done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        return self._value  # type: ignore[return-value]  # settled: there is a value
