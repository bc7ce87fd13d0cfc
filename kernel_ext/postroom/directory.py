"""Who knows the names that Tab offers: the room, the notebook's variables, the words of the API."""

from collections.abc import Callable, Iterable
from itertools import chain

from postroom.desk import Desk
from postroom.grammar import Names
from postroom.namespace import Scripts, public_names, tool_names
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.mail.watched import WATCHABLE
from postroom_runtime.models.forms import PROVIDERS

LATEST_CALLS = 50
"""Calls of each session that are offered."""


class Directory:
    """The names of one desk.

    Args:
        desk: Whose.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def names(self, kind: Names) -> list[str]:
        """Return all names of a kind, in the order they should be offered. Never raises."""
        sources: dict[Names, Callable[[], Iterable[str]]] = {
            Names.SESSION: self._sessions,
            Names.AGENT: self._agents,
            Names.TOOL: lambda: tool_names(self._desk.namespace),
            Names.CALL: self._calls,
            Names.OPEN_CALL: self._open_calls,
            Names.APPROVAL: lambda: (waiting.id for waiting in self._desk.room.approvals()),
            Names.PERMISSION: lambda: (each.id for each in self._desk.room.permissions()),
            Names.UNREAD_MAIL: self._unread,
            Names.UNTIL: lambda: chain(self._calls(), EventKind),
            Names.EVENT: lambda: WATCHABLE,
            Names.WATCH: lambda: (watch.id for watch in self._desk.room.watches()),
            Names.MODEL: self._models,
            Names.VARIABLE: lambda: public_names(self._desk.namespace),
        }
        source = sources.get(kind)
        try:
            return [str(name) for name in source()] if source else []
        except PostroomError:
            return []

    def _sessions(self) -> list[str]:
        return [session.name for session in self._desk.room.sessions(hidden=True)]

    def _agents(self) -> list[str]:
        return [agent.slug for agent in self._desk.room.agents()]

    def _calls(self) -> list[str]:
        sessions = self._desk.room.sessions(hidden=True)
        return [call.id for session in sessions for call in session.calls()[-LATEST_CALLS:]]

    def _open_calls(self) -> list[str]:
        sessions = self._desk.room.sessions(hidden=True)
        calls = (call for session in sessions for call in session.calls())
        return [call.id for call in calls if not call.state.final]

    def _unread(self) -> list[str]:
        sessions = self._desk.room.sessions(hidden=True)
        return [mail.id for session in sessions for mail in session.mail(unread=True)]

    def _models(self) -> list[str]:
        return ["echo", *Scripts(self._desk.namespace), *(f"{name}:" for name in PROVIDERS)]
