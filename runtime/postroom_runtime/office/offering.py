"""What a session's model may call: its agent's tools, and Postroom's own that it may use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from postroom_runtime.calls.tool import Tool
from postroom_runtime.toolbox.call_tools import call_tools
from postroom_runtime.toolbox.mail_tools import mail_tools
from postroom_runtime.toolbox.waiting import Waits, wait_tool

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


class Offering:
    """The toolbox of one session, made once per definition and change of its options.

    Args:
        life: The session's life.
        session: The session.
        room: Its room.
    """

    def __init__(self, life: "Life", session: "Session", room: "Room") -> None:
        self._life, self._session, self._room = life, session, room
        self._waits = Waits(
            life.state, life.table, life.bell, lambda: life.definition().max_wait_seconds
        )
        self._offered: tuple[Mapping[str, Tool], Mapping[str, Tool]] | None = None

    def tools(self, given: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """Return ``given`` (the agent's tools) and Postroom's own that the agent may use."""
        if self._offered is not None and self._offered[0] is given:
            return self._offered[1]
        wanted = self._life.definition().toolbox
        mine = {t.name: t for t in self._own() if wanted is None or t.name in wanted}
        self._offered = given, {**given, **mine}
        return self._offered[1]

    def _own(self) -> list[Tool]:
        # A tool added here is named in ``roster.TOOLBOX_NAMES`` too.
        return [
            *mail_tools(self._room.router, self._session, self._life.report),
            wait_tool(self._waits),
            *call_tools(self._life.table, self._waits, lambda: self._life.executor),
        ]
