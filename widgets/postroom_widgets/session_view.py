"""The live view of one session: a widget where there is a front end, a transcript everywhere."""

from typing import Final

from postroom_widgets.link import feed_of
from postroom_widgets.live_view import LiveView, open_views
from postroom_widgets.static_html import static_html
from postroom_widgets.static_text import static_text
from postroom_widgets.view_rows import Row, clipped
from postroom_widgets.watched import Watched

__all__ = ["SCRIPTS", "SHEETS", "SNAPSHOT_TEXT", "SessionView", "open_views"]

SCRIPTS: Final = (
    "kit",
    "wire",
    "opened",
    "shell",
    "outbox",
    "store",
    "prose",
    "asking",
    "calls",
    "rows",
    "range",
    "feed",
    "strip",
    "composer",
    "session",
)
SHEETS: Final = ("tokens", "views", "forms", "session")

SNAPSHOT_ROWS: Final = 50
SNAPSHOT_TEXT: Final = 2_000
"""Characters of one text in the snapshot, which every saved notebook carries."""


class SessionView(LiveView):
    """A session's feed and its send box (M-48, M-133). It reads mail and never consumes it.

    Several views of one session agree, whenever they were opened.

    Args:
        session: The session to watch.
    """

    scripts, sheets = SCRIPTS, SHEETS

    def __init__(self, session: Watched) -> None:
        self._session, self._feed = session, feed_of(session)
        super().__init__(self._feed, session.room.hop)

    def static(self) -> dict[str, str]:
        """Return the transcript as text and as HTML."""
        state = self._feed.catch_up()
        return {"text/plain": static_text(state), "text/html": static_html(state)}

    def snapshot_of(self) -> Row:
        """Return the head and the last rows."""
        state = self._feed.catch_up()
        ordered = state.ordered()
        return {
            "room": self._session.room.name,
            "head": state.head,
            "rows": [_short(row) for row in ordered[-SNAPSHOT_ROWS:]],
            "earlier": max(0, len(ordered) - SNAPSHOT_ROWS),
        }


def _short(row: Row) -> Row:
    long = {k: row[k] for k in ("text", "result", "error", "traceback") if k in row}
    cut = {k: clipped(text, SNAPSHOT_TEXT) for k, text in long.items()}
    more = row.get("more", 0) + sum(rest for _, rest in cut.values())
    return {**row, **{k: text for k, (text, _) in cut.items()}, **({"more": more} if more else {})}
