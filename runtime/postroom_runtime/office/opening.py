"""Open rooms: one per file and process."""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Final

from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.config import check_knob
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.models.script import Script
from postroom_runtime.office.expiry import check_approval_seconds
from postroom_runtime.office.room import Room
from postroom_runtime.storage.clock import utc_now
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from postroom_runtime.storage.memory_storage import MemoryStorage

MEMORY = ":memory:"

_OPEN: dict[str, Room] = {}


class Keep(Enum):
    """Says that a setting is left as it is, where None says something else."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


def open_room(
    path: object = MEMORY,
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    context: Context | None = None,
    scripts: Callable[[], Mapping[str, Script]] = dict,
    find_tool: Callable[[str], Tool | None] = lambda name: None,
    now: Callable[[], datetime] = utc_now,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    approval_seconds: float | Keep | None = KEEP,
) -> Room:
    """Open a room; a path that this process has open already gives that room.

    Args:
        path: A DuckDB file, made when it is not there, or ``:memory:`` (each time a new one).
        loop: The loop it lives on; None: the one running at its first spawn or await.
        context: What its tasks run in.
        scripts: Looks up scripts by name.
        find_tool: Looks up tools by name.
        now: Its clock; a test may set it.
        max_requests: Model requests of all its sessions; None leaves the cap of an open room.
        max_tokens: Tokens of all its sessions; None leaves the cap of an open room.
        max_cost: US dollars of all its sessions, at list prices; None leaves the cap of an open room.
            Models whose price is not known (scripts, local models) spend none.
        approval_seconds: How long its owner may take to answer a question; None for ever, ``KEEP``
            leaves what an open room has.

    Raises:
        RoomLocked: Another process has the file open.
        StoreFailed: The file cannot be opened, or is newer than this Postroom.
        ConfigError: ``path`` is no path, a cap is no number of its kind, or a time will not do.
    """
    caps = {"max_requests": max_requests, "max_tokens": max_tokens, "max_cost": max_cost}
    for name, value in caps.items():
        check_knob(name, value)  # before anything is opened
    if approval_seconds is not KEEP:
        check_approval_seconds(approval_seconds)
    room = _opened(path, loop, context, scripts, find_tool, now)
    for name, value in caps.items():
        if value is not None:
            setattr(room, name, value)
    if approval_seconds is not KEEP:
        room.approval_seconds = approval_seconds
    return room


def _opened(
    path: object,
    loop: asyncio.AbstractEventLoop | None,
    context: Context | None,
    scripts: Callable[[], Mapping[str, Script]],
    find_tool: Callable[[str], Tool | None],
    now: Callable[[], datetime],
) -> Room:
    if not isinstance(path, (str, Path)) or not str(path):
        raise ConfigError(f"path={path!r} is no room: give a file or ':memory:'.", value=path)
    if str(path) == MEMORY:
        return Room(
            MemoryStorage(now=now),
            name="memory",
            now=now,
            loop=loop,
            context=context,
            scripts=scripts,
            find_tool=find_tool,
        )
    key = str(Path(path).expanduser().resolve())
    if (room := _OPEN.get(key)) is not None and not room.closed:
        return room
    storage = DuckDBStorage(key, now=now)
    try:
        room = Room(
            storage,
            name=Path(key).name.removesuffix(".duckdb").removesuffix(".mail"),
            now=now,
            loop=loop,
            context=context,
            scripts=scripts,
            find_tool=find_tool,
            on_close=_forget,
        )
    except BaseException:
        storage.close()
        raise
    _OPEN[key] = room
    return room


def _forget(room: Room) -> None:
    for key in [key for key, known in _OPEN.items() if known is room]:
        del _OPEN[key]


def open_rooms() -> list[Room]:
    """Return the rooms this process has open on files."""
    return list(_OPEN.values())
