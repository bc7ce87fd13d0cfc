"""One session as people use it: what it is, its mail, its answers, and the orders it takes."""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import (
    CancelCalls,
    Control,
    ControlMessage,
    Envelope,
    FromUser,
    Outgoing,
    Pause,
    Priority,
    Receipt,
    Resume,
    StopRun,
)
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.results import WaitResult
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Turn, Usage
from postroom_runtime.mail.journal_events import event_of
from postroom_runtime.mail.mailbox import Mailbox
from postroom_runtime.office.life import Life
from postroom_runtime.office.run_verbs import RunVerbs
from postroom_runtime.stepper.reasons import why_it_waits
from postroom_runtime.stepper.receive_points import renders, starts_run
from postroom_runtime.stepper.withdrawal import without_withdrawn

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room


class Session(RunVerbs):
    """A session of a room: what ``room.spawn`` and ``room.session`` give.

    It runs as a task on the room's loop. Every method but the ``async`` ones may be called from any
    thread.
    """

    def __init__(self, room: "Room", record: SessionRecord, epoch: int) -> None:
        self.room = room
        self.note = ""
        """What the last spawn of it has to say, for people."""
        self.new = False
        """Whether the last spawn of it made it."""
        self.life = Life(self, room, record, epoch)
        self._quiet: tuple[object, object, int] = None, None, 0
        """As which record and definition no mail up to where starts a run."""
        self.mailbox = Mailbox(record.id, room.storage, self.life.bell, self._shown)
        """Its queue; also a ``pr.Inbox``, which steers agents of other frameworks (A-2)."""

    def __repr__(self) -> str:
        note = f" — {self.note}" if self.note else ""
        return f"{self.name} ({self.id}, agent {self.agent}, {self.status_words()}){note}"

    def _shown(self, unread: Sequence[Envelope]) -> list[Envelope]:
        placeholders = self.life.state.placeholders
        return [e for e in without_withdrawn(unread) if renders(e, placeholders)]

    def _me(self) -> "Session":
        return self

    # ── what it is ──

    @property
    def record(self) -> SessionRecord:
        """The session as stored last."""
        return self.life.state.record

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
        if self.life.trouble:
            return SessionStatus.FAILED
        if self.life.closing:
            return SessionStatus.CLOSED
        if self.life.running and self.record.status is not SessionStatus.WAITING:
            return SessionStatus.RUNNING
        return self.record.status

    @property
    def end_reason(self) -> EndReason | None:
        """How its last run ended."""
        return self.record.end_reason

    @property
    def error(self) -> str:
        """Why it failed, in words; '' when it did not."""
        return self.life.trouble or self.record.error

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
        return self.life.closed

    @property
    def needs(self) -> str:
        """The agent that has to be defined in this kernel before it can run; '' when it is."""
        return "" if self.closed or self.life.defined() is not None else self.agent

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self.life.running

    @property
    def idle(self) -> bool:
        """Whether no run is under way, none is due, and no call runs."""
        return self.life.idle

    @property
    def model_name(self) -> str:
        """What its model is called; '' while its agent is not defined here."""
        try:
            made = self.life.made()
        except ConfigError:
            made = None  # what it was spawned with is not in this kernel
        return made[0].name if made else str(self.life.options.model or "")

    def status_words(self) -> str:
        """Return its status as a receipt tells it, with what it needs to run."""
        if self.needs:
            return f"{self.record.status} (needs agent {self.needs})"
        return str(self.status)

    def waits(self, seq: int) -> str:
        """Return why its mail ``seq`` waits and what would get it read; '' when it is read by itself.

        What is known just after the mail was accepted: a run under way may still end without it.
        """
        record, definition = self.record, self.life.defined()
        mail = next(iter(self.mailbox.unread(max(seq - 1, record.cursor))), None)
        if mail is None or mail.seq != seq or self.closed:
            return ""
        if definition is None:
            return f"waits: {self.name} needs agent {self.agent}: run its cell"
        cap, agent = self.life.spending(), definition.agent
        if cap is None and self.life.running:
            return ""
        placeholders, kind_of = self.life.state.placeholders, self.life.kind_of
        resumes = agent.resume_on_any_mail
        why = why_it_waits(record, mail, placeholders, agent.wake_on, kind_of, resumes, cap)
        if not why or cap is not None:
            return why
        # What is about to wake it has it read too. Each mail is looked at once: many may wait.
        known, of, seen = self._quiet
        fresh = self.mailbox.unread(seen if known is record and of is definition else record.cursor)
        if starts_run(record, fresh, placeholders, agent.wake_on, kind_of, resumes):
            return ""
        self._quiet = record, definition, fresh[-1].seq if fresh else seq
        return why

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
        return await self.room.asend(
            self.id,
            text,
            interrupt=interrupt,
            reply_to=reply_to,
            expects_reply=expects_reply,
            id=id,
        )

    async def wait(
        self, until: str = "idle", *, timeout: float | None = 300, strict: bool = False
    ) -> WaitResult:
        """Wait for this session; see :meth:`Room.wait`."""
        return await self.room.wait([self], until, timeout=timeout, strict=strict)

    def mail(self, *, unread: bool = False) -> list[Envelope]:
        """Return all its mail, oldest first; with ``unread`` what its model has yet to read."""
        if unread:
            self.life.load()
            return self._shown(self.mailbox.unread(self.cursor))
        return self.mailbox.unread(0)

    def transcript(self) -> list[Turn]:
        """Return its turns, oldest first."""
        self.life.load()
        return list(self.life.state.turns)

    def calls(self) -> list[Call]:
        """Return its tool calls, oldest first."""
        self.life.load()
        return self.life.table.all()

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

    def interrupt(self, text: str) -> Receipt:
        """Send mail that breaks off what it waits for: its calls go on without it (M-75)."""
        return self.send(text, interrupt=True)

    def pause(self) -> Receipt:
        """Stop its run at the next receive point; mail goes on arriving (M-82)."""
        return self._order(Pause())

    def cancel(self, *calls: str) -> Receipt:
        """Cancel these calls; unknown and ended ones are ignored (M-84)."""
        return self._order(CancelCalls(tuple(calls)))

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

    # ── what the router needs (mail.Member) ──

    @property
    def mail_scope(self) -> str:
        """Whom it may write to first."""
        definition = self.life.defined()
        return definition.agent.mail_scope if definition else "own"

    @property
    def interrupt_scope(self) -> str:
        """Whom it may interrupt."""
        definition = self.life.defined()
        return definition.agent.interrupt_scope if definition else "own"

    @property
    def max_mail_hops(self) -> int:
        """The most hops a letter of its may have."""
        definition = self.life.defined()
        return definition.agent.max_mail_hops if definition else 16

    @property
    def hops(self) -> int:
        """What its next letter carries."""
        return self.record.hops

    def has_read(self, other: SessionId) -> bool:
        """Whether it has read mail of ``other``: it may reply."""
        return other in self.record.read_from
