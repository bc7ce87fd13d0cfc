"""The journal of a room in memory as a DuckDB database, so that the same SQL answers over it."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Record, Row
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.storage import schema
from postroom_runtime.storage.codec import dumps, plain
from postroom_runtime.storage.query import run


class Mirror:
    """A private database that follows a journal, made when the first query comes."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._upto = 0
        self._one_query = threading.Lock()
        """Lets one query at a time bring the mirror up to date; the room is not held meanwhile."""

    @property
    def upto(self) -> int:
        """Number of the last row it holds."""
        return self._upto

    def query(self, rows: Sequence[Row], cursors: Mapping[int, int], query: str) -> Any:
        """Add rows and answer a query over all.

        Args:
            rows: The journal from ``upto`` on, or from before it, without a gap.
            cursors: The session's cursor as of the commit of each turn, by the turn's ``n``.
            query: One SELECT or EXPLAIN.

        Raises:
            ConfigError: Not exactly one SELECT or EXPLAIN, or the query is wrong; names the fault.
        """
        import duckdb

        with self._one_query:
            if self._connection is None:
                self._connection = duckdb.connect(":memory:")
                schema.configure(self._connection)
                schema.create(self._connection)
            if fresh := [row for row in rows if row.n > self._upto]:
                schema.append(
                    self._connection,
                    [schema.entry(row, cursors.get(row.n, 0), _dumps(row.record)) for row in fresh],
                )
                self._upto = fresh[-1].n
            cursor = self._connection.cursor()
            try:
                return run(cursor, query)
            finally:
                cursor.close()


def turn_cursors(rows: Iterable[Row]) -> dict[int, int]:
    """Return the session's cursor as of the commit of each turn, by the turn's ``n``.

    A journal that comes as rows alone does not say where a commit ends. The first session record
    that counts a turn is the one stored with it.
    """
    cursors: dict[int, int] = {}
    latest: dict[SessionId, SessionRecord] = {}
    open_turns: dict[SessionId, list[tuple[int, int]]] = {}
    for row in rows:
        record = row.record
        if isinstance(record, Turn):
            open_turns.setdefault(row.session, []).append((row.n, record.index))
        elif isinstance(record, SessionRecord):
            latest[row.session] = record
        if (known := latest.get(row.session)) is not None:
            turns = open_turns.get(row.session, [])
            for n, index in [each for each in turns if each[1] <= known.turns]:
                cursors[n] = known.cursor
                turns.remove((n, index))
    return cursors


def _dumps(record: Record) -> str:
    try:
        return dumps(record)
    except ConfigError:
        # Memory keeps what it is given. A file would have refused this; SQL shows it in words.
        return dumps(_in_words(record))


def _in_words(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: _in_words(getattr(value, each.name)) for each in fields(value)}
        )
    if isinstance(value, Mapping):
        return {str(key): _in_words(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(map(_in_words, value))
    try:
        plain(value)
    except ConfigError:
        return repr(value)
    return value
