"""The verbs of a room that step: mail is held, and each step lets one letter through."""

from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Row
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import Role
from postroom_runtime.mail.delivery import Delivery
from postroom_runtime.office.stepping import (
    HELD,
    Preview,
    Reader,
    Standing,
    StepResult,
    preview,
    standing,
)
from postroom_runtime.office.verbs import RoomVerbs
from postroom_runtime.signals.bell import wait_until
from postroom_runtime.stepper.attending import WAITING
from postroom_runtime.stepper.gate import called
from postroom_runtime.stepper.receive_points import halts, released, renders
from postroom_runtime.storage.protocol import Storage

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session

CALL_SECONDS = 2.0
"""How long a step waits for calls that run before it leaves them running."""

MODEL_SECONDS = 30.0
"""How long a step waits for models that think."""


class StepVerbs(RoomVerbs):
    """What a room does one letter at a time; :class:`Room` is the rest."""

    storage: Storage
    delivery: Delivery
    _turnstile: "Turnstile | None" = None

    @abstractmethod
    def people(self) -> dict[SessionId, SessionRecord]:
        """Return every session's record."""

    @abstractmethod
    def sessions(self, *, hidden: bool = False) -> "list[Session]":
        """Return the open sessions."""

    @property
    def stepping(self) -> bool:
        """Whether mail is held until a step lets it through."""
        return self._turnstile is not None

    @property
    def held(self) -> int:
        """How many letters wait for a step."""
        return sum(len(session.life.state.held()) for session in self.sessions(hidden=True))

    def step_mode(self, on: bool = True) -> None:
        """Hold mail from now on, until a step lets it through; or let everything through again.

        Mail that says nothing to a model passes by itself, and an order of the owner lets through
        what was accepted before it. Mail that was there already is not held. Not stored: a room
        opened again does not step.
        """
        self.check_open()
        if on and self._turnstile is None:
            self._turnstile = Turnstile(self.storage)
            for session in self.sessions(hidden=True):
                session.life.load()  # what passes by itself depends on its transcript
                state = session.life.state
                arrived = state.arrived()
                state.gate = arrived[-1].seq if arrived else state.record.cursor
        elif not on and self._turnstile is not None:
            self._turnstile.close()
            self._turnstile = None
            for session in self.sessions(hidden=True):
                session.life.state.gate = None
                self.hop(self.delivery.ring, session.id)

    def step(self, session: "Session | str | None" = None, *, look: bool = False) -> StepResult:
        """Let one letter through, from any thread: the oldest of the room, or of one session.

        It does not wait: the session reads the letter when the loop runs. :meth:`astep` waits.

        Args:
            session: Only mail of this one.
            look: Let nothing through; only tell what would be next.

        Returns:
            What was let through, what it does, and what is next.

        Raises:
            PostroomError: The room does not step.
            UnknownRecipient: No such session.
        """
        self.check_open()
        self.hop(self.attach)
        chosen = self._one(session)
        turnstile = self._turnstile
        if turnstile is None:
            raise PostroomError(
                "nothing is held, the room does not step. Switch it on with %postroom step on "
                "(room.step_mode()), then each %step lets one letter through."
            )
        found = None if look else self._next(turnstile, chosen)
        if found is not None:
            state = self.session(found.mail.session).life.state
            state.gate = max(found.mail.seq, state.gate or 0)
            self.hop(self.delivery.ring, state.id)
        return StepResult(
            let_through=found,
            next=self._next(turnstile, chosen),
            held=self.held,
            of=chosen.name if chosen else "",
        )

    async def astep(
        self, session: "Session | str | None" = None, *, look: bool = False
    ) -> StepResult:
        """Do what :meth:`step` does between two rests of the room.

        Before and after, models that think are waited for, and calls that run for a moment.
        """
        self.attach()
        working = await self.settled()
        done = self.step(session, look=look)
        if done.let_through is not None:
            working = await self.settled()
        after = self.step(session, look=True) if self.stepping else None
        return StepResult(
            let_through=done.let_through,
            next=after.next if after else None,
            held=self.held,
            working=working,
            of=done.of,
        )

    async def settled(self) -> tuple[str, ...]:
        """Wait until no session can go on without a step; return the names of those that still do.

        Models are waited for ``MODEL_SECONDS`` at most, calls ``CALL_SECONDS``.
        """
        bell = self.delivery.room_bell
        if not await wait_until(lambda: self.still() or None, bell, CALL_SECONDS):
            await wait_until(lambda: not self._in(Standing.WORKS) or None, bell, MODEL_SECONDS)
        return tuple(s.name for s in self._in(Standing.WORKS, Standing.CALLS))

    def still(self) -> bool:
        """Tell whether nothing happens any more before mail comes or is let through."""
        return not self._in(Standing.WORKS, Standing.CALLS)

    def _in(self, *standings: Standing) -> "list[Session]":
        return [s for s in self.sessions(hidden=True) if _standing(s) in standings]

    def noted(self, receipt: Receipt) -> Receipt:
        """Return ``receipt`` with the note that its mail is held, where it is."""
        if not self.holds(receipt.session, receipt.seq):
            return receipt
        return replace(receipt, note="; ".join(filter(None, [receipt.note, HELD])))

    def holds(self, session: SessionId, seq: int) -> bool:
        """Tell whether that mail of a session waits for a step."""
        if not self.stepping:
            return False
        found = (s for s in self.sessions(hidden=True) if s.id == session)
        return any(e.seq == seq for s in found for e in s.life.state.held())

    def _next(self, turnstile: "Turnstile", chosen: "Session | None") -> Preview | None:
        sessions = {s.id: s for s in (self.sessions(hidden=True) if chosen is None else [chosen])}
        found = turnstile.first(sessions)
        if found is None:
            return None
        names = {id: record.name for id, record in self.people().items()}
        return preview(found, _reader(sessions[found.session]), names)


