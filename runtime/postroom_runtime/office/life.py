"""The life of a session: the task that runs it, and what its runs need of the room."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from postroom_runtime.calls.context import outside_calls
from postroom_runtime.calls.executor import Executor
from postroom_runtime.calls.strays import Strays
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.config import AgentConfig
from postroom_runtime.contracts.envelope import (
    Envelope,
    Release,
)
from postroom_runtime.contracts.errors import ConfigError, PostroomError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.mail.approvals import release_of
from postroom_runtime.mail.permissions import wake_kind
from postroom_runtime.models.model import Model
from postroom_runtime.office.call_desk import CallDesk
from postroom_runtime.office.closing import store_closed
from postroom_runtime.office.notices import tell_poisoned
from postroom_runtime.office.offering import Offering
from postroom_runtime.office.options import Options
from postroom_runtime.office.parents import tell_parent
from postroom_runtime.office.questions import Questions
from postroom_runtime.office.roster import Definition
from postroom_runtime.office.steering import Steering
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.stepper.loop import Run
from postroom_runtime.stepper.receive_points import cancels, released, starts_run
from postroom_runtime.stepper.resting import settle, unsettled
from postroom_runtime.stepper.spending import Cap
from postroom_runtime.stepper.state import SessionState
from postroom_runtime.stepper.structured import Request, StructuredRun

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session

log = logging.getLogger("postroom")

ANSWERED = (ApprovalState.APPROVED, ApprovalState.DENIED, ApprovalState.EXPIRED)


class Life:
    """What ``stepper.Host`` asks for, and the one task of a session. Loop-bound.

    Args:
        session: Whose life.
        room: Its room.
        record: As stored.
        epoch: Under which claim it is held.
    """

    def __init__(self, session: "Session", room: "Room", record: SessionRecord, epoch: int) -> None:
        self._room = room
        self.bell: Bell = room.delivery.bell(record.id)
        changed = partial(room.delivery.ring, record.id)
        self._changed = changed
        self.state = SessionState(record, room.storage, epoch, room.now, changed)
        if room.stepping:
            self.state.gate = record.cursor
        self.table = CallTable(record.id, room.storage, epoch, room.now, changed)
        self._strays = Strays(changed)
        self.options = Options(record.options)
        self.questions = Questions()
        self.requests: list[Request] = []
        """Structured turns that wait for it to be at rest, oldest first."""
        self.running = False
        self.began = 0
        """Index of the first turn of the run under way."""
        self.closing = False
        # What an earlier kernel left unread: its calls are orphans, and an answered approval waits
        # for the first run here (M-91).
        self._ordered = self._released = max(
            [record.cursor, *(e.seq for e in self.state.arrived())]
        )
        """Up to where orders had their effect: to cancel, and answers to approvals at rest."""
        self.desk = CallDesk(self, room)
        self.steering = Steering(self, room)
        self._offering = Offering(self, session, room)
        self._trouble: tuple[int, str] | None = None
        self._executor: Executor | None = None
        self._task: asyncio.Task[None] | None = None
        self._loaded = False
        self._loading = threading.Lock()
        self._made: tuple[Definition, int, Model, Mapping[str, Tool]] | None = None

    # ── its agent ──

    def defined(self) -> Definition | None:
        """Its agent as defined in this kernel, or None."""
        return self._room.roster.get(self.state.record.agent)

    def made(self) -> tuple[Model, Mapping[str, Tool]] | None:
        """Its model and tools, made once per definition and change of its options.

        Raises:
            ConfigError: What was given at spawn is not there in this kernel.
        """
        definition = self.defined()
        if definition is None:
            return None
        made = self._made
        if made is None or made[0] is not definition or made[1] != self.options.version:
            model, tools = self.options.apply(definition, self._room)
            made = self._made = (definition, self.options.version, model, tools)
        return made[2], made[3]

    def _needed(self) -> tuple[Definition, Model, Mapping[str, Tool]]:
        definition, made = self.defined(), self.made()
        if definition is None or made is None:
            raise ConfigError(self._needs_agent())
        return definition, *made

    def _needs_agent(self) -> str:
        return f"agent {self.state.record.agent} is not defined in this kernel: run its cell."

    def definition(self) -> AgentConfig:
        """Its agent's knobs as defined now."""
        if (definition := self.defined()) is None:
            raise ConfigError(self._needs_agent())
        return definition.agent

    def model(self) -> Model:
        """Its model as defined now."""
        return self._needed()[1]

    def tools(self) -> Mapping[str, Tool]:
        """What its model may call: its agent's tools, and Postroom's own that it may use."""
        return self._offering.tools(self._needed()[2])

    def hook_tools(self) -> Mapping[str, Tool]:
        """What its hooks may name: those that its model does not see too."""
        return self._offering.hidden(self._needed()[2])

    @property
    def executor(self) -> Executor:
        """What runs its calls."""
        limit = self.definition().max_concurrency
        executor = self._executor
        if executor is None or (executor.max_concurrency != limit and not executor.busy):
            executor = self._executor = Executor(
                self.state.id,
                self.table,
                limit,
                self.desk,
                self._room.context,
                self._changed,
                self._strays,
            )
        return executor

    def lingering(self) -> list[Call]:
        """Return its calls that were cancelled or timed out and still go on (M-73)."""
        return self._executor.lingering() if self._executor is not None else []

    def take_orders(self) -> None:
        """Cancel calls at once, wherever the run is (M-84); at rest let answered ones go on too."""
        for envelope in self._orders():
            self._ordered = max(self._ordered, envelope.seq)
            for id in cancels(envelope):
                self._room.task(self._cancel(id), f"cancel:{id}")
            if (release := released(envelope)) is not None:
                self._released = envelope.seq
                self.release(release)

    def _orders(self) -> list[Envelope]:
        """Return the unread orders that had no effect yet and need no receive point."""
        return [
            envelope
            for envelope in self.state.unread()
            if (envelope.seq > self._ordered and cancels(envelope))
            or (envelope.seq > self._released and not self.running and released(envelope))
        ]

    async def _cancel(self, id: CallId) -> None:
        await self.executor.cancel(id)

    def release(self, release: Release) -> None:
        """Let the call of an answered approval go on, or end it when it was denied."""
        if (call := self.table.by_token(release.token)) is not None:
            self.executor.release(
                call.id, self.tools(), release.decision, release.arguments, release.reason
            )

    def release_answered(self) -> None:
        """Do the same for answers that the kernel's end kept from having their effect."""
        for call in self.table.deferred():
            approval = self._room.approval_desk.by_token(call.token)
            if approval is not None and approval.state in ANSWERED:
                self.release(release_of(approval))

    # ── its room ──

    def new_call_id(self) -> CallId:
        """The room's next call id."""
        return self._room.new_call_id()

    def kind_of(self, other: SessionId) -> str:
        """Return the word of ``wake_on`` for ``other``."""
        return wake_kind(self._room.router.relation(self.state.id, other))

    def open_inbox(self) -> None:
        """Open what steers its run from outside."""
        self.steering.begin()

    async def pump(self) -> None:
        """Take in, as mail, what has come from there."""
        await self.steering.pump()

    def live(self, kind: EventKind, **data: Any) -> None:
        """Tell the listeners something that is never stored."""
        delivery = self._room.delivery
        if delivery.broadcast.heard:
            at = self._room.now()
            delivery.live(
                Event(kind=kind, seq=delivery.last, session=self.state.id, at=at, data=data)
            )

    def spending(self) -> Cap | None:
        """The spending cap that it, or its room, has reached; None while it may ask its model."""
        return self._room.spending_cap(self)

    def report(self, type: str, content: str, *, id: str | None = None, **metadata: Any) -> None:
        """Write an entry in the owner inbox of its agent; an ``id`` writes it once."""
        record = self.state.record
        facts = {"session": record.id, "session_name": record.name, **metadata}
        self._room.owner_inbox.write(record.agent, content, type=type, metadata=facts, id=id)

    def failed_to_parent(self, error: str) -> None:
        """Tell its parent, by mail, that it failed."""
        record = self.state.record
        if record.ends_with_call:
            return  # the call tells of it (M-104)
        tell_parent(self._room, record, error, self.report)

    # ── its task ──

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Live on ``loop``: run whenever mail gives a reason to."""
        if self._task is None and not self.closed:
            given = self._room.context
            context = given.copy() if given is not None else outside_calls()
            name = f"postroom:{self.state.record.name}"
            self._task = loop.create_task(self._live(), name=name, context=context)
            self._task.add_done_callback(self._died)

    def end(self) -> None:
        """Stop living, without a word stored. Call on the loop, or when it will not run again."""
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._task.cancel()
                if self._executor is not None:
                    self._executor.abandon()
            self._task = None

    def _died(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("session %s died", self.state.record.name, exc_info=error)
            self._trouble = (0, f"{type(error).__name__}: {error}")
            self._room.delivery.ring(self.state.id)

    async def _live(self) -> None:
        while not self.closing:
            work = await wait_until(self._due, self.bell)
            before, structured = self.state.record, None
            self.began = before.turns + 1
            try:
                if work == "run":
                    self.running = True
                    self.release_answered()
                    await Run(self).run()
                elif work == "structured":
                    self.running, structured = True, self.requests.pop(0)
                    await StructuredRun(self, structured).run()
                else:
                    await settle(self)
            except PostroomError as error:
                # The end could not be stored: what is stored still holds, and new mail tries again.
                unread = self.state.unread()
                self._trouble = (unread[-1].seq if unread else before.cursor, str(error))
                log.error("session %s could not go on: %s", before.name, error)
            finally:
                if self.running:
                    self.running = False
                    self.steering.end()
                    tell_poisoned(self, before)
                    if structured is None or not structured.answered:
                        self.questions.run_ended(before, self.state.record)
                self._room.delivery.ring(self.state.id)
        if self.state.record.status is not SessionStatus.CLOSED:
            store_closed(self)

    def _due(self) -> str | None:
        if self.closed or self.defined() is None:
            return None
        unread = self.state.unread()
        if not unread:
            return "structured" if self.asked else None
        if self._trouble is not None:
            if unread[-1].seq <= self._trouble[0]:
                return None
            self._trouble = None
        self.load()
        if unsettled(self) or self._orders():
            return "settle"
        if self.runnable():
            return "run"
        return "structured" if self.asked else None

    @property
    def asked(self) -> bool:
        """Whether a structured turn is due: not while it is paused (M-82)."""
        if not self.requests or self.closed or self.defined() is None or self._trouble is not None:
            return False
        self.load()
        return self.state.record.status is not SessionStatus.PAUSED

    @property
    def under_way(self) -> bool:
        """Whether a run is under way or due."""
        return self.running or self.runnable() or self.asked

    def runnable(self) -> bool:
        """Whether mail gives it a reason to run here."""
        definition = self.defined()
        if self.closed or definition is None or self._trouble is not None:
            return False
        unread = self.state.unread()
        if not unread:
            return False
        self.load()
        wake_on = frozenset(definition.agent.wake_on)
        return starts_run(
            self.state.record,
            unread,
            self.state.placeholders,
            wake_on,
            self.kind_of,
            definition.agent.resume_on_any_mail,
        )

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is about to be."""
        return self.closing or self.state.record.status is SessionStatus.CLOSED

    @property
    def idle(self) -> bool:
        """Whether no run is under way, none is due, and no call runs or is about to."""
        if self.under_way or self.table.open_calls():
            return False
        if self._executor is not None and self._executor.busy:
            return False
        if self._room.watching.owes(self.state.id):
            return False
        if self.closed or self.defined() is None or self._trouble is not None:
            return True
        # An answered approval is about to let its call run, or a pause to be taken in.
        return not self._orders() and not unsettled(self)

    @property
    def trouble(self) -> str:
        """Why it cannot even store how it ended; '' when it can."""
        return self._trouble[1] if self._trouble else ""

    def load(self) -> None:
        """Read the transcript and the calls from the store, once; whoever comes meanwhile waits."""
        if self._loaded:
            return
        with self._loading:
            if self._loaded:
                return
            rows = self._room.storage.rows(self.state.id, kinds=(RowKind.TURN, RowKind.CALL))
            self.state.load([row.record for row in rows if isinstance(row.record, Turn)])
            self.table.load([row.record for row in rows if isinstance(row.record, Call)])
            self._loaded = True
