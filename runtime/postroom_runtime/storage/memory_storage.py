"""A room in memory: what it accepts is published at once and gone with the process (M-26)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.ids import MailId, SessionId
from postroom_runtime.contracts.journal import Row, RowKind, kind_of
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.box import Box, counts
from postroom_runtime.storage.clock import Clock, utc_now
from postroom_runtime.storage.front import Front, Promise
from postroom_runtime.storage.pending import Settled
from postroom_runtime.storage.protocol import Committed, Pending
from postroom_runtime.storage.receipts import counted_number


class MemoryStorage(Front):
    """A journal in memory. No thread, no JSON: rows hold the records they were given.

    Args:
        now: The clock that stamps mail and rows.
        rows: The journal of an earlier room, to go on from; complete and in order.
    """

    def __init__(self, now: Clock = utc_now, rows: Iterable[Row] = ()) -> None:
        super().__init__(now, window=None)
        self._rows: list[Row] = []
        self._by_session: dict[SessionId, list[Row]] = {}
        """``_rows`` by session, up to where somebody last asked for one."""
        self._filed = 0
        for row in rows:
            self._replay(row)

    # ── keeping what was decided ──

    def _keep_mail(self, row: Row, receipt: Receipt, box: Box) -> Pending[Receipt]:
        self._rows.append(row)
        box.log.append(row.record)  # type: ignore[arg-type]  # the row of a mail holds its envelope
        self._counts[box.kind] += 1
        self._head = row.n
        if self._ahead:
            self._ahead.discard(self._accepted)
        if self._listeners:
            self._tell((row,))
        return Settled(receipt)

    def _keep_repeat(self, receipt: Receipt, box: Box) -> Pending[Receipt]:
        return Settled(receipt)

    def _keep_commit(self, promise: Promise) -> Pending[Committed]:
        self._rows.extend(promise.rows)
        self._publish(promise.rows)
        self._ahead = {each for each in self._ahead if each > self._accepted}
        self._tell(promise.rows)
        return Settled(Committed(promise.version, tuple(promise.receipts)))

    def _replay(self, row: Row) -> None:
        """Decide once more what an earlier room decided, by its rows alone."""
        record = row.record
        if isinstance(record, SessionRecord):
            box = self._boxes.get(row.session)
            if box is None:
                self._boxes[row.session] = Box(row.session, record)
            else:
                box.adopt(record)
        elif isinstance(record, Envelope):
            box = self._boxes[row.session]
            box.head = record.seq
            box.unread += counts(record.body)
            self._accepted += 1
            taken = counted_number(record.id)
            if taken is not None:
                self._ahead.add(taken)
            self._ahead.discard(self._accepted)
            self._receipts.add(receipt_of(record))
        self._n = row.n
        self._rows.append(row)
        self._publish((row,))

    # ── reading ──

    def rows(
        self,
        session: SessionId | None = None,
        kinds: Sequence[RowKind] | None = None,
        after: int = 0,
    ) -> list[Row]:
        """Return published rows with ``n > after`` in commit order, of one session or of all."""
        with self._lock:
            if session is None:
                chosen = self._rows[max(0, after) :]
            else:
                for row in self._rows[self._filed :]:
                    self._by_session.setdefault(row.session, []).append(row)
                self._filed = len(self._rows)
                chosen = [row for row in self._by_session.get(session, ()) if row.n > after]
        if kinds is None:
            return chosen
        wanted = frozenset(kinds)
        return [row for row in chosen if kind_of(row.session, row.record) in wanted]

    def trim(self, upto: Mapping[SessionId, int]) -> None:
        """Do nothing: here the memory is the journal, and the journal stays (M-33)."""

    def _read_mail(self, session: SessionId, after: int, upto: int) -> list[Envelope]:
        return []

    def _read_one(self, id: MailId, session: SessionId | None) -> Envelope | None:
        return None

    def sql(self, query: str) -> Any:
        """Run one SELECT or EXPLAIN over the views and return a DuckDB relation over a copy."""
        raise NotImplementedError

    def describe(self) -> Mapping[str, object]:
        """Return ``path`` (``:memory:``), ``bytes`` on disk (0) and ``rows``."""
        return {"path": ":memory:", "bytes": 0, "rows": self._head}

    def close(self) -> None:
        """Take no more mail; what is there can still be read. Closing twice is harmless."""
        with self._lock:
            self._closed = StoreFailed("nothing was stored", "the room is closed", "Open it again.")


def receipt_of(mail: Envelope) -> Receipt:
    """Return the receipt that the sender of ``mail`` got, but for what it was told besides."""
    return Receipt(
        id=mail.id,
        seq=mail.seq,
        session=mail.session,
        priority=mail.priority,
        lowered=mail.lowered,
    )
