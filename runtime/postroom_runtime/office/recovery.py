"""Reopen a room from its store: what every session was doing, and what no longer can go on."""

from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import Outgoing
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.ids import is_inbox_key
from postroom_runtime.contracts.journal import Record, RowKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.office.closing import close_session
from postroom_runtime.office.notices import orphan_entry
from postroom_runtime.office.session import Session
from postroom_runtime.storage.protocol import Storage

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

_ALIVE = (SessionStatus.RUNNING, SessionStatus.WAITING)


def recover(room: "Room") -> None:
    """Bring back every open session as ``ready``; nothing runs until its owner says so (M-91).

    A run that the kernel's end cut short is told as interrupted, and open calls as orphaned (M-71),
    also of a session at rest: what a pause detached or an approval let run dies with its kernel too.
    Mail that waits, the owner's too, waits on for a word sent in this kernel.
    """
    settling = []
    for record in room.storage.records().values():
        room.counted(record)
        if is_inbox_key(record.id) or record.status is SessionStatus.CLOSED:
            continue
        session = Session(room, record, room.storage.claim(record.id, "kernel"))
        room.admit(session)
        settling.append(session)
    for session in settling:
        _settle(room, session)
    for session in settling:
        if session.record.ends_with_call:
            close_session(room, session)  # its call is an orphan by now


def _settle(room: "Room", session: Session) -> None:
    record, state = session.record, session.life.state
    rows: list[Record] = []
    mail: list[Outgoing] = []
    entries: list[Outgoing] = []
    for call in _open_calls(room, session):
        ended, told = session.life.table.orphan(call)
        rows.append(ended)
        mail.append(told)
        entries.append(orphan_entry(room.owner_inbox, record, call))
    changes: dict[str, Any] = {}
    if record.status in _ALIVE:
        stopped = state.event(
            EventKind.RUN_STOPPED, reason=EndReason.INTERRUPTED, rounds=0, turn=record.turns
        )
        rows.append(stopped)
        changes = {"status": SessionStatus.READY, "end_reason": EndReason.INTERRUPTED}
    elif record.status is SessionStatus.IDLE:
        changes = {"status": SessionStatus.READY}
    # The orphans' own mail is behind the waterline too.
    waterline = _head(session, record) + len(mail)
    if rows or changes or waterline > record.waterline:
        state.commit_now(*rows, mail=[*mail, *entries], waterline=waterline, **changes)


def _head(session: Session, record: SessionRecord) -> int:
    unread = session.life.state.arrived()
    return unread[-1].seq if unread else record.cursor


def _open_calls(room: "Room", session: Session) -> list[Call]:
    latest: dict[str, Call] = {}
    for row in room.storage.rows(session.id, kinds=(RowKind.CALL,)):
        if isinstance(row.record, Call):
            latest[row.record.id] = row.record
    # A deferred call is no orphan: its question still stands, and it goes on when answered.
    return [c for c in latest.values() if c.state in (CallState.PENDING, CallState.RUNNING)]


def stored_approvals(storage: Storage) -> list[Approval]:
    """Return every approval ever asked for, each in its latest state, oldest first."""
    latest: dict[str, Approval] = {}
    for row in storage.rows(kinds=(RowKind.APPROVAL,)):
        if isinstance(row.record, Approval):
            latest[row.record.id] = row.record
    return list(latest.values())
