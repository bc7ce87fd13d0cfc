"""A table for a notebook: HTML that reads without a style sheet, and on a narrow page. Pure.

Where styles are let through, a page too narrow for the table shows each row as a card instead,
its cells named and one behind the other: nothing scrolls sideways and no word is broken. Where
they are not (GitHub, a notebook that is not trusted), it is a plain table. Colours are the page's.
"""

import html
import math
import re
from collections.abc import Sequence
from typing import Final

from postroom.grids import Cell, Column, Data, Faint, Grid, Signed
from postroom_runtime.office.sequence_words import width_of

HTML_LINES: Final = 12
"""Lines of one cell in sight in a notebook; the rest unfolds."""
HTML_LETTERS: Final = 1_200
"""Characters of one cell in sight."""
FOLDED: Final = 20_000
"""Characters of one cell that unfold; a saved notebook must not carry all of a long result."""

UNTYPESET: Final = "mathjax_ignore tex2jax_ignore"
"""Classes that keep MathJax from reading "$5 and $6" as a formula."""

_SHORT: Final = 28
"""Characters up to which a cell is kept on one line."""
_INLINE: Final = 60
"""Characters of a value with an inside up to which it is not folded."""
_WORD: Final = 24
"""Characters after which a word without any break may be broken."""
_SIZE, _PADDING, _TEXT = 13, 14, 180
"""Pixels: the type of notebooks, what surrounds a cell, the least a column of text takes."""
_STEP, _WIDEST = 40, 640
"""Pixels: table widths are told apart in steps; a wider one scrolls instead of becoming cards."""

# Notebooks set all cells to the right, in the middle, and break words where they like.
_CELL = "text-align:{align};vertical-align:top"
_KEPT = ";white-space:nowrap"
_BROKEN = ";min-width:9em;overflow-wrap:break-word"
_LONG = ";white-space:pre-wrap;overflow-wrap:break-word;min-width:14em;max-width:60em"
_DIGITS = ";font-variant-numeric:tabular-nums"
_SCROLL = "overflow-x:auto;max-width:100%"

# By an attribute, not by a class: a page that is not trusted keeps its classes and loses its
# attributes, and the styles of a trusted one beside it must not take the names off its cells.
_CARDS: Final = """\
.postroom-table{{container-type:inline-size}}\
@container (max-width:{below}px){{\
{table},{table} tbody{{display:block !important}}\
{table} thead{{display:none !important}}\
{table} tr{{display:flex !important;flex-wrap:wrap;gap:1px 14px;padding:5px 6px}}\
{table} td{{display:block !important;padding:0 !important;min-width:0 !important;\
max-width:100% !important;text-align:start !important;white-space:normal !important;\
overflow-wrap:anywhere !important}}\
{table} td.long{{flex:1 0 100%;white-space:pre-wrap !important}}\
{table} td:empty{{display:none !important}}\
{table} td::before{{content:attr(data-name) "\\a0";font-size:.85em;\
color:color-mix(in srgb,currentColor 66%,transparent)}}\
{table} td.title{{font-weight:600}}{table} td.title::before{{content:none}}}}"""


def as_html(grid: Grid) -> str:
    """Return the table as HTML: escaped, semantic, coloured by the notebook's own theme.

    Of a long text the first lines are in sight and the rest unfolds; of many rows ``ROWS`` are
    shown, with a note that says how to see the others.
    """
    note = f"<p>{html.escape(grid.note)}</p>" if grid.note else ""
    if not grid.rows:
        return f"<p>{html.escape(grid.empty)}</p>{note}"
    rows, left = grid.shown()
    about = f"<p><small>{html.escape(left)}</small></p>" if left else ""
    head = "".join(
        f'<th scope="col" style="{_align(column)}">{_opened(html.escape(column.name))}</th>'
        for column in grid.columns
    )
    body = "\n".join(
        f"<tr>{''.join(_cell(*each) for each in zip(row, grid.columns, strict=True))}</tr>"
        for row in rows
    )
    width = stepped(_needed(grid.columns, rows))
    table = f'<table data-cards="{width}"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
    cards = _CARDS.format(table=f'table[data-cards="{width}"]', below=width - 1)
    style = f"<style>{cards}</style>"
    above, below = (about, "") if grid.latest else ("", about)
    return (
        f'{above}<div class="postroom-table {UNTYPESET}" style="{_SCROLL}">{style}{table}</div>'
        f"{below}{note}"
    )


