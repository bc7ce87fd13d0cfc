"""The verbs of a session that want to know what comes of a run."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.errors import ConfigError, UnknownRecipient
from postroom_runtime.contracts.helper import INHERITED, Inherit
from postroom_runtime.contracts.inbox import Inbox
from postroom_runtime.contracts.results import Answer
from postroom_runtime.models.schema import OutputSchema
from postroom_runtime.office.questions import MailQuestion, StructuredQuestion
from postroom_runtime.office.run_handle import RunHandle
from postroom_runtime.office.steering import check_inbox
from postroom_runtime.stepper.structured import Request

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session


class RunVerbs(ABC):
    """What a session is asked; :class:`Session` is the rest."""

    @abstractmethod
    def _me(self) -> "Session":
        """Return the session, whole."""

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
        me = self._me()
        return await me.room.waiting.ask(me, text, timeout=timeout, interrupt=interrupt)

    def run(
        self,
        text: str,
        *,
        inbox: Inbox | Inherit | None = INHERITED,
        schema: Any = None,
        timeout: float | None = None,
    ) -> RunHandle:
        """Ask for a run, from any thread, and return a handle of it; await that for the answer.

        Args:
            text: What to do; sent as mail of the owner.
            inbox: Steers this run alone, instead of the agent's own; None: nothing does (A-8). A
                structured turn uses none.
            schema: Ask for an object instead: a pydantic model class, a dataclass, or a JSON schema.
                Then ``text`` is no mail but one structured turn, without tools, taken when the
                session is at rest; unread mail is left unread (A-11). The answer's ``value`` is the
                object.
            timeout: Seconds that an await of the handle waits at most; None waits for ever.

        Raises:
            MailRefused: As in :meth:`send`.
            ConfigError: No text, an inbox that is none, or a schema that will not do.
            TypeError: The inbox's reader takes no positional argument (A-35).
        """
        me = self._me()
        if inbox is not INHERITED:
            check_inbox(inbox)  # before anything is sent
        if schema is not None:
            return RunHandle(me, me.ask_for(text, schema), timeout)
        question = MailQuestion(me)
        try:
            receipt = me.send(text)
        except BaseException:
            question.drop()
            raise
        question.sent(receipt)
        if inbox is not INHERITED:
            me.room.hop(me.life.steering.override, receipt.seq, inbox)
        return RunHandle(me, question, timeout)

    def ask_for(self, text: str, schema: Any) -> StructuredQuestion:
        """Ask for a structured turn; see :meth:`run`, which gives a handle of it.

        Raises:
            MailRefused: It is closed.
            ConfigError: No text, or a schema that will not do.
        """
        me = self._me()
        _check_words(text)
        shape = OutputSchema.of(schema)
        me.room.check_open()
        if me.closed:
            raise UnknownRecipient(me.name, closed=True)
        question = StructuredQuestion(me, Request(text, shape))
        me.room.hop(me.room.attach)
        me.room.hop(me.room.delivery.ring, me.id)
        return question


def _check_words(text: object) -> None:
    if not (isinstance(text, str) and text.strip()):
        raise ConfigError(f"text={text!r} asks nothing: give words.", value=text)
