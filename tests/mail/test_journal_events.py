"""What each journal row says to those who listen (M-128, A-17, I-19, I-20)."""

from dataclasses import replace
from typing import Any

import pytest

from contracts.envelopes import AT, envelope, from_user, order, record
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import FromSystem, Notification, Pause
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.journal import Record, Row
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role, Turn
from postroom_runtime.mail.journal_events import event_of
from postroom_runtime.storage.codec import to_json

CALL = Call(
    id="call_0001",
    session="s-0001",
    tool="run_tests",
    arguments={"suite": "fast"},
    state=CallState.RUNNING,
)

ENTRY = envelope(Notification("disk full"), FromSystem("runtime"), session="inbox@reviewer")
TURN = Turn(index=1, role=Role.USER, text="hi", mail=(from_user("hi"),))


def told(record: Record, session: str = "s-0001") -> Event | None:
    return event_of(Row(7, session, AT, record))


@pytest.mark.parametrize(
    ("record", "session", "kind", "key"),
    [
        (from_user("hi"), "s-0001", EventKind.MAIL_ACCEPTED, "mail"),
        (order(Pause()), "s-0001", EventKind.MAIL_ACCEPTED, "mail"),
        (ENTRY, "inbox@reviewer", EventKind.NOTIFICATION, "entry"),
        (TURN, "s-0001", EventKind.SESSION_UPDATED, "turn"),
        (record(SessionStatus.RUNNING), "s-0001", EventKind.SESSION_UPDATED, "session"),
        (CALL, "s-0001", EventKind.TOOL_STARTED, "call"),
        (replace(CALL, state=CallState.DEFERRED), "s-0001", EventKind.CALLS_DEFERRED, "call"),
        *(
            (replace(CALL, state=state), "s-0001", EventKind.TOOL_COMPLETED, "call")
            for state in CallState
            if state.final
        ),
    ],
)
def test_a_row_is_told_as_the_event_of_its_record(
    record: Record, session: str, kind: EventKind, key: str
) -> None:
    event = told(record, session)

    assert event == Event(kind=kind, seq=7, session=session, at=AT, data={key: to_json(record)})


def test_a_call_that_has_not_begun_is_nothing_to_tell_of() -> None:
    assert told(replace(CALL, state=CallState.PENDING)) is None


@pytest.mark.parametrize("seq", [0, 7])
def test_a_stored_event_is_told_as_it_is_under_the_number_of_its_row(seq: int) -> None:
    """The commit order of the room is the one numbering of stored and live events."""
    event = Event(
        kind=EventKind.RUN_STOPPED,
        seq=seq,
        session="s-0001",
        at=AT,
        data={"reason": EndReason.ANSWER},
    )

    assert told(event) == replace(event, seq=7)


def test_an_event_of_a_newer_kind_is_told_too() -> None:
    event = Event(kind="poem.written", seq=7, session="s-0001", at=AT)

    assert told(event) == event


def test_what_is_told_carries_the_words_a_view_shows() -> None:
    data: dict[str, Any] = {}
    for each in (from_user("hi"), TURN, CALL, record()):
        if (event := told(each)) is not None:
            data |= event.data

    assert data["mail"]["body"]["text"] == "hi"
    assert data["turn"]["text"] == "hi"
    assert data["call"]["tool"] == "run_tests"
    assert data["session"]["name"] == "rev"
