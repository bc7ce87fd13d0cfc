"""The journal: one ordered log of everything a room stores, one row per record."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.ids import SessionId, is_inbox_key
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn


class RowKind(StrEnum):
    """What a journal row holds."""

    MAIL = "mail"
    ENTRY = "entry"
    """Mail in an owner inbox: in the view ``inbox``, never in ``mail``."""
    SESSION = "session"
    TURN = "turn"
    CALL = "call"
    APPROVAL = "approval"
    EVENT = "event"


Record: TypeAlias = Envelope | SessionRecord | Turn | Call | Approval | Event


@dataclass(frozen=True, slots=True)
class Row:
    """One record in its place.

    ``n`` is the commit order of the room, from 1, without gaps; ``at`` is UTC.
    """

    n: int
    session: SessionId
    at: datetime
    record: Record


def kind_of(session: SessionId, record: Record) -> RowKind:
    """Return the kind of row that ``record`` of ``session`` makes."""
    match record:
        case Envelope():
            return RowKind.ENTRY if is_inbox_key(session) else RowKind.MAIL
        case SessionRecord():
            return RowKind.SESSION
        case Turn():
            return RowKind.TURN
        case Call():
            return RowKind.CALL
        case Approval():
            return RowKind.APPROVAL
        case Event():
            return RowKind.EVENT
