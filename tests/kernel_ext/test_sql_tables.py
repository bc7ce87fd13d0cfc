"""What ``%mailsql`` shows."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from postroom.grid_html import as_html
from postroom.grid_text import plain
from postroom.grids import ROWS, Cell, Data
from postroom.sql_tables import NULL, SqlResult, sql_cell, sql_grid


def test_the_result_of_a_query_is_rows_a_table_and_a_relation() -> None:
    relation = duckdb.connect().sql(
        "select i, 'text ' || i as t, null as n from range(250) r(i) order by i"
    )

    result = SqlResult(relation)

    assert len(result) == 250
    assert result[2] == (2, "text 2", None)
    assert result.columns == ["i", "t", "n"]
    assert repr(result).splitlines()[0].split() == ["i", "t", "n"]
    assert repr(result).endswith(
        "The first 100 of 250 rows. The others: rows = %mailsql QUERY, then rows[100:]"
    )
    assert as_html(result.grid).count("<tr>") == 1 + ROWS
    assert repr(result[249:]).splitlines()[1:] == ["249  text 249  NULL"]
    assert len(result.df()) == 250
    with pytest.raises(AttributeError):
        result.nonsense  # noqa: B018


def test_only_long_texts_of_a_query_are_broken() -> None:
    grid = sql_grid(["id", "n", "text"], [("m-0001", 1, "word " * 9), ("m-0002", None, "")])

    assert [(column.number, column.text) for column in grid.columns] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    assert sql_grid(["a", "b"], []).empty == "No rows. Columns: a, b."


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, NULL),
        ("", ""),
        ("NULL", "NULL"),
        (True, "true"),
        (12345678, "12345678"),
        (0.1 + 0.2, "0.3"),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 1, 1, 10, 3, 2), "2026-01-01 10:03:02"),  # noqa: DTZ001
        (datetime(2026, 1, 1, 10, 3, 2, 123456), "2026-01-01 10:03:02.123"),  # noqa: DTZ001
        (datetime(2026, 1, 1, 10, 3, 2, tzinfo=UTC), "2026-01-01 10:03:02+00:00"),
        (b"abc", "0x616263 (3 bytes)"),
        (b"a" * 20, f"0x{'61' * 16}… (20 bytes)"),
        ([1, None], Data("[1, null]", "[\n  1,\n  null\n]")),
        (
            {date(2026, 1, 1): "é"},
            Data('{"2026-01-01": "é"}', '{\n  "2026-01-01": "é"\n}'),
        ),
    ],
)
def test_values_read_as_what_they_are(value: Any, shown: Cell) -> None:
    assert sql_cell(value) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("null", "null"),
        ('"hi"', "hi"),
        ("7", "7"),
        ('{"a":[1]}', Data('{"a": [1]}', '{\n  "a": [\n    1\n  ]\n}')),
    ],
)
def test_json_is_read_where_duckdb_says_that_it_is_json(text: str, shown: Cell) -> None:
    assert sql_cell(text, as_json=True) == shown
    assert sql_cell(text) == text


def test_a_result_of_every_kind_reads_in_both_forms() -> None:
    result = SqlResult(
        duckdb.connect().sql(
            """select 1.5 as "<b>x", null as n, true as b, timestamp '2026-01-01 10:03:02' as t,
            {'a': 1} as s, json('{"words": "and words and words and words and words and words"}') as j"""
        )
    )

    text, page = plain(result.grid), as_html(result.grid)

    assert text.splitlines()[0].split() == ["<b>x", "n", "b", "t", "s", "j"]
    assert text.splitlines()[1].startswith(' 1.5  NULL  true  2026-01-01 10:03:02  {"a": 1}')
    assert "&lt;b&gt;x</th>" in page
    assert '<em style="opacity:0.7">NULL</em>' in page
    assert page.count("<details>") == 1
    assert result.grid.columns[0].number
    assert not result.grid.columns[2].number
