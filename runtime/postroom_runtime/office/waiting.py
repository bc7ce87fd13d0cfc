"""The waiting verbs: until idle, an answer, mail, a call or an event; each peeks, none consumes."""

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from postroom_runtime.calls.context import CURRENT
from postroom_runtime.contracts.errors import AnswerFailed, ConfigError, WaitTimedOut
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.results import Answer, DrainResult, WaitResult, WokenBy
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.mail.router import Letter
from postroom_runtime.office.questions import ANSWERS, MailQuestion, Question
from postroom_runtime.office.wait_graph import Target
from postroom_runtime.signals.bell import wait_until

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


class Waiting:
    """The waits of a room.

    Args:
        room: The room.
    """

    def __init__(self, room: "Room") -> None:
        self._room = room

    async def wait(
        self,
        sessions: Sequence["Session"],
        until: str,
        *,
        any: bool,
        timeout: float | None,
        strict: bool,
    ) -> WaitResult:
        """See :meth:`Room.wait`."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._room.wait_graph.waiting(_targets(sessions, until), any=any))
            over, word = self._condition(sessions, until, stack)
            return await self._wait(sessions, over, word, any, timeout, strict)

    async def _wait(
        self,
        sessions: Sequence["Session"],
        over: Callable[["Session"], bool],
        word: WokenBy,
        any: bool,
        timeout: float | None,
        strict: bool,
    ) -> WaitResult:
        enough = min(1, len(sessions)) if any else len(sessions)

        def look() -> list["Session"] | None:
            done = [session for session in sessions if over(session)]
            hopeless = [s for s in sessions if s not in done and _at_rest_for(s, word)]
            ready = len(done) >= enough or len(done) + len(hopeless) == len(sessions)
            return done if ready or self.all_held() else None

        found = await wait_until(look, self._room.delivery.room_bell, timeout)
        timed_out = found is None
        done = [session for session in sessions if over(session)] if found is None else found
        left = [session for session in sessions if session not in done]
        if timed_out and not (any and done):
            woken = WokenBy.TIMEOUT
        else:
            woken = word if done else WokenBy.NOTHING
        text = _text(woken, done, left, timeout)
        if held := self._room.held:
            text += f"; {held} letter{'s' * (held != 1)} held: %step lets one through"
        if strict and left and not (any and done):
            raise WaitTimedOut(text, [session.name for session in left])
        return WaitResult(
            woken_by=woken,
            sessions=tuple(session.name for session in done),
            left=tuple(session.name for session in left),
            text=text,
        )

    def all_held(self) -> bool:
        """Whether the room steps, and nothing happens any more before the next step.

        A tool call that waits is no reason to give up: it is what the next step goes on with.
        """
        room = self._room
        return room.stepping and CURRENT.get() is None and room.held > 0 and room.still()

    def _condition(
        self, sessions: Sequence["Session"], until: str, stack: contextlib.ExitStack
    ) -> tuple[Callable[["Session"], bool], WokenBy]:
        if until == "idle":
            return (lambda session: session.idle), WokenBy.IDLE
        if until == "answer":
            return (lambda session: session.idle and session.end_reason in ANSWERS), WokenBy.ANSWER
        if until == "mail":
            since = {session.id: session.cursor for session in sessions}
            return (
                lambda session: any(
                    e.text.strip() for e in session.mailbox.unread(since[session.id])
                )
            ), WokenBy.MAIL
        if until.startswith("call_"):
            return (lambda session: _ended(session, until)), WokenBy.CALL
        if until in tuple(EventKind):
            heard: set[SessionId] = set()

            def hear(event: Event) -> None:
                if event.kind == until:
                    heard.add(event.session)

            stack.callback(self._room.delivery.broadcast.subscribe(hear))
            return (lambda session: session.id in heard), WokenBy.EVENT
        raise ConfigError(
            f"until={until!r} is nothing to wait for: give idle, answer, mail, a call id, or one of "
            f"{', '.join(EventKind)}.",
            value=until,
        )

    async def ask(
        self, session: "Session", text: str, *, timeout: float | None, interrupt: bool
    ) -> Answer:
        """See :meth:`Session.ask`."""
        room = self._room
        room.attach()
        question = MailQuestion(session)
        try:
            # A circle is refused before anything is sent.
            with room.wait_graph.waiting([Target(session.id)]):
                question.sent(
                    await room.router.post(session.id, Letter(text=text, interrupt=interrupt))
                )
                return await self._answer(session, question, timeout)
        finally:
            question.drop()

    async def answer(self, session: "Session", question: Question, timeout: float | None) -> Answer:
        """Wait for what becomes of ``question``.

        Raises:
            AnswerFailed: There is no answer, or not within ``timeout`` seconds.
            WaitCycle: Inside of a call that what is asked waits for.
        """
        with self._room.wait_graph.waiting([Target(session.id)]):
            return await self._answer(session, question, timeout)

    async def _answer(
        self, session: "Session", question: Question, timeout: float | None
    ) -> Answer:
        room = self._room
        # A room that steps may come to a halt by what another session does.
        bell = room.delivery.room_bell if room.stepping else session.life.bell
        found: Answer | AnswerFailed | None = await wait_until(question.outcome, bell, timeout)
        if found is None:
            raise AnswerFailed(
                session.name,
                f"not within {timeout:g} s",
                "It works on; wait for it, or give a longer timeout.",
            )
        if isinstance(found, AnswerFailed):
            raise found
        return found

    async def drain(self, timeout: float | None) -> DrainResult:
        """See :meth:`Room.drain`."""
        room = self._room

        def look() -> bool | None:
            if all(session.idle for session in room.sessions()):
                return True
            return False if self.all_held() else None

        with room.wait_graph.waiting([Target(session.id) for session in room.sessions()]):
            quiet = await wait_until(look, room.delivery.room_bell, timeout)
        left = () if quiet else tuple(s.name for s in room.sessions() if not s.idle)
        return DrainResult(quiet=bool(quiet), left=left)


def _ended(session: "Session", id: str) -> bool:
    call = session.life.table.get(id)
    return call is not None and call.state.final


def _at_rest_for(session: "Session", word: WokenBy) -> bool:
    """Tell whether waiting longer for ``session`` is in vain unless somebody writes to it."""
    return word is WokenBy.ANSWER and session.idle and session.record.turns > 0


def _targets(sessions: Sequence["Session"], until: str) -> list[Target]:
    """Return what keeps a wait from ending while it waits itself; mail and events may always come."""
    if until.startswith("call_"):
        return [Target(session.id, until) for session in sessions]
    return [Target(session.id) for session in sessions] if until in ("idle", "answer") else []


def _text(
    woken: WokenBy,
    done: Sequence["Session"],
    left: Sequence["Session"],
    timeout: float | None,
) -> str:
    parts = []
    if woken is WokenBy.TIMEOUT:
        parts.append(f"time is up after {timeout:g} s" if timeout is not None else "time is up")
    told = {session.id: words for session in (*done, *left) if (words := _trouble(session))}
    if plain := [session for session in done if session.id not in told]:
        parts.append(", ".join(f"{session.name} is {session.status_words()}" for session in plain))
    if waiting := [session for session in left if session.id not in told]:
        still = ", ".join(f"{session.name} ({session.status_words()})" for session in waiting)
        parts.append(f"still working: {still}" if woken is WokenBy.TIMEOUT else f"not: {still}")
    parts += told.values()
    return "; ".join(parts) or "no session to wait for"


def _trouble(session: "Session") -> str:
    """Return what keeps ``session`` from running, and the remedy; '' when nothing does."""
    if session.closed:
        return ""
    if session.room.roster.get(session.agent) is None:
        return (
            f"{session.name} is ready but needs agent {session.agent}: run the cell that defines it"
        )
    if session.status is SessionStatus.FAILED and session.error:
        return f"{session.name} failed: {session.error.splitlines()[0]}"
    if session.status is SessionStatus.CAPPED and (cap := session.life.spending()) is not None:
        return cap.words(session.name, session.agent)
    return ""
