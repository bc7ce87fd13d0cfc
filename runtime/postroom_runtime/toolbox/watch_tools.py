"""The model's tools for watching: ``watch-session`` and ``unwatch-session`` (M-126)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.mail.router import Member
from postroom_runtime.mail.watches import Watch, Watches

TOOLBOX = "watches"


class Begin(Protocol):
    """Begins a watch of the calling session, under its permissions."""

    def __call__(
        self, session: str, events: Sequence[str] | None, tool: str | None, ttl: float
    ) -> Watch:
        """Begin it."""
        ...


async def watch_session(
    session: str,
    events: list[str] | None = None,
    tool: str | None = None,
    ttl_seconds: float = 600,
    *,
    _begin: Begin,
) -> dict[str, Any]:
    """Get told by mail what happens in another session, for a while.

    Args:
        session: Its id or name.
        events: Which of run.started, run.stopped, session.updated, tool.started, tool.completed,
            calls.deferred, session.failed, mail.accepted; default all.
        tool: A glob such as deploy_*: of tool.started and tool.completed only those of such tools.
        ttl_seconds: For how long.

    Returns:
        The id of the watch, for unwatch-session.
    """
    return {"watch": _begin(session, events, tool, ttl_seconds).id}


async def unwatch_session(watch: str, *, _watches: Watches, _watcher: Member) -> dict[str, Any]:
    """End one of your watches before its time is up.

    Args:
        watch: Its id.

    Returns:
        The watch, and how many events it forwarded and dropped.
    """
    ended = _watches.end(watch, _watcher)
    return {"watch": ended.id, "forwarded": ended.forwarded, "dropped": ended.dropped}


_WATCH = make_tool(watch_session, name="watch-session", bound={"_begin": None}, toolbox=TOOLBOX)
_UNWATCH = make_tool(
    unwatch_session,
    name="unwatch-session",
    bound={"_watches": None, "_watcher": None},
    toolbox=TOOLBOX,
)


def watch_tools(watches: Watches, watcher: Member, begin: Begin) -> list[Tool]:
    """Return the watching tools of the session ``watcher``."""
    return [
        replace(_WATCH, bound={"_begin": begin}),
        replace(_UNWATCH, bound={"_watches": watches, "_watcher": watcher}),
    ]


NAMES = ("watch-session", "unwatch-session")
"""What an agent's ``toolbox`` option may name of these."""
