"""What a commit must look like before anything is decided about it; pure.

Breaking one of these rules is a mistake in the code that commits, not an answer of the store: it is
raised at the call, and no pending carries it.
"""

from collections.abc import Sequence

from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.session_record import SessionRecord


def record_of(
    session: SessionId, version: int | None, cursor: int | None, rows: Sequence[Record]
) -> SessionRecord | None:
    """Return the session record that a commit stores; None for one that stores only rows.

    Raises:
        ValueError: The records do not fit the version, or mail stands among the rows.
    """
    records = [each for each in rows if isinstance(each, SessionRecord)]
    if any(isinstance(each, Envelope) for each in rows):
        raise ValueError(f"commit of {session}: mail is sent with `mail`, it cannot be a row.")
    if version is None:
        if records or cursor is not None:
            raise ValueError(
                f"commit of {session}: without a version it stores rows only; a session record "
                "or a cursor needs the version it replaces."
            )
        return None
    if len(records) != 1:
        raise ValueError(
            f"commit of {session}: version {version} is replaced by exactly one session record, "
            f"and there are {len(records)}."
        )
    (record,) = records
    if record.id != session or record.version != version + 1:
        raise ValueError(
            f"commit of {session}: its record must be of {session} at version {version + 1}, "
            f"and it is of {record.id} at version {record.version}."
        )
    return record


def check_cursor(
    session: SessionId, record: SessionRecord, cursor: int | None, *, stored: int, head: int
) -> int:
    """Return the cursor that a commit stores, between the stored one and the last mail.

    Raises:
        ValueError: It would go back, or beyond ``head``, or the record carries another.
    """
    wanted = stored if cursor is None else cursor
    if not stored <= wanted <= head:
        raise ValueError(
            f"commit of {session}: cursor {wanted} must lie between the stored one ({stored}) "
            f"and the last mail ({head})."
        )
    if record.cursor != wanted:
        raise ValueError(
            f"commit of {session}: its record must carry the cursor {wanted}, not {record.cursor}."
        )
    return wanted
