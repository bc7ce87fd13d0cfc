"""The live view of owner inboxes: cards to answer where there is a front end, words everywhere."""

from typing import TYPE_CHECKING, Final

from postroom_widgets.inbox_link import inbox_feed_of
from postroom_widgets.inbox_model import OPEN
from postroom_widgets.inbox_static import inbox_html, inbox_text
from postroom_widgets.live_view import LiveView
from postroom_widgets.view_rows import Row, clipped

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

SCRIPTS: Final = ("kit", "wire", "opened", "shell", "asking", "cards", "resolved", "inbox")
SHEETS: Final = ("tokens", "views", "forms", "inbox")

WINDOW: Final = 20_000
"""Rows a view gets: every open card, and the resolved ones that are kept."""
SNAPSHOT_CARDS: Final = 40
SNAPSHOT_RESOLVED: Final = 20
SNAPSHOT_TEXT: Final = 2_000
"""Characters of one text in the snapshot, which every saved notebook carries."""


class InboxView(LiveView):
    """What the runtime wants its owner to look at, with the way to answer it (I-9, I-37).

    It has no send box, and reading changes nothing: only *Mark all read* moves the owner's cursor.
    Several views of one inbox agree, whenever they were opened.

    Args:
        room: The room.
        agent: Whose inbox; '' for those of all agents.

    Raises:
        ConfigError: No agent of that slug has an inbox.
    """

    scripts, sheets = SCRIPTS, SHEETS

    def __init__(self, room: "Room", agent: str = "") -> None:
        self._feed = inbox_feed_of(room, agent)
        super().__init__(self._feed, room.hop, WINDOW)

    def static(self) -> dict[str, str]:
        """Return the cards as text and as HTML."""
        state = self._feed.catch_up()
        return {"text/plain": inbox_text(state), "text/html": inbox_html(state)}

    def snapshot_of(self) -> Row:
        """Return the head, the open cards and the last of the resolved ones."""
        state = self._feed.catch_up()
        ordered = state.ordered()
        waiting = [row for row in ordered if row["state"] == OPEN][-SNAPSHOT_CARDS:]
        resolved = [row for row in ordered if row["state"] != OPEN][-SNAPSHOT_RESOLVED:]
        kept = [_short(row) for row in sorted([*resolved, *waiting], key=lambda row: row["o"])]
        return {"head": state.head, "rows": kept, "earlier": len(ordered) - len(kept)}


def _short(row: Row) -> Row:
    cut = {k: clipped(row[k], SNAPSHOT_TEXT) for k in ("why", "traceback") if k in row}
    more = row.get("more", 0) + (cut["why"][1] if "why" in cut else 0)
    return {**row, **{k: text for k, (text, _) in cut.items()}, **({"more": more} if more else {})}
