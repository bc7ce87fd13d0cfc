"""The model's tools for mail: ``send-message``."""

from dataclasses import replace
from typing import Any, Protocol

from postroom_runtime.calls.context import current_call
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.errors import TooManyHops
from postroom_runtime.mail.router import Letter, Member, Router

TOOLBOX = "mail"


class Reporter(Protocol):
    """Writes an entry in the owner inbox of the calling session's agent."""

    def __call__(self, type: str, content: str, **metadata: Any) -> None:
        """Write it."""
        ...


async def send_message(
    to: str,
    text: str,
    in_reply_to: str | None = None,
    expects_reply: bool = False,
    interrupt: bool = False,
    *,
    _router: Router,
    _sender: Member,
    _report: Reporter,
) -> dict[str, Any]:
    """Write to another session. It may be busy or idle; its answer, if any, comes to you as mail.

    Args:
        to: The session's id (as in a mail header) or name.
        text: What to say.
        in_reply_to: The id of the mail this answers, as in its header.
        expects_reply: Whether you would like an answer; a hint to the reader.
        interrupt: Ask the reader to break off what it waits for. Honoured for your children.

    Returns:
        The receipt: its id, its place in the mailbox, the recipient's status.
    """
    letter = Letter(
        text=text,
        interrupt=interrupt,
        in_reply_to=in_reply_to,
        expects_reply=expects_reply,
        # Of the call, so that a call tried twice sends once (M-99).
        id=f"m-{current_call().call}",
    )
    try:
        receipt = await _router.post(to, letter, _sender)
    except TooManyHops as error:
        _report("hops", f"{_sender.name} was refused a letter to {to}: {error}", to=to)
        raise
    return {
        "id": receipt.id,
        "seq": receipt.seq,
        "session": receipt.session,
        "duplicate": receipt.duplicate,
        "priority": str(receipt.priority),
        "lowered": receipt.lowered,
        "recipient_status": receipt.recipient_status,
        "note": receipt.note,
    }


_SEND_MESSAGE = make_tool(
    send_message,
    name="send-message",
    bound={"_router": None, "_sender": None, "_report": None},
    toolbox=TOOLBOX,
)


def mail_tools(router: Router, sender: Member, report: Reporter) -> list[Tool]:
    """Return the mail tools of the session ``sender``."""
    hands: dict[str, Any] = {"_router": router, "_sender": sender, "_report": report}
    return [replace(_SEND_MESSAGE, bound=hands)]


NAMES = ("send-message",)
"""What an agent's ``toolbox`` option may name of these."""
