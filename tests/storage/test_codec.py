import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Control,
    Envelope,
    FromSession,
    Pause,
    Priority,
    UnknownBody,
    UnknownControl,
    UnknownSender,
    UserMessage,
)
from postroom_runtime.contracts.errors import ConfigError, StoreFailed
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.journal import Record, RowKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role, Turn
from postroom_runtime.storage.codec import dumps, from_json, loads, to_json
from storage.records import NOON, call, letter, records, texts


@given(records)
def test_every_record_comes_back_from_its_json_as_it_was_M10_M12(
    kept: tuple[RowKind, Record],
) -> None:
    kind, record = kept

    assert loads(kind, dumps(record)) == record
    assert from_json(kind, to_json(record)) == record


@given(records)
def test_the_json_is_plain_and_says_its_version(kept: tuple[RowKind, Record]) -> None:
    _, record = kept

    data = to_json(record)

    assert data["v"] == 1
    assert json.loads(json.dumps(data)) == data


def test_the_json_leaves_out_defaults_and_marks_senders_bodies_and_controls() -> None:
    at = NOON.astimezone(timezone(timedelta(hours=2)))
    mail = letter(
        sender=FromSession("s-0002"),
        body=Control(Pause()),
        priority=Priority.INTERRUPT,
        accepted_at=at,
    )

    assert to_json(mail) == {
        "v": 1,
        "id": "m-0001",
        "seq": 1,
        "session": "s-0001",
        "sender": {"kind": "session", "session": "s-0002"},
        "priority": "interrupt",
        "hops": 0,
        "accepted_at": "2026-11-30T12:00:00Z",
        "body": {"kind": "control", "message": {"tag": "pause"}},
    }


def test_a_session_file_without_a_cursor_loads_as_0_M21() -> None:
    old = {"v": 1, "id": "s-0001", "name": "ann", "agent": "echo", "version": 3}

    record = from_json(RowKind.SESSION, old)

    assert isinstance(record, SessionRecord)
    assert record.cursor == 0


def _every_dict(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(found for each in value.values() for found in _every_dict(each))]
    return (
        [found for each in value for found in _every_dict(each)] if isinstance(value, list) else []
    )


FUTURE_MAIL: dict[str, Any] = {
    "v": 7,
    "id": "m-0001",
    "seq": 1,
    "session": "s-0001",
    "sender": {"kind": "session", "session": "s-0002", "mood": "good"},
    "priority": "interrupt",
    "hops": 0,
    "accepted_at": "2026-11-30T12:00:00Z",
    "body": {"kind": "control", "message": {"tag": "pause", "until": "noon"}, "why": [1, {"a": 2}]},
    "signature": "xyz",
}
FUTURE_TURN: dict[str, Any] = {
    "v": 1,
    "index": 3,
    "role": "user",
    "text": "hi",
    "mail": [FUTURE_MAIL | {"v": None}],
    "results": [{"call": "c", "tool": "t", "content": "4", "state": "completed", "media": []}],
    "calls": [{"tool": "t", "arguments": {}, "batch": 2}],
    "usage": {"requests": 1, "cached_tokens": 9},
    "weather": "fair",
}
del FUTURE_TURN["mail"][0]["v"]


@pytest.mark.parametrize(
    ("kind", "data"), [(RowKind.MAIL, FUTURE_MAIL), (RowKind.TURN, FUTURE_TURN)]
)
def test_fields_of_a_newer_postroom_survive_at_every_level(
    kind: RowKind, data: dict[str, Any]
) -> None:
    read = from_json(kind, data)

    assert to_json(read) == data


def test_a_newer_version_is_read_as_far_as_known_and_written_back_as_such() -> None:
    mail = from_json(RowKind.MAIL, FUTURE_MAIL)

    assert isinstance(mail, Envelope)
    assert mail.body == Control(Pause(extra={"until": "noon"}), extra={"why": [1, {"a": 2}]})
    assert mail.extra == {"signature": "xyz", "v": 7}


