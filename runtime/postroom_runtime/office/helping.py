"""A session and its helpers: children it spawns, and helpers it asks and waits for."""

from typing import TYPE_CHECKING, Any

from postroom_runtime.calls.context import current_call
from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.errors import AnswerFailed, ConfigError, TooManyHops
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.results import Answer
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.office.questions import MailQuestion
from postroom_runtime.office.wait_graph import Target
from postroom_runtime.signals.bell import wait_until
from postroom_runtime.toolbox.helper_tools import Aide

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


class Helping:
    """What the tools about helpers need of one session.

    Args:
        life: The session's life.
        session: The session.
        room: Its room.
    """

    def __init__(self, life: "Life", session: "Session", room: "Room") -> None:
        self._life, self._session, self._room = life, session, room

    def _helpers(self) -> dict[str, Aide]:
        definition = self._life.defined()
        return dict(definition.helpers) if definition else {}

    async def spawn(self, agent: str, message: str) -> dict[str, Any]:
        """Start a child of a helper, and go on (M-100, M-101).

        Raises:
            ConfigError: Not a helper of this session's agent; names those it has.
            TooManyHops, TooManySessions: Nothing is started.
        """
        helpers = self._helpers()
        if (helper := helpers.get(agent)) is None:
            raise ConfigError(
                f"{agent!r} is no helper of yours; yours: {', '.join(helpers) or 'none'}.",
                value=agent,
            )
        try:
            child = await self._room.lineage.spawn(
                self._session, helper, message, current_call().call
            )
        except TooManyHops as error:
            self._refused(helper, error)
            raise
        return {"session": child.id, "name": child.name}

    async def ask(self, helper: Aide, message: str) -> str:
        """Ask a helper in a session of its own, which is closed when the call ends (M-104).

        The caller may write to it meanwhile. A call that is tried again asks anew.

        Raises:
            AnswerFailed: It failed, was stopped, closed or capped, or cannot run here.
            ConfigError, TooManyHops, TooManySessions: Nothing is started.
        """
        room, call = self._room, current_call().call
        try:
            child = await room.lineage.ask(self._session, helper, message, call)
        except TooManyHops as error:
            self._refused(helper, error)
            raise
        try:
            mine = self._life.table.get(call)
            if mine is not None and mine.tool == helper.tool:  # else a hook asks about another call
                self._life.table.learn(call, child_session_id=child.id)
            with room.wait_graph.waiting([Target(child.id)]):
                return await _answer(child, self._session.id)
        finally:
            if not room.closed:
                room.close_session(child)

    def _refused(self, helper: Aide, error: TooManyHops) -> None:
        name = self._session.name
        self._life.report(
            "hops", f"{name} was refused a session of {helper.slug}: {error}", to=helper.slug
        )


async def _answer(child: "Session", caller: SessionId) -> str:
    """Return what the child answers to its first mail; paused, it goes on when resumed."""
    question = MailQuestion(child, caller)
    question.sent(Receipt(id="", seq=1, session=child.id))

    def look() -> Answer | AnswerFailed | None:
        outcome = question.outcome()
        if not isinstance(outcome, AnswerFailed) or child.closed:
            return outcome
        # What is paused goes on when resumed, and what is held when it is let through.
        waits = child.status is SessionStatus.PAUSED or (
            not outcome.end and child.life.state.held()
        )
        return None if waits else outcome

    try:
        found: Answer | AnswerFailed | None = await wait_until(look, child.life.bell)
    finally:
        question.drop()
    if isinstance(found, Answer):
        return found.text
    raise found or AnswerFailed(child.name, "nobody knows why")
