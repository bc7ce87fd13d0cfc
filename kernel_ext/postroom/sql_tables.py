"""The result of a query as people read it: rows in, a table out. Pure but for reading the rows."""

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from postroom.grid_text import WIDTH
from postroom.grids import Cell, Column, Data, Faint, Grid
from postroom.tables import Table

NULL: Final = Faint("NULL")

_LONG: Final = 20
"""Characters from which a value counts as text, which may be broken."""
_BYTES: Final = 16
"""Bytes of a blob that are shown."""


class SqlResult(Table[tuple[Any, ...]]):
    """The rows of a query, and the DuckDB relation they come from, ``.df()`` and all.

    Args:
        relation: What ``room.sql`` returned.
        width: Columns of the plain form.
    """

    def __init__(self, relation: Any, *, width: int = WIDTH) -> None:
        rows = relation.fetchall()
        types = [str(type) for type in relation.types]
        names = list(relation.columns)
        super().__init__(rows, lambda some: sql_grid(names, some, types), width=width)
        self.relation = relation

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "relation":
            raise AttributeError(name)
        return getattr(self.relation, name)


def sql_grid(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], types: Sequence[str] = ()
) -> Grid:
    """Return the result of a query as a table.

    Args:
        columns: Their names.
        rows: Their values, as DuckDB gives them.
        types: The types DuckDB has for the columns; without them no text is read as JSON.
    """
    as_json = [at < len(types) and types[at] == "JSON" for at in range(len(columns))]
    cells = tuple(tuple(map(sql_cell, row, as_json)) for row in rows)
    values = [[row[at] for row in rows if row[at] is not None] for at in range(len(columns))]
    return Grid(
        tuple(
            Column(
                name,
                number=_numbers(values[at]),
                text=_long(values[at], [row[at] for row in cells]),
            )
            for at, name in enumerate(columns)
        ),
        cells,
        empty=f"No rows. Columns: {', '.join(columns)}.",
        more="rows = %mailsql QUERY",
    )


def sql_cell(value: Any, as_json: bool = False) -> Cell:
    """Return a value as a cell: no value as NULL, times to the millisecond, what has parts folded."""
    if as_json and isinstance(value, str):
        value = json.loads(value)
        if value is None:
            return "null"  # a value of JSON, where NULL is none
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.12g}"
        case datetime():
            return value.isoformat(" ", "milliseconds" if value.microsecond else "seconds")
        case bytes():
            more = "…" if len(value) > _BYTES else ""
            return f"0x{value[:_BYTES].hex()}{more} ({len(value):,} bytes)"
        case dict() | list() | tuple():
            value = _keyed(value)
            line = json.dumps(value, ensure_ascii=False, default=str)
            return Data(line, json.dumps(value, ensure_ascii=False, default=str, indent=2))
        case _:
            return str(value)


def _numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in values
    )


def _long(values: Sequence[Any], cells: Sequence[Cell]) -> bool:
    return any(isinstance(value, str) and len(value) > _LONG for value in values) or any(
        isinstance(cell, Data) and len(cell.text) > _LONG for cell in cells
    )


def _keyed(value: Any) -> Any:
    """Return a value whose maps have texts for keys, as JSON wants them."""
    if isinstance(value, dict):
        return {str(key): _keyed(inner) for key, inner in value.items()}
    return [_keyed(inner) for inner in value] if isinstance(value, list | tuple) else value
