"""The table that a room is: its columns, its version, and how rows come into it.

One table, only ever appended to, without an index: an index makes each commit two to three times as
dear and blocks checkpoints, and nothing here ever asks the database whether a key exists.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.ids import is_inbox_key
from postroom_runtime.contracts.journal import Row, kind_of
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.views import VIEWS

SCHEMA_VERSION = 1
"""The format of the file that this Postroom writes."""

MIGRATIONS: dict[int, Sequence[str]] = {}
"""Statements that turn a file of version ``key`` into one of ``key + 1``; each may run twice.

Columns are only ever added: an older Postroom's rows must stay as they are.
"""


class Entry(NamedTuple):
    """One line of the table ``journal``.

    What is not in a column of its own is in ``payload``, the record as JSON.
    """

    n: int
    """Commit order of the room, from 1, without gaps."""
    kind: str
    session: str
    seq: int
    """Of mail its ``seq``, of a session record its version, of a turn its index; else 0."""
    id: str
    """Of mail and calls their id, of a session record the name, of a turn its role, of an event its
    kind."""
    cursor: int
    """Of a session record and of a turn: the session's cursor as of that commit; else 0."""
    at: datetime
    """UTC, naive, as DuckDB's TIMESTAMP is."""
    payload: str


COLUMNS = {
    "n": "BIGINT",
    "kind": "VARCHAR",
    "session": "VARCHAR",
    "seq": "BIGINT",
    "id": "VARCHAR",
    "cursor": "BIGINT",
    "at": "TIMESTAMP",
    "payload": "VARCHAR",
}
_NUMPY = {"BIGINT": "int64", "VARCHAR": "object", "TIMESTAMP": "datetime64[us]"}
_ONE_LINE = f"({', '.join('?' * len(COLUMNS))})"

_TABLES = f"""
CREATE TABLE IF NOT EXISTS meta(k VARCHAR, v VARCHAR);
CREATE TABLE IF NOT EXISTS journal({", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())});
"""


def entry(row: Row, cursor: int, payload: str) -> Entry:
    """Return the line for ``row``; ``cursor`` is the session's as of its commit."""
    n, session, record = row.n, row.session, row.record
    at = row.at.replace(tzinfo=None)
    if isinstance(record, Envelope):  # first, and without asking twice: most rows are mail
        kind = "entry" if is_inbox_key(session) else "mail"
        return Entry(n, kind, session, record.seq, record.id, 0, at, payload)
    kind = kind_of(session, record).value
    match record:
        case SessionRecord():
            return Entry(n, kind, session, record.version, record.name, record.cursor, at, payload)
        case Call() | Approval():
            return Entry(n, kind, session, 0, record.id, 0, at, payload)
        case Event():
            return Entry(n, kind, session, 0, str(record.kind), 0, at, payload)
        case turn:
            return Entry(n, kind, session, turn.index, turn.role.value, cursor, at, payload)


def append(connection: Any, entries: Sequence[Entry]) -> None:
    """Append ``entries`` in one statement, which is one transaction.

    Up to three are cheapest as values, more as columns; a loop costs a plan for every row.
    """
    if len(entries) <= 3:
        lines = ", ".join([_ONE_LINE] * len(entries))
        connection.execute(
            f"INSERT INTO journal VALUES {lines}", [each for line in entries for each in line]
        )
        return
    import numpy

    columns = {
        name: numpy.array(values, dtype=_NUMPY[kind])
        for (name, kind), values in zip(COLUMNS.items(), zip(*entries, strict=True), strict=True)
    }
    # By name, since variables are out of reach in a room; the name is good until the next batch.
    connection.register("batch", columns)
    connection.execute("INSERT INTO journal SELECT * FROM batch")


def configure(connection: Any) -> None:
    """Set what a connection to a room needs, and put everything outside the room out of reach."""
    connection.execute(
        "SET enable_progress_bar = false; "  # it would print into the user's cells
        "SET arrow_lossless_conversion = true; "
        "SET TimeZone = 'UTC'; "
        "SET enable_external_access = false;"
    )
    # Of this connection alone, the one that appends: there is nothing to optimize, but to look for
    # it is a sixth of an INSERT. Queries come through cursors, which optimize.
    connection.execute("PRAGMA disable_optimizer")


def create(connection: Any) -> None:
    """Make the tables and views of an empty room, or bring its views up to date.

    DDL in the write-ahead log is what DuckDB replays worst, so a checkpoint follows it at once.
    """
    views = hashlib.sha256(VIEWS.encode()).hexdigest()
    if _meta(connection).get("views") == views:
        return
    connection.execute(_TABLES)
    connection.execute(VIEWS)
    connection.execute("DELETE FROM meta WHERE k IN ('schema_version', 'views')")
    connection.execute(
        "INSERT INTO meta VALUES ('schema_version', ?), ('views', ?)", [str(SCHEMA_VERSION), views]
    )
    connection.execute("CHECKPOINT")


def version_of(connection: Any, path: str) -> int:
    """Return the version of the file, or 0 for an empty one.

    Raises:
        StoreFailed: It is a database of something else, or of a newer Postroom.
    """
    tables = {
        name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    }
    if not tables:
        return 0
    found = _meta(connection).get("schema_version", "") if "journal" in tables else ""
    if not found.isdigit():
        raise StoreFailed(
            f"{path} cannot be opened",
            f"it is a database, but no room: it holds {', '.join(sorted(tables)[:5])}",
            "Choose another path for the room; this file was left as it was.",
        )
    if int(found) > SCHEMA_VERSION:
        raise StoreFailed(
            f"{path} cannot be opened",
            f"a newer Postroom wrote it in format {found}, and this one knows up to "
            f"{SCHEMA_VERSION}",
            "Upgrade with: pip install --upgrade postroom",
        )
    return int(found)


def migrate(connection: Any, version: int) -> None:
    """Bring a file of an older version up to ours, one step after the other."""
    for step in range(version, SCHEMA_VERSION):
        for statement in MIGRATIONS[step]:
            connection.execute(statement)
        connection.execute("UPDATE meta SET v = ? WHERE k = 'schema_version'", [str(step + 1)])
    connection.execute("CHECKPOINT")


def _meta(connection: Any) -> dict[str, str]:
    tables = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = 'meta'"
    ).fetchall()
    if not tables:
        return {}
    columns = [each[0] for each in connection.execute("SELECT * FROM meta LIMIT 0").description]
    if columns != ["k", "v"]:
        return {}
    return dict(connection.execute("SELECT k, v FROM meta").fetchall())
