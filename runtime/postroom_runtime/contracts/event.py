"""Events: what a view, a watch or a waiting cell hears of a session, in commit order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from postroom_runtime.contracts.extra import Extra, Json
from postroom_runtime.contracts.ids import SessionId


class EventKind(StrEnum):
    """What happened. The data each kind carries stands beside it."""

    MAIL_ACCEPTED = "mail.accepted"
    """``mail``: the envelope as JSON."""
    INBOX = "inbox"
    """Mail was delivered: ``text`` as the model reads it, ``mail`` the seqs, ``turn`` (A-17)."""
    RUN_STARTED = "run.started"
    """``turn``: index of the first user turn."""
    RUN_STOPPED = "run.stopped"
    """``reason``: an EndReason; ``rounds``: model turns it took; ``allowed``: how many it might have
    taken, with what a word from its owner gave it anew ``extended`` times; ``cap``: the knob that
    capped it; ``closing``: its session is being closed."""
    SESSION_UPDATED = "session.updated"
    """``turn``: a turn as JSON, or ``session``: the session record as JSON."""
    SESSION_FAILED = "session.failed"
    """``error``: one line; ``traceback``: the rest."""
    TOOL_STARTED = "tool.started"
    """``call``: the call as JSON."""
    TOOL_COMPLETED = "tool.completed"
    """``call``: the call as JSON, in a final state."""
    CALLS_DEFERRED = "calls.deferred"
    """``call``: the call as JSON, deferred."""
    TOOL_PROGRESS = "tool.progress"
    """Live only. ``call``: its id; ``done``, ``total``, ``text``."""
    TEXT_DELTA = "text.delta"
    """Live only. ``text``: the next piece of what the model says."""
    TEXT_DISCARDED = "text.discarded"
    """Live only: the pieces streamed since the last turn are void."""
    NOTIFICATION = "notification"
    """An entry of an owner inbox: ``entry``, the envelope as JSON."""
    APPROVAL_REQUESTED = "approval_requested"
    """``approval``: the approval as JSON; its call waits for the owner."""
    APPROVAL_RESOLVED = "approval_resolved"
    """``approval``: the approval as JSON, answered, completed or cancelled."""


LIVE_ONLY = frozenset({EventKind.TEXT_DELTA, EventKind.TEXT_DISCARDED, EventKind.TOOL_PROGRESS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in a session.

    ``seq`` is the number of the journal row it was stored as: the commit order of the whole room.
    A live-only event carries the ``seq`` of the last stored one, so ``since=event.seq`` never
    skips and never repeats a stored event.
    """

    kind: EventKind | str
    seq: int
    session: SessionId
    at: datetime
    data: Mapping[str, Json] = field(default_factory=dict)
    extra: Extra = None
