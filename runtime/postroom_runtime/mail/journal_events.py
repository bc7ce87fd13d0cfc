"""What each journal row says to those who listen: a pure reading of rows as events."""

from dataclasses import replace

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import is_inbox_key
from postroom_runtime.contracts.journal import Row
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.storage.codec import to_json


def event_of(row: Row) -> Event | None:
    """Return the event that ``row`` is told as, or None for a row nobody needs to hear of.

    The event's ``seq`` is the row's ``n``: the commit order of the room, so stored and live events
    have one numbering.
    """
    match row.record:
        case Event() as event:
            return event if event.seq == row.n else replace(event, seq=row.n)
        case Envelope() as envelope if is_inbox_key(row.session):
            return _event(row, EventKind.NOTIFICATION, entry=to_json(envelope))
        case Envelope() as envelope:
            return _event(row, EventKind.MAIL_ACCEPTED, mail=to_json(envelope))
        case Turn() as turn:
            return _event(row, EventKind.SESSION_UPDATED, turn=to_json(turn))
        case SessionRecord() as record:
            return _event(row, EventKind.SESSION_UPDATED, session=to_json(record))
        case Call(state=CallState.RUNNING) as call:
            return _event(row, EventKind.TOOL_STARTED, call=to_json(call))
        case Call(state=CallState.DEFERRED) as call:
            return _event(row, EventKind.CALLS_DEFERRED, call=to_json(call))
        case Approval(state=ApprovalState.PENDING) as approval:
            return _event(row, EventKind.APPROVAL_REQUESTED, approval=to_json(approval))
        case Approval() as approval:
            return _event(row, EventKind.APPROVAL_RESOLVED, approval=to_json(approval))
        case Call() as call if call.state.final:
            return _event(row, EventKind.TOOL_COMPLETED, call=to_json(call))
        case _:
            return None


def _event(row: Row, kind: EventKind, **data: object) -> Event:
    return Event(kind=kind, seq=row.n, session=row.session, at=row.at, data=data)
