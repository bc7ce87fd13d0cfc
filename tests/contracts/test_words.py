"""Envelopes, receipts, calls and turns as words (M-10…M-17, M-32, M-73)."""

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from contracts.envelopes import (
    call_ended,
    envelope,
    from_session,
    from_user,
    order,
    watched,
)
from postroom_runtime.contracts.call import CallState, ToolMessage
from postroom_runtime.contracts.envelope import (
    EXEMPT,
    AgentMessage,
    BodyKind,
    CancelCalls,
    ContinuationResult,
    Control,
    Envelope,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Notification,
    Pause,
    Priority,
    Receipt,
    Release,
    Resume,
    Sender,
    SenderKind,
    StopRun,
    ToolCallFinished,
    UnknownBody,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.journal import Record, RowKind, kind_of
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Role, Turn, Usage

# ── Envelopes ──


def test_an_envelope_has_the_seven_fields_of_the_specification() -> None:
    """M-10: id, seq, from, priority, hops, one timestamp, body."""
    assert {"id", "seq", "sender", "priority", "hops", "accepted_at", "body"} < {
        field.name for field in fields(Envelope)
    }


def test_an_envelope_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        from_user("hi").seq = 2  # type: ignore[misc]


def test_there_are_four_senders_each_with_an_id() -> None:
    """M-11: for a tool the id is that of the call."""
    senders: list[Sender] = [
        FromUser(),
        FromSession("s-0002", "writer"),
        FromToolCall("call_1"),
        FromSystem("x"),
    ]

    assert [sender.kind for sender in senders] == list(SenderKind)
    assert [sender.id for sender in senders] == [None, "s-0002", "call_1", "x"]
    assert [sender.agent for sender in senders] == [None, "writer", None, None]
    assert FromUser("bob").id == "bob"


def test_there_are_six_bodies_and_the_entry_of_an_owner_inbox() -> None:
    """M-12."""
    bodies = (
        UserMessage,
        AgentMessage,
        ToolCallFinished,
        ContinuationResult,
        WatchedEvent,
        Control,
        Notification,
    )

    assert [body.kind for body in bodies] == list(BodyKind)


def test_controls_are_told_apart_by_their_tags() -> None:
    """M-13."""
    tags = [each.tag for each in (Pause, Resume, CancelCalls, StopRun, Release)]

    assert tags == ["pause", "resume", "cancel_calls", "stop_run", "release"]


def test_there_are_two_priorities() -> None:
    """M-14."""
    assert list(Priority) == ["normal", "interrupt"]


@pytest.mark.parametrize(
    ("mail", "text"),
    [
        (from_user("hi"), "hi"),
        (from_session("hello"), "hello"),
        (call_ended("call_1", "42 passed"), "42 passed"),
        (call_ended("call_1", {"passed": 42}), ""),
        (call_ended("call_1", None), ""),
        (
            envelope(
                ContinuationResult("t", "call_1", "deploy", "completed", "up"), FromSystem("x")
            ),
            "up",
        ),
        (envelope(Notification("disk full"), FromSystem("runtime")), "disk full"),
        (watched("s-0002", data={"reason": "answer"}), ""),
        (order(Pause()), ""),
        (envelope(UnknownBody("poem", {"text": "roses"}), FromUser()), ""),
    ],
)
def test_the_text_of_an_envelope_is_what_it_says_in_words(mail: Envelope, text: str) -> None:
    assert mail.text == text


def test_only_controls_call_ends_and_inbox_entries_are_exempt_from_the_bound() -> None:
    """M-32, I-35."""
    assert set(EXEMPT) == {Control, ToolCallFinished, Notification}


# ── Receipts ──

SENT = Receipt(id="m-0003", seq=3, session="s-0002", name="ann", recipient_status="idle")


@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({}, "m-0003 → ann #3 (idle)"),
        ({"recipient_status": ""}, "m-0003 → ann #3"),
        ({"name": ""}, "m-0003 → s-0002 #3 (idle)"),
        ({"duplicate": True}, "m-0003 → ann #3 (idle; sent before, not stored again)"),
        ({"lowered": True}, "m-0003 → ann #3 (idle; interrupt lowered to normal)"),
        ({"priority": Priority.INTERRUPT}, "m-0003 → ann #3 (idle; interrupt)"),
        ({"note": "no mail m-9"}, "m-0003 → ann #3 (idle; no mail m-9)"),
        (
            {"duplicate": True, "lowered": True, "note": "look", "recipient_status": ""},
            "m-0003 → ann #3 (sent before, not stored again; interrupt lowered to normal; look)",
        ),
    ],
)
def test_a_receipt_prints_where_the_mail_went_and_what_became_of_it(
    changes: dict[str, Any], printed: str
) -> None:
    """M-17; api.md: `m-0003 → ann #3 (idle)`; refused or lowered ones say why."""
    receipt = replace(SENT, **changes)

    assert str(receipt) == printed
    assert repr(receipt) == printed


# ── Calls ──


def test_the_last_five_states_of_a_call_are_final_and_no_other() -> None:
    """M-73."""
    assert {state for state in CallState if state.final} == {
        CallState.COMPLETED,
        CallState.FAILED,
        CallState.CANCELLED,
        CallState.TIMED_OUT,
        CallState.ORPHANED,
    }


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("42 passed", "42 passed"),
        ('{"passed": 42}', {"passed": 42}),
        ("[1, 2]", [1, 2]),
        ("{not json", "{not json"),
        ("[mail m-1 from user]", "[mail m-1 from user]"),
        ("42", "42"),
        ("", ""),
    ],
)
def test_the_value_of_a_tool_message_is_parsed_where_it_is_an_object_or_a_list(
    content: str, value: Any
) -> None:
    message = ToolMessage(call="c", tool="t", content=content, state=CallState.COMPLETED)

    assert message.value == value


# ── Rows ──


@pytest.mark.parametrize(
    ("session", "record", "kind"),
    [
        ("s-0001", from_user("hi"), RowKind.MAIL),
        ("inbox@rev", envelope(Notification("x"), FromSystem("runtime")), RowKind.ENTRY),
        ("s-0001", SessionRecord(id="s-0001", name="rev", agent="rev"), RowKind.SESSION),
        ("s-0001", Turn(index=1, role=Role.USER, text="hi"), RowKind.TURN),
    ],
)
def test_a_record_tells_what_kind_of_row_it_makes(
    session: str, record: Record, kind: RowKind
) -> None:
    assert kind_of(session, record) is kind


def test_a_session_that_was_never_stored_has_read_nothing() -> None:
    """M-18, M-21: the first mail has seq 1 and nothing is read at 0."""
    assert SessionRecord(id="s-0001", name="rev", agent="rev").cursor == 0


def test_the_usage_of_two_turns_adds_up() -> None:
    one = Usage(requests=1, input_tokens=10, output_tokens=3)

    assert one + Usage(requests=2, output_tokens=4) == Usage(
        requests=3, input_tokens=10, output_tokens=7
    )
