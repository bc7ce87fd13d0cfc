"""The deciding memory of memory and DuckDB rooms: ids, bounds, numbers and versions.

Whoever sends or commits decides here, in their own thread, under the one lock of the house. It is
held for microseconds, never across a commit and never while a user's code runs. What is decided is
*promised*: it has its numbers, and later decisions build on it. ``memory_storage`` publishes a
promise at once; ``duckdb_storage`` writes it first, and takes back every promise when that fails.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TypeVar

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.errors import (
    AlreadyRead,
    ConfigError,
    MailRefused,
    StaleRecord,
    StoreFailed,
    UnknownRecipient,
)
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.ids import MailId, SessionId
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.box import Box
from postroom_runtime.storage.clock import Clock
from postroom_runtime.storage.commit_rules import check_cursor, record_of
from postroom_runtime.storage.numbering import Found, Numbering, Promise, make_row, receipt_for
from postroom_runtime.storage.pending import Refused
from postroom_runtime.storage.protocol import Committed, Pending
from postroom_runtime.storage.receipts import Stamp

T = TypeVar("T")

_NOTHING: Found = {}

_REFUSALS = (MailRefused, ConfigError, AlreadyRead)


class Front(Numbering):
    """Decides for a room that lives in one process.

    Args:
        now: The clock that stamps mail and rows.
        window: How many ids to keep in memory at least, once there are more; None keeps all.
    """

    def __init__(self, now: Clock, window: int | None) -> None:
        super().__init__(window)
        self._now = now

    # ── what a store does with a decision; called under the lock ──

    @abstractmethod
    def _keep_mail(self, envelope: Envelope, box: Box, mail: Outgoing) -> Pending[Receipt]:
        """Store and publish one mail, as the next row, and keep its receipt.

        It was sent as ``mail``.
        """

    @abstractmethod
    def _keep_repeat(self, receipt: Receipt, box: Box) -> Pending[Receipt]:
        """Answer mail that was promised before with ``receipt``, not before that is published."""

    @abstractmethod
    def _keep_commit(self, promise: Promise) -> Pending[Committed]:
        """Store and publish a commit."""

    def _look_up(self, ids: Sequence[MailId]) -> Found:
        """Ask the journal for ids that memory may have forgotten; called *without* the lock."""
        return {}

    # ── writing ──

    def accept(self, batch: Sequence[Outgoing]) -> list[Pending[Receipt]]:
        """Accept mail, each one by itself: number it, store it, publish it (M-15, M-18, M-19).

        The checks come in the order of M-16: a recipient that is unknown or closed; an id that was
        accepted before; the hops; the bound. A given id of the form that the room counts out itself
        is refused when another mailbox has it: such an id names one mail in the whole room.

        Raises (from the pending):
            ConfigError: A given id breaks the rules of ids.
        """
        try:
            with self._lock:
                if self._closed is not None:
                    raise self._closed.with_traceback(None)
                if self._receipts.complete:
                    return self._accept_all(batch, _NOTHING)
            return self._after_look_up(batch, lambda found: self._accept_all(batch, found))
        except StoreFailed as failed:
            return [Refused(failed) for _ in batch]

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
        """Store records and outgoing mail of one session in one transaction (M-22, M-62b).

        A call or an event stands in the journal under the session it names, a turn under
        ``session``. The epoch is not compared: in a one-process room nobody else can have claimed.

        Raises:
            ValueError: The commit contradicts itself or the store; see ``commit_rules``.
        """
        return self._decide_commit(session, version, cursor, rows, mail, ())

    # ── deciding; under the lock but for the first ──

    def _decide_commit(
        self,
        session: SessionId,
        version: int | None,
        cursor: int | None,
        rows: Sequence[Record],
        mail: Sequence[Outgoing],
        texts: Sequence[str],
    ) -> Pending[Committed]:
        """Decide a commit; ``texts`` is what the store made of each of ``rows`` beforehand."""
        record = record_of(session, version, cursor, rows)
        try:
            return self._after_look_up(
                mail, lambda found: self._commit(session, record, cursor, rows, mail, texts, found)
            )
        except StoreFailed as failed:
            return Refused(failed)

    def _after_look_up(self, mail: Sequence[Outgoing], decide: Callable[[Found], T]) -> T:
        """Decide when everything that may be known of the ids of ``mail`` is known.

        An id that memory may have forgotten is looked up without the lock; then all is looked at
        anew, since others decided meanwhile. What they accepted is in memory, unless they accepted
        a whole window of mail: then the journal is asked again.
        """
        found: Found = {}
        asked_at = 0
        while True:
            with self._lock:
                if self._closed is not None:
                    raise self._closed.with_traceback(None)
                if self._window is not None and self._accepted - asked_at >= self._window:
                    found = {}
                missing = self._forgotten(mail, found)
                if not missing:
                    return decide(found)
                asked_at = self._accepted
            found = {**found, **self._look_up(missing)}

    def _forgotten(self, mail: Sequence[Outgoing], found: Found) -> list[MailId]:
        if self._receipts.complete:
            return []
        return [
            each.id
            for each in mail
            if each.id is not None
            and each.id not in found
            and self._receipts.find(each.session, each.id) is None
        ]

    def _accept_all(self, batch: Sequence[Outgoing], found: Found) -> list[Pending[Receipt]]:
        at = self._now()
        outcomes: list[Pending[Receipt]] = []
        for mail in batch:
            try:
                box = self._boxes.get(mail.session)
                if box is None or box.closed:
                    raise self._unknown(mail.session)
                first = None if mail.id is None else self._first(mail.session, mail.id, found)
                if first is None:
                    envelope = self._promise(mail, box, at)
                    outcome = self._keep_mail(envelope, box, mail)
                else:
                    outcome = self._keep_repeat(_repeated(first, mail), box)
            except _REFUSALS as refused:
                outcome = Refused(refused)
            outcomes.append(outcome)
        return outcomes

    def _commit(
        self,
        session: SessionId,
        record: SessionRecord | None,
        cursor: int | None,
        rows: Sequence[Record],
        mail: Sequence[Outgoing],
        texts: Sequence[str],
        found: Found,
    ) -> Pending[Committed]:
        box = self._boxes.get(session)
        before = box.record if box else None
        stored = before.version if before else 0
        promise = Promise(
            session=session,
            version=stored if record is None else record.version,
            rows=[],
            mail=[],
            texts=texts,
            receipts=[],
            record=record,
            before=before,
            cursor=before.cursor if before else 0,
        )
        if record is not None:
            if stored != record.version - 1:
                return Refused(StaleRecord(session, record.version - 1, stored))
            head = box.head if box else 0
            promise.cursor = check_cursor(session, record, cursor, stored=promise.cursor, head=head)
            if box is None:
                self._boxes[session] = Box(session, record)
            else:
                box.adopt(record)
        at = self._now()
        for kept in rows:
            self._n += 1
            if isinstance(kept, Event) and kept.seq == 0:
                kept = replace(kept, seq=self._n)
            owner = kept.session if isinstance(kept, (Call, Approval, Event)) else session
            promise.rows.append(make_row(self._n, owner, at, kept))
        try:
            for each in mail:
                promise.receipts.append(self._promise_in(promise, each, at, found))
        except _REFUSALS as refused:
            self._take_back(promise)
            return Refused(refused)
        return self._keep_commit(promise)

    def _promise_in(self, promise: Promise, mail: Outgoing, at: datetime, found: Found) -> Receipt:
        box = self._boxes.get(mail.session)
        if box is None or box.closed:
            raise self._unknown(mail.session)
        first = None if mail.id is None else self._first(mail.session, mail.id, found)
        if first is not None:
            return _repeated(first, mail)
        envelope = self._promise(mail, box, at)
        self._n += 1
        promise.rows.append(make_row(self._n, mail.session, at, envelope))
        promise.mail.append(mail)
        receipt = receipt_for(envelope, mail.note)
        self._receipts.add(receipt)
        return receipt

    def _unknown(self, session: SessionId) -> UnknownRecipient:
        reachable = (name for name, each in self._boxes.items() if not each.closed)
        return UnknownRecipient(session, [*islice(reachable, 8)], closed=session in self._boxes)


def _repeated(first: Stamp, mail: Outgoing) -> Receipt:
    return receipt_for(first, mail.note, duplicate=True)