def test_unknown_senders_bodies_and_controls_are_kept_whole() -> None:
    data = to_json(letter()) | {
        "sender": {"kind": "oracle", "name": "pythia"},
        "body": {"kind": "poem", "lines": ["a", "b"]},
    }

    mail = from_json(RowKind.MAIL, data)

    assert isinstance(mail, Envelope)
    assert mail.sender == UnknownSender("oracle", {"name": "pythia"})
    assert mail.body == UnknownBody("poem", {"lines": ["a", "b"]})
    assert to_json(mail) == data
    dance = data | {"body": {"kind": "control", "message": {"tag": "dance", "n": 2}}}
    dancing = from_json(RowKind.MAIL, dance)
    assert isinstance(dancing, Envelope)
    assert dancing.body == Control(UnknownControl("dance", {"n": 2}))
    assert to_json(dancing) == dance


@pytest.mark.parametrize(
    ("kind", "record", "field"),
    [
        (RowKind.CALL, call(), "state"),
        (RowKind.MAIL, letter(), "priority"),
        (RowKind.TURN, Turn(index=1, role=Role.USER, text=""), "role"),
        (RowKind.TURN, Turn(index=1, role=Role.MODEL, text=""), "end_reason"),
        (RowKind.SESSION, SessionRecord(id="s", name="n", agent="a"), "status"),
        (RowKind.EVENT, Event(kind=EventKind.INBOX, seq=1, session="s", at=NOON), "kind"),
    ],
)
def test_a_word_that_only_a_newer_postroom_knows_survives(
    kind: RowKind, record: Record, field: str
) -> None:
    data = to_json(record) | {field: "hovering"}

    read = from_json(kind, data)

    assert str(getattr(read, field)) == "hovering"
    assert to_json(read) == data


def test_an_unknown_word_equals_no_member_and_is_one_object() -> None:
    data = to_json(call()) | {"state": "hovering"}

    first, second = from_json(RowKind.CALL, data), from_json(RowKind.CALL, data)

    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.state is second.state
    assert isinstance(first.state, CallState)
    assert first.state not in list(CallState)
    assert to_json(replace(first, state=CallState.FAILED))["state"] == "failed"


def test_known_words_come_back_as_the_members_themselves() -> None:
    event = Event(kind=EventKind.RUN_STOPPED, seq=1, session="s", at=NOON)
    record = SessionRecord(
        id="s", name="n", agent="a", status=SessionStatus.PAUSED, end_reason=EndReason.PAUSED
    )

    heard, read = loads(RowKind.EVENT, dumps(event)), loads(RowKind.SESSION, dumps(record))

    assert isinstance(heard, Event)
    assert isinstance(read, SessionRecord)
    assert heard.kind is EventKind.RUN_STOPPED
    assert heard.at.tzinfo is UTC
    assert (read.status, read.end_reason) == (SessionStatus.PAUSED, EndReason.PAUSED)


def test_progress_is_never_stored() -> None:
    assert "progress" not in to_json(call())


@given(st.lists(texts | st.sampled_from(["\udcff", "\ud83d", "x\udc00y"])).map("|".join))
def test_half_surrogates_survive_in_json_that_every_reader_accepts(text: str) -> None:
    mail = letter(body=AgentMessage(text))

    stored = dumps(mail)

    stored.encode()  # would raise on what is no text
    assert "\\ud" not in stored.replace("\\\\", "")
    # Two halves that stand side by side spell a character, and come back as it.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert loads(RowKind.MAIL, stored) == replace(mail, body=AgentMessage(whole))


def test_numbers_that_json_does_not_know_become_words() -> None:
    data = to_json(call(arguments={"x": float("nan"), "y": (float("inf"), -0.5)}))

    assert data["arguments"] == {"x": "nan", "y": ["inf", -0.5]}


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), datetime])
def test_what_is_no_json_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigError, match="no JSON value"):
        dumps(call(arguments={"x": value}))


def test_endless_nesting_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(ConfigError, match="nested too deeply"):
        dumps(call(arguments={"x": endless}))


@pytest.mark.parametrize(
    "text", ["", "[]", "nonsense", '{"v":1}', '{"v":1,"id":"m","seq":"one"}', "7", "null"]
)
def test_what_is_no_record_is_refused_and_says_where(text: str) -> None:
    with pytest.raises(StoreFailed, match="a stored mail cannot be read"):
        loads(RowKind.MAIL, text)


def test_a_message_to_a_person_is_readable_in_the_file() -> None:
    assert '"text":"grüß dich 😀"' in dumps(letter(body=UserMessage("grüß dich 😀")))
