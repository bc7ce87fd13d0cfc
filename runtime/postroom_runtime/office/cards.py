"""The card of a question: what an owner sees of a call that waits, wherever it looks (I-26, I-37)."""

from collections.abc import Callable
from typing import Final

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.permission import Allow
from postroom_runtime.mail.router import Member

APPROVAL: Final = "approval"
"""The type of an entry that is a question."""

REVIEW: Final = "approval_review"
"""The action of such an entry."""

OWNER: Final = "owner"


def card_words(approval: Approval, name: str) -> str:
    """Return a question as a sentence: ``coder wants to run deploy: to prod?``."""
    why = f": {approval.reason}" if approval.reason else ""
    return f"{name} wants to run {approval.tool}{why}"


def card_facts(approval: Approval, name: str, path: list[str]) -> dict[str, Json]:
    """Return the metadata of a card: what would run, who asks, and what may be answered.

    Args:
        approval: The question.
        name: Of the session whose call waits.
        path: From the owner to the call, as :func:`path_to` gives it.
    """
    until = approval.expires_at.isoformat() if approval.expires_at else None
    return {
        "type": APPROVAL,
        "session": approval.session,
        "session_name": name,
        "approval": approval.id,
        "call": approval.call,
        "tool": approval.tool,
        "arguments": dict(approval.arguments),
        "reason": approval.reason,
        "path": path,
        "expires_at": until,
        "actions": [
            {
                "type": REVIEW,
                "approval": approval.id,
                "token": approval.token,
                "always": [str(each) for each in Allow],
            }
        ],
    }


def path_to(approval: Approval, find: Callable[[SessionId], Member | None]) -> list[str]:
    """Return the names from the owner to the call: ``owner``, ``lead``, ``coder``, ``call_0003``.

    Args:
        approval: The question.
        find: Looks up a session by id.
    """
    names = [approval.call]
    above: SessionId | None = approval.session
    while above is not None and (member := find(above)) is not None:
        names.append(member.name)
        above = member.parent
    return [OWNER, *reversed(names)]
