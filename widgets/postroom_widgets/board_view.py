"""The switchboard: every session of a room, and the mail between them, in one live view."""

from typing import TYPE_CHECKING, Final

from postroom_widgets.board_link import board_of
from postroom_widgets.board_rows import short
from postroom_widgets.board_static import board_html, board_text
from postroom_widgets.live_view import LiveView
from postroom_widgets.view_rows import Row

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

SCRIPTS: Final = (
    "kit",
    "wire",
    "opened",
    "shell",
    "filing",
    "sequence",
    "drawing",
    "diagram",
    "keeping",
    "tree",
    "envelope",
    "player",
    "switchboard",
)
SHEETS: Final = ("tokens", "views", "switchboard")

WINDOW: Final = 15_000
"""Rows a switchboard gets when it opens; it asks for earlier ones."""
SNAPSHOT_ROWS: Final = 250
SNAPSHOT_TEXT: Final = 400
"""Characters of one text in the snapshot, which every saved notebook carries."""


class BoardView(LiveView):
    """A room's sessions and their mail as a live sequence diagram. It reads mail and consumes none.

    Several switchboards of one room agree, whenever they were opened.

    Args:
        room: The room to watch.
    """

    scripts, sheets = SCRIPTS, SHEETS

    def __init__(self, room: "Room") -> None:
        self._feed = board_of(room)
        super().__init__(self._feed, room.hop, WINDOW)

    def static(self) -> dict[str, str]:
        """Return sessions and mail as text and as HTML."""
        state = self._feed.catch_up()
        return {"text/plain": board_text(state), "text/html": board_html(state)}

    def snapshot_of(self) -> Row:
        """Return the head, the sessions and the last of what happened."""
        state = self._feed.catch_up()
        ordered = state.ordered()
        lines = [row for row in ordered if row["kind"] == "line"]
        others = [row for row in ordered if row["kind"] != "line"]
        kept = others[-SNAPSHOT_ROWS:]
        left = sum(row["kind"] == "mark" for row in others) - sum(r["kind"] == "mark" for r in kept)
        rows = [short(row, SNAPSHOT_TEXT) for row in (*kept, *lines)]
        return {"head": state.head, "rows": rows, "earlier": left}
