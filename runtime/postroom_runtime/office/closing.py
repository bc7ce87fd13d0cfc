"""Close sessions: what runs is stopped, what belongs to it goes with it, its name is free."""

from typing import TYPE_CHECKING

from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.stepper.state import SessionState

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
    session.life.closing = True
    if session.running:
        # Its own task stores the end of the run, then that it is closed.
        session.stop()
    else:
        store_closed(session.life.state)
        session.life.end()


def store_closed(state: SessionState) -> None:
    """Store that a session is closed; its mail and transcript stay readable."""
    ended = state.record.end_reason or EndReason.CLOSED
    state.commit_now(status=SessionStatus.CLOSED, end_reason=ended)
