"""Tool calls: what a model may call, what it called, and how that went."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from postroom_runtime.contracts.extra import Extra, Json
from postroom_runtime.contracts.ids import CallId, SessionId


class CallState(StrEnum):
    """Where a call stands. The last five are final and written once (M-73)."""

    PENDING = "pending"
    RUNNING = "running"
    DEFERRED = "deferred"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    ORPHANED = "orphaned"

    @property
    def final(self) -> bool:
        """Whether the call has ended."""
        return self not in (CallState.PENDING, CallState.RUNNING, CallState.DEFERRED)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """A JSON schema of type object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """One call as a model made it, in the order of its turn."""

    tool: str
    arguments: Mapping[str, Json]
    id: CallId = ""
    """Ours, unique in the room; '' until the stepper gives it. Provider ids may repeat."""
    malformed: str = ""
    """Why the arguments could not be read, and what the model wrote; '' when they could."""
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One report from inside a tool: state, never mail (M-2)."""

    done: float
    total: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call and its state, as ``s.calls()`` and the SQL view ``calls`` show it."""

    id: CallId
    session: SessionId
    tool: str
    arguments: Mapping[str, Json]
    state: CallState
    result: Json = None
    """The result, or the failure in words; None while the call is open."""
    progress: tuple[Progress, ...] = ()
    """The last 50 reports, oldest first; kept in memory only."""
    policy: Mapping[str, Json] | None = None
    """What wrapped the call, as applied."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    token: str = ""
    """The continuation token, once the call was deferred."""
    reason: str = ""
    """Why it waits for the owner."""
    below: int = 0
    """How many decorators of its policy stand above the place to go on from, once approved."""
    extra: Extra = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """What the model is told of one of its calls: exactly one per call (M-42)."""

    call: CallId
    tool: str
    content: str
    """A result or failure as text; JSON where the result is an object or a list."""
    state: CallState
    """The call's state when the message was written; a placeholder says ``running``."""
    extra: Extra = field(default=None)

    @property
    def value(self) -> Json:
        """The content, parsed where it is a JSON object or array, else the text."""
        if self.content[:1] in ("{", "["):
            try:
                return json.loads(self.content)
            except ValueError:
                return self.content
        return self.content
