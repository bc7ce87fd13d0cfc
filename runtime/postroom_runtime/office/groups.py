"""The verbs of a room that write to many at once, and wait for what they answer."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.envelope import AgentMessage, Envelope, FromSession, Receipt
from postroom_runtime.contracts.errors import (
    AnswerFailed,
    ConfigError,
    InboxReadOnly,
    MailRefused,
)
from postroom_runtime.contracts.results import Answer, BroadcastResult, GatherResult, Refusal
from postroom_runtime.contracts.turn import EndReason, Usage
from postroom_runtime.mail.delivery import Delivery
from postroom_runtime.mail.router import Posted
from postroom_runtime.office.mail_verbs import MailVerbs
from postroom_runtime.office.questions import MailQuestion, Question
from postroom_runtime.office.wait_graph import Target, WaitGraph
from postroom_runtime.signals.bell import wait_until

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session

_REFUSALS = (MailRefused, InboxReadOnly)


class GroupVerbs(MailVerbs):
    """What a room does with groups; :class:`Room` is the rest."""

    delivery: Delivery
    wait_graph: WaitGraph

    def broadcast(
        self,
        sessions: "Sequence[Session | str]",
        text: str,
        *,
        sender: "Session | str | None" = None,
        interrupt: bool = False,
        expects_reply: bool = False,
    ) -> BroadcastResult:
        """Send the same words to many, each as a letter of its own, from any thread.

        Who is refused keeps nobody else from being reached, and nobody learns who else got it.

        Args:
            sessions: Whom to write to, names or sessions; each once.
            text: What to say.
            sender: Send as this session, under its permissions; None: as the owner.
            interrupt: As in :meth:`send`.
            expects_reply: As in :meth:`send`.
        """
        self.check_open()
        delivered: list[Receipt] = []
        refused: list[Refusal] = []
        # All are handed over before the first is waited for: one commit may store many.
        posts = [
            (to, self._try(to, text, sender, interrupt, expects_reply))
            for to in self._once(sessions)
        ]
        for to, post in posts:
            try:
                delivered.append(post.result() if isinstance(post, Posted) else _raised(post))
            except _REFUSALS as error:
                refused.append(Refusal(_name(to), str(error)))
        self.hop(self.attach)
        return BroadcastResult(delivered=tuple(delivered), refused=tuple(refused))

    async def gather(
        self,
        sessions: "Sequence[Session | str]",
        question: str,
        *,
        quorum: int | None = None,
        timeout: float | None = 60,
        sender: "Session | str | None" = None,
        schema: Any = None,
    ) -> GatherResult:
        """Ask many the same, and return what they answer: all of them, or as many as are needed.

        An answer is the final text of the run that reads the question, or, asked by a session, a
        letter to it in reply to the question, whichever comes first. Who is late answers nobody: its
        run goes on and harms nothing.

        Args:
            sessions: Whom to ask, names or sessions; each once.
            question: What to ask.
            quorum: So many answers are enough; None: all that can come.
            timeout: Seconds; None waits for ever.
            sender: Ask as this session, under its permissions; None: as the owner.
            schema: Ask for an object instead of words, each in a structured turn; see
                :meth:`Session.run`. The owner alone asks so.

        Raises:
            ConfigError: The quorum is more than are asked, or a schema that will not do.
            WaitCycle: Inside of a call that those who are asked wait for.
        """
        self.check_open()
        self.attach()
        asked = self._once(sessions)
        if quorum is not None and not 1 <= quorum <= len(asked):
            raise ConfigError(
                f"quorum={quorum!r} of {len(asked)} asked will not do: give a number from 1 to "
                f"{len(asked)}, or None for all.",
                value=quorum,
            )
        if schema is not None and sender is not None:
            raise ConfigError("structured turns are asked for by the owner: leave sender out.")
        asker = self._one(sender)
        round = _Round(asker)
        try:
            enough = len(asked) if quorum is None else quorum
            # A circle is refused before anything is sent.
            with self.wait_graph.waiting(self._targets(asked), any=quorum is not None):
                await self._ask_all(round, asked, question, schema)
                await wait_until(
                    lambda: round.over(enough) or None, self.delivery.room_bell, timeout
                )
            return round.result()
        finally:
            round.close()

    async def _ask_all(
        self, round: "_Round", asked: "Sequence[Session | str]", text: str, schema: Any
    ) -> None:
        posts: list[tuple[int, Session | str, MailQuestion, Posted | Exception]] = []
        for place, to in enumerate(asked):
            try:
                session = self._one(to)
                if schema is not None:
                    round.questions[session] = session.ask_for(text, schema)
                    continue
            except _REFUSALS as error:
                round.refused[place] = Refusal(_name(to), str(error))
                continue
            # Known to the session before the mail is: an answer at once is not missed.
            question = round.questions[session] = MailQuestion(session, round.asker_id)
            posts.append((place, to, question, self._try(to, text, round.asker, False, True)))
        for place, to, question, post in posts:
            try:
                question.sent(await post if isinstance(post, Posted) else _raised(post))
            except _REFUSALS as error:
                round.refuse(question, place, Refusal(_name(to), str(error)))

    def _targets(self, asked: "Sequence[Session | str]") -> list[Target]:
        found = (self.router.lookup(to) if isinstance(to, str) else to for to in asked)
        return [Target(session.id) for session in found if session is not None]

    def _once(self, sessions: "Sequence[Session | str]") -> "list[Session | str]":
        if isinstance(sessions, str):
            raise ConfigError(
                f"sessions={sessions!r} is one name: give a list of them.", value=sessions
            )
        found: dict[str, Session | str] = {}
        for to in sessions:
            member = self.router.lookup(to) if isinstance(to, str) else to
            found.setdefault(member.id if member is not None else str(to), to)
        return list(found.values())

    def _try(
        self,
        to: "Session | str",
        text: str,
        sender: "Session | str | None",
        interrupt: bool,
        expects_reply: bool,
    ) -> Posted | Exception:
        try:
            return self._post(to, text, sender, interrupt, None, expects_reply, None)
        except _REFUSALS as error:
            return error


class _Round:
    """One question to many, and their answers so far.

    Args:
        asker: The session that asks; None is the owner.
    """

    def __init__(self, asker: "Session | None") -> None:
        self.asker = asker
        self.asker_id = asker.id if asker is not None else None
        self.questions: dict[Session, Question] = {}
        self.refused: dict[int, Refusal] = {}
        """By place among the asked."""
        self._answers: dict[Session, Answer] = {}
        mail = asker.mail() if asker is not None else []
        self._seen = mail[-1].seq if mail else 0

    def refuse(self, question: MailQuestion, place: int, refusal: Refusal) -> None:
        """The question did not reach its reader."""
        question.drop()
        self.questions = {s: q for s, q in self.questions.items() if q is not question}
        self.refused[place] = refusal

    def over(self, enough: int) -> bool:
        """Tell whether there are ``enough`` answers, or nobody is left who may give one."""
        outcomes = list(self._outcomes())
        answers = sum(isinstance(outcome, Answer) for _, outcome in outcomes)
        return answers >= enough or all(outcome is not None for _, outcome in outcomes)

    def result(self) -> GatherResult:
        """Return what there is now."""
        found = dict(self._outcomes())
        missing = {s: o for s, o in found.items() if isinstance(o, AnswerFailed)}
        silent = [s for s, failure in missing.items() if failure.end == EndReason.NO_REPLY]
        return GatherResult(
            answers={s.name: o for s, o in found.items() if isinstance(o, Answer)},
            late=tuple(s.name for s, o in found.items() if o is None),
            silent=tuple(s.name for s in silent),
            failed=tuple(Refusal(s.name, o.reason) for s, o in missing.items() if s not in silent),
            refused=tuple(refusal for _, refusal in sorted(self.refused.items())),
        )

    def close(self) -> None:
        """Nobody waits for answers any more."""
        for question in self.questions.values():
            question.drop()

    def _outcomes(self) -> "Iterator[tuple[Session, Answer | AnswerFailed | None]]":
        letters = self._letters()
        for session, question in self.questions.items():
            if session not in self._answers:
                receipt = question.receipt
                letter = letters.get((session.id, receipt.id)) if receipt is not None else None
                outcome = _told(session, letter) if letter is not None else question.outcome()
                if not isinstance(outcome, Answer):
                    yield session, outcome
                    continue
                self._answers[session] = outcome
            yield session, self._answers[session]

    def _letters(self) -> dict[tuple[str, str], Envelope]:
        """Return the letters to the asker that reply to something, by who wrote and to what."""
        found: dict[tuple[str, str], Envelope] = {}
        if self.asker is None:
            return found
        for e in self.asker.mailbox.unread(self._seen):
            if isinstance(e.sender, FromSession) and isinstance(e.body, AgentMessage):
                found.setdefault((e.sender.session, e.body.in_reply_to or ""), e)
        return found


def _told(session: "Session", letter: Envelope) -> Answer:
    return Answer(text=letter.text, turn=session.record.turns, usage=Usage(), mail=(letter,))


def _name(to: "Session | str") -> str:
    return to if isinstance(to, str) else to.name


def _raised(error: Exception) -> Receipt:
    raise error
