"""Who may write to whom, and who may interrupt whom: from lineage alone; pure.

A session's scope says whom it may write to first. Two rights always hold, or a spawned child could
never answer: replying to a session whose mail it has received, and writing to its direct parent.
"""

from collections.abc import Mapping
from enum import StrEnum

from postroom_runtime.contracts.ids import SessionId


class Relation(StrEnum):
    """What one session is to another."""

    SELF = "self"
    PARENT = "parent"
    ANCESTOR = "ancestor"
    CHILD = "child"
    DESCENDANT = "descendant"
    SIBLING = "sibling"
    STRANGER = "stranger"


_REACH: Mapping[str, frozenset[Relation]] = {
    "own": frozenset({Relation.SELF}),
    "children": frozenset({Relation.SELF, Relation.CHILD}),
    "subtree": frozenset({Relation.SELF, Relation.CHILD, Relation.DESCENDANT}),
    "all": frozenset(Relation),
}


def relation(
    sender: SessionId, recipient: SessionId, parents: Mapping[SessionId, SessionId | None]
) -> Relation:
    """Return what ``recipient`` is to ``sender``.

    Args:
        sender: The session that writes.
        recipient: The session it writes to.
        parents: Each session's parent; None or absent for a root. Cycles are tolerated.
    """
    if sender == recipient:
        return Relation.SELF
    above = _ancestors(sender, parents)
    if above and recipient == above[0]:
        return Relation.PARENT
    if recipient in above:
        return Relation.ANCESTOR
    over = _ancestors(recipient, parents)
    if over and over[0] == sender:
        return Relation.CHILD
    if sender in over:
        return Relation.DESCENDANT
    if above and over and above[0] == over[0]:
        return Relation.SIBLING
    return Relation.STRANGER


def _ancestors(
    session: SessionId, parents: Mapping[SessionId, SessionId | None]
) -> list[SessionId]:
    found: list[SessionId] = []
    here = parents.get(session)
    while here is not None and here not in found:
        found.append(here)
        here = parents.get(here)
    return found


def may_write(scope: str, to: Relation, *, replying: bool) -> bool:
    """Tell whether a session with ``mail_scope=scope`` may write to its relation ``to`` (M-105).

    Args:
        scope: ``own``, ``children``, ``subtree`` or ``all``.
        to: What the recipient is to the sender.
        replying: The sender has received mail from the recipient.
    """
    return replying or to is Relation.PARENT or to in _REACH[scope]


def may_read(scope: str, to: Relation) -> bool:
    """Tell whether a session with ``mail_scope=scope`` may read, search and watch ``to``.

    Writing to its parent and to whom it answers is a right; looking into them is none.
    """
    return to in _REACH[scope]


def may_interrupt(scope: str, to: Relation) -> bool:
    """Tell whether a session with ``interrupt_scope=scope`` may interrupt ``to`` (M-74, M-106).

    Where it may not, its mail arrives as normal mail and the receipt says so.
    """
    return to in _REACH[scope]


def wake_kind(to: Relation) -> str:
    """Return the word of ``wake_on`` for mail of a session that is ``to`` of the reader (M-94)."""
    match to:
        case Relation.SELF:
            return "tool"
        case Relation.PARENT | Relation.ANCESTOR:
            return "parent"
        case Relation.CHILD | Relation.DESCENDANT:
            return "child"
        case _:
            return "peer"
