"""The live view of one session: a widget where there is a front end, a transcript everywhere."""

import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from weakref import WeakSet

from postroom_runtime.contracts.extra import Json
from postroom_widgets.assets import script, sheet
from postroom_widgets.link import Feed, feed_of
from postroom_widgets.reader import Message, Reader
from postroom_widgets.static_html import static_html
from postroom_widgets.static_text import static_text
from postroom_widgets.view_rows import Row, clipped
from postroom_widgets.watched import Watched

SCRIPTS: Final = (
    "kit",
    "outbox",
    "store",
    "asking",
    "calls",
    "rows",
    "feed",
    "strip",
    "composer",
    "session",
)
SHEETS: Final = ("tokens", "views", "forms", "session")

SNAPSHOT_ROWS: Final = 50
SNAPSHOT_TEXT: Final = 2_000
"""Characters of one text in the snapshot, which every saved notebook carries."""

_views: "WeakSet[SessionView]" = WeakSet()


def open_views() -> "list[SessionView]":
    """Return the views of this kernel that were not closed, in no order."""
    return list(_views)


class SessionView:
    """A session's feed and its send box (M-48, M-133). It reads mail and never consumes it.

    The instance is an ``anywidget.AnyWidget`` too; that package is imported when the first view is
    made. Several views of one session agree, whenever they were opened.

    Args:
        session: The session to watch.
    """

    _joined = False
    _feed: Feed
    display_id: str
    """Under this id the view was shown, so that a later cell can refresh what is saved of it."""

    def __new__(cls, session: Watched) -> "SessionView":
        """Return an instance of the class that is a widget too."""
        built = _widget_class() if cls is SessionView else cls
        made: SessionView = super(SessionView, built).__new__(built)
        return made

    def __init__(self, session: Watched) -> None:
        self._session, self._feed = session, feed_of(session)
        self._key = secrets.token_hex(16)
        self.display_id = f"postroom-{self._key[:12]}"
        self._shown: tuple[int, Row] | None = None
        # Through the other base: AnyWidget's own __init__, which opens the comm.
        super().__init__(model_id=self._key, snapshot=self._snapshot())  # type: ignore[call-arg]
        self._reader = Reader(self._post)
        self._feed.on_rest.append(self._save)
        self.on_msg(self._on_msg)  # type: ignore[attr-defined]
        session.room.hop(self._feed.join, self._reader)
        self._joined = True
        _views.add(self)

    def __repr__(self) -> str:
        return f"<SessionView of {self._session.name}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return {**data, **self._static()}, metadata

    def show(self) -> None:
        """Display the view in the cell that runs now."""
        self._display(update=False)

    def refresh(self) -> bool:
        """Bring what a saved notebook keeps of the view up to date; tell if there was news.

        Only from a running cell does this reach a notebook that nobody looks at. The widget itself
        needs no refresh.
        """
        if self._shown is None or self._shown == self._moment():
            return False
        self._display(update=True)
        return True

    def _moment(self) -> tuple[int, Row]:
        state = self._feed.catch_up()
        return state.version, state.head

    def _display(self, *, update: bool) -> None:
        from IPython.display import display

        self._shown = self._moment()
        data, metadata = self._repr_mimebundle_()
        display(data, metadata=metadata, raw=True, display_id=self.display_id, update=update)

    def close(self) -> None:
        """End the view; the session lives on."""
        if self._joined:  # once; and never when the widget could not be made
            self._joined = False
            _views.discard(self)
            self._feed.on_rest.remove(self._save)
            self._session.room.hop(self._feed.leave, self._reader)
        super().close()  # type: ignore[misc]

    def _static(self) -> dict[str, str]:
        state = self._feed.catch_up()
        return {"text/plain": static_text(state), "text/html": static_html(state)}

    def _snapshot(self) -> Row:
        state = self._feed.catch_up()
        ordered = state.ordered()
        rows = [_short(row) for row in ordered[-SNAPSHOT_ROWS:]]
        return {
            "view": self._key,
            "room": self._session.room.name,
            "life": self._feed.life,
            "head": state.head,
            "rows": rows,
            "earlier": max(0, len(ordered) - SNAPSHOT_ROWS),
        }

    def _save(self) -> None:
        self.snapshot = self._snapshot()

    def _post(self, message: Message) -> None:
        self.send(dict(message))  # type: ignore[attr-defined]

    def _on_msg(self, _: object, content: Json, __: object) -> None:
        # This may be another thread, with a loop of its own. Mail is accepted on the room's.
        if isinstance(content, Mapping):
            self._session.room.hop(self._feed.receive, self._reader, content)


def _short(row: Row) -> Row:
    long = {k: row[k] for k in ("text", "result", "error", "traceback") if k in row}
    cut = {k: clipped(text, SNAPSHOT_TEXT) for k, text in long.items()}
    more = row.get("more", 0) + sum(rest for _, rest in cut.values())
    return {**row, **{k: text for k, (text, _) in cut.items()}, **({"more": more} if more else {})}


@cache
def _widget_class() -> "type[SessionView]":
    import anywidget
    import traitlets

    members = {
        "__module__": __name__,
        "__doc__": SessionView.__doc__,
        "_esm": script(SCRIPTS),
        "_css": sheet(SHEETS),
        # From here to the front end only, never back: a trait changed there while a cell awaits
        # is lost, and every later change of it too.
        "snapshot": traitlets.Dict().tag(sync=True),
    }
    return type("SessionView", (SessionView, anywidget.AnyWidget), members)
