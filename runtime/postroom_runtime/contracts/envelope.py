"""Mail: envelopes, who sends them, what they say, and the receipt a sender gets (M-10…M-17)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, TypeAlias

from postroom_runtime.contracts.extra import Extra, Json
from postroom_runtime.contracts.ids import CallId, MailId, SessionId


class Priority(StrEnum):
    """How urgently mail wants to be read; never the order of the log (M-14)."""

    NORMAL = "normal"
    INTERRUPT = "interrupt"


class SenderKind(StrEnum):
    """Who writes mail (M-11)."""

    USER = "user"
    SESSION = "session"
    TOOL = "tool"
    SYSTEM = "system"


# ── Senders: stamped by the runtime from the caller's handle, never from tool arguments ──


@dataclass(frozen=True, slots=True)
class FromUser:
    """A person. ``owner`` is their name when known; None is the owner of the room."""

    owner: str | None = None
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[SenderKind] = SenderKind.USER
    agent: ClassVar[None] = None

    @property
    def id(self) -> str | None:
        """The person's name, or None for the owner."""
        return self.owner


@dataclass(frozen=True, slots=True)
class FromSession:
    """Another session, with the slug of its agent."""

    session: SessionId
    agent: str | None = None
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[SenderKind] = SenderKind.SESSION

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session


@dataclass(frozen=True, slots=True)
class FromToolCall:
    """A tool call of the session itself, ended."""

    call: CallId
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[SenderKind] = SenderKind.TOOL
    agent: ClassVar[None] = None

    @property
    def id(self) -> str:
        """The call's id."""
        return self.call


@dataclass(frozen=True, slots=True)
class FromSystem:
    """The runtime: a timer (``timer:NAME``), a watch, an approval, recovery."""

    name: str
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[SenderKind] = SenderKind.SYSTEM
    agent: ClassVar[None] = None

    @property
    def id(self) -> str:
        """Which part of the runtime writes."""
        return self.name


@dataclass(frozen=True, slots=True)
class UnknownSender:
    """A kind of sender that a newer Postroom wrote; kept as it was."""

    kind: str
    data: Mapping[str, Json]
    agent: ClassVar[None] = None

    @property
    def id(self) -> None:
        """Nothing is known of it."""
        return


Sender: TypeAlias = FromUser | FromSession | FromToolCall | FromSystem | UnknownSender


