"""The model's tools about other sessions: spawn, list, search and read them (M-88, M-92, M-100)."""

from dataclasses import replace
from typing import Any, Protocol

from postroom_runtime.calls.tool import Tool, make_tool

TOOLBOX = "sessions"


class Spawner(Protocol):
    """Makes children of the calling session."""

    async def spawn(self, agent: str, message: str) -> dict[str, Any]:
        """Start a child of one of its helpers; return its id and name."""
        ...


class Reader(Protocol):
    """Looks at other sessions with the eyes of the calling one."""

    def listed(self) -> list[dict[str, Any]]:
        """Return the open sessions it sees."""
        ...

    async def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return where ``query`` is found."""
        ...

    def read(self, key: str, last: int) -> dict[str, Any]:
        """Return the last turns and the unread mail of a session."""
        ...


async def spawn_session(agent: str, message: str, *, _spawner: Spawner) -> dict[str, Any]:
    """Start a session of its own for one of your helpers, and go on; it is your child.

    It outlives this call and answers, if at all, by mail. Write to it with send-message.

    Args:
        agent: Which helper.
        message: What it should do: its first mail.

    Returns:
        Its id and its name.
    """
    return await _spawner.spawn(agent, message)


async def list_sessions(*, _reader: Reader) -> list[dict[str, Any]]:
    """List the open sessions that you may write to: who they are, and what they are to you."""
    return _reader.listed()


async def search_sessions(query: str, limit: int = 20, *, _reader: Reader) -> list[dict[str, Any]]:
    """Search the names and agents of sessions, and the mail and words of those you may read.

    Args:
        query: What to look for, case aside.
        limit: How many finds at most.

    Returns:
        Where it was found: the session, and an excerpt of the text.
    """
    return await _reader.search(query, limit)


async def session_read(session: str, last: int = 20, *, _reader: Reader) -> dict[str, Any]:
    """Read the last turns and the unread mail of a session; a closed one by its id too.

    Args:
        session: The session's id or name.
        last: How many turns.

    Returns:
        What it is, its turns and its unread mail.
    """
    return _reader.read(session, last)


_SPAWN = make_tool(spawn_session, name="spawn-session", bound={"_spawner": None}, toolbox=TOOLBOX)
_LIST = make_tool(list_sessions, name="list-sessions", bound={"_reader": None}, toolbox=TOOLBOX)
_SEARCH = make_tool(
    search_sessions, name="search-sessions", bound={"_reader": None}, toolbox=TOOLBOX
)
_READ = make_tool(session_read, name="session-read", bound={"_reader": None}, toolbox=TOOLBOX)


def session_tools(reader: Reader, spawner: Spawner | None) -> list[Tool]:
    """Return the session tools of a session; without a ``spawner`` it starts none."""
    return [
        *([] if spawner is None else [replace(_SPAWN, bound={"_spawner": spawner})]),
        *(replace(tool, bound={"_reader": reader}) for tool in (_LIST, _SEARCH, _READ)),
    ]


NAMES = ("spawn-session", "list-sessions", "search-sessions", "session-read")
"""What an agent's ``toolbox`` option may name of these."""
