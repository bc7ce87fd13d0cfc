"""The notebook's desk: the shell the extension is loaded in, and the room that is open in it."""

import atexit
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postroom.grid_text import WIDTH
from postroom.loop import Heartbeat, home_loop, quiet_context, settle
from postroom.namespace import Scripts, variable
from postroom.paths import MEMORY, choose, set_aside, shown
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.errors import ConfigError, PostroomError, StoreFailed
from postroom_runtime.office.opening import KEEP, Keep, open_room, open_rooms
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_widgets.board_link import board_of
from postroom_widgets.board_static import board_text
from postroom_widgets.board_view import BoardView
from postroom_widgets.inbox_view import InboxView
from postroom_widgets.live_view import open_views
from postroom_widgets.session_view import SessionView


class NoRoom(PostroomError):
    """There is no room open in this notebook."""


class Desk:
    """One shell and its room.

    Args:
        ip: The shell.
        environment: Where ``POSTROOM_ROOM`` and ``JPY_SESSION_NAME`` stand.
    """

    def __init__(self, ip: Any, environment: Mapping[str, str]) -> None:
        self.ip = ip
        self.quiet = quiet_context(ip)
        self.choice = choose(environment, self.folder)
        self.heart = Heartbeat(lambda: home_loop(ip), self._alive)
        self._in_cell = False
        self._room: Room | None = None

    @property
    def folder(self) -> Path:
        """The working directory: what relative paths start from."""
        return Path.cwd()

    @property
    def in_kernel(self) -> bool:
        """Whether there is a kernel, and maybe a front end with views, instead of a terminal."""
        return getattr(self.ip, "kernel", None) is not None

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's variables."""
        found: dict[str, Any] = self.ip.user_ns
        return found

    @property
    def width(self) -> int:
        """Columns of a plain table: the terminal's own; the same in every kernel."""
        return WIDTH if self.in_kernel else shutil.get_terminal_size((WIDTH, 24)).columns

    # ── The room ──

    @property
    def room(self) -> Room:
        """The notebook's room.

        Raises:
            NoRoom: It was closed, or could not be opened.
        """
        if self._room is None or self._room.closed:
            raise NoRoom(
                "no room is open in this notebook. Open one: "
                f"%postroom open {shown(self.choice.path, self.folder)}, or %postroom open {MEMORY}"
            )
        return self._room

    @property
    def room_or_none(self) -> Room | None:
        """The notebook's room, None when there is none."""
        return None if self._room is None or self._room.closed else self._room

    def open_own(self) -> Room:
        """Open the file that belongs to this notebook, unless a room is open already.

        Raises:
            RoomLocked: Another kernel holds the file. It never falls back by itself.
            StoreFailed: The file cannot be opened.
        """
        return self.room_or_none or self.open(self.choice.path)

    def open(self, path: str) -> Room:
        """Make the room at ``path`` the notebook's; the one before is closed.

        Raises:
            RoomLocked: Another kernel holds the file; the room before stays.
            StoreFailed: The file cannot be opened; the room before stays.
        """
        before = self.room_or_none
        place = path if path == MEMORY else str(self.folder / Path(path).expanduser())
        room = self.open_beside(place)
        if before is not None and before is not room:
            before.close()
        self._room = room
        return room

    def open_beside(
        self,
        path: object,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        approval_seconds: float | Keep | None = KEEP,
    ) -> Room:
        """Open a room that lives as the notebook's does, without making it the notebook's."""
        room = open_room(
            path,
            loop=home_loop(self.ip),
            context=self.quiet,
            scripts=lambda: Scripts(self.namespace),
            find_tool=self._find_tool,
            max_requests=max_requests,
            max_tokens=max_tokens,
            max_cost=max_cost,
            approval_seconds=approval_seconds,
        )
        if self.in_kernel:
            room.view_factory = SessionView
            room.board_factory = BoardView
        return room

    def fresh(self) -> str | None:
        """Put the room's file aside under a dated name and begin an empty room in its place.

        Returns:
            Where the old one is now; None if it was in memory only.

        Raises:
            StoreFailed: The file cannot be renamed; the room is open again as it was.
        """
        path = self.room.path
        if path == MEMORY:
            self.open(MEMORY)
            return None
        file = Path(path)
        aside = set_aside(file, time.strftime("%Y-%m-%d-%H%M%S"))
        self.close()
        try:
            file.rename(aside)
            log = file.with_name(f"{file.name}.wal")
            if log.exists():
                log.rename(aside.with_name(f"{aside.name}.wal"))
        except OSError as error:
            self.open(path)
            raise StoreFailed(
                f"{shown(path, self.folder)} could not be put aside",
                error.strerror or str(error),
                f"The room is open as before. Another one: %postroom open {MEMORY}",
            ) from None
        self.open(path)
        return str(aside)

    def close(self) -> None:
        """Close the room, if one is open. What was accepted stays in its file."""
        if (room := self.room_or_none) is not None:
            room.close()
        self._room = None

    def _find_tool(self, name: str) -> Tool | None:
        try:
            return make_tool(variable(name, self.namespace, "tool"))
        except ConfigError:
            return None

    # ── Around cells ──

    def before_cell(self, *_: object) -> None:
        """Keep the loop listening while a cell runs: ``pre_run_cell``."""
        self._in_cell = True
        self.heart.start()

    def after_cell(self, *_: object) -> None:
        """Bring up to date what a saved notebook will show of views: ``post_run_cell``."""
        self._in_cell = False
        self.refresh_views()

    def refresh_views(self) -> None:
        """Update the static output of open views; only a running cell can."""
        if self.in_kernel:
            for view in open_views():
                view.refresh()

    def show_view(self, session: Session) -> None:
        """Show the live view of a session, or a line about it where there is no front end."""
        if self.in_kernel:
            view = session.view()
            view.show()
        else:
            sys.stdout.write(f"{session!r}\n")

    def show_board(self) -> None:
        """Show the live view of the whole room, or its lines where there is no front end."""
        if self.in_kernel:
            view = self.room.view()
            view.show()
        else:
            sys.stdout.write(f"{board_text(board_of(self.room).catch_up())}\n")

    def show_inbox(self, agent: str = "") -> None:
        """Show the live view of one agent's inbox, or of all agents'. Only where there is a kernel."""
        InboxView(self.room, agent).show()

    def _alive(self) -> bool:
        room = self.room_or_none
        return room is not None and (self._in_cell or bool(room.sessions(hidden=True)))


