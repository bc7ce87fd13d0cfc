"""What a room asks its journal on disk; each function is one or a few queries on a cursor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from postroom_runtime.contracts.envelope import Envelope, Priority, Receipt
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.ids import MailId, SessionId, mail_id
from postroom_runtime.contracts.journal import Record, Row, RowKind
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.codec import loads
from postroom_runtime.storage.numbering import make_row
from postroom_runtime.storage.quick import maker
from postroom_runtime.storage.receipts import counted_number

_KINDS = frozenset(RowKind)
_MAIL = "kind IN ('mail', 'entry')"
_STAMP = """id, seq, session, json_extract_string(payload, '$.priority'),
    json_extract_string(payload, '$.lowered')"""

_receipt = maker(Receipt)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a room must know of its journal when it opens."""

    head: int
    counts: dict[RowKind, int]
    records: dict[SessionId, SessionRecord]
    heads: dict[SessionId, int]
    """``seq`` of the last mail of each mailbox."""
    unread: list[Envelope]
    """All mail above its session's cursor, in the order it was accepted."""
    receipts: list[Receipt]
    """Of the newest mail, in the order it was accepted."""
    ahead: set[int]
    """Numbers of ids that mail took before the room counted so far."""


def recover(cursor: Any, window: int) -> Recovered:
    """Read what must be in memory, with the receipts of the last ``window`` rows.

    Few queries, and none that reads the bodies of mail long read: a room of a million mails opens
    in well under a second.
    """
    (head,) = cursor.execute("SELECT coalesce(max(n), 0) FROM journal").fetchone()
    counts = {
        RowKind(kind): count
        for kind, count in cursor.execute(
            "SELECT kind, count(*) FROM journal GROUP BY kind"
        ).fetchall()
        if kind in _KINDS
    }
    # Two steps: taking the payload along in the aggregate is twenty-five times as dear.
    records = cursor.execute(
        "SELECT session, payload FROM journal WHERE kind = 'session' AND n IN "
        "(SELECT max(n) FROM journal WHERE kind = 'session' GROUP BY session)"
    ).fetchall()
    heads = cursor.execute(
        f"SELECT session, max(seq) FROM journal WHERE {_MAIL} GROUP BY session"
    ).fetchall()
    unread = cursor.execute(
        f"""SELECT j.kind, j.payload FROM journal j JOIN (
            SELECT session, max("cursor") AS upto FROM journal WHERE kind = 'session' GROUP BY session
        ) c ON c.session = j.session WHERE j.{_MAIL} AND j.seq > c.upto ORDER BY j.n"""
    ).fetchall()
    receipts = cursor.execute(
        f"SELECT {_STAMP} FROM journal WHERE {_MAIL} AND n > ? ORDER BY n", [head - window]
    ).fetchall()
    accepted = counts.get(RowKind.MAIL, 0) + counts.get(RowKind.ENTRY, 0)
    last = mail_id(accepted)
    beyond = cursor.execute(
        f"""SELECT DISTINCT id FROM journal WHERE {_MAIL} AND regexp_full_match(id, 'm-[0-9a-f]+')
        AND (length(id) > ? OR (length(id) = ? AND id > ?))""",
        [len(last), len(last), last],
    ).fetchall()
    return Recovered(
        head=head,
        counts=counts,
        records={session: _session(payload) for session, payload in records},
        heads=dict(heads),
        unread=[_envelope(kind, payload) for kind, payload in unread],
        receipts=[_stamp(*each) for each in receipts],
        ahead={number for (id,) in beyond if (number := counted_number(id)) is not None},
    )


def rows(
    cursor: Any, session: SessionId | None, kinds: Sequence[RowKind], after: int, upto: int
) -> list[Row]:
    """Read rows with ``after < n <= upto``, in order; kinds this Postroom does not know are skipped."""
    where, values = f"n > ? AND n <= ? AND kind IN ({', '.join('?' * len(kinds))})", [after, upto]
    values += kinds  # type: ignore[arg-type]
    if session is not None:
        where += " AND session = ?"
        values += [session]  # type: ignore[list-item]
    found = cursor.execute(
        f'SELECT n, session, "at", kind, payload FROM journal WHERE {where} ORDER BY n', values
    ).fetchall()
    return [_row(*each) for each in found]


def mail(cursor: Any, session: SessionId, after: int, upto: int) -> list[Envelope]:
    """Read the mail of a session with ``after < seq <= upto``, in order."""
    found = cursor.execute(
        f"SELECT kind, payload FROM journal WHERE session = ? AND {_MAIL} AND seq > ? AND seq <= ? "
        "ORDER BY seq",
        [session, after, upto],
    ).fetchall()
    return [_envelope(*each) for each in found]


def one(cursor: Any, id: MailId, session: SessionId | None) -> Envelope | None:
    """Read the first mail with ``id``, of one session or of the whole room."""
    where, values = f"id = ? AND {_MAIL}", [id]
    if session is not None:
        where, values = f"{where} AND session = ?", [*values, session]
    found = cursor.execute(
        f"SELECT kind, payload FROM journal WHERE {where} ORDER BY n LIMIT 1", values
    ).fetchone()
    return None if found is None else _envelope(*found)


def stamps(cursor: Any, ids: Sequence[MailId]) -> dict[MailId, list[Receipt]]:
    """Read what was accepted under each of ``ids``, in every mailbox, the first one first."""
    found: dict[MailId, list[Receipt]] = {id: [] for id in ids}
    for each in cursor.execute(
        f"SELECT {_STAMP} FROM journal WHERE {_MAIL} AND id IN ({', '.join('?' * len(found))}) "
        "ORDER BY n",
        [*found],
    ).fetchall():
        found[each[0]].append(_stamp(*each))
    return found


def _row(n: int, session: SessionId, at: datetime, kind: str, payload: str) -> Row:
    record: Record = loads(RowKind(kind), payload)
    if isinstance(record, Event) and record.seq == 0:
        record = replace(record, seq=n)  # it was written before it had its number
    return make_row(n, session, at.replace(tzinfo=UTC), record)


def _envelope(kind: str, payload: str) -> Envelope:
    envelope = loads(RowKind(kind), payload)
    assert isinstance(envelope, Envelope)
    return envelope


def _session(payload: str) -> SessionRecord:
    record = loads(RowKind.SESSION, payload)
    assert isinstance(record, SessionRecord)
    return record


def _stamp(id: MailId, seq: int, session: SessionId, priority: str, lowered: str | None) -> Receipt:
    return _receipt(id, seq, session, False, _priority(priority), lowered == "true")


def _priority(word: str) -> Priority:
    return Priority.INTERRUPT if word == Priority.INTERRUPT else Priority.NORMAL
