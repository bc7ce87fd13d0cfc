"""A room in a DuckDB file: the front decides, one thread writes, in groups (M-26, M-28, M-29).

Everything decided while one group is being written is the next group: one INSERT, one wait for the
disk, however many senders. Only what is on disk is published, so nothing that anybody has seen can
disappear. When a group fails, everything promised is taken back, newest first, before the next
group may begin: ``seq`` and ``n`` stay without gaps, and sending again is safe.
"""

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.errors import ConfigError, StoreFailed
from postroom_runtime.contracts.ids import MailId, SessionId
from postroom_runtime.contracts.journal import Record, Row, RowKind
from postroom_runtime.storage import journal_file, lifetime
from postroom_runtime.storage.box import Box, counts
from postroom_runtime.storage.clock import Clock, utc_now
from postroom_runtime.storage.codec import dumps, letter_text, sealed
from postroom_runtime.storage.disk import Disk
from postroom_runtime.storage.front import Front
from postroom_runtime.storage.numbering import Found, Promise, make_row, receipt_for
from postroom_runtime.storage.pending import Refused, Settled, Waiting, Wakes
from postroom_runtime.storage.protocol import Committed, Pending
from postroom_runtime.storage.query import run
from postroom_runtime.storage.receipts import Stamp
from postroom_runtime.storage.schema import Entry, entry
from postroom_runtime.storage.writer import Writer

WINDOW = 200_000
"""Mails whose receipts stay in memory, unless a room is told otherwise."""
RECOVERED = 100_000
"""Rows whose receipts are read when a room opens, at most."""
TAIL = 4096
"""Trimmed mails that stay in memory, since a reply asks for the mail it answers."""


class _Letter:
    """Outgoing mail with the part of its JSON that was made before the lock was taken.

    It has every field of ``Outgoing`` and is taken for one; a frozen copy would cost ten times this.
    """

    __slots__ = (*Outgoing.__slots__, "text")

    def __init__(self, mail: Outgoing) -> None:
        self.session = mail.session
        self.sender = mail.sender
        self.body = mail.body
        self.priority = mail.priority
        self.hops = mail.hops
        self.max_hops = mail.max_hops
        self.id = mail.id
        self.lowered = mail.lowered
        self.note = mail.note
        self.text = letter_text(mail.sender, mail.body, lowered=mail.lowered)


@dataclass(slots=True)
class _Unit:
    """What is written together or not at all, and who waits for it."""

    rows: Sequence[Row]
    """May be empty: an answer that only has to wait for its turn."""
    texts: Sequence[str]
    """Per row its JSON, of mail the part that ``sealed`` completes."""
    cursor: int
    pending: "Waiting[Any]"
    outcome: Receipt | Committed
    promise: Promise | None = None
    """Of a commit, for taking it back."""


