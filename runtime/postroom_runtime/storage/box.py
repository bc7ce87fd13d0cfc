"""One mailbox as the front keeps it: what is promised, what is published, what is unread."""

from postroom_runtime.contracts.envelope import EXEMPT, Body, Envelope
from postroom_runtime.contracts.ids import SessionId, is_inbox_key
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus


def counts(body: Body) -> bool:
    """Tell whether mail with ``body`` counts towards the bound on unread mail (M-32)."""
    return type(body) not in EXEMPT


class Box:
    """The mailbox of one session. Every method is called under the lock of the store."""

    __slots__ = ("base", "closed", "cursor", "head", "kind", "limit", "log", "record", "unread")

    def __init__(self, session: SessionId, record: SessionRecord) -> None:
        self.kind = RowKind.ENTRY if is_inbox_key(session) else RowKind.MAIL
        self.head = 0
        """``seq`` of the last mail promised, published or not."""
        self.unread = 0
        """Mail above ``cursor`` that counts towards the bound, promised mail included."""
        self.cursor = 0
        """The published cursor."""
        self.base = 0
        """``seq`` of the last mail no longer held in ``log``."""
        self.log: list[Envelope] = []
        """Published mail above ``base``, in order."""
        self.adopt(record)

    @property
    def published(self) -> int:
        """``seq`` of the last published mail."""
        return self.base + len(self.log)

    def adopt(self, record: SessionRecord) -> None:
        """Take ``record`` as the latest promised one: its version, its bound, whether it is open."""
        self.record = record
        self.limit = record.max_unread
        self.closed = record.status is SessionStatus.CLOSED

    def advance(self, cursor: int) -> None:
        """Publish a new cursor: mail up to there is read and no longer counts."""
        if cursor > self.cursor:
            read = self.log[self.cursor - self.base : cursor - self.base]
            self.unread -= sum(counts(each.body) for each in read)
            self.cursor = cursor

    def held(self, seq: int) -> Envelope | None:
        """Return mail ``seq`` if it is held in memory."""
        at = seq - self.base - 1
        return self.log[at] if 0 <= at < len(self.log) else None

    def trim(self, upto: int) -> list[Envelope]:
        """Let go of mail at or below ``upto``, never above the published cursor (M-33)."""
        count = max(0, min(upto, self.cursor) - self.base)
        gone = self.log[:count]
        del self.log[:count]
        self.base += len(gone)
        return gone
