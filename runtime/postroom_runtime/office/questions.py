"""Questions to a session, and what became of them: matched by the mail they are, not by time."""

from collections import deque
from typing import TYPE_CHECKING, Protocol

from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.errors import AnswerFailed
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.results import Answer, RunEnd
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role, Turn, Usage, end_of, total
from postroom_runtime.stepper.structured import Request
from postroom_runtime.stepper.withdrawal import taken_back

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session

ANSWERS = (EndReason.ANSWER, EndReason.BUDGET)
"""Ends of a run that leave a final text."""

_SETTLED = (*ANSWERS, EndReason.NO_REPLY)
"""Ends after which a question is not open any more."""


_TAKEN_BACK = "the question was taken back"
_HELD = "the question is held: %step lets it through"


class Question(Protocol):
    """Something that a session was asked."""

    @property
    def receipt(self) -> Receipt | None:
        """Of the mail it is; None for a structured turn, which is none."""
        ...

    def outcome(self) -> "Answer | AnswerFailed | None":
        """Return the answer, why there is none, or None while there may be one. Never raises."""
        ...

    def turns(self) -> list[Turn]:
        """Return the turns it made so far, from the one that read it on."""
        ...

    def drop(self) -> None:
        """Nobody wants to know any more."""
        ...


class MailQuestion:
    """A question by mail: the final text of the run that reads it answers it.

    Made, and known to the session, before the mail is sent: then no run that ends in between is
    missed, however many. A run that is paused, stopped, capped or failed leaves the question open; the next one goes
    on with it, for its turn still waits for an answer.

    Args:
        session: Who is asked.
        asker: The session that asks; None is the owner.
    """

    def __init__(self, session: "Session", asker: SessionId | None = None) -> None:
        self._session, self._asker = session, asker
        self._ends = list(session.life.questions.ends)
        self.receipt: Receipt | None = None
        session.life.questions.open.append(self)

    def sent(self, receipt: Receipt) -> None:
        """Take the receipt of the mail."""
        self.receipt = receipt

    def heard(self, end: RunEnd) -> None:
        """Take the end of a run; called on the loop for each."""
        self._ends.append(end)
        if (last := self._end()) is not None and last.reason in _SETTLED:
            self.drop()

    def drop(self) -> None:
        """Hear of no more ends."""
        if self in (known := self._session.life.questions.open):
            known.remove(self)

    def _end(self) -> RunEnd | None:
        """Return the end that settles it, else the last of a run that had read it."""
        if self.receipt is None:
            return None
        ends = [end for end in self._ends if end.cursor >= self.receipt.seq]
        settled = [end for end in ends if end.reason in _SETTLED]
        return next(iter(settled or ends[-1:]), None)

    def outcome(self) -> Answer | AnswerFailed | None:
        """See :class:`Question`."""
        session, end = self._session, self._end()
        if end is not None and end.reason in _SETTLED:
            return self._answer(end)
        if end is None and self._taken_back():
            return AnswerFailed(session.name, _TAKEN_BACK)
        if end is None and self.receipt and session.room.holds(session.id, self.receipt.seq):
            return AnswerFailed(session.name, _HELD) if session.room.waiting.all_held() else None
        if self.receipt is None or session.life.under_way:
            return None
        if end is None:
            word = session.life.kind_of(self._asker) if self._asker is not None else "user"
            return AnswerFailed(session.name, why_not(session, word))
        if session.closed:
            return AnswerFailed(session.name, "it was closed", end=EndReason.CLOSED)
        why = f": {session.error.splitlines()[0]}" if session.error else ""
        reason = str(end.reason or EndReason.FAILED)
        return AnswerFailed(session.name, f"its run ended with {reason}{why}", end=reason)

    def turns(self) -> list[Turn]:
        """See :class:`Question`."""
        if self.receipt is None:
            return []
        seq, end = self.receipt.seq, self._end()
        turns = self._session.transcript()
        last = end.last_turn if end is not None and end.reason in _SETTLED else len(turns)
        place = [at for at, t in enumerate(turns) if any(e.seq == seq for e in t.mail)]
        return turns[place[0] : last] if place else []

    def _taken_back(self) -> bool:
        """Tell whether the mail was withdrawn before it was read."""
        if (receipt := self.receipt) is None:
            return False
        later = self._session.mailbox.unread(receipt.seq)
        backs = (taken_back(envelope) for envelope in later)
        return any(back is not None and back.seq == receipt.seq for back in backs)

    def _answer(self, end: RunEnd) -> Answer | AnswerFailed:
        turns = self.turns()
        said = [turn for turn in turns if turn.role is Role.MODEL]
        if end.reason is EndReason.NO_REPLY:
            # It may have answered before it read what it had nothing to say to.
            said = [
                t
                for t in said
                if not t.calls and end_of(t.text) is EndReason.ANSWER and t.text.strip()
            ]
            if turns and not said:
                return AnswerFailed(
                    self._session.name, "it chose not to reply", end=EndReason.NO_REPLY
                )
        if not said or self.receipt is None:
            # Words that say nothing to a model: its run read them, and answers others.
            why = _TAKEN_BACK if self._taken_back() else "it was not shown the question"
            return AnswerFailed(self._session.name, why)
        mail = [e for turn in turns for e in turn.mail if e.seq >= self.receipt.seq]
        return Answer(text=said[-1].text, turn=said[-1].index, usage=_cost(turns), mail=tuple(mail))


