"""Any record there can be, for property tests."""

from dataclasses import MISSING, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, get_type_hints

from hypothesis import strategies as st

from postroom_runtime.contracts.call import Call, CallState, ToolMessage, ToolRequest
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
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
    Release,
    Resume,
    Sender,
    StopRun,
    ToolCallFinished,
    UnknownBody,
    UnknownControl,
    UnknownSender,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.journal import Record, RowKind
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn, Usage

texts = st.text(max_size=12) | st.sampled_from(["", "a\x00b", "ünïcode 😀", '"\\ud800"', "Ω" * 40])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
moments = st.datetimes(
    min_value=datetime.fromisoformat("1980-01-01"),
    max_value=datetime.fromisoformat("2200-01-01"),
    timezones=st.just(UTC),
)
extras = st.none() | st.dictionaries(
    st.sampled_from(["later", "~x", "mood"]), json_values, min_size=1, max_size=2
)
numbers = st.integers(min_value=0, max_value=2**40)

_BY_HINT: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    str | None: st.none() | texts,
    int: numbers,
    int | None: st.none() | numbers,
    float | None: st.none() | st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    datetime: moments,
    datetime | None: st.none() | moments,
    tuple[str, ...]: st.lists(texts, max_size=3).map(tuple),
}


def any_of(record: type, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records of a class, each field of any value its type allows; a default now and then."""
    hints = get_type_hints(record)
    parts: dict[str, st.SearchStrategy[Any]] = {}
    for each in fields(record):
        if each.name in given:
            parts[each.name] = given[each.name]
            continue
        if each.name == "extra":
            parts["extra"] = extras
            continue
        hint = hints[each.name]
        if isinstance(hint, type) and issubclass(hint, StrEnum):
            parts[each.name] = st.sampled_from(list(hint))
        elif hint in _BY_HINT:
            parts[each.name] = _BY_HINT[hint]
        elif "Mapping" in str(hint) and "None" not in str(hint):
            parts[each.name] = json_objects
        else:
            parts[each.name] = json_values
        if each.default is not MISSING:
            parts[each.name] |= st.just(each.default)
    return st.builds(record, **parts)


def _optional_word(words: type[StrEnum]) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(list(words))


senders: st.SearchStrategy[Sender] = st.one_of(
    *(any_of(each) for each in (FromUser, FromSession, FromToolCall, FromSystem)),
    st.builds(UnknownSender, st.just("oracle"), json_objects),
)
controls = st.one_of(
    *(any_of(each) for each in (Pause, Resume, CancelCalls, StopRun, Release)),
    st.builds(UnknownControl, st.just("dance"), json_objects),
)
bodies: st.SearchStrategy[Body] = st.one_of(
    *(
        any_of(each)
        for each in (
            UserMessage,
            AgentMessage,
            ToolCallFinished,
            ContinuationResult,
            WatchedEvent,
            Notification,
        )
    ),
    any_of(Control, message=controls),
    st.builds(UnknownBody, st.just("poem"), json_objects),
)
envelopes: st.SearchStrategy[Envelope] = any_of(Envelope, sender=senders, body=bodies)
calls: st.SearchStrategy[Call] = any_of(Call, progress=st.just(()), policy=st.none() | json_objects)
usages = any_of(Usage)
turns: st.SearchStrategy[Turn] = any_of(
    Turn,
    mail=st.lists(envelopes, max_size=2).map(tuple),
    results=st.lists(any_of(ToolMessage), max_size=2).map(tuple),
    calls=st.lists(any_of(ToolRequest), max_size=2).map(tuple),
    usage=st.none() | usages,
    end_reason=_optional_word(get_type_hints(Turn)["end_reason"].__args__[0]),
    provenance=_optional_word(get_type_hints(Turn)["provenance"].__args__[0]),
)
session_records: st.SearchStrategy[SessionRecord] = any_of(
    SessionRecord,
    usage=usages,
    end_reason=_optional_word(get_type_hints(SessionRecord)["end_reason"].__args__[0]),
)
events: st.SearchStrategy[Event] = any_of(
    Event, kind=st.sampled_from(list(EventKind)) | st.just("moon.rose")
)

records: st.SearchStrategy[tuple[RowKind, Record]] = st.one_of(
    st.tuples(st.just(RowKind.MAIL), envelopes),
    st.tuples(st.just(RowKind.ENTRY), envelopes),
    st.tuples(st.just(RowKind.SESSION), session_records),
    st.tuples(st.just(RowKind.TURN), turns),
    st.tuples(st.just(RowKind.CALL), calls),
    st.tuples(st.just(RowKind.EVENT), events),
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def letter(**given: Any) -> Envelope:
    """An envelope, with what matters to the test."""
    return Envelope(
        **{
            "id": "m-0001",
            "seq": 1,
            "session": "s-0001",
            "sender": FromUser(),
            "priority": "normal",
            "hops": 0,
            "accepted_at": NOON,
            "body": UserMessage("hello"),
            **given,
        }
    )


def call(**given: Any) -> Call:
    """A call, with what matters to the test."""
    return Call(
        **{
            "id": "call_0001",
            "session": "s-0001",
            "tool": "slow",
            "arguments": {"n": 1},
            "state": CallState.RUNNING,
            **given,
        }
    )
