"""What the magics show: records in, tables and texts out. Pure.

No times of day: a notebook that runs again shows the same. ``%mailsql`` has them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from postroom.grids import Column, Grid
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    ContinuationResult,
    Control,
    Envelope,
    FromSession,
    FromToolCall,
    FromUser,
    Priority,
    Receipt,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
    Withdraw,
)
from postroom_runtime.contracts.extra import Json

T = TypeVar("T")


class Lines(list[T]):
    """Records that show themselves in one line each."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        for at, record in enumerate(self):
            if at:
                printer.break_()
            printer.text(str(record))


class Receipts(Lines[Receipt]):
    """The receipts of mail to several recipients."""


# ── Mail ──


def mail_grid(mail: Sequence[Envelope], *, names: Mapping[str, str], of: str, cursor: int) -> Grid:
    """Return the listing of a mailbox.

    Args:
        mail: Envelopes in order of ``seq``.
        names: Names of sessions by id.
        of: Name of the session whose mail it is.
        cursor: ``seq`` of the last mail its model has read; what is later is marked unread.
    """
    gone = {
        envelope.body.message.seq
        for envelope in mail
        if isinstance(envelope.body, Control) and isinstance(envelope.body.message, Withdraw)
    }
    rows = tuple(
        (
            str(envelope.seq),
            envelope.id,
            sender_name(envelope, names),
            f"{_kind(envelope, unread=False)}, withdrawn"
            if envelope.seq in gone
            else _kind(envelope, unread=envelope.seq > cursor),
            mail_text(envelope),
        )
        for envelope in mail
    )
    return Grid(
        (
            Column("#", number=True),
            Column("id"),
            Column("from"),
            Column("kind"),
            Column("text", text=True),
        ),
        rows,
        empty=f"No mail for {of}. Write some: %send {of} Hello",
        more=f"letters = %mail {of}",
        latest=True,
    )


def sender_name(envelope: Envelope, names: Mapping[str, str]) -> str:
    """Return who wrote a mail, as people call them."""
    match envelope.sender:
        case FromUser(owner=None):
            return "you"
        case FromUser(owner=owner):
            return str(owner)
        case FromSession(session=session):
            return names.get(session, session)
        case FromToolCall(call=call):
            return call
        case other:
            return other.id or other.kind


def _kind(envelope: Envelope, *, unread: bool) -> str:
    body = envelope.body
    match body:
        case ToolCallFinished(tool=tool, state=state) | ContinuationResult(tool=tool, state=state):
            said = [f"{tool} {state}"]
        case WatchedEvent(event=event):
            said = [f"watched {event}"]
        case Control(message=Withdraw(mail=mail)):
            said = [f"withdraws {mail}"]
        case Control(message=message):
            said = [message.tag.replace("_", " ")]
        case UserMessage() | AgentMessage():
            said = ["interrupt" if envelope.priority is Priority.INTERRUPT else "message"]
            said += [f"re {body.in_reply_to}"] if body.in_reply_to else []
            said += ["expects reply"] if body.expects_reply else []
        case _:
            said = [str(body.kind)]
    if envelope.hops:
        said.append("1 hop" if envelope.hops == 1 else f"{envelope.hops} hops")
    return ", ".join([*said, "unread"] if unread else said)


def mail_text(envelope: Envelope) -> str:
    """Return what a mail says, data as JSON."""
    match envelope.body:
        case ToolCallFinished(response=response) | ContinuationResult(response=response):
            return as_words(response)
        case WatchedEvent(data=data):
            return as_words(data)
        case _:
            return envelope.text


# ── Values ──


def arguments_text(arguments: Mapping[str, Json]) -> str:
    """Return the arguments of a call as they stand between its parentheses."""
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in arguments.items()
    )


def as_words(value: Json) -> str:
    """Return a result as text: a text as it is, the rest as JSON, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
