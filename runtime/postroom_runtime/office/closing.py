"""Close sessions: what runs is stopped, what belongs to it goes with it, its name is free."""

from typing import TYPE_CHECKING

from postroom_runtime.calls.desk import Beside
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import FromSession, Outgoing
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.stepper.receive_points import renders

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


_TOLD = 5
"""Letters that the owner is told one by one."""


def close_session(room: "Room", session: "Session") -> None:
    """Close ``session`` and its children, the children first (M-102). Twice is harmless."""
    for child in room.sessions(hidden=True):
        if child.parent == session.id:
            close_session(room, child)
    if session.closed:
        return
    session.life.closing = True
    room.timetable.end_with(session.id)
    if session.running:
        # Its own task stores the end of the run, then that it is closed.
        session.stop()
    else:
        store_closed(session.life)
        session.life.end()


def store_closed(life: "Life") -> None:
    """Store that a session is closed, with the end of every call that ran or waited for the owner.

    Its mail and transcript stay readable (M-134).
    """
    life.load()
    ended: list[Call] = []
    rows: list[Record] = []
    mail: list[Outgoing] = []
    for call in life.table.unended():
        question = life.desk.cancelled(call.token) if call.state is CallState.DEFERRED else Beside()
        if question is None:
            continue  # its result came from outside in this moment
        end, told = life.table.closed(call)
        ended.append(end)
        rows += [end, *question.rows]
        mail += [told, *question.mail]
    reason = life.state.record.end_reason or EndReason.CLOSED
    if rows:
        life.state.commit_now(*rows, mail=mail)  # first, since a closed session takes no mail
    for call in ended:
        life.table.enter(call)
    life.state.commit_now(status=SessionStatus.CLOSED, end_reason=reason)
    _tell_unread(life)


def _tell_unread(life: "Life") -> None:
    """Tell the owner of letters that were accepted and that nobody reads any more."""
    state = life.state
    letters = [
        envelope
        for envelope in state.unread()
        if isinstance(envelope.sender, FromSession) and renders(envelope, state.placeholders)
    ]
    if letters:
        ids = ", ".join(f"{e.id} from {e.sender.id}" for e in letters[:_TOLD])
        more = f" and {len(letters) - _TOLD} more" if len(letters) > _TOLD else ""
        life.report(
            "unread",
            f"{state.record.name} was closed with letters it had not read: {ids}{more}.",
            mail=[envelope.id for envelope in letters],
        )
