"""Close sessions: what runs is stopped, what belongs to it goes with it, its name is free."""

from typing import TYPE_CHECKING

from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


def close_session(room: "Room", session: "Session") -> None:
    """Close ``session`` and its children, the children first (M-102). Twice is harmless."""
    for child in room.sessions(hidden=True):
        if child.parent == session.id:
            close_session(room, child)
    if session.closed:
        return
    session.closing = True
    if session.running:
        # Its own task stores the end of the run, then that it is closed.
        session.stop()
    else:
        store_closed(session)
        session.end_task()


def store_closed(session: "Session") -> None:
    """Store that ``session`` is closed; its mail and transcript stay readable."""
    ended = session.end_reason or EndReason.CLOSED
    session.state.commit_now(status=SessionStatus.CLOSED, end_reason=ended)
