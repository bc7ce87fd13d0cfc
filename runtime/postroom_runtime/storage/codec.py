"""Records to versioned JSON and back, losing nothing that a newer Postroom wrote.

The JSON is flat and plain: ``"v": 1`` at the top, fields that have their default left out, senders
and bodies marked by ``kind``, controls by ``tag``, moments as ISO-8601 in UTC with ``Z``, words of an
enum as they are. Reading is forgiving towards the future and strict towards everything else:

- A field that is not known, at whatever level, is kept in ``extra`` and written back.
- A kind of sender, body or control that is not known is kept whole, as ``Unknown…``.
- A word of an enum that is not known becomes a member made for it. It is equal to no member we
  know, so no branch mistakes it for something else, and it is written back as it was.
- A newer ``v`` is read as far as it is known, and kept.

Text may hold what is no text: a lone half of a surrogate pair, from a file name or a broken stream.
JSON and SQL refuse it. ``dumps`` then writes U+FFFD in its place, and the true JSON, escaped, beside
it under ``~exact``, where ``loads`` finds it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import cache, partial
from json.encoder import encode_basestring
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from pydantic_core import to_json as to_json_bytes

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    CancelCalls,
    ContinuationResult,
    Control,
    ControlMessage,
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
    Withdraw,
)
from postroom_runtime.contracts.errors import ConfigError, StoreFailed
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.journal import Record, RowKind
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn

VERSION = 1
"""What this Postroom writes under ``v``."""

_EXACT = "~exact"

_W = TypeVar("_W", bound=StrEnum)
_Reader: TypeAlias = Callable[[Any], Any]

_RECORDS: Mapping[RowKind, type] = {
    RowKind.MAIL: Envelope,
    RowKind.ENTRY: Envelope,
    RowKind.SESSION: SessionRecord,
    RowKind.TURN: Turn,
    RowKind.CALL: Call,
    RowKind.APPROVAL: Approval,
    RowKind.EVENT: Event,
}
_SENDERS: Mapping[str, type] = {
    each.kind.value: each for each in (FromUser, FromSession, FromToolCall, FromSystem)
}
_BODIES: Mapping[str, type] = {
    each.kind.value: each
    for each in (
        UserMessage,
        AgentMessage,
        ToolCallFinished,
        ContinuationResult,
        WatchedEvent,
        Control,
        Notification,
    )
}
_CONTROLS: Mapping[str, type] = {
    each.tag: each for each in (Pause, Resume, CancelCalls, StopRun, Release, Withdraw)
}
_MARKED: Mapping[type, str] = {
    **dict.fromkeys((*_SENDERS.values(), *_BODIES.values()), "kind"),
    **dict.fromkeys(_CONTROLS.values(), "tag"),
}
"""Which key tells a class among its like."""

_LIVE_ONLY = {(Call, "progress")}
"""Fields that are never stored."""


# ── Writing ──


def to_json(record: Record) -> dict[str, Json]:
    """Return ``record`` as plain JSON values, with ``"v": 1``.

    Raises:
        ConfigError: It holds something that is no JSON value.
    """
    try:
        return {"v": VERSION, **_written(record)}
    except RecursionError:
        raise _too_deep(record) from None


def dumps(record: Record) -> str:
    """Return ``record`` as JSON text that every JSON reader accepts.

    Raises:
        ConfigError: It holds something that is no JSON value.
    """
    return _text(to_json(record))


def letter_text(sender: Sender, body: Body, *, lowered: bool) -> str:
    """Return the part of an envelope's JSON text that is known before it is numbered.

    Making it takes as long as the body is large, so a store makes it before it takes its lock.

    Raises:
        ConfigError: It holds something that is no JSON value.
    """
    try:
        data: dict[str, Json] = {"sender": _written(sender), "body": _written(body)}
    except RecursionError:
        raise _too_deep(body) from None
    if lowered:
        data["lowered"] = True
    return _text(data)[1:-1]


def sealed(mail: Envelope, text: str) -> str:
    """Return ``mail`` as JSON text, of which ``text`` was made by ``letter_text``."""
    return (
        f'{{"v":{VERSION},"id":{encode_basestring(mail.id)},"seq":{mail.seq},'
        f'"session":{encode_basestring(mail.session)},"priority":"{mail.priority.value}",'
        f'"hops":{mail.hops},"accepted_at":"{_utc(mail.accepted_at)}",{text}}}'
    )


def _text(data: dict[str, Json]) -> str:
    try:
        return to_json_bytes(data).decode()
    except PydanticSerializationError:
        mended = _mended(data)
        mended[_EXACT] = json.dumps(data)
        return to_json_bytes(mended).decode()


def _too_deep(record: object) -> ConfigError:
    return ConfigError(f"{type(record).__name__}: its JSON is nested too deeply.")


def _utc(moment: datetime) -> str:
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.isoformat()[:-6] + "Z"


@cache
def _plan(record: type) -> tuple[tuple[str, Any], ...]:
    """Return the stored fields of a class with their defaults; ``MISSING`` where there is none."""
    return tuple(
        (each.name, _default(each))
        for each in fields(record)
        if each.name != "extra" and (record, each.name) not in _LIVE_ONLY
    )


def _default(each: "Field[Any]") -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _written(record: Any) -> dict[str, Json]:
    kind: type = type(record)
    if kind is UnknownSender or kind is UnknownBody:
        return {"kind": record.kind, **_plain_dict(record.data)}
    if kind is UnknownControl:
        return {"tag": record.tag, **_plain_dict(record.data)}
    written: dict[str, Json] = {}
    if mark := _MARKED.get(kind):
        written[mark] = str(getattr(record, mark))
    for name, default in _plan(kind):
        value = getattr(record, name)
        if default is MISSING or value != default:
            kind = type(value)
            written[name] = value if kind is str or kind is int else plain(value)
    for name, value in _plain_dict(record.extra or {}).items():
        written.setdefault(name, value)
    return written


def plain(value: Any) -> Json:
    """Return ``value`` as JSON values.

    Raises:
        ConfigError: It is none, and holds none.
    """
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, Mapping):
        return _plain_dict(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        # JSON has no word for these, and a number must not turn into nothing.
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _written(value)
    raise ConfigError(
        f"{value!r} ({kind.__name__}) is no JSON value and cannot be stored: "
        "use text, numbers, True, False, None, lists and dicts of them.",
        value=value,
    )


def _plain_dict(value: Mapping[str, Any]) -> dict[str, Json]:
    return {key if type(key) is str else str(key): plain(each) for key, each in value.items()}


def _mended(value: Any) -> Any:
    """Return JSON values with U+FFFD for each half of a surrogate pair that stands alone."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_mended(key): _mended(each) for key, each in value.items()}
        case list():
            return [_mended(each) for each in value]
    return value


