"""A room: its sessions, its mail and its file; what ``pr.open`` and ``pr.room`` give."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from datetime import datetime
from typing import Any

from postroom_runtime.calls.context import CallContext
from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.ids import (
    CallId,
    SessionId,
    call_id,
    is_inbox_key,
    session_id,
    session_number,
    timer_id,
)
from postroom_runtime.contracts.results import DrainResult, WaitResult
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.mail.approvals import ApprovalDesk
from postroom_runtime.mail.delivery import Delivery
from postroom_runtime.mail.owner_inbox import OwnerInbox
from postroom_runtime.mail.router import Router
from postroom_runtime.mail.standing import StandingPermissions
from postroom_runtime.models.script import Script
from postroom_runtime.office.access import AccessVerbs
from postroom_runtime.office.approval_verbs import ApprovalVerbs
from postroom_runtime.office.closing import close_session
from postroom_runtime.office.expiry import Expiry
from postroom_runtime.office.groups import GroupVerbs
from postroom_runtime.office.home import Home
from postroom_runtime.office.housing import Housing
from postroom_runtime.office.inbox_verbs import InboxVerbs
from postroom_runtime.office.letter_verbs import LetterVerbs
from postroom_runtime.office.lineage import Lineage
from postroom_runtime.office.numbers import Signatures
from postroom_runtime.office.picture_verbs import PictureVerbs
from postroom_runtime.office.pushing import Pushing
from postroom_runtime.office.recovery import recover, stored_approvals
from postroom_runtime.office.roster import Roster
from postroom_runtime.office.session import Session
from postroom_runtime.office.session_verbs import SessionVerbs
from postroom_runtime.office.spawning import spawn
from postroom_runtime.office.spending import SpendingVerbs
from postroom_runtime.office.step_verbs import StepVerbs
from postroom_runtime.office.timer_verbs import TimerVerbs
from postroom_runtime.office.timers import Timetable
from postroom_runtime.office.wait_graph import WaitGraph
from postroom_runtime.office.waiting import Waiting
from postroom_runtime.office.watch_verbs import WatchVerbs, watches_of
from postroom_runtime.storage.protocol import Storage

MAX_SESSIONS = 1000


class Room(
    Housing,
    SessionVerbs,
    StepVerbs,
    GroupVerbs,
    InboxVerbs,
    AccessVerbs,
    ApprovalVerbs,
    PictureVerbs,
    WatchVerbs,
    TimerVerbs,
    SpendingVerbs,
    LetterVerbs,
):
    """A user's post office. Made by ``pr.open``; the notebook's own is ``pr.room()``.

    Args:
        storage: Where its journal is.
        name: What it is called: the file's stem, or ``memory``.
        now: The clock of its sessions.
        loop: The loop it belongs to; None: the one running at its first spawn or await.
        context: What its tasks run in, so that their prints reach no cell; None: the caller's.
        scripts: Looks up scripts by name, besides the built-in ones.
        find_tool: Looks up a tool by name, in the notebook's namespace say.
        on_close: Called once, when the room is closed.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        name: str,
        now: Callable[[], datetime],
        loop: asyncio.AbstractEventLoop | None = None,
        context: Context | None = None,
        scripts: Callable[[], Mapping[str, Script]] = dict,
        find_tool: Callable[[str], Tool | None] = lambda name: None,
        on_close: Callable[["Room"], None] = lambda room: None,
    ) -> None:
        self.storage, self.name, self.now = storage, name, now
        self.find_tool = find_tool
        self.view_factory: Callable[[Session], Any] | None = None
        """Makes the live view of a session, where there is a notebook."""
        self.delivery = Delivery()
        self.router = Router(storage)
        self.roster = Roster(scripts)
        self.waiting = Waiting(self)
        self.wait_graph = WaitGraph(self._called, self._runs)
        self.lineage = Lineage(self)
        self.max_sessions = MAX_SESSIONS
        """Open sessions beyond which agents spawn no more; the owner may."""
        self.owner_inbox = OwnerInbox(storage, now)
        self.approval_desk = ApprovalDesk(
            storage, now, stored_approvals(storage), lambda a: (self.owner_inbox.resolved(a),)
        )
        self.expiry = Expiry(self.approval_desk, now)
        self.pushing = Pushing(self)
        self.signatures = Signatures(storage)
        self.watching = watches_of(self)
        self.timetable = Timetable(
            self.router, self.hop, self.task, lambda: timer_id(self.signatures.next("timer"))
        )
        self.closed = False
        self._on_close = on_close
        self._home = Home(loop, context, self._moved_in, self._moved_out)
        self._sessions: dict[SessionId, Session] = {}
        self._session_numbers = 0
        self._call_numbers = 0
        self._stop_listening = storage.bells(self.delivery.hear)
        self.owner_inbox.back_fill()
        self.standing = StandingPermissions(self.owner_inbox, now)
        recover(self)
        self.expiry.sweep()
        self._next_session = itertools.count(self._session_numbers + 1)
        self._next_call = itertools.count(self._call_numbers + 1)
        for definition in self.roster.agents():
            self.owner_inbox.ensure(definition.slug)
        if loop is not None:
            self.attach()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self.sessions())} sessions"
        return f"room {self.path} ({state})"

    @property
    def path(self) -> str:
        """Its file, or ``:memory:``."""
        return str(self.storage.describe()["path"])

    # ── agents and sessions ──

    def define(self, agent: Agent) -> Agent:
        """Make ``agent`` known by its slug; its sessions use it from their next turn.

        Raises:
            ConfigError: It is no Agent, or its model, tools or toolbox will not do.
        """
        self.check_open()
        self.roster.define(agent)
        self.owner_inbox.ensure(agent.slug)
        for session in self.sessions():
            if session.agent == agent.slug:
                # One that waited for its agent may have a reason to run now.
                self.hop(self.delivery.ring, session.id)
        return agent

    def agents(self) -> list[Agent]:
        """Return the agents known, oldest first."""
        return self.roster.agents()

    def spawn(
        self,
        agent: Agent | str,
        text: str | None = None,
        *,
        name: str | None = None,
        parent: "Session | str | None" = None,
        model: Any = None,
        tools: Sequence[Any] | None = None,
        bind: Mapping[str, Any] | None = None,
        hidden: bool = False,
        again: bool = False,
    ) -> Session:
        """Start a session, or return the one of that name and agent.

        Args:
            agent: An Agent (which is defined thereby) or the slug of one. An unknown slug with a
                ``model`` makes one up.
            text: Its first message, from the owner; sent once, also when spawned again.
            name: What to call it; default the agent's slug.
            parent: The session it belongs to.
            model: Instead of the agent's.
            tools: Instead of the agent's.
            bind: Values for tool parameters that no model sees; never stored.
            hidden: Leave it out of listings.
            again: Send ``text`` although the session is there already.

        Returns:
            The session; its ``note`` says what an existing one took over.

        Raises:
            ConfigError: No such agent; a name or an option that will not do.
            NameTaken: An open session of another agent has the name.
        """
        self.check_open()
        self.attach()
        return spawn(
            self,
            agent,
            text,
            name=name,
            parent=parent,
            model=model,
            tools=tools,
            bind=bind,
            hidden=hidden,
            again=again,
        )

    # ── waiting ──

    async def wait(
        self,
        sessions: "Sequence[Session | str] | None" = None,
        until: str = "idle",
        *,
        any: bool = False,
        timeout: float | None = 300,
        strict: bool = False,
    ) -> WaitResult:
        """Wait for sessions; peeks, never consumes.

        Args:
            sessions: Names or sessions; None for all open ones.
            until: ``idle`` (no run under way or due, no call running), ``answer`` (idle after an
                answer), ``mail`` (mail it has not read), a call id, or an event kind.
            any: Until one of them; else until all.
            timeout: Seconds; None waits for ever. Time up returns, and says what still works.
            strict: Raise instead.

        Raises:
            WaitTimedOut: With ``strict``.
            ConfigError: ``until`` is nothing to wait for.
            UnknownRecipient: No such session.
        """
        self.attach()
        chosen = self.sessions() if sessions is None else list(map(self._one, sessions))
        return await self.waiting.wait(chosen, until, any=any, timeout=timeout, strict=strict)

    async def drain(self, timeout: float | None = 60) -> DrainResult:
        """Wait until every session is at rest, ``timeout`` seconds at most."""
        self.attach()
        return await self.waiting.drain(timeout)

    # ── the file ──

    def sql(self, query: str) -> Any:
        """Run one SELECT or EXPLAIN over the room's views; return a DuckDB relation over a copy.

        Raises:
            ConfigError: Not exactly one SELECT or EXPLAIN, or it is wrong.
        """
        self.check_open()
        return self.storage.sql(query)

    def describe(self) -> dict[str, object]:
        """Return what ``%postroom status`` shows: path, size, what was spent, sessions, unread, calls."""
        sessions = self.sessions(hidden=True)
        usage = self.usage
        return {
            **self.storage.describe(),
            "requests": usage.requests,
            "tokens": usage.input_tokens + usage.output_tokens,
            "cost": usage.cost,
            "sessions": len(sessions),
            "unread": sum(session.unread for session in sessions),
            "stepping": self.stepping,
            "held": self.held,
            "calls": sum(len(session.life.table.open_calls()) for session in sessions),
        }

    def close(self) -> None:
        """Close the room in order: sessions, tasks, then the file. Closing twice is harmless."""
        if self.closed:
            return
        self.closed = True
        self.watching.close()
        self.timetable.close()
        self.expiry.close()
        for session in self._sessions.values():
            session.life.end()
        self._home.leave()
        self._stop_listening()
        self.storage.close()
        self._on_close(self)

    # ── for the modules of the office ──

    def _moved_in(self, loop: asyncio.AbstractEventLoop) -> None:
        self.delivery.attach(loop, self.context)
        self.watching.attach(loop, self.context)
        self.timetable.attach(loop, self.context)
        self.expiry.attach(loop, self.context)
        for session in tuple(self._sessions.values()):
            session.life.start(loop)

    def _moved_out(self) -> None:
        for session in self._sessions.values():
            session.life.end()

    def _read_only(self, record: SessionRecord) -> Session:
        # It is not admitted, so it does not live: its mail and turns are read from the store.
        return Session(self, record, self.storage.claim(record.id, "kernel"))

    def _called(self, id: SessionId) -> str:
        return session.name if (session := self._sessions.get(id)) is not None else id

    def _runs(self, call: CallContext) -> bool:
        session = self._sessions.get(call.session)
        return session is not None and session.life.table is call.table

    def counted(self, record: SessionRecord) -> None:
        """Count a stored session and its calls, so that new ids go on from there, and its usage."""
        if record.status is SessionStatus.CLOSED:
            self._past = self._past + record.usage
        if not is_inbox_key(record.id):
            # A number whose session could not be stored is a gap, which no count knows of.
            self._session_numbers = max(self._session_numbers + 1, session_number(record.id))
            self._call_numbers += record.calls

    def new_session_id(self) -> SessionId:
        """Return the next session id of the room."""
        return session_id(next(self._next_session))

    def new_call_id(self) -> CallId:
        """Return the next call id of the room."""
        return call_id(next(self._next_call))

    def admit(self, session: Session) -> None:
        """Make ``session`` reachable, and let it live where the room does."""
        self._sessions[session.id] = session
        self.router.register(session)
        if self._home.attached and self._home.loop is not None:
            session.life.start(self._home.loop)

    def close_session(self, session: Session) -> None:
        """See :meth:`Session.close`."""
        close_session(self, session)

    def view_of(self, session: Session) -> Any:
        """Return a live view of ``session``.

        Raises:
            PostroomError: There is no notebook to show it in.
        """
        if self.view_factory is None:
            raise PostroomError(
                "live views need a notebook: open the room with %load_ext postroom."
            )
        return self.view_factory(session)

    def check_open(self) -> None:
        """Raise unless the room is open.

        Raises:
            PostroomError: It was closed; says how to open it again.
        """
        if self.closed:
            raise PostroomError(
                f"room {self.path} is closed: open it again with %postroom open {self.path}, "
                "or pr.open(…)."
            )
