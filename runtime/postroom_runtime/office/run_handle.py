"""One run that somebody asked for: wait for its answer, redirect it, end it, let it go on (A-1)."""

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, Literal

from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.errors import AlreadyRead, AnswerFailed, ConfigError
from postroom_runtime.contracts.results import Answer
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.office.questions import Question, StructuredQuestion

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session

CANCELS: Final = ("turn", "now")


class RunHandle:
    """What :meth:`Session.run` gives. Awaiting it gives the ``Answer``, as often as one likes.

    Args:
        session: Who was asked.
        question: What.
        timeout: Seconds that each await of it waits at most; None waits for ever.
    """

    def __init__(self, session: "Session", question: Question, timeout: float | None) -> None:
        self.session = session
        self._question, self._timeout = question, timeout

    def __repr__(self) -> str:
        outcome = self._question.outcome()
        if isinstance(outcome, AnswerFailed):
            state = outcome.reason
        else:
            state = "answered" if outcome is not None else "under way"
        return f"run of {self.session.name} ({state})"

    @property
    def receipt(self) -> Receipt | None:
        """Of the mail that asked for it; None for a structured turn, which no mail starts."""
        return self._question.receipt

    @property
    def done(self) -> bool:
        """Whether there is an answer, or nothing under way that would give one."""
        return self._question.outcome() is not None

    def result(self) -> Answer:
        """Return the answer, without waiting.

        Raises:
            AnswerFailed: There is none, or none yet.
        """
        outcome = self._question.outcome()
        if outcome is None:
            raise AnswerFailed(self.session.name, "it has not answered yet", "Await the handle.")
        if isinstance(outcome, AnswerFailed):
            raise outcome
        return outcome

    def __await__(self) -> Generator[Any, None, Answer]:
        """Wait for the answer on the room's loop.

        Raises:
            AnswerFailed: The run ended without one, cannot start here, or time was up.
        """
        return self._wait().__await__()

    async def _wait(self) -> Answer:
        room = self.session.room
        room.attach()
        return await room.waiting.answer(self.session, self._question, self._timeout)

    def send(self, text: str, *, interrupt: bool = False) -> Receipt:
        """Redirect it: the run reads ``text`` at its next receive point (A-1).

        Args:
            text: What to say.
            interrupt: Break off what the run waits for.

        Raises:
            MailRefused: As in :meth:`Session.send`.
        """
        return self.session.send(text, interrupt=interrupt)

    def cancel(self, mode: Literal["turn", "now"] = "turn") -> Receipt | None:
        """End the run; its turns are kept, and :meth:`resume` lets it go on.

        What was not read yet is taken back instead: no other run ends for it.

        Args:
            mode: ``turn``: pause it at its next receive point: what the model says is finished, and
                calls go on without it.
                ``now``: stop it at once, its calls and its completion too.

        Returns:
            The receipt of the order, or of the withdrawal; None when nothing was left to end, and for
            a structured turn that was not asked yet or that ``turn`` lets finish.

        Raises:
            ConfigError: ``mode`` is neither.
        """
        if mode not in CANCELS:
            raise ConfigError(
                f"mode={mode!r} is none: give one of {', '.join(CANCELS)}.", value=mode
            )
        if self.done:
            return None
        if isinstance(self._question, StructuredQuestion):
            if self._question.waits:
                self._question.drop()
                self.session.room.hop(self.session.room.delivery.ring, self.session.id)
                return None
            return self.session.stop() if mode == "now" else None
        if self.receipt is not None and self.session.cursor < self.receipt.seq:
            with contextlib.suppress(AlreadyRead):  # in this moment: then its run is ended
                return self.session.room.withdraw(self.receipt.id, session=self.session)
        return self.session.pause() if mode == "turn" else self.session.stop()

    def resume(self) -> Receipt:
        """Let a cancelled run go on where it was; await the handle again for its answer."""
        return self.session.resume()

    def transcript(self) -> list[Turn]:
        """Return its turns so far, oldest first, also of one that was cancelled."""
        return self._question.turns()