# ── Reading ──


def from_json(kind: RowKind, data: Mapping[str, Json]) -> Record:
    """Return the record of a row of ``kind`` from its JSON values.

    Raises:
        StoreFailed: The values are not those of such a record.
    """
    known = dict(data)
    version = known.pop("v", VERSION)
    if isinstance(version, int) and version > VERSION:
        known["v"] = version  # to ``extra``, and from there back
    try:
        return cast("Record", _read(_RECORDS[kind], known))
    except ValidationError as wrong:
        first = wrong.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the record"
        raise StoreFailed(
            f"a stored {kind} cannot be read",
            f"{where}: {first['msg']}",
            "It was written by another program, or by a Postroom too new for this one.",
        ) from None


def loads(kind: RowKind, text: str) -> Record:
    """Return the record of a row of ``kind`` from its JSON text.

    Raises:
        StoreFailed: The text is not that of such a record.
    """
    try:
        data = json.loads(text)
        if _EXACT in data:
            data |= json.loads(data.pop(_EXACT))
    except (ValueError, TypeError) as wrong:
        raise StoreFailed(f"a stored {kind} cannot be read", f"it is no JSON: {wrong}") from None
    return from_json(kind, data)


@cache
def _adapter(record: type) -> "TypeAdapter[Any]":
    return TypeAdapter(record)


@cache
def _readers(record: type) -> Mapping[str, _Reader | None]:
    hints = get_type_hints(record)
    return {each.name: _reader(hints[each.name]) for each in fields(record) if each.name != "extra"}


def _read(record: type, data: Any) -> Any:
    if not isinstance(data, dict):
        return data  # the record around it will say what is wrong
    readers = _readers(record)
    values: dict[str, Any] = {}
    extra: dict[str, Json] = {}
    for name, value in data.items():
        if name not in readers:
            extra[name] = value
        else:
            reader = readers[name]
            values[name] = value if reader is None else reader(value)
    if extra:
        values["extra"] = extra
    return _adapter(record).validate_python(values)


def _reader(hint: Any) -> _Reader | None:
    """Return what must be done with a value of type ``hint`` before pydantic sees it, if anything."""
    if hint == Sender:
        return partial(_read_marked, "kind", _SENDERS, UnknownSender)
    if hint == Body:
        return partial(_read_marked, "kind", _BODIES, UnknownBody)
    if hint == ControlMessage:
        return partial(_read_marked, "tag", _CONTROLS, UnknownControl)
    origin, inner = get_origin(hint), [each for each in get_args(hint) if each is not NoneType]
    if origin in (Union, UnionType):
        if str in inner:
            words = next((each for each in inner if each is not str), None)
            return _reader(words) if isinstance(words, type) and issubclass(words, Enum) else None
        return _reader(inner[0]) if len(inner) == 1 else None
    if origin is tuple:
        reader = _reader(inner[0])
        return None if reader is None else partial(_read_each, reader)
    if not isinstance(hint, type):
        return None
    if issubclass(hint, StrEnum):
        return partial(_word, hint)
    if issubclass(hint, datetime):
        return _moment
    return partial(_read, hint) if is_dataclass(hint) else None


def _read_marked(mark: str, known: Mapping[str, type], unknown: type, data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    rest = dict(data)
    name = str(rest.pop(mark, ""))
    record = known.get(name)
    return unknown(name, rest) if record is None else _read(record, rest)


def _read_each(reader: _Reader, values: Any) -> Any:
    return tuple(map(reader, values)) if isinstance(values, list) else values


def _moment(value: Any) -> Any:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _word(words: type[_W], value: Any) -> Any:
    """Return the member of ``words``, or one made for a word that only a newer Postroom knows."""
    try:
        return words(value)
    except ValueError:
        return _new_word(words, value) if isinstance(value, str) else value


@cache
def _new_word(words: type[_W], value: str) -> _W:
    member = str.__new__(words, value)
    member._name_ = member._value_ = value
    return member
