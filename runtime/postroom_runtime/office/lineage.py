"""Children that tool calls make: each with a fresh name and its first letter, stored as one."""

import asyncio
import itertools
from functools import partial
from typing import TYPE_CHECKING

from postroom_runtime.contracts.envelope import AgentMessage, FromSession, Outgoing
from postroom_runtime.contracts.errors import ConfigError, TooManyHops, TooManySessions
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.office.newborn import Newborn
from postroom_runtime.office.options import Options
from postroom_runtime.office.session import Session
from postroom_runtime.toolbox.helper_tools import Aide

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

_SUFFIX = 8
"""Room left at the end of a name for ``-2``, ``-3`` …"""


class Lineage:
    """Makes the children that calls ask for, and knows which call has made one. Loop-bound.

    Args:
        room: The room.
    """

    def __init__(self, room: "Room") -> None:
        self._room = room
        self._names: set[str] | None = None
        self._making = 0
        self._by_call: dict[CallId, asyncio.Task[Session]] = {}

    async def spawn(self, parent: Session, helper: Aide, text: str, call: CallId) -> Session:
        """Start a child that outlives the call; a call tried again gets the child it has (M-100).

        Raises:
            PostroomError: As in :meth:`ask`; nothing is stored then.
        """
        if (making := self._by_call.get(call)) is None:
            making = self._task(self._child(parent, helper, text, call, ends_with_call=False))
            self._by_call[call] = making
            making.add_done_callback(partial(self._made, call))
        return await asyncio.shield(making)

    async def ask(self, parent: Session, helper: Aide, text: str, call: CallId) -> Session:
        """Start a child that is closed with the call. Whoever asked for it closes it.

        Raises:
            ConfigError: No such agent, nothing to say, or a narrowing that does not fit.
            TooManyHops, TooManySessions, StoreFailed: Nothing is stored.
        """
        making = self._task(self._child(parent, helper, text, call, ends_with_call=True))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(self._unwanted)
            raise

    def _task(self, work: "asyncio._CoroutineLike[Session]") -> asyncio.Task[Session]:
        # A task of its own: a call that is cancelled must not leave a child stored and unknown.
        return asyncio.get_running_loop().create_task(work)

    def _made(self, call: CallId, task: asyncio.Task[Session]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._by_call.pop(call, None)  # tried again, it may work

    def _unwanted(self, task: asyncio.Task[Session]) -> None:
        if not task.cancelled() and task.exception() is None and not self._room.closed:
            self._room.close_session(task.result())

    async def _child(
        self, parent: Session, helper: Aide, text: str, call: CallId, *, ends_with_call: bool
    ) -> Session:
        room = self._room
        definition = room.roster.named(helper.slug)
        if not text.strip():
            raise ConfigError("the message is empty: say what the helper should do.", value=text)
        # Before anything is counted out: a refused child leaves no gap in the ids.
        if parent.hops > parent.max_mail_hops:
            raise TooManyHops(parent.hops, parent.max_mail_hops)
        if (count := len(room.sessions(hidden=True)) + self._making) >= room.max_sessions:
            raise TooManySessions(count, room.max_sessions)
        options = Options({})
        options.update(tools=helper.terms.tools, bind=helper.terms.bind)
        options.apply(definition, room)
        newborn = Newborn(
            room,
            definition.agent,
            self._fresh_name(helper.slug),
            parent,
            options,
            for_call=call,
            ends_with_call=ends_with_call,
        )
        first = Outgoing(
            session=newborn.record.id,
            sender=FromSession(parent.id, parent.agent),
            body=AgentMessage(text),
            hops=parent.hops,
            max_hops=parent.max_mail_hops,
        )
        self._making += 1
        try:
            await newborn.store(first)
        finally:
            self._making -= 1
        child = newborn.session()
        child.life.steering.inherit(
            parent.life.steering, helper.terms, label=f"subagent-{helper.slug}"
        )
        room.admit(child)
        if parent.closed:
            # Closed while its child was being stored: what is closed with it was not there yet.
            room.close_session(child)
        return child

    def _fresh_name(self, slug: str) -> str:
        """Return a name that no session of the room ever had: ``slug``, else ``slug-2`` and so on.

        So a letter to a child that is gone reaches nobody, and never the next one.
        """
        if self._names is None:
            self._names = {record.name for record in self._room.people().values()}
        names = itertools.chain([slug], (f"{slug[: 64 - _SUFFIX]}-{n}" for n in itertools.count(2)))
        router = self._room.router
        name = next(n for n in names if n not in self._names and router.named(n) is None)
        self._names.add(name)
        return name
