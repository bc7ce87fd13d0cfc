"""One live session held together: record, mailbox, calls, model, and the task that runs it."""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from postroom_runtime.calls.executor import Executor
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.config import AgentConfig
from postroom_runtime.contracts.envelope import (
    Control,
    ControlMessage,
    Envelope,
    FromSystem,
    FromUser,
    Outgoing,
    Priority,
    Receipt,
    Resume,
    StopRun,
    WatchedEvent,
)
from postroom_runtime.contracts.errors import (
    ConfigError,
    MailRefused,
    PostroomError,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.results import Answer, RunEnd, WaitResult
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Turn, Usage
from postroom_runtime.mail.journal_events import event_of
from postroom_runtime.mail.mailbox import Mailbox
from postroom_runtime.mail.permissions import wake_kind
from postroom_runtime.mail.router import Letter
from postroom_runtime.models.model import Model
from postroom_runtime.office.closing import store_closed
from postroom_runtime.office.options import Options
from postroom_runtime.office.roster import Definition
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.stepper.loop import Run, settle, unsettled
from postroom_runtime.stepper.receive_points import renders, starts_run
from postroom_runtime.stepper.state import SessionState
from postroom_runtime.toolbox.mail_tools import mail_tools

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

log = logging.getLogger("postroom")


class Session:
    """A session of a room: what ``room.spawn`` and ``room.session`` give.

    It runs as a task on the room's loop. Every method but the ``async`` ones may be called from any
    thread.
    """

    def __init__(self, room: "Room", record: SessionRecord, epoch: int) -> None:
        self.room = room
        self.note = ""
        """What the last spawn of it has to say, for people."""
        self.state = SessionState(
            record, room.storage, epoch, room.now, lambda: room.delivery.ring(record.id)
        )
        self.bell: Bell = room.delivery.bell(record.id)
        self.mailbox = Mailbox(record.id, room.storage, self.bell)
        self.table = CallTable(record.id, room.storage, epoch, room.now)
        self.options = Options(record.options)
        self.ends: deque[RunEnd] = deque(maxlen=256)
        self.new = False
        """Whether the last spawn of it made it."""
        self.closing = False
        self._executor: Executor | None = None
        self._task: asyncio.Task[None] | None = None
        self._running = False
        self._loaded = False
        self._trouble: tuple[int, str] | None = None
        self._made: tuple[Definition, int, Model, Mapping[str, Tool]] | None = None

    def __repr__(self) -> str:
        note = f" — {self.note}" if self.note else ""
        return f"{self.name} ({self.id}, agent {self.agent}, {self.status_words()}){note}"

    # ── what it is ──

    @property
    def record(self) -> SessionRecord:
        """The session as stored last."""
        return self.state.record

    @property
    def id(self) -> SessionId:
        """Its id, unique in the room."""
        return self.record.id

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def agent(self) -> str:
        """The slug of its agent."""
        return self.record.agent

    @property
    def parent(self) -> SessionId | None:
        """The id of the session that spawned it, or None."""
        return self.record.parent

    @property
    def status(self) -> SessionStatus:
        """What it is doing."""
        if self._trouble is not None:
            return SessionStatus.FAILED
        if self.closing:
            return SessionStatus.CLOSED
        return SessionStatus.RUNNING if self._running else self.record.status

    @property
    def end_reason(self) -> EndReason | None:
        """How its last run ended."""
        return self.record.end_reason

    @property
    def error(self) -> str:
        """Why it failed, in words; '' when it did not."""
        return self._trouble[1] if self._trouble else self.record.error

    @property
    def cursor(self) -> int:
        """``seq`` of the last mail it has read."""
        return self.record.cursor

    @property
    def usage(self) -> Usage:
        """What it has cost so far."""
        return self.record.usage

    @property
    def unread(self) -> int:
        """How many mails wait that its model would read."""
        return len(self.mail(unread=True))

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is about to be: it takes no more mail."""
        return self.closing or self.record.status is SessionStatus.CLOSED

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._running

    @property
    def model_name(self) -> str:
        """What its model is called; '' while its agent is not defined here."""
        made = self._made_now()
        return made[2].name if made else str(self.options.model or "")

    def status_words(self) -> str:
        """Return its status as a receipt tells it, with what it needs to run."""
        if not self.closed and self._definition() is None:
            return f"{self.record.status} (needs agent {self.agent})"
        return str(self.status)

    # ── mail ──

    def send(
        self,
        text: str,
        *,
        interrupt: bool = False,
        reply_to: str | None = None,
        expects_reply: bool = False,
        id: str | None = None,
    ) -> Receipt:
        """Send it mail as the owner, from any thread; may block for the commit (milliseconds).

        Args:
            text: What to say.
            interrupt: Break off what it waits for.
            reply_to: The id of the mail this answers.
            expects_reply: A hint to the reader.
            id: An idempotency key: sending it again returns the first receipt.

        Raises:
            MailRefused: Closed, or its mailbox is full; nothing is stored.
            ConfigError: No text, or an id that cannot be one.
        """
        return self.room.send(
            self.id,
            text,
            interrupt=interrupt,
            reply_to=reply_to,
            expects_reply=expects_reply,
            id=id,
        )

    async def asend(
        self,
        text: str,
        *,
        interrupt: bool = False,
        reply_to: str | None = None,
        expects_reply: bool = False,
        id: str | None = None,
    ) -> Receipt:
        """Do what :meth:`send` does without blocking: for code on the loop."""
        letter = Letter(
            text=text,
            interrupt=interrupt,
            in_reply_to=reply_to,
            expects_reply=expects_reply,
            id=id,
        )
        self.room.attach()
        return await self.room.router.post(self.id, letter)

    async def ask(
        self, text: str, *, timeout: float | None = 300, interrupt: bool = False
    ) -> Answer:
        """Send, then return the final text of the run that reads it.

        Args:
            text: What to ask.
            timeout: Seconds; None waits for ever.
            interrupt: As in :meth:`send`.

        Raises:
            AnswerFailed: The run ended without an answer, cannot start here, or time was up.
            MailRefused: As in :meth:`send`.
        """
        return await self.room.waiting.ask(self, text, timeout=timeout, interrupt=interrupt)

    async def wait(
        self, until: str = "idle", *, timeout: float | None = 300, strict: bool = False
    ) -> WaitResult:
        """Wait for this session; see :meth:`Room.wait`."""
        return await self.room.wait([self], until, timeout=timeout, strict=strict)

    def mail(self, *, unread: bool = False) -> list[Envelope]:
        """Return all its mail, oldest first; with ``unread`` what its model has yet to read."""
        if unread:
            self._load()
            return [e for e in self.state.unread() if renders(e, self.state.placeholders)]
        return self.mailbox.unread(0)

    def transcript(self) -> list[Turn]:
        """Return its turns, oldest first."""
        self._load()
        return list(self.state.turns)

    def calls(self) -> list[Call]:
        """Return its tool calls, oldest first."""
        self._load()
        return self.table.all()

    def history(self, since: int = 0) -> list[Event]:
        """Return its stored events with ``seq > since``, in commit order."""
        rows = self.room.storage.rows(self.id, after=since)
        return [event for row in rows if (event := event_of(row)) is not None]

    async def events(self, since: int | None = None) -> AsyncIterator[Event]:
        """Yield stored events after ``since`` (None: all), then live ones: no gap, no repeat."""
        self.room.attach()
        start = since or 0
        broadcast = self.room.delivery.broadcast
        async for event in broadcast.stream(lambda: self.history(start), self.id, start):
            yield event

    def view(self) -> Any:
        """Return a live view of it, for a notebook."""
        return self.room.view_of(self)

    # ── control, by mail ──

    def stop(self) -> Receipt:
        """End its run now, its calls and its completion too; no effect when nothing runs (M-85)."""
        return self._order(StopRun())

    def resume(self) -> Receipt:
        """Make it runnable here: un-pause it, ask again after a failure, run a stored one."""
        return self._order(Resume())

    def _order(self, message: ControlMessage) -> Receipt:
        outgoing = Outgoing(
            session=self.id,
            sender=FromUser(),
            body=Control(message),
            priority=Priority.INTERRUPT,
        )
        self.room.attach()
        return self.room.router.deliver(outgoing).result()

    def close(self) -> None:
        """Close it: its run ends, its name is free again, and it takes no more mail."""
        self.room.close_session(self)

    # ── what its run needs (stepper.Host) ──

    @property
    def executor(self) -> Executor:
        """What runs its calls."""
        limit = self.definition().max_concurrency
        if self._executor is None or self._executor.max_concurrency != limit:
            self._executor = Executor(self.id, self.table, limit, self.room.context, self.bell.ring)
        return self._executor

    def _definition(self) -> Definition | None:
        return self.room.roster.get(self.agent)

    def _made_now(self) -> tuple[Definition, int, Model, Mapping[str, Tool]] | None:
        definition = self._definition()
        if definition is None:
            return None
        made = self._made
        if made is None or made[0] is not definition or made[1] != self.options.version:
            model, tools = self.options.apply(definition, self.room)
            made = self._made = (definition, self.options.version, model, tools)
        return made

    def definition(self) -> AgentConfig:
        """Its agent as defined now."""
        definition = self._definition()
        if definition is None:
            raise ConfigError(f"agent {self.agent} is not defined in this kernel.")
        return definition.agent

    def model(self) -> Model:
        """Its model as defined now."""
        if (made := self._made_now()) is None:
            raise ConfigError(f"agent {self.agent} is not defined in this kernel.")
        return made[2]

    def tools(self) -> Mapping[str, Tool]:
        """What its model may call: its agent's tools, and Postroom's own that it may use."""
        if (made := self._made_now()) is None:
            return {}
        wanted = made[0].agent.toolbox
        own = mail_tools(self.room.router, self, self.report)
        return {
            **made[3],
            **{tool.name: tool for tool in own if wanted is None or tool.name in wanted},
        }

    def new_call_id(self) -> CallId:
        """The room's next call id."""
        return self.room.new_call_id()

    def kind_of(self, other: SessionId) -> str:
        """Return the word of ``wake_on`` for ``other``."""
        return wake_kind(self.room.router.relation(self.id, other))

    def live(self, kind: EventKind, **data: Any) -> None:
        """Tell the listeners something that is never stored."""
        delivery = self.room.delivery
        if delivery.broadcast.heard:
            delivery.live(
                Event(kind=kind, seq=delivery.last, session=self.id, at=self.room.now(), data=data)
            )

    def report(self, type: str, content: str, **metadata: Any) -> None:
        """Write an entry in the owner inbox of its agent."""
        facts = {"session": self.id, "session_name": self.name, **metadata}
        self.room.owner_inbox.write(self.agent, content, type=type, metadata=facts)

    def failed_to_parent(self, error: str) -> None:
        """Tell its parent, by mail, that it failed."""
        if self.parent is None:
            return
        parent = self.room.router.lookup(self.parent)
        if parent is None or parent.closed:
            return
        body = WatchedEvent(self.id, EventKind.SESSION_FAILED, {"name": self.name, "error": error})
        outgoing = Outgoing(
            session=parent.id,
            sender=FromSystem(f"session:{self.name}"),
            body=body,
            hops=self.hops,
        )
        posted = self.room.router.deliver(outgoing)

        async def send() -> None:
            try:
                await posted
            except MailRefused as refusal:
                self.report(
                    "refused", f"{parent.name} was not told that {self.name} failed: {refusal}"
                )

        self.room.task(send(), f"{self.name}:tell-parent")

    # ── what the router needs (mail.Member) ──

    @property
    def mail_scope(self) -> str:
        """Whom it may write to first."""
        definition = self._definition()
        return definition.agent.mail_scope if definition else "own"

    @property
    def interrupt_scope(self) -> str:
        """Whom it may interrupt."""
        definition = self._definition()
        return definition.agent.interrupt_scope if definition else "own"

    @property
    def max_mail_hops(self) -> int:
        """The most hops a letter of its may have."""
        definition = self._definition()
        return definition.agent.max_mail_hops if definition else 16

    @property
    def hops(self) -> int:
        """What its next letter carries."""
        return self.record.hops

    def has_read(self, other: SessionId) -> bool:
        """Whether it has read mail of ``other``: it may reply."""
        return other in self.record.read_from

    # ── its task ──

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Live on ``loop``: run whenever mail gives a reason to."""
        if self._task is None and not self.closed:
            context = self.room.context.copy() if self.room.context is not None else None
            self._task = loop.create_task(
                self._live(), name=f"postroom:{self.name}", context=context
            )
            self._task.add_done_callback(self._died)

    def end_task(self) -> None:
        """Stop living, without a word stored. Call on the loop, or when it will not run again."""
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._task.cancel()
            self._task = None

    def _died(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("session %s died", self.name, exc_info=error)
            self._trouble = (0, f"{type(error).__name__}: {error}")
            self.bell.ring()

    async def _live(self) -> None:
        while not self.closing:
            work = await wait_until(self._due, self.bell)
            before = self.record
            try:
                if work == "run":
                    self._running = True
                    await Run(self).run()
                else:
                    await settle(self)
            except PostroomError as error:
                # The end of the run could not be stored: all that is stored still holds, and new
                # mail tries again.
                seq = self.state.unread()[-1].seq if self.state.unread() else self.cursor
                self._trouble = (seq, str(error))
                log.error("session %s could not store its end: %s", self.name, error)
            finally:
                if self._running:
                    self._running = False
                    self.ends.append(
                        RunEnd(
                            before.cursor,
                            self.cursor,
                            self.end_reason,
                            before.turns + 1,
                            self.record.turns,
                        )
                    )
                    self.room.delivery.ring(self.id)
        if self.record.status is not SessionStatus.CLOSED:
            store_closed(self)

    def _due(self) -> str | None:
        if self.closed or self._definition() is None:
            return None
        unread = self.state.unread()
        if not unread:
            return None
        if self._trouble is not None:
            if unread[-1].seq <= self._trouble[0]:
                return None
            self._trouble = None
        self._load()
        if unsettled(self):
            return "settle"
        return "run" if self.runnable() else None

    def runnable(self) -> bool:
        """Whether mail gives it a reason to run here."""
        definition = self._definition()
        if self.closed or definition is None or self._trouble is not None:
            return False
        unread = self.state.unread()
        if not unread:
            return False
        self._load()
        return starts_run(
            self.record,
            unread,
            self.state.placeholders,
            frozenset(definition.agent.wake_on),
            self.kind_of,
        )

    @property
    def idle(self) -> bool:
        """Whether no run is under way, none is due, and no call runs."""
        return not self._running and not self.table.open_calls() and not self.runnable()

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        rows = self.room.storage.rows(self.id, kinds=(RowKind.TURN, RowKind.CALL))
        self.state.load([row.record for row in rows if isinstance(row.record, Turn)])
        self.table.load([row.record for row in rows if isinstance(row.record, Call)])
