"""Agents with mailboxes, live in a Jupyter kernel: ``%load_ext postroom``, ``import postroom as pr``.

A name is imported when it is first used, so ``import postroom`` by itself is light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from postroom.desk import NoRoom, open, room  # noqa: A004 - pr.open is the name of it
    from postroom.extension import load_ipython_extension, unload_ipython_extension
    from postroom_runtime.calls.context import progress
    from postroom_runtime.calls.policy import (
        After,
        Before,
        Cache,
        CommandTarget,
        Defer,
        Label,
        Match,
        Policy,
        Retries,
        Rule,
        RunAsync,
        RunSync,
        Timeout,
        ToolTarget,
        Truncate,
        Wrapper,
    )
    from postroom_runtime.calls.processes import command
    from postroom_runtime.calls.tool import tool
    from postroom_runtime.contracts.approval import Approval, ApprovalState
    from postroom_runtime.contracts.call import Call, CallState
    from postroom_runtime.contracts.config import Agent, AgentConfig
    from postroom_runtime.contracts.envelope import (
        AgentMessage,
        BodyKind,
        Envelope,
        Priority,
        Receipt,
        SenderKind,
        UserMessage,
    )
    from postroom_runtime.contracts.errors import (
        AlreadyAnswered,
        AlreadyRead,
        AnswerFailed,
        ConfigError,
        InboxReadOnly,
        MailboxFull,
        MailRefused,
        ModelError,
        NameTaken,
        NotPermitted,
        NotReadable,
        OwnerOnly,
        PostroomError,
        RoomLocked,
        StaleRecord,
        StoreFailed,
        TooManyHops,
        TooManySessions,
        UnknownRecipient,
        WaitCycle,
        WaitInterrupted,
        WaitTimedOut,
    )
    from postroom_runtime.contracts.event import Event, EventKind
    from postroom_runtime.contracts.helper import Helper
    from postroom_runtime.contracts.inbox import Inbox
    from postroom_runtime.contracts.permission import Allow, Permission
    from postroom_runtime.contracts.principal import AccessRole, Principal
    from postroom_runtime.contracts.results import (
        Answer,
        BroadcastResult,
        DrainResult,
        GatherResult,
        Refusal,
        WaitResult,
        WokenBy,
    )
    from postroom_runtime.contracts.session_record import SessionStatus
    from postroom_runtime.contracts.turn import EndReason, Role, Turn, Usage, no_reply
    from postroom_runtime.mail.channels import Channel, Push
    from postroom_runtime.mail.watches import Watch
    from postroom_runtime.models.script import call, say, script
    from postroom_runtime.office.access import Access
    from postroom_runtime.office.channel_adapters import CommandChannel, Webhook
    from postroom_runtime.office.feed import Feed
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.run_handle import RunHandle
    from postroom_runtime.office.sequence_picture import Sequence
    from postroom_runtime.office.session import Session
    from postroom_runtime.office.stepping import StepResult
    from postroom_runtime.office.timers import Timer

_FROM: Final = {
    "postroom.desk": ("NoRoom", "open", "room"),
    "postroom.extension": ("load_ipython_extension", "unload_ipython_extension"),
    "postroom_runtime.calls.context": ("progress",),
    "postroom_runtime.calls.policy": (
        "After",
        "Before",
        "Cache",
        "CommandTarget",
        "Defer",
        "Label",
        "Match",
        "Policy",
        "Retries",
        "Rule",
        "RunAsync",
        "RunSync",
        "Timeout",
        "ToolTarget",
        "Truncate",
        "Wrapper",
    ),
    "postroom_runtime.calls.processes": ("command",),
    "postroom_runtime.calls.tool": ("tool",),
    "postroom_runtime.contracts.approval": ("Approval", "ApprovalState"),
    "postroom_runtime.contracts.call": ("Call", "CallState"),
    "postroom_runtime.contracts.config": ("Agent", "AgentConfig"),
    "postroom_runtime.contracts.envelope": (
        "AgentMessage",
        "BodyKind",
        "Envelope",
        "Priority",
        "Receipt",
        "SenderKind",
        "UserMessage",
    ),
    "postroom_runtime.contracts.errors": (
        "AlreadyAnswered",
        "AlreadyRead",
        "AnswerFailed",
        "ConfigError",
        "InboxReadOnly",
        "MailRefused",
        "MailboxFull",
        "ModelError",
        "NameTaken",
        "NotPermitted",
        "NotReadable",
        "OwnerOnly",
        "PostroomError",
        "RoomLocked",
        "StaleRecord",
        "StoreFailed",
        "TooManyHops",
        "TooManySessions",
        "UnknownRecipient",
        "WaitCycle",
        "WaitInterrupted",
        "WaitTimedOut",
    ),
    "postroom_runtime.contracts.event": ("Event", "EventKind"),
    "postroom_runtime.contracts.helper": ("Helper",),
    "postroom_runtime.contracts.inbox": ("Inbox",),
    "postroom_runtime.contracts.permission": ("Allow", "Permission"),
    "postroom_runtime.contracts.principal": ("AccessRole", "Principal"),
    "postroom_runtime.contracts.results": (
        "Answer",
        "BroadcastResult",
        "DrainResult",
        "GatherResult",
        "Refusal",
        "WaitResult",
        "WokenBy",
    ),
    "postroom_runtime.contracts.session_record": ("SessionStatus",),
    "postroom_runtime.contracts.turn": ("EndReason", "Role", "Turn", "Usage", "no_reply"),
    "postroom_runtime.mail.watches": ("Watch",),
    "postroom_runtime.models.script": ("call", "say", "script"),
    "postroom_runtime.mail.channels": ("Channel", "Push"),
    "postroom_runtime.office.access": ("Access",),
    "postroom_runtime.office.channel_adapters": ("CommandChannel", "Webhook"),
    "postroom_runtime.office.feed": ("Feed",),
    "postroom_runtime.office.room": ("Room",),
    "postroom_runtime.office.run_handle": ("RunHandle",),
    "postroom_runtime.office.sequence_picture": ("Sequence",),
    "postroom_runtime.office.session": ("Session",),
    "postroom_runtime.office.stepping": ("StepResult",),
    "postroom_runtime.office.timers": ("Timer",),
}

_MODULE: Final = {name: module for module, names in _FROM.items() for name in names}

__all__ = [  # noqa: RUF022 - what people use first stands first
    "room",
    "open",
    "Agent",
    "AgentConfig",
    "Helper",
    "Inbox",
    "tool",
    "command",
    "progress",
    "script",
    "call",
    "say",
    "no_reply",
    "Room",
    "Session",
    "RunHandle",
    "Receipt",
    "WaitResult",
    "WokenBy",
    "Answer",
    "DrainResult",
    "BroadcastResult",
    "GatherResult",
    "Refusal",
    "StepResult",
    "Envelope",
    "UserMessage",
    "AgentMessage",
    "BodyKind",
    "SenderKind",
    "Priority",
    "Turn",
    "Role",
    "EndReason",
    "Usage",
    "Call",
    "CallState",
    "Approval",
    "ApprovalState",
    "Feed",
    "Permission",
    "Allow",
    "Principal",
    "AccessRole",
    "Access",
    "Webhook",
    "CommandChannel",
    "Channel",
    "Push",
    "Policy",
    "Rule",
    "Wrapper",
    "Match",
    "RunSync",
    "RunAsync",
    "Defer",
    "Timeout",
    "Retries",
    "Cache",
    "Label",
    "Truncate",
    "Before",
    "After",
    "CommandTarget",
    "ToolTarget",
    "Event",
    "EventKind",
    "Sequence",
    "Watch",
    "Timer",
    "SessionStatus",
    "PostroomError",
    "MailRefused",
    "UnknownRecipient",
    "NotPermitted",
    "NotReadable",
    "TooManyHops",
    "TooManySessions",
    "MailboxFull",
    "InboxReadOnly",
    "OwnerOnly",
    "NameTaken",
    "NoRoom",
    "AlreadyAnswered",
    "AlreadyRead",
    "AnswerFailed",
    "StaleRecord",
    "RoomLocked",
    "StoreFailed",
    "ConfigError",
    "ModelError",
    "WaitTimedOut",
    "WaitInterrupted",
    "WaitCycle",
    "load_ipython_extension",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, and keep it."""
    module = _MODULE.get(name)
    if module is None:
        raise AttributeError(f"module 'postroom' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what Tab offers behind ``pr.``."""
    return sorted([*globals(), *__all__])
