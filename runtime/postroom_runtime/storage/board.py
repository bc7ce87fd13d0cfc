"""What a room has published: mail, records, counts, and who is told of news."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.ids import MailId, SessionId
from postroom_runtime.contracts.journal import Row, RowKind, kind_of
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.box import Box
from postroom_runtime.storage.protocol import Listener
from postroom_runtime.storage.receipts import Receipts, counted_number

_log = logging.getLogger(__name__)


class Board(ABC):
    """The published state of a room in memory, and the readings that need nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Guards everything here and in the classes built on it."""
        self._boxes: dict[SessionId, Box] = {}
        self._records: dict[SessionId, SessionRecord] = {}
        self._receipts = Receipts()
        """Of promised mail too: whether it is published, its ``seq`` tells."""
        self._counts: dict[RowKind, int] = dict.fromkeys(RowKind, 0)
        self._head = 0
        """Number of the last published row."""
        self._listeners: tuple[Listener, ...] = ()
        self._closed: StoreFailed | None = None
        """What writing answers once the room is closed."""

    # ── publishing; under the lock ──

    def _publish(self, rows: Sequence[Row]) -> None:
        """Make ``rows`` visible to every reader; they follow what is published, without a gap."""
        for row in rows:
            record = row.record
            if isinstance(record, Envelope):
                box = self._boxes[row.session]
                box.log.append(record)
                self._counts[box.kind] += 1
                continue
            self._counts[kind_of(row.session, record)] += 1
            if isinstance(record, SessionRecord):
                self._records[row.session] = record
                self._boxes[row.session].advance(record.cursor)
        if rows:
            self._head = rows[-1].n

    def _tell(self, rows: Sequence[Row]) -> None:
        """Tell every listener of published rows."""
        for listener in self._listeners:
            try:
                listener(rows)
            except Exception:
                # The rows are stored and stand; one broken listener must neither make their sender
                # believe otherwise nor keep the news from the others.
                _log.exception("a listener of the store failed")

    # ── reading ──

    def head(self) -> int:
        """Return the number of the last published row; 0 for an empty room."""
        return self._head

    def count(self, kind: RowKind) -> int:
        """Return how many rows of ``kind`` were ever published."""
        return self._counts[kind]

    def records(self) -> dict[SessionId, SessionRecord]:
        """Return the latest published record of every session ever stored, closed ones too."""
        with self._lock:
            return dict(self._records)

    def fetch(self, after: Mapping[SessionId, int]) -> dict[SessionId, list[Envelope]]:
        """Return the published mail of each session with ``seq`` above the given one (M-20).

        Ascending, and empty for a session that is not known. From memory where it is unread, from
        the journal where it was trimmed; consumes nothing.
        """
        mail: dict[SessionId, list[Envelope]] = {}
        trimmed: list[tuple[SessionId, int, int]] | None = None
        with self._lock:
            for session, seq in after.items():
                box = self._boxes.get(session)
                if box is None:
                    mail[session] = []
                elif seq >= box.base:
                    mail[session] = box.log[seq - box.base :]
                else:
                    mail[session] = box.log[:]
                    trimmed = [*(trimmed or ()), (session, seq, box.base)]
        if trimmed is not None:
            for session, seq, base in trimmed:
                mail[session] = self._read_mail(session, seq, base) + mail[session]
        return mail

    def find(self, session: SessionId, id: MailId) -> Envelope | None:
        """Return the mail accepted in ``session`` under ``id``, trimmed or not, else None."""
        with self._lock:
            receipt = self._receipts.find(session, id)
            if receipt is None and self._receipts.complete:
                return None
            box = self._boxes.get(session)
            if receipt is not None and box is not None:
                if receipt.seq > box.published:
                    return None
                held = box.held(receipt.seq) or self._recall(session, receipt.seq)
                if held is not None:
                    return held
        return self._read_one(id, session)

    def find_mail(self, id: MailId) -> Envelope | None:
        """Return the first mail of the room accepted under ``id``, in whatever mailbox."""
        with self._lock:
            receipt = self._receipts.first(id)
            if receipt is None and self._receipts.complete:
                return None
            # Only an id that the room counts out cannot also be older than what memory knows.
            if receipt is not None and (self._receipts.complete or counted_number(id) is not None):
                box = self._boxes[receipt.session]
                if receipt.seq > box.published:
                    return None
                held = box.held(receipt.seq) or self._recall(receipt.session, receipt.seq)
                if held is not None:
                    return held
        return self._read_one(id, None)

    def bells(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every group published from now on; return how to stop that."""
        with self._lock:
            self._listeners += (listener,)

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each is not listener)

        return stop

    def trim(self, upto: Mapping[SessionId, int]) -> None:
        """Forget mail at or below ``seq`` in memory, never above the committed cursor (M-33)."""
        with self._lock:
            for session, seq in upto.items():
                box = self._boxes.get(session)
                if box is not None:
                    self._let_go(box.trim(seq))

    def _let_go(self, mail: Sequence[Envelope]) -> None:  # noqa: B027 - a hook
        """Hear of mail that its mailbox no longer holds; under the lock."""

    def _recall(self, session: SessionId, seq: int) -> Envelope | None:
        """Return mail that its mailbox no longer holds, if memory still does; under the lock."""
        return None

    @abstractmethod
    def _read_mail(self, session: SessionId, after: int, upto: int) -> list[Envelope]:
        """Read mail with ``after < seq <= upto`` from the journal; without the lock."""

    @abstractmethod
    def _read_one(self, id: MailId, session: SessionId | None) -> Envelope | None:
        """Read the first mail with ``id`` from the journal, of one session or of the room."""

    # ── ownership: a room that lives in one process ──

    def claim(self, session: SessionId, owner: str) -> int:
        """Return 1: nobody else can hold a session of this room."""
        return 1

    def renew(self, session: SessionId, epoch: int) -> bool:
        """Return True."""
        return True

    def release(self, session: SessionId, epoch: int) -> None:  # noqa: B027 - nothing is held
        """Do nothing."""
