"""``room.sql``: one reading query, answered by a relation over a copy of its rows.

A relation over the room itself could write to it (``rel.insert``), and one that is half read pins a
snapshot. So the rows go, typed as they are, into a database of their own in memory; only that is
handed out.
"""

import re
from typing import Any

from postroom_runtime.contracts.errors import ConfigError

_RULE = "room.sql takes exactly one SELECT or EXPLAIN"


def run(cursor: Any, query: str) -> Any:
    """Run ``query`` in a read-only transaction on ``cursor`` and return a relation over its rows.

    Args:
        cursor: A DuckDB cursor of the room, used by nobody else; it is left open.
        query: One SELECT (or DESCRIBE, SUMMARIZE, FROM …, VALUES …) or EXPLAIN.

    Raises:
        ConfigError: It is something else, or wrong; names the fault.
    """
    import duckdb

    _check(query)
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    try:
        rows = _Stream(cursor.sql(query))
        copy = duckdb.connect(":memory:")
        copy.register("source", rows)
        copy.execute("CREATE TABLE result AS SELECT * FROM source")
        copy.unregister("source")
        return copy.table("result")
    except duckdb.Error as wrong:
        raise ConfigError(_fault(query, wrong), value=query) from None
    finally:
        cursor.execute("ROLLBACK")


class _Stream:
    """The rows of a relation without the relation, which no other database would read."""

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def _check(query: str) -> None:
    import duckdb

    if not isinstance(query, str):
        raise ConfigError(f"{query!r} is no query: {_RULE}, as a text.", value=query)
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as wrong:
        raise ConfigError(_fault(query, wrong), value=query) from None
    kinds = [each.type.name for each in statements]
    if len(kinds) != 1 or kinds[0] not in ("SELECT", "EXPLAIN"):
        found = " and ".join(kinds) or "nothing"
        raise ConfigError(
            f"{_RULE}, and this is {found}: {_short(query)}. The log is append-only; mail and "
            "sessions change through the room.",
            value=query,
        )


def _fault(query: str, wrong: Exception) -> str:
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    what = next((line for line in lines if not line.startswith(("LINE", "^"))), "it failed")
    hints = [line for line in lines if line.startswith(("Did you mean", "Candidate"))]
    told = " ".join([_named(what), *hints])
    if "read-only" in told:
        told += f" ({_RULE}.)"
    elif "disabled by configuration" in told:
        told += " A query sees the room and nothing else; read files in Python."
    elif "syntax error" in told and re.search(r"(?<![\w\"])at(?![\w\"])", query, re.IGNORECASE):
        told += ' The column at is written "at", in double quotes.'
    return f"{told} In: {_short(query)}"


def _named(line: str) -> str:
    """Return the fault without the names of the classes it came through."""
    line = re.sub(r"^.*reading the (?:stream|schema) of .*? failed: ", "", line)
    line = re.sub(r"^\w+Exception: ", "", line)
    return line.rstrip(".!") + "."


def _short(query: str) -> str:
    flat = " ".join(query.split())
    return flat if len(flat) <= 120 else f"{flat[:119]}…"
