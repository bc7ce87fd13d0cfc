"""A table for a terminal: aligned columns of plain text. Pure."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from postroom.grids import Cell, Column, Grid

WIDTH: Final = 80
"""Columns of a plain table in a kernel, whatever shows it: a notebook run again shows the same."""

TEXT_LINES: Final = 12
"""Lines of one cell in a plain table; the HTML and the records have the rest."""

_LEAST: Final = 24
"""A column of text is not made narrower than this."""

_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the reading of all that follows: a text could rewrite the next column."""

_LEFT_TO_RIGHT: Final = "\u200e"
"""Ends a text that reads from the right: without it the cells behind it would join in."""

_JOINER: Final = "\u200d"


def plain(grid: Grid, width: int = WIDTH) -> str:
    """Return the table as aligned text.

    Only columns of text are broken over several lines, each inside its own column; the others
    keep their words whole, so a row never wraps in a terminal that is ``width`` columns wide
    unless its short columns alone are wider.
    """
    if not grid.rows:
        return "\n".join(filter(None, [printable(grid.empty), grid.note]))
    rows, left = grid.shown()
    names = [_one_line(column.name) for column in grid.columns]
    cells = [[_told(*each) for each in zip(row, grid.columns, strict=True)] for row in rows]
    widths = _widths(grid.columns, [names, *cells], width)
    lines = [_line(names, grid.columns, widths)]
    for row in cells:
        columns = zip(row, grid.columns, widths, strict=True)
        stacks = [_broken(cell, w) if column.text else [cell] for cell, column, w in columns]
        for at in range(max(map(len, stacks))):
            part = [stack[at] if at < len(stack) else "" for stack in stacks]
            lines.append(_line(part, grid.columns, widths))
    return "\n".join([*lines, *filter(None, [left, grid.note])])


def _told(cell: Cell, column: Column) -> str:
    return printable(str(cell)) if column.text else _one_line(str(cell))


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


def printable(text: str) -> str:
    """Return ``text`` without what would move a terminal's cursor or turn the reading of a line.

    Line ends and tabs stay.
    """
    text = text.expandtabs(4).replace("\r\n", "\n")
    return text if text.isascii() and text.isprintable() else "".join(map(_safe, text))


def _safe(char: str) -> str:
    moves = char != "\n" and unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
    return char.encode("unicode_escape").decode() if moves or char in _TURNING else char


def columns_of(text: str) -> int:
    """Return how many columns of a terminal ``text`` takes."""
    return len(text) if text.isascii() else sum(width for _, width in _letters(text))


def _letters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what a terminal draws as one: the characters, and the columns they take."""
    held, width = "", 0
    for char in text:
        joins = bool(unicodedata.combining(char)) or unicodedata.category(char) in (
            "Mn",
            "Me",
            "Cf",
        )
        if held and (joins or held[-1] == _JOINER):
            held += char
            if char == "\ufe0f":  # draws the sign before it as an emoji
                width = 2
            continue
        if held:
            yield held, width
        held = char
        width = 0 if joins else 2 if unicodedata.east_asian_width(char) in "WF" else 1
    if held:
        yield held, width


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    wanted = [
        max(columns_of(line) for row in cells for line in row[at].split("\n"))
        for at in range(len(columns))
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
    lines = [part for line in cell.split("\n") for part in wrapped(line, width)]
    if len(lines) > TEXT_LINES:
        hidden = len(lines) - TEXT_LINES + 1
        lines = [*lines[: TEXT_LINES - 1], f"… {hidden} more lines"]
    return lines


def wrapped(line: str, width: int) -> list[str]:
    """Return a line broken between words into lines of at most ``width`` columns.

    A word that is longer by itself is broken between letters; the indent stays on the first line.
    """
    if columns_of(line) <= width:
        return [line.rstrip(" ")]
    words = line.lstrip(" ").split(" ")
    lines, held = list[str](), " " * min(len(line) - len(line.lstrip(" ")), width // 2)
    begun = False
    for word in words:
        joined = f"{held} {word}" if begun else f"{held}{word}"
        if columns_of(joined) <= width:
            held, begun = joined, True
            continue
        if begun:
            lines.append(held.rstrip(" "))
            held = ""
        *full, held = _pieces(held, word, width)
        lines += full
        begun = True
    return [*lines, held.rstrip(" ")]


def _pieces(before: str, word: str, width: int) -> Iterator[str]:
    held, used = before, columns_of(before)
    for letter, wide in _letters(word):
        if used + wide > width and held.strip():
            yield held
            held, used = "", 0
        held, used = held + letter, used + wide
    yield held


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        blanks = " " * (width - columns_of(cell))
        text = f"{cell}{_LEFT_TO_RIGHT}" if _reads_leftwards(cell) else cell
        parts.append(blanks + text if column.number else text + blanks)
    return "  ".join(parts).rstrip()


def _reads_leftwards(text: str) -> bool:
    return not text.isascii() and any(unicodedata.bidirectional(c) in ("R", "AL") for c in text)
