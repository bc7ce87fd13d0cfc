"""What ``%sessions`` shows: the sessions as a tree, and the mail between them as a small picture.

The picture is a still one: the listing is typed often, and a saved notebook must not carry what
pretends to be live. ``%watch --all`` is the live one.
"""

from collections.abc import Sequence
from typing import Any, Final

from postroom.grid_html import UNTYPESET, as_html, stepped
from postroom.grid_text import WIDTH
from postroom.grids import Cell, Column, Grid, Signed
from postroom.tables import Table
from postroom_runtime.contracts.spending import money
from postroom_runtime.office.room import Room
from postroom_runtime.office.sequence import Diagram
from postroom_runtime.office.sequence_layout import lay_out
from postroom_runtime.office.sequence_picture import Sequence as Picture
from postroom_runtime.office.sequence_words import (
    facts_of,
    label_of,
    shown_names,
    told,
)
from postroom_runtime.office.session import Session
from postroom_widgets.board_rows import now_row
from postroom_widgets.board_static import dot_of, line_words, tree
from postroom_widgets.view_rows import Row
from postroom_widgets.wording import count

LETTERS: Final = 12
"""Letters in the picture."""

_FAINT: Final = "var(--jp-content-font-color2,inherit)"
_WANTED: Final = "var(--jp-warn-color1,inherit)"
_SIGNS: Final = {
    "running": ("●", "var(--jp-info-color1,inherit)"),
    "idle": ("○", _FAINT),
    "ready": ("◌", _FAINT),
    "waiting": ("◐", _WANTED),
    "paused": ("‖", _WANTED),
    "failed": ("◆", "var(--jp-error-color1,inherit)"),
    "stopped": ("■", _FAINT),
}
"""The signs of the live tree, in letters."""

_ALL: Final = '<code style="white-space:nowrap">%watch --all</code>'

# By attributes, as with tables: what strips a page of them strips it of its picture too.
_PICTURE: Final = """\
.postroom-small{{container-type:inline-size}}\
@container (min-width:{width}px){{\
[data-words="{width}"]{{display:none}}\
[data-picture="{width}"]{{display:block !important}}}}"""


def session_row(session: Session) -> Row:
    """Return how a session stands now."""
    about = {"id": session.id, "name": session.name, "agent": session.agent}
    return {**about, "parent": session.parent, **now_row(session)}


def session_grid(lines: Sequence[Row]) -> Grid:
    """Return the listing of sessions: children below their parents, indented.

    Args:
        lines: Of :func:`session_row`, in the order the sessions were made.
    """
    rows = tuple(_cells(depth, line) for depth, line in tree(list(lines)))
    columns = (
        Column("name", titles=True),
        Column("id"),
        Column("agent"),
        Column("status"),
        Column("unread", number=True),
        Column("calls", number=True),
        Column("tokens", number=True),
        Column("cost", number=True),
    )
    # Calls that run, tokens and money are shown where there are any.
    shown = [at for at in range(len(columns)) if at < 5 or any(row[at] for row in rows)]
    return Grid(
        tuple(columns[at] for at in shown),
        tuple(tuple(row[at] for at in shown) for row in rows),
        empty="No sessions yet. Start one: %spawn echo --as ann Hello",
        more="found = %sessions",
    )


def _cells(depth: int, line: Row) -> tuple[Cell, ...]:
    words = line_words(line)
    sign, color = _SIGNS.get(dot_of(line), ("○", _FAINT))
    return (
        "  " * depth + line["name"],
        line["id"],
        line["agent"],
        Signed(words, sign, color),
        str(line.get("unread", 0)),
        str(line["calls"]) if line.get("calls") else "",
        count(line["tokens"]) if line.get("tokens") else "",
        money(line.get("cost")),
    )


class SessionTable(Table[Session]):
    """The sessions of a room, with a picture of the mail between them below the table.

    Args:
        sessions: What is listed, in the order it was made.
        room: Whose they are.
        width: Columns of the plain form, which has no picture.
    """

    def __init__(self, sessions: Sequence[Session], room: Room, *, width: int = WIDTH) -> None:
        super().__init__(
            sessions, lambda some: session_grid(list(map(session_row, some))), width=width
        )
        self.picture = room.recent_mail({session.id for session in sessions}, LETTERS)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        page = as_html(self.grid) + mail_html(self.picture)
        return {"text/plain": repr(self), "text/html": page}


def mail_html(picture: Picture) -> str:
    """Return the mail between sessions as HTML; '' where there is none.

    Where the page is wide enough the picture shows, else its letters as a list: a page that takes
    styles out would take the picture apart.
    """
    diagram = picture.diagram
    if not diagram.marks:
        return ""
    many = len(diagram.marks)
    which = "the latest letter" if many == 1 else f"the latest {many} letters"
    about = f"Mail between them, {which}. All of it, live: {_ALL}"
    width = stepped(lay_out(diagram).width, widest=10_000)
    return (
        f'<p style="margin:10px 0 4px"><small>{about}</small></p>'
        f'<div class="postroom-small {UNTYPESET}">'
        f"<style>{_PICTURE.format(width=width)}</style>"
        f'<div data-words="{width}">{_words(diagram)}</div>'
        f'<div data-picture="{width}" style="display: none">{picture.svg}</div></div>'
    )


def _words(diagram: Diagram) -> str:
    names = shown_names(diagram)
    rows = tuple(
        (told(mark, names), label_of(mark), ", ".join(facts_of(mark))) for mark in diagram.marks
    )
    return as_html(
        Grid((Column("from → to", titles=True), Column("text", text=True), Column("kind")), rows)
    )
