"""What a session's model may call: its agent's tools, and Postroom's own that it may use."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from postroom_runtime.calls.tool import Tool
from postroom_runtime.office.helping import Helping
from postroom_runtime.office.own_inbox import OwnInbox
from postroom_runtime.office.reading import Reading
from postroom_runtime.office.watch_verbs import watch_as
from postroom_runtime.toolbox.call_tools import call_tools
from postroom_runtime.toolbox.helper_tools import helper_tools
from postroom_runtime.toolbox.mail_tools import mail_tools
from postroom_runtime.toolbox.session_tools import session_tools
from postroom_runtime.toolbox.waiting import Waits, wait_tool
from postroom_runtime.toolbox.watch_tools import watch_tools

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
        self._helping = Helping(life, session, room)
        self._reading = Reading(
            session, room.router, room.storage, OwnInbox(life, room.owner_inbox).read
        )
        self._made: tuple[Mapping[str, Tool], Mapping[str, Tool], Mapping[str, Tool]] | None = None

    def tools(self, given: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """Return ``given`` (the agent's tools) and Postroom's own that the agent may use."""
        return self._put_together(given)[1]

    def hidden(self, given: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """Return the same with those that its ``toolbox`` leaves out: a hook may name them (M-122)."""
        return self._put_together(given)[2]

    def _put_together(
        self, given: Mapping[str, Tool]
    ) -> tuple[Mapping[str, Tool], Mapping[str, Tool], Mapping[str, Tool]]:
        if self._made is None or self._made[0] is not given:
            wanted = self._life.definition().toolbox
            own = {tool.name: tool for tool in self._own()}
            mine = {name: tool for name, tool in own.items() if wanted is None or name in wanted}
            self._made = given, {**given, **mine}, {**given, **own}
        return self._made

    def _own(self) -> list[Tool]:
        # A tool added here is named in ``roster.TOOLBOX_NAMES`` too.
        definition = self._life.defined()
        helpers = definition.helpers if definition else {}
        return [
            *mail_tools(self._room.router, self._session, self._life.report),
            wait_tool(self._waits),
            *call_tools(self._life.table, self._waits, lambda: self._life.executor),
            *session_tools(self._reading, self._helping if helpers else None),
            *helper_tools(helpers, self._helping),
            *watch_tools(
                self._room.watching,
                self._session,
                partial(watch_as, self._session, self._reading),
            ),
        ]
