"""What a session is at rest: one small row, stored anew with each commit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from postroom_runtime.contracts.extra import Extra, Json
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.turn import EndReason, Usage


class SessionStatus(StrEnum):
    """What a session is doing."""

    READY = "ready"
    """Stored, or never run here; runs when its owner addresses it."""
    RUNNING = "running"
    IDLE = "idle"
    WAITING = "waiting"
    """A run is alive and waits for its calls or the owner."""
    PAUSED = "paused"
    FAILED = "failed"
    CAPPED = "capped"
    """Stopped by a budget; only a word from the owner runs it again."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A session as stored. ``version`` counts its commits; ``cursor`` is the acknowledgement (M-21)."""

    id: SessionId
    name: str
    agent: str
    parent: SessionId | None = None
    status: SessionStatus = SessionStatus.READY
    version: int = 0
    cursor: int = 0
    """``seq`` of the last mail folded into a stored turn; 0 when none was read."""
    turns: int = 0
    """``index`` of the last stored turn."""
    calls: int = 0
    """Tool calls made so far: the sum over all sessions counts out the room's call ids."""
    hops: int = 0
    """What the next letter of this session carries (M-108)."""
    rounds_since_human: int = 0
    """Model turns since the owner last wrote; persisted, so a restart resets nothing."""
    waterline: int = 0
    """After a failure or a cap: mail up to here does not start a run by itself (M-93)."""
    read_from: tuple[SessionId, ...] = ()
    """Sessions whose mail it has read: it may reply to them (M-105)."""
    end_reason: EndReason | None = None
    """How the last run ended."""
    error: str = ""
    """The failure of the last run in words, with its traceback after a blank line."""
    usage: Usage = field(default_factory=Usage)
    options: Mapping[str, Json] = field(default_factory=dict)
    """What was given at spawn on top of the agent: model and tools by name. Never bound values."""
    max_unread: int | None = 256
    """The bound of its mailbox; None for an owner inbox (I-35)."""
    hidden: bool = False
    for_call: CallId | None = None
    """The tool call, of its parent, that made it."""
    ends_with_call: bool = False
    """Closed when that call ends: a helper that was asked, not a session of its own (M-104)."""
    created_at: datetime | None = None
    extra: Extra = None
