"""Tables that read well in a terminal and in a notebook. Pure: cells in, text and HTML out."""

import html
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

WIDTH = 80
"""Columns of a plain table in a kernel, whatever shows it: a notebook run again shows the same."""

TEXT_LINES = 12
"""Lines of one cell in a plain table; the HTML and the records have the rest."""

_LEAST = 24
"""A column of text is not made narrower than this."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    number: bool = False
    """Set to the right."""
    text: bool = False
    """Long text: broken between words to fill what width is left, line ends kept."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What a table shows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = "Nothing here."
    """What stands there when there are no rows."""
    note: str = ""
    """A line below the table."""


class Table(list[T], Generic[T]):
    """Records, as a list to work with and as a table to look at.

    Args:
        records: What the list holds.
        grid: What it shows.
        width: Columns of its plain form.
    """

    def __init__(self, records: Iterable[T], grid: Grid, *, width: int = WIDTH) -> None:
        super().__init__(records)
        self.grid = grid
        self._width = width

    def __repr__(self) -> str:
        return plain(self.grid, self._width)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": as_html(self.grid)}


# ── In a terminal ──


def plain(grid: Grid, width: int = WIDTH) -> str:
    """Return the table as aligned text.

    Only columns of text are broken over several lines, each inside its own column; the others
    keep their words whole, so a row never wraps in a terminal that is ``width`` columns wide
    unless its short columns alone are wider.
    """
    if not grid.rows:
        return "\n".join(filter(None, [grid.empty, grid.note]))
    cells = [
        [
            printable(cell) if column.text else printable(cell).replace("\n", " ")
            for cell, column in zip(row, grid.columns, strict=True)
        ]
        for row in grid.rows
    ]
    widths = _widths(grid.columns, cells, width)
    lines = [_line([column.name for column in grid.columns], grid.columns, widths)]
    for row in cells:
        columns = zip(row, grid.columns, widths, strict=True)
        stacks = [_broken(cell, w) if column.text else [cell] for cell, column, w in columns]
        for at in range(max(map(len, stacks))):
            part = [stack[at] if at < len(stack) else "" for stack in stacks]
            lines.append(_line(part, grid.columns, widths))
    return "\n".join([*lines, grid.note] if grid.note else lines)


def printable(text: str) -> str:
    """Return ``text`` without what would move a terminal's cursor; line ends and tabs stay."""
    text = text.expandtabs(4)
    return "".join(
        char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cs") else _escaped(char)
        for char in text.replace("\r\n", "\n")
    )


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def columns_of(text: str) -> int:
    """Return how many columns of a terminal ``text`` takes."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    wanted = [
        max(
            [
                columns_of(column.name),
                *(columns_of(line) for row in cells for line in row[at].split("\n")),
            ]
        )
        for at, column in enumerate(columns)
    ]
    texts = [at for at, column in enumerate(columns) if column.text]
    over = sum(wanted) + 2 * (len(columns) - 1) - width
    for at in sorted(texts, key=lambda at: -wanted[at]):
        if over > 0:
            narrower = min(wanted[at], max(_LEAST, wanted[at] - over))
            over -= wanted[at] - narrower
            wanted[at] = narrower
    return wanted


def _broken(cell: str, width: int) -> list[str]:
    lines: list[str] = []
    for line in cell.split("\n"):
        lines += textwrap.wrap(line, width, drop_whitespace=True) or [""]
    if len(lines) > TEXT_LINES:
        hidden = len(lines) - TEXT_LINES + 1
        lines = [*lines[: TEXT_LINES - 1], f"… {hidden} more lines"]
    return lines


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        blanks = " " * (width - columns_of(cell))
        parts.append(blanks + cell if column.number else cell + blanks)
    return "  ".join(parts).rstrip()


# ── In a notebook ──

HTML_LINES = 12
"""Lines of one cell in sight in a notebook; the rest unfolds."""
HTML_LETTERS = 1_200
"""Characters of one cell in sight."""

# Notebooks set all cells to the right, in the middle, and break words where they like.
_CELL = "text-align:{align};vertical-align:top"
_SHORT = ";white-space:pre;font-variant-numeric:tabular-nums"
_TEXT = ";white-space:pre-wrap;overflow-wrap:anywhere;min-width:14em;max-width:60em"
_SCROLL = "overflow-x:auto;max-width:100%"


def as_html(grid: Grid) -> str:
    """Return the table as HTML: escaped, semantic, coloured by the notebook's own theme.

    It reads without a style sheet. Where it is wider than the page, it alone scrolls; of a long
    text the first lines are in sight and the rest unfolds.
    """
    note = f"<p>{html.escape(grid.note)}</p>" if grid.note else ""
    if not grid.rows:
        return f"<p>{html.escape(grid.empty)}</p>{note}"
    head = "".join(
        f'<th scope="col"{_style(column)}>{html.escape(column.name)}</th>'
        for column in grid.columns
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<td{_style(column)}>{_folded(cell) if column.text else html.escape(cell)}</td>"
            for cell, column in zip(row, grid.columns, strict=True)
        )
        + "</tr>"
        for row in grid.rows
    )
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div style="{_SCROLL}">{table}</div>{note}'


def _style(column: Column) -> str:
    style = _CELL.format(align="right" if column.number else "left")
    return f' style="{style}{_TEXT if column.text else _SHORT}"'


def _folded(text: str) -> str:
    lines = text.split("\n")
    if len(lines) > HTML_LINES + 1:  # one line is not worth a fold
        shown, rest = "\n".join(lines[:HTML_LINES]), "\n".join(lines[HTML_LINES:])
        left = f"{len(lines) - HTML_LINES:,} more lines"
    elif len(text) > HTML_LETTERS:
        shown, rest = text[:HTML_LETTERS], text[HTML_LETTERS:]
        left = f"{len(rest):,} more characters"
    else:
        return html.escape(text)
    fold = f"<details><summary>{left}</summary>{html.escape(rest)}</details>"
    return f"{html.escape(shown)}{fold}"
