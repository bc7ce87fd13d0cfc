"""What a table says, before it is text or HTML. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ROWS: Final = 100
"""Rows of a table that are shown; the list behind it has all of them."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    number: bool = False
    """Set to the right."""
    text: bool = False
    """Long text: broken between words to fill what width is left, line ends kept."""
    titles: bool = False
    """Its cells say what a row is about; nobody must be told that they do."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A word with its sign: both say the same, and HTML colours the sign."""

    text: str
    sign: str
    color: str
    """A colour of CSS, of the page's own theme."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Faint:
    """What stands where there is no value."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Data:
    """A value with an inside: in one line, which unfolds to the whole of it in HTML."""

    text: str
    whole: str

    def __str__(self) -> str:
        return self.text


Cell = str | Signed | Faint | Data


@dataclass(frozen=True, slots=True)
class Grid:
    """What a table shows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str = "Nothing here."
    """What stands there when there are no rows."""
    note: str = ""
    """A line below the table."""
    more: str = ""
    """How to get at rows that are not shown: ``letters = %mail ann``."""
    latest: bool = False
    """Of too many rows the last ones are shown, not the first: what has an order in time."""

    def shown(self) -> tuple[Sequence[tuple[Cell, ...]], str]:
        """Return the rows to show, and a line about those that are not; '' for none."""
        total = len(self.rows)
        if total <= ROWS:
            return self.rows, ""
        which, rest = ("last", f"[:{total - ROWS}]") if self.latest else ("first", f"[{ROWS}:]")
        how = f" The others: {self.more}, then {self.more.split(' ')[0]}{rest}" if self.more else ""
        rows = self.rows[-ROWS:] if self.latest else self.rows[:ROWS]
        return rows, f"The {which} {ROWS} of {total:,} rows.{how}"