def stepped(width: float, widest: int = _WIDEST) -> int:
    """Return a number of pixels rounded up, so that few different ones occur on a page."""
    return min(math.ceil(width / _STEP) * _STEP, widest)


def _needed(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> float:
    """Return about how many pixels the table takes with no word broken."""
    return sum(_width(column, [row[at] for row in rows]) for at, column in enumerate(columns))


def _width(column: Column, cells: Sequence[Cell]) -> float:
    named = width_of(column.name, _SIZE, bold=True)
    if column.text:
        return max(named, _TEXT) + _PADDING
    wide = (
        width_of(str(cell), _SIZE) if len(str(cell)) <= _SHORT else _SIZE * 9.0 for cell in cells
    )
    return max(named, *wide) + _PADDING


def _align(column: Column) -> str:
    return _CELL.format(align="right" if column.number else "left")


def _cell(cell: Cell, column: Column) -> str:
    text = str(cell)
    name = html.escape(column.name)
    long = column.text
    style = _LONG if long else _KEPT if len(text) <= _SHORT else _BROKEN
    style += _DIGITS if column.number else ""
    kind = ' class="long"' if long else ' class="title"' if column.titles else ""
    style = _align(column) + style
    inside = _inside(cell, long=long)
    return f'<td{kind} data-name="{name}" dir="auto" style="{style}">{inside}</td>'


def _inside(cell: Cell, *, long: bool) -> str:
    match cell:
        case Signed(text=text, sign=sign, color=color):
            mark = f'<span aria-hidden="true" style="color:{color}">{html.escape(sign)}</span>'
            return f"{mark} {html.escape(text)}"
        case Faint(text=text):
            return f'<em style="opacity:0.7">{html.escape(text)}</em>'
        case Data(text=text, whole=whole) if len(text) > _INLINE:
            line = _opened(html.escape(f"{text[:_INLINE].rstrip()}…"))
            rest = f'<pre style="white-space:pre-wrap;margin:0">{html.escape(cut(whole))}</pre>'
            return f"<details><summary>{line}</summary>{rest}</details>"
        case _ if long:
            return _folded(str(cell))
        case _:
            return _opened(html.escape(_indented(str(cell))))


def _indented(text: str) -> str:
    bare = text.lstrip(" ")
    return "\u00a0" * 2 * (len(text) - len(bare)) + bare


def _folded(text: str) -> str:
    lines = text.split("\n")
    if len(lines) > HTML_LINES + 1:  # one line is not worth a fold
        shown, rest = "\n".join(lines[:HTML_LINES]), "\n".join(lines[HTML_LINES:])
        left = f"{len(lines) - HTML_LINES:,} more lines"
    elif len(text) > HTML_LETTERS:
        shown, rest = text[:HTML_LETTERS], text[HTML_LETTERS:]
        left = f"{len(rest):,} more characters"
    else:
        return _lines(text)
    if len(shown) > HTML_LETTERS:
        shown, rest = shown[:HTML_LETTERS], f"{shown[HTML_LETTERS:]}\n{rest}"
        left = f"{len(rest):,} more characters"
    fold = f"<details><summary>{left}</summary>{_lines(cut(rest))}</details>"
    return f"{_lines(shown)}{fold}"


def cut(text: str, most: int = FOLDED) -> str:
    """Return ``text`` with at most so many characters, and a note of how many were left out."""
    over = len(text) - most
    return text if over <= 0 else f"{text[:most]}\n… {over:,} more characters in the list itself"


def _lines(text: str) -> str:
    # A page without styles would run the lines together.
    return _opened(html.escape(text)).replace("\n", "<br>")


_ENDLESS: Final = re.compile(rf"[^\s<>]{{{_WORD + 1},}}")
_LETTER: Final = r"(?:&[#\w]+;|[^&])"
_PART: Final = re.compile(
    rf"{_LETTER}{{8,{_WORD - 1}}}[-_/.:,=](?={_LETTER}{{4}})|{_LETTER}{{1,{_WORD}}}"
)
"""Rather behind a sign that parts words than anywhere."""


def _opened(escaped: str) -> str:
    """Return escaped text with places to break words that are too long for any column."""
    return _ENDLESS.sub(_parted, escaped)


def _parted(word: re.Match[str]) -> str:
    fits = len(html.unescape(word[0])) <= _WORD
    return word[0] if fits else "<wbr>".join(_PART.findall(word[0]))
