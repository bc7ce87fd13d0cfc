"""What every live view is: a widget where there is a front end, words where there is none."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final
from weakref import WeakSet

from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_widgets.assets import script, sheet
from postroom_widgets.hub import Hub
from postroom_widgets.kept import kept
from postroom_widgets.reader import WINDOW_ROWS, Message, Reader
from postroom_widgets.view_rows import Row

WIDGET_VIEW: Final = "application/vnd.jupyter.widget-view+json"
KEEP_SECONDS: Final = 2.0
"""At most so often what a saved notebook keeps follows a session that comes to rest."""


_views: "WeakSet[LiveView]" = WeakSet()


def open_views() -> "list[LiveView]":
    """Return the views of this kernel that were not closed, in no order."""
    return list(_views)


class LiveView:
    """One view over a hub. It reads and never consumes.

    The instance is an ``anywidget.AnyWidget`` too; that package is imported when the first view is
    made. Several views over one hub agree, whenever they were opened.

    Args:
        hub: What is watched.
        hop: Runs a function on the room's loop, from any thread.
        window: Rows the view gets when it opens.
    """

    scripts: ClassVar[tuple[str, ...]]
    """The modules of its front end, each after all it imports."""
    sheets: ClassVar[tuple[str, ...]]
    display_id: str
    """Under this id the view was shown, so that a later cell can refresh what is saved of it."""
    _joined = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Read the front end's files as the module is imported, so that no view waits on the loop."""
        super().__init_subclass__(**kwargs)
        script(cls.scripts)
        sheet(cls.sheets)

    def __new__(cls, *_: Any, **__: Any) -> "LiveView":
        """Return an instance of the class that is a widget too."""
        built = cls if "_esm" in vars(cls) else _widget_class(cls)
        made: LiveView = super(LiveView, built).__new__(built)
        return made

    def __init__(self, hub: Hub, hop: Callable[..., None], window: int = WINDOW_ROWS) -> None:
        self._hub, self._hop = hub, hop
        self._key = secrets.token_hex(16)
        self.display_id = f"postroom-{self._key[:12]}"
        self._shown: tuple[int, Row] | None = None
        self._keeping: asyncio.TimerHandle | None = None
        # Through the other base: AnyWidget's own __init__, which opens the comm.
        super().__init__(model_id=self._key, snapshot=self._short())  # type: ignore[call-arg]
        self._reader = Reader(self._post, window)
        self._opened: dict[SessionId, Any] = {}
        """Views of sessions that were opened from this one. They end with it: what somebody began
        to write in one is there when it is opened again."""
        self._hub.on_rest.append(self._save)
        self.on_msg(self._on_msg)  # type: ignore[attr-defined]
        self._hop(self._hub.join, self._reader)
        self._joined = True
        _views.add(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._hub.name}>"

    def static(self) -> dict[str, str]:
        """Return what is shown where no widget runs, by media type."""
        raise NotImplementedError

    def snapshot_of(self) -> Row:
        """Return what a saved notebook keeps for the widget, besides its keys."""
        raise NotImplementedError

    def show(self) -> None:
        """Display the view in the cell that runs now: the widget, and what is kept without it."""
        from IPython.display import display

        data, metadata = super()._repr_mimebundle_()  # type: ignore[misc]
        # No words of its own: they would stand twice where no widget runs.
        display({WIDGET_VIEW: data[WIDGET_VIEW], "text/plain": ""}, metadata=metadata, raw=True)
        self._keep(update=False)

    _ipython_display_ = show

    def refresh(self) -> bool:
        """Bring what a saved notebook keeps of the view up to date; tell if there was news.

        The widget itself needs no refresh.
        """
        if self._shown is None or self._shown == self._moment():
            return False
        self._keep(update=True)
        return True

    def _moment(self) -> tuple[int, Row]:
        state = self._hub.catch_up()
        return state.version, state.head

    def _keep(self, *, update: bool) -> None:
        from IPython.display import display

        self._shown = self._moment()
        data = self.static()
        data["text/html"] = kept(data["text/html"], self._key)
        display(data, raw=True, display_id=self.display_id, update=update)

    def close(self) -> None:
        """End the view; what it watched lives on."""
        if self._joined:  # once; and never when the widget could not be made
            self._joined = False
            _views.discard(self)
            self._hub.on_rest.remove(self._save)
            if self._keeping is not None:
                self._keeping.cancel()
            self._hop(self._hub.leave, self._reader)
            for opened in self._opened.values():
                opened.close()
            self._opened.clear()
        super().close()  # type: ignore[misc]

    def _short(self) -> Row:
        return {"view": self._key, "life": self._hub.life, **self.snapshot_of()}

    def _save(self) -> None:
        self.snapshot = self._short()
        if self._shown is not None and self._keeping is None:
            self._keeping = self._hub.later(KEEP_SECONDS, self._keep_up)

    def _keep_up(self) -> None:
        self._keeping = None
        self.refresh()

    def _post(self, message: Message) -> None:
        self.send(dict(message))  # type: ignore[attr-defined]

    def _on_msg(self, _: object, content: Json, __: object) -> None:
        # This may be another thread, with a loop of its own. Mail is accepted on the room's.
        if isinstance(content, Mapping):
            self._hop(self._take, content)

    # ── Sessions opened from it ──

    def _take(self, message: Message) -> None:
        if message.get("op") == "open":
            self._post({"id": message.get("id"), **self._open(str(message.get("session")))})
        else:
            self._hub.receive(self._reader, message)

    def _open(self, key: str) -> Message:
        """Have a view of a session for a place below this one; say which model it is."""
        try:
            session = self._hub.named(key)
            if session.id not in self._opened:
                self._opened[session.id] = session.view()
        except PostroomError as error:
            return {"op": "refused", "words": str(error)}
        return {"op": "ack", "view": self._opened[session.id].model_id}


_built: "dict[type[LiveView], type[LiveView]]" = {}


def _widget_class(view: "type[LiveView]") -> "type[LiveView]":
    if view not in _built:
        _built[view] = _build(view)
    return _built[view]


def _build(view: "type[LiveView]") -> "type[LiveView]":
    import anywidget
    import traitlets

    members = {
        "__module__": view.__module__,
        "__doc__": view.__doc__,
        "_esm": script(view.scripts),
        "_css": sheet(view.sheets),
        # From here to the front end only, never back: a trait changed there while a cell awaits
        # is lost, and every later change of it too.
        "snapshot": traitlets.Dict().tag(sync=True),
    }
    return type(view.__name__, (view, anywidget.AnyWidget), members)