class Questions:
    """What one session was asked by mail and has not answered yet."""

    def __init__(self) -> None:
        self.open: list[MailQuestion] = []
        self.ends: deque[RunEnd] = deque(maxlen=16)
        """How the last runs went, oldest first."""

    def run_ended(self, before: SessionRecord, after: SessionRecord) -> None:
        """Tell of a run that found and left the session like this."""
        end = RunEnd(
            after=before.cursor,
            cursor=after.cursor,
            reason=after.end_reason,
            first_turn=before.turns + 1,
            last_turn=after.turns,
        )
        self.ends.append(end)
        for question in tuple(self.open):
            question.heard(end)


class StructuredQuestion:
    """A question that one structured turn answers.

    Args:
        session: Who is asked.
        request: What.
    """

    receipt: None = None

    def __init__(self, session: "Session", request: Request) -> None:
        self._session, self._request = session, request
        session.life.requests.append(request)

    def drop(self) -> None:
        """Ask it no more, unless it is being asked already."""
        if self.waits:
            self._session.life.requests.remove(self._request)

    @property
    def waits(self) -> bool:
        """Whether it has not been asked yet."""
        return self._request in self._session.life.requests

    def outcome(self) -> Answer | AnswerFailed | None:
        """See :class:`Question`."""
        session, request = self._session, self._request
        if request.answered and request.over:
            if request.fault:
                return AnswerFailed(
                    session.name,
                    f"its answer does not fit {request.schema.name}: {request.fault}",
                    "It was asked twice; say in the question what you want, or widen the schema.",
                    end=EndReason.ANSWER,
                )
            turns = self.turns()
            return Answer(
                text=turns[-1].text,
                turn=turns[-1].index,
                usage=_cost(turns),
                value=request.value,
            )
        if request.over:
            why = f": {session.error.splitlines()[0]}" if session.error else ""
            reason = str(session.end_reason or EndReason.FAILED)
            return AnswerFailed(session.name, f"its turn ended with {reason}{why}", end=reason)
        if self.waits and not session.life.under_way:
            return AnswerFailed(session.name, why_not(session))
        if not self.waits and not session.running:
            return AnswerFailed(session.name, _TAKEN_BACK)
        return None

    def turns(self) -> list[Turn]:
        """See :class:`Question`."""
        first, last = self._request.first_turn, self._request.last_turn
        if not first:
            return []
        return self._session.transcript()[first - 1 : last or None]


def _cost(turns: list[Turn]) -> Usage:
    return total(turn.usage for turn in turns if turn.usage)


def why_not(session: "Session", sender: str = "user") -> str:
    """Return why ``session``, at rest, has not run for mail of ``sender``, a word of ``wake_on``."""
    status = session.status
    if session.closed:
        return "it is closed"
    if session.room.roster.get(session.agent) is None:
        return f"it needs agent {session.agent}: run the cell that defines it, then ask again"
    if status is SessionStatus.PAUSED:
        return "it is paused; the question waits for %resume"
    if status is SessionStatus.FAILED:
        return f"it failed: {session.error.splitlines()[0] if session.error else ''}"
    if (cap := session.life.spending()) is not None:
        return f"{cap.words(session.name, session.agent)}; the question waits"
    if sender not in (wakes := session.life.definition().wake_on):
        return f"its wake_on has no {sender!r}, only {', '.join(wakes)}; the question waits"
    return "it did not run"