# ── Controls (M-13) ──


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop the run at the next receive point; mail goes on arriving."""

    tag: ClassVar[str] = "pause"
    extra: Extra = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Resume:
    """Make a paused session runnable again."""

    tag: ClassVar[str] = "resume"
    extra: Extra = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class CancelCalls:
    """Cancel these calls; unknown and ended ones are ignored."""

    ids: tuple[CallId, ...] = ()
    tag: ClassVar[str] = "cancel_calls"
    extra: Extra = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class StopRun:
    """End the run now, its calls and its completion too; no effect when nothing runs."""

    tag: ClassVar[str] = "stop_run"
    extra: Extra = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Release:
    """An approval's answer: from the system alone, silent."""

    token: str
    decision: str
    arguments: Json = None
    reason: str = ""
    tag: ClassVar[str] = "release"
    extra: Extra = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take back a mail that the reader has not read: its model never sees it; the log keeps both."""

    mail: MailId
    seq: int
    """Where in the same mailbox it stands."""
    tag: ClassVar[str] = "withdraw"
    extra: Extra = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class UnknownControl:
    """A control that a newer Postroom wrote; consumed without effect, kept as it was."""

    tag: str
    data: Mapping[str, Json]


ControlMessage: TypeAlias = (
    Pause | Resume | CancelCalls | StopRun | Release | Withdraw | UnknownControl
)


# ── Bodies (M-12) ──


class BodyKind(StrEnum):
    """What mail is about; the ``kind`` column of the SQL view ``mail``."""

    USER_MESSAGE = "user_message"
    AGENT_MESSAGE = "agent_message"
    TOOL_CALL_FINISHED = "tool_call_finished"
    CONTINUATION_RESULT = "continuation_result"
    WATCHED_EVENT = "watched_event"
    CONTROL = "control"
    NOTIFICATION = "notification"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person, or a timer in their name, says."""

    text: str
    in_reply_to: MailId | None = None
    expects_reply: bool = False
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.USER_MESSAGE


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """What another session says."""

    text: str
    in_reply_to: MailId | None = None
    expects_reply: bool = False
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.AGENT_MESSAGE


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A tool call ended; ``state`` is its final state, ``response`` its result or failure text."""

    call: CallId
    tool: str
    state: str
    response: Json = None
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.TOOL_CALL_FINISHED


@dataclass(frozen=True, slots=True)
class ContinuationResult:
    """A deferred call got its result from outside."""

    token: str
    call: CallId
    tool: str
    state: str
    response: Json = None
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.CONTINUATION_RESULT


@dataclass(frozen=True, slots=True)
class WatchedEvent:
    """Something happened in a session that this one watches."""

    session: SessionId
    event: str
    data: Json = None
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.WATCHED_EVENT


@dataclass(frozen=True, slots=True)
class Control:
    """An order to the session, not a word to its model."""

    message: ControlMessage
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.CONTROL


@dataclass(frozen=True, slots=True)
class Notification:
    """An entry of an owner inbox (I-19). ``metadata`` carries ``actions`` when there are any."""

    content: str
    type: str = "notification"
    metadata: Mapping[str, Json] = field(default_factory=dict)
    extra: Extra = field(default=None, kw_only=True)
    kind: ClassVar[BodyKind] = BodyKind.NOTIFICATION


@dataclass(frozen=True, slots=True)
class UnknownBody:
    """A kind of body that a newer Postroom wrote; kept as it was, never rendered."""

    kind: str
    data: Mapping[str, Json]


Body: TypeAlias = (
    UserMessage
    | AgentMessage
    | ToolCallFinished
    | ContinuationResult
    | WatchedEvent
    | Control
    | Notification
    | UnknownBody
)

EXEMPT: tuple[type, ...] = (Control, ToolCallFinished, Notification)
"""Bodies that the bound on unread mail neither refuses nor counts (M-32, I-35)."""


def text_of(body: Body) -> str:
    """Return what ``body`` says in words: its text, its response as text, else ''."""
    match body:
        case UserMessage(text=text) | AgentMessage(text=text):
            return text
        case Notification(content=content):
            return content
        case ToolCallFinished(response=response) | ContinuationResult(response=response):
            return response if isinstance(response, str) else ""
        case _:
            return ""


# ── Envelopes ──


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One accepted mail, as it is kept for ever (M-10)."""

    id: MailId
    """The idempotency key: given by the sender, else counted out by the room."""
    seq: int
    """Position in the mailbox of ``session``, from 1, without gaps (M-18)."""
    session: SessionId
    """Whose mailbox it is in."""
    sender: Sender
    priority: Priority
    hops: int
    """How many agents in a row wrote since a person did (M-108)."""
    accepted_at: datetime
    """When it was accepted, UTC."""
    body: Body
    lowered: bool = False
    """Its sender asked for an interrupt that its scope does not allow (M-74)."""
    extra: Extra = None

    @property
    def text(self) -> str:
        """What the mail says in words; '' for controls and the like."""
        return text_of(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """Mail on its way to be accepted: addressed, permitted and stamped, not yet numbered."""

    session: SessionId
    """The recipient's id, already resolved."""
    sender: Sender
    body: Body
    priority: Priority = Priority.NORMAL
    hops: int = 0
    max_hops: int | None = None
    """More hops than this are refused, after the look for a duplicate (M-16, M-109)."""
    id: MailId | None = None
    """Given by the sender: sending it again returns the first receipt (M-19)."""
    lowered: bool = False
    """The sender asked for an interrupt that its scope does not allow (M-74)."""
    note: str = ""
    """What the receipt should tell the sender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the sender of accepted mail gets (M-17)."""

    id: MailId
    seq: int
    session: SessionId
    duplicate: bool = False
    """This id was accepted before; nothing new was stored."""
    priority: Priority = Priority.NORMAL
    """As stored."""
    lowered: bool = False
    recipient_status: str = ""
    """The recipient's status just after the mail was accepted."""
    note: str = ""
    name: str = ""
    """The recipient's name, for people."""

    def __str__(self) -> str:
        """Return ``m-0003 → ann #3 (idle)`` and what else the sender should know."""
        told = [self.recipient_status] if self.recipient_status else []
        if self.duplicate:
            told.append("sent before, not stored again")
        if self.lowered and "interrupt lowered" not in self.note:
            told.append("interrupt lowered to normal")
        elif self.priority is Priority.INTERRUPT:
            told.append("interrupt")
        if self.note:
            told.append(self.note)
        return f"{self.id} → {self.name or self.session} #{self.seq}" + (
            f" ({'; '.join(told)})" if told else ""
        )

    __repr__ = __str__
