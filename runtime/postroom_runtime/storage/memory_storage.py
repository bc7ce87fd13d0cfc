"""A room in memory: what it accepts is published at once and gone with the process (M-26)."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.ids import MailId, SessionId
from postroom_runtime.contracts.journal import Row, RowKind, kind_of
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.storage.box import Box, counts
from postroom_runtime.storage.clock import Clock, utc_now
from postroom_runtime.storage.front import Front
from postroom_runtime.storage.mirror import Mirror, turn_cursors
from postroom_runtime.storage.numbering import Promise, make_row, receipt_for
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
        self._journal: list[Row | Envelope] = []
        """Every row, row ``n`` at ``n - 1``; of mail the envelope alone, which tells all the rest."""
        self._by_session: dict[SessionId, list[Row]] = {}
        """The journal by session, up to where somebody last asked for one."""
        self._filed = 0
        self._mirror = Mirror()
        earlier = list(rows)
        self._cursors = turn_cursors(earlier)
        """The session's cursor as of the commit of each turn, by the turn's ``n``."""
        for row in earlier:
            self._replay(row)

    # ── keeping what was decided ──

    def _keep_mail(self, envelope: Envelope, box: Box, mail: Outgoing) -> Pending[Receipt]:
        self._n = self._head = n = self._n + 1
        self._journal.append(envelope)
        self._receipts.add(envelope)  # which tells all that a receipt does
        box.log.append(envelope)
        self._counts[box.kind] += 1
        if self._ahead:
            self._ahead.discard(self._accepted)
        if self._listeners:
            self._tell((make_row(n, envelope.session, envelope.accepted_at, envelope),))
        return Accepted(envelope, mail.note)

    def _keep_repeat(self, receipt: Receipt, box: Box) -> Pending[Receipt]:
        return Settled(receipt)

    def _keep_commit(self, promise: Promise) -> Pending[Committed]:
        self._journal.extend(promise.rows)
        for row in promise.rows:
            if isinstance(row.record, Turn):
                self._cursors[row.n] = promise.cursor
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
            self._receipts.add(record)
        self._n = row.n
        self._journal.append(row)
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
                start = max(0, after)
                chosen = list(map(_as_row, count(start + 1), self._journal[start:]))
            else:
                for row in map(_as_row, count(self._filed + 1), self._journal[self._filed :]):
                    self._by_session.setdefault(row.session, []).append(row)
                self._filed = len(self._journal)
                chosen = [row for row in self._by_session.get(session, ()) if row.n > after]
        if kinds is None:
            return chosen
        wanted = frozenset(kinds)
        return [row for row in chosen if kind_of(row.session, row.record) in wanted]

    def fetch(self, after: Mapping[SessionId, int]) -> dict[SessionId, list[Envelope]]:
        """Return the mail of each session with ``seq`` above the given one (M-20)."""
        # Without the lock, since nothing is ever taken out of a log here: a slice is what was
        # published when it was cut, and more may be there the moment after, lock or no lock.
        mail: dict[SessionId, list[Envelope]] = {}
        for session, seq in after.items():
            box = self._boxes.get(session)
            mail[session] = [] if box is None else box.log[seq:]
        return mail

    def trim(self, upto: Mapping[SessionId, int]) -> None:
        """Do nothing: here the memory is the journal, and the journal stays (M-33)."""

    def _read_mail(self, session: SessionId, after: int, upto: int) -> list[Envelope]:
        return []

    def _read_one(self, id: MailId, session: SessionId | None) -> Envelope | None:
        return None

    def sql(self, query: str) -> Any:
        """Run one SELECT or EXPLAIN over the views and return a DuckDB relation over a copy.

        Raises:
            ConfigError: Not exactly one SELECT or EXPLAIN, or the query is wrong; names the fault.
        """
        return self._mirror.query(self.rows(after=self._mirror.upto), self._cursors, query)

    def describe(self) -> Mapping[str, object]:
        """Return ``path`` (``:memory:``), ``bytes`` on disk (0) and ``rows``."""
        return {"path": ":memory:", "bytes": 0, "rows": self._head}

    def close(self) -> None:
        """Take no more mail; what is there can still be read. Closing twice is harmless."""
        with self._lock:
            self._closed = StoreFailed("nothing was stored", "the room is closed", "Open it again.")


def _as_row(n: int, kept: Row | Envelope) -> Row:
    return kept if isinstance(kept, Row) else make_row(n, kept.session, kept.accepted_at, kept)


class Accepted:
    """The receipt of mail that is published already, made only if somebody wants to see it."""

    __slots__ = ("_envelope", "_note")

    def __init__(self, envelope: Envelope, note: str) -> None:
        self._envelope = envelope
        self._note = note

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self, timeout: float | None = None) -> Receipt:
        """Return the receipt."""
        return receipt_for(self._envelope, self._note)

    def __await__(self) -> Generator[Any, None, Receipt]:
        """Return the receipt without giving way to other tasks."""
        return receipt_for(self._envelope, self._note)
        yield  # makes this a generator, as awaiting demands