class DuckDBStorage(Front):
    """A journal in a DuckDB file, held by one process until ``close`` or its end.

    Args:
        path: The file; made when it does not exist, in a folder that does.
        now: The clock that stamps mail and rows.
        window: How many mails, the newest, have their receipts in memory; a given id that may be
            older costs a look into the journal.

    Raises:
        ConfigError: The path cannot be a file.
        RoomLocked: Another room, in this process or another, has it open.
        StoreFailed: It cannot be opened, written or understood; the message says what to do.
    """

    def __init__(
        self, path: str | os.PathLike[str], now: Clock = utc_now, *, window: int = WINDOW
    ) -> None:
        super().__init__(now, window=window)
        self._known: deque[Stamp] = deque()
        """The receipts in memory whose mail is published, oldest first."""
        self._tail: OrderedDict[tuple[SessionId, int], Envelope] = OrderedDict()
        self._disk = Disk(path)
        try:
            with self._disk.reading() as cursor:
                self._recover(journal_file.recover(cursor, min(window, RECOVERED)))
        except BaseException:
            self._disk.close()
            raise
        self._writer: Writer[_Unit] = Writer(
            self._lock, self._write, self._settle, self._disk.close
        )
        lifetime.opened(self)

    def _recover(self, found: journal_file.Recovered) -> None:
        self._n = self._head = found.head
        self._counts |= found.counts
        self._records = found.records
        self._accepted = self._published_mail()
        self._ahead = found.ahead
        for session, record in found.records.items():
            box = self._boxes[session] = Box(session, record)
            box.base = box.cursor = record.cursor
            box.head = found.heads.get(session, 0)
        for mail in found.unread:
            box = self._boxes[mail.session]
            box.log.append(mail)
            box.unread += counts(mail.body)
        for receipt in found.receipts:
            self._receipts.add(receipt)
            self._known.append(receipt)
        self._receipts.complete = len(found.receipts) == self._accepted

    # ── writing: in the caller's thread ──

    def accept(self, batch: Sequence[Outgoing]) -> list[Pending[Receipt]]:
        """Accept mail, each one by itself: number it, store it, publish it (M-15, M-18, M-19).

        As the front's, and each pending may raise ``ConfigError`` for a body that is no JSON.
        """
        letters: list[Outgoing] = []
        refused: dict[int, ConfigError] = {}
        for place, mail in enumerate(batch):
            try:
                letters.append(_as_letter(mail))
            except ConfigError as error:
                refused[place] = error
        try:
            self._writer.hold_back()
        except StoreFailed as failed:
            return [Refused(failed) for _ in batch]
        outcomes = super().accept(letters)
        for place, wrong in refused.items():
            outcomes.insert(place, Refused(wrong))
        return outcomes

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

        As the front's, and the pending may raise ``ConfigError`` for a value that is no JSON.
        """
        try:
            texts = [dumps(each) for each in rows]
            letters = [_as_letter(each) for each in mail]
            self._writer.hold_back()
        except (ConfigError, StoreFailed) as refused:
            return Refused(refused)
        return self._decide_commit(session, version, cursor, rows, letters, texts)

    def _look_up(self, ids: Sequence[MailId]) -> Found:
        with self._disk.reading() as cursor:
            return journal_file.stamps(cursor, ids)

    def _keep_mail(self, envelope: Envelope, box: Box, mail: Outgoing) -> Pending[Receipt]:
        self._n += 1
        row = make_row(self._n, envelope.session, envelope.accepted_at, envelope)
        receipt = receipt_for(envelope, mail.note)
        self._receipts.add(receipt)
        return self._enqueue(
            _Unit((row,), (_text_of(mail),), 0, Waiting(self._writer.settled), receipt)
        )

    def _keep_repeat(self, receipt: Receipt, box: Box) -> Pending[Receipt]:
        if receipt.seq <= box.published:
            return Settled(receipt)
        return self._enqueue(_Unit((), (), 0, Waiting(self._writer.settled), receipt))

    def _keep_commit(self, promise: Promise) -> Pending[Committed]:
        return self._enqueue(
            _Unit(
                promise.rows,
                [*promise.texts, *map(_text_of, promise.mail)],
                promise.cursor,
                Waiting(self._writer.settled),
                Committed(promise.version, tuple(promise.receipts)),
                promise,
            )
        )

    def _enqueue(self, unit: "_Unit") -> "Waiting[Any]":
        self._writer.enqueue(unit)
        return unit.pending

    # ── writing: in the writer's thread ──

    def _write(self, group: Sequence["_Unit"]) -> StoreFailed | None:
        try:
            if entries := _entries(group):
                self._disk.append(entries)
        except StoreFailed as failed:
            return failed
        except Exception as failed:
            # A writer that died here would leave every sender of this room waiting for ever.
            what = f"{self._disk.path} refused to be written"
            return StoreFailed(
                what, f"{type(failed).__name__}: {failed}", "Nothing of it is stored."
            )
        return None

    def _settle(self, group: Sequence["_Unit"], failed: StoreFailed | None, wakes: Wakes) -> None:
        if failed is None:
            self._publish_group(group)
            for unit in group:
                unit.pending.settle(unit.outcome, wakes)
            return
        # Newest first: each promise was made upon the ones before it.
        for unit in reversed(group):
            if unit.promise is not None:
                self._take_back(unit.promise)
            elif unit.rows:
                self._take_back_row(unit.rows[0])
            elif self._is_published(unit.outcome):
                unit.pending.settle(unit.outcome, wakes)
                continue
            unit.pending.fail(failed, wakes)

    def _publish_group(self, group: Sequence["_Unit"]) -> None:
        rows = [row for unit in group for row in unit.rows]
        self._publish(rows)
        for unit in group:
            if isinstance(unit.outcome, Committed):
                self._known += [each for each in unit.outcome.receipts if not each.duplicate]
            elif unit.rows:
                self._known.append(unit.outcome)
        while self._window is not None and len(self._known) > self._window:
            oldest = self._known.popleft()
            self._receipts.drop(oldest.session, oldest.id)
            self._receipts.complete = False
        if self._ahead:
            published = self._published_mail()
            self._ahead = {each for each in self._ahead if each > published}
        if rows:
            self._tell(rows)

    def _is_published(self, outcome: Receipt | Committed) -> bool:
        return (
            isinstance(outcome, Receipt) and outcome.seq <= self._boxes[outcome.session].published
        )

    def _published_mail(self) -> int:
        return self._counts[RowKind.MAIL] + self._counts[RowKind.ENTRY]

    # ── reading ──

    def rows(
        self,
        session: SessionId | None = None,
        kinds: Sequence[RowKind] | None = None,
        after: int = 0,
    ) -> list[Row]:
        """Return published rows with ``n > after`` in commit order, of one session or of all.

        Raises:
            StoreFailed: The room is closed, or the file cannot be read.
        """
        upto = self._head
        if after >= upto:
            return []
        wanted = list(RowKind) if kinds is None else list(kinds)
        with self._disk.reading() as cursor:
            return journal_file.rows(cursor, session, wanted, after, upto)

    def _read_mail(self, session: SessionId, after: int, upto: int) -> list[Envelope]:
        with self._disk.reading() as cursor:
            return journal_file.mail(cursor, session, after, upto)

    def _read_one(self, id: MailId, session: SessionId | None) -> Envelope | None:
        with self._disk.reading() as cursor:
            return journal_file.one(cursor, id, session)

    def _let_go(self, mail: Sequence[Envelope]) -> None:
        for each in mail[-TAIL:]:
            self._tail[each.session, each.seq] = each
        while len(self._tail) > TAIL:
            self._tail.popitem(last=False)

    def _recall(self, session: SessionId, seq: int) -> Envelope | None:
        return self._tail.get((session, seq))

    def sql(self, query: str) -> Any:
        """Run one SELECT or EXPLAIN over the views and return a DuckDB relation over a copy.

        Raises:
            ConfigError: Not exactly one SELECT or EXPLAIN, or the query is wrong; names the fault.
            StoreFailed: The room is closed, or the file cannot be read.
        """
        with self._disk.reading() as cursor:
            return run(cursor, query)

    def describe(self) -> Mapping[str, object]:
        """Return ``path``, ``bytes`` on disk and ``rows``."""
        return {"path": self._disk.path, "bytes": self._disk.size(), "rows": self._head}

    # ── ending ──

    def close(self) -> None:
        """Write what is pending, then give up the file and its lock. Closing twice is harmless."""
        with self._lock:
            if self._closed is None:
                self._closed = StoreFailed(
                    "nothing was stored", f"the room {self._disk.path} is closed", "Open it again."
                )
        self._writer.end()
        lifetime.closed(self)

    def abandon(self) -> None:
        """Refuse everything from now on: this copy of the room came into a forked child."""
        self._lock = threading.Lock()
        self._writer.abandon(self._lock)
        self._closed = StoreFailed(
            "nothing was stored",
            f"the room {self._disk.path} belongs to the process that this one was forked from",
            "Start processes that use rooms with spawn, and give each a room of its own.",
        )
        self._disk.abandon()


def _as_letter(mail: Outgoing) -> Outgoing:
    return cast("Outgoing", _Letter(mail))


def _text_of(mail: Outgoing) -> str:
    return cast("_Letter", mail).text


def _entries(group: Sequence[_Unit]) -> list[Entry]:
    return [
        entry(
            row, unit.cursor, sealed(row.record, text) if isinstance(row.record, Envelope) else text
        )
        for unit in group
        for row, text in zip(unit.rows, unit.texts, strict=True)
    ]
