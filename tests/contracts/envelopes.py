"""Short ways to write mail and session records in tests."""

from datetime import UTC, datetime
from typing import Any

from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    Control,
    ControlMessage,
    Envelope,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Priority,
    Sender,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import mail_id
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus

AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def clock() -> datetime:
    """A clock that stands still."""
    return AT


def envelope(
    body: Body,
    sender: Sender,
    seq: int = 1,
    *,
    id: str = "",
    session: str = "s-0001",
    hops: int = 0,
    priority: Priority = Priority.NORMAL,
) -> Envelope:
    """Mail as the store keeps it; its id is counted out from ``seq`` unless given."""
    return Envelope(
        id=id or mail_id(seq),
        seq=seq,
        session=session,
        sender=sender,
        priority=priority,
        hops=hops,
        accepted_at=AT,
        body=body,
    )


def from_user(text: str, seq: int = 1, *, owner: str | None = None, **more: Any) -> Envelope:
    """A word from a person; from the owner of the room unless named."""
    return envelope(UserMessage(text), FromUser(owner), seq, **more)


def from_session(
    text: str, seq: int = 1, *, session: str = "s-0002", agent: str | None = "writer", hops: int = 0
) -> Envelope:
    """A letter of another session."""
    return envelope(AgentMessage(text), FromSession(session, agent), seq, hops=hops)


def from_timer(text: str, seq: int = 1, *, name: str = "timer:nightly") -> Envelope:
    """What a timer says: shaped like a word from a person, and none."""
    return envelope(UserMessage(text), FromSystem(name), seq)


def call_ended(
    call: str,
    response: Json = "42 tests passed",
    seq: int = 1,
    *,
    tool: str = "run_tests",
    state: CallState = CallState.COMPLETED,
    **more: Any,
) -> Envelope:
    """The end of a call, as it is posted to the session that made it."""
    return envelope(ToolCallFinished(call, tool, state, response), FromToolCall(call), seq, **more)


def watched(
    session: str, event: str = "run.stopped", data: Json = None, seq: int = 1, *, hops: int = 0
) -> Envelope:
    """An event of a watched session."""
    return envelope(WatchedEvent(session, event, data), FromSystem("watch"), seq, hops=hops)


def order(message: ControlMessage, seq: int = 1, sender: Sender | None = None) -> Envelope:
    """An order to the session."""
    return envelope(Control(message), sender or FromUser(), seq, priority=Priority.INTERRUPT)


def record(status: SessionStatus = SessionStatus.IDLE, **fields: Any) -> SessionRecord:
    """A session as stored once."""
    known: dict[str, Any] = {
        "id": "s-0001",
        "name": "rev",
        "agent": "reviewer",
        "version": 1,
        "created_at": AT,
    }
    return SessionRecord(**{**known, **fields, "status": status})