# ── The one desk of this process ──

_desks: list[Desk] = []


def current() -> Desk | None:
    """Return the desk of the shell in which postroom is loaded, or None."""
    return _desks[-1] if _desks else None


def take(ip: Any, environment: Mapping[str, str]) -> Desk:
    """Return the desk of a shell, making it the current one."""
    for desk in _desks:
        if desk.ip is ip:
            return desk
    desk = Desk(ip, environment)
    _desks.append(desk)
    return desk


def leave(desk: Desk) -> None:
    """Close all that belongs to a desk, in order: its heartbeat, its room. Harmless twice."""
    if desk in _desks:
        _desks.remove(desk)
    desk.heart.stop()
    desk.close()
    if not desk.in_kernel:
        settle(home_loop(desk.ip))


@atexit.register
def _leave_all() -> None:
    """Close every room when the kernel ends: no task gets a last word then, the files must."""
    for desk in tuple(_desks):
        leave(desk)
    for room in open_rooms():
        room.close()


def room() -> Room:
    """Return the notebook's room.

    Raises:
        NoRoom: postroom is not loaded here, or its room is closed.
    """
    desk = current()
    if desk is None:
        raise NoRoom(
            "this is no notebook with a room. Run %load_ext postroom first, or open a room "
            "yourself: postroom.open(PATH)."
        )
    return desk.room


def open(
    path: object = MEMORY,
    *,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    approval_seconds: float | Keep | None = KEEP,
) -> Room:
    """Open a room: a DuckDB file, made when it is not there, or ``:memory:``.

    In a notebook with postroom loaded its sessions live as the notebook's do: what they print
    reaches no cell, their scripts and tools are found by name.

    Args:
        path: The file, or ``:memory:``.
        max_requests: Model requests of all its sessions, in the life of the file; None: no limit.
        max_tokens: Tokens, in and out, of all its sessions; None: no limit.
        max_cost: US dollars of all its sessions, at list prices; None: no limit. Models whose price
            is not known (scripts, local models) spend none. A cap is not stored: give it each time,
            or set ``room.max_requests``, ``room.max_tokens`` and ``room.max_cost``.
        approval_seconds: How long you may take to answer a call that waits for you, a day if not
            given; None for ever. Not stored either, but a question keeps the time it was asked with.

    Raises:
        RoomLocked: Another process has the file open.
        StoreFailed: The file cannot be opened, or is newer than this Postroom.
        ConfigError: ``path`` is no path, a cap is no number of its kind, or a time will not do.
    """
    desk = current()
    opened = open_room if desk is None else desk.open_beside
    return opened(
        path,
        max_requests=max_requests,
        max_tokens=max_tokens,
        max_cost=max_cost,
        approval_seconds=approval_seconds,
    )