class Turnstile:
    """Knows in what order a room accepted mail since it began to step.

    Args:
        storage: The room's store.
    """

    def __init__(self, storage: Storage) -> None:
        self._order: deque[tuple[SessionId, int]] = deque()
        self.close = storage.bells(self._hear)
        """Listen no more."""

    def _hear(self, rows: Sequence[Row]) -> None:
        self._order += [
            (row.session, row.record.seq) for row in rows if isinstance(row.record, Envelope)
        ]

    def first(self, sessions: Mapping[SessionId, "Session"]) -> Envelope | None:
        """Return the oldest letter held in the mailboxes of ``sessions``, or None."""
        order = tuple(self._order)  # before the mailboxes are looked at: what comes later is later
        held = {
            (session.id, envelope.seq): envelope
            for session in sessions.values()
            for envelope in session.life.state.held()
        }
        return next((held[place] for place in order if place in held), None)


# ── how sessions stand ──


def _standing(session: "Session") -> Standing:
    state, open_calls = session.life.state, session.life.table.open_calls()
    head = state.head
    return standing(
        idle=session.idle,
        running=session.running,
        lingering=session.record.status is SessionStatus.WAITING,
        attending=head is not None and head.role is Role.MODEL and bool(head.calls),
        news=any(renders(e, state.placeholders) or halts(e) or released(e) for e in state.unread()),
        open_calls=open_calls,
        listens=frozenset(
            call.id
            for call in open_calls
            if _waits(call) or session.room.wait_graph.inside(session.id, call.id)
        ),
    )


def _waits(call: Call) -> bool:
    """Tell whether ``call`` is of a tool that mail ends."""
    return call.tool in WAITING


def _reader(session: "Session") -> Reader:
    life = session.life
    definition = life.defined()
    knobs = definition.agent if definition else None
    open_calls = life.table.open_calls() if session.running else []
    turn = called(life.state.head)
    return Reader(
        record=session.record,
        standing=_standing(session),
        running=session.running,
        placeholders=life.state.placeholders,
        unread=life.state.unread(),
        attached=tuple(c.id for c in open_calls if c.id in turn and not _waits(c)),
        listening=tuple(c.id for c in open_calls if _waits(c)),
        defined=knobs is not None,
        wake_on=knobs.wake_on if knobs else (),
        kind_of=life.kind_of,
        resume_on_any_mail=knobs.resume_on_any_mail if knobs else False,
        interrupt_completions=knobs.interrupt_completions if knobs else False,
        max_autonomous_rounds=knobs.max_autonomous_rounds if knobs else 0,
        cap=life.spending() if knobs else None,
    )
