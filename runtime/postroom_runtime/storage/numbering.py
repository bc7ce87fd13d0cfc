"""The numbers of a room: taken by a promise, given back when it cannot be kept.

Ids are unique, ``seq`` and ``n`` have no gaps; all of it is under the lock of the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from postroom_runtime.contracts.envelope import (
    Control,
    Envelope,
    Outgoing,
    Priority,
    Receipt,
    Withdraw,
)
from postroom_runtime.contracts.errors import AlreadyRead, ConfigError, MailboxFull, TooManyHops
from postroom_runtime.contracts.ids import MailId, SessionId, check_given_id, mail_id
from postroom_runtime.contracts.journal import Row
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.board import Board
from postroom_runtime.storage.box import Box, counts
from postroom_runtime.storage.quick import maker
from postroom_runtime.storage.receipts import Stamp, counted_number

_envelope = maker(Envelope)
_receipt = maker(Receipt)
make_row = maker(Row)

Found: TypeAlias = Mapping[MailId, Sequence[Stamp]]
"""What the journal holds under some ids, in every mailbox that accepted them."""


@dataclass(slots=True)
class Promise:
    """A commit that is decided: its numbers are taken, it is not yet published."""

    session: SessionId
    version: int
    rows: list[Row]
    """All of it, in order: the records, then the new mail."""
    mail: list[Outgoing]
    """The new mail as it was sent."""
    texts: Sequence[str]
    """What the store made of the records beforehand; may be empty."""
    receipts: list[Receipt]
    """One per mail, duplicates included."""
    record: SessionRecord | None
    before: SessionRecord | None
    """What ``record`` replaces; None before a session's first commit."""
    cursor: int
    """The session's cursor as of this commit."""


class Numbering(Board):
    """Promises mail and takes promises back.

    Args:
        window: How many mails to keep receipts of, once there are more; None keeps all.
    """

    def __init__(self, window: int | None) -> None:
        super().__init__()
        self._window = window
        self._n = 0
        """Number of the last promised row."""
        self._accepted = 0
        """Mail and entries promised so far: what ids are counted out from."""
        self._ahead: set[int] = set()
        """Numbers beyond ``_accepted`` whose ids are taken already."""

    def _first(self, session: SessionId, id: MailId, found: Found) -> Stamp | None:
        """Return what was first accepted in ``session`` under a given id, if anything."""
        check_given_id(id)
        first = self._receipts.find(session, id)
        elsewhere = found.get(id, ())
        if first is None:
            first = next((each for each in elsewhere if each.session == session), None)
        if first is None and counted_number(id) is not None:
            other = self._receipts.first(id) or next(iter(elsewhere), None)
            if other is not None:
                raise ConfigError(
                    f"id={id!r} is the number of another mail, in {other.session}: ids of this form "
                    "are counted out by the room. Give another id, or none.",
                    value=id,
                )
        return first

    def _promise(self, mail: Outgoing, box: Box, at: datetime) -> Envelope:
        """Take the numbers of a new mail, all but that of its row; its receipt is yet to be kept."""
        if mail.max_hops is not None and mail.hops > mail.max_hops:
            raise TooManyHops(mail.hops, mail.max_hops)
        body, id, priority = mail.body, mail.id, mail.priority
        if counts(body):
            if box.limit is not None and box.unread >= box.limit:
                raise MailboxFull(mail.session, box.unread, box.limit)
            box.unread += 1
        elif isinstance(body, Control):
            # M-82: a control breaks a wait whatever priority its sender thought of; one that takes
            # mail back is no word to the reader and breaks nothing.
            message = body.message
            if isinstance(message, Withdraw):
                # Decided here, where the cursor is: it never says done of what was read before.
                if message.seq <= box.record.cursor:
                    raise AlreadyRead(message.mail, box.record.name)
            else:
                priority = Priority.INTERRUPT
        self._accepted = number = self._accepted + 1
        if id is None:
            if self._ahead:
                number = self._free_number(number)
            id = mail_id(number)
        else:
            taken = counted_number(id)
            if taken is not None and taken > number:
                self._ahead.add(taken)
        box.head = seq = box.head + 1
        return _envelope(
            id, seq, mail.session, mail.sender, priority, mail.hops, at, body, mail.lowered
        )

    def _free_number(self, number: int) -> int:
        """Return the first number from ``number`` on whose id nobody gave yet, and take it."""
        free = number
        while free in self._ahead:
            free += 1
        if free > number:
            self._ahead.add(free)
        return free

    def _take_back(self, promise: Promise) -> None:
        """Undo a commit that is not published; everything promised after it is undone already."""
        for row in reversed(promise.rows):
            self._take_back_row(row)
        if promise.record is not None:
            if promise.before is None:
                del self._boxes[promise.session]
            else:
                self._boxes[promise.session].adopt(promise.before)

    def _take_back_row(self, row: Row) -> None:
        self._n = row.n - 1
        mail = row.record
        if isinstance(mail, Envelope):
            box = self._boxes[mail.session]
            box.head -= 1
            if counts(mail.body):
                box.unread -= 1
            self._accepted -= 1
            self._receipts.drop(mail.session, mail.id)
            taken = counted_number(mail.id)
            if taken is not None:
                self._ahead.discard(taken)


def receipt_for(stamp: Stamp, note: str = "", *, duplicate: bool = False) -> Receipt:
    """Return the receipt for accepted mail; ``note`` is what this sender should be told."""
    return _receipt(
        stamp.id, stamp.seq, stamp.session, duplicate, stamp.priority, stamp.lowered, "", note
    )
