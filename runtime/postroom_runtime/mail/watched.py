"""What a watch forwards: which events there are, how one is narrowed, and what is told of each; pure.

A model reads what is forwarded, so each event is a few facts in JSON: long texts are cut.
"""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Final

from postroom_runtime.contracts.envelope import BodyKind
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.extra import Json

WATCHABLE: Final = (
    EventKind.RUN_STARTED,
    EventKind.RUN_STOPPED,
    EventKind.SESSION_UPDATED,
    EventKind.TOOL_STARTED,
    EventKind.TOOL_COMPLETED,
    EventKind.CALLS_DEFERRED,
    EventKind.SESSION_FAILED,
    EventKind.MAIL_ACCEPTED,
)
"""What may be forwarded. Text deltas and progress never are: they are for views."""

TOLD: Final = 500
"""Characters that are told of a text, a result or the arguments of a call."""

DEFAULT_TTL: Final = 600.0
"""Seconds a watch lasts when nobody says how long."""

LONGEST_TTL: Final = 30 * 24 * 3600.0
"""Seconds a watch may last."""


def check_events(events: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the kinds of events to forward, in the order of ``WATCHABLE``; None means all.

    Raises:
        ConfigError: An unknown name (near matches are named), one that is never forwarded, or none.
    """
    if events is None:
        return WATCHABLE
    given = (
        [word for word in events.split(",") if word] if isinstance(events, str) else list(events)
    )
    there_are = f"There are: {', '.join(WATCHABLE)}."
    if not given:
        raise ConfigError(f"events={events!r} forwards nothing: name one. {there_are}", value=given)
    for name in given:
        if name in WATCHABLE:
            continue
        if name in tuple(EventKind):
            raise ConfigError(f"event {name!r} is never forwarded. {there_are}", value=name)
        near = get_close_matches(str(name), WATCHABLE, n=2, cutoff=0.5)
        hint = f"Did you mean {' or '.join(map(repr, map(str, near)))}? " if near else ""
        raise ConfigError(f"no event {name!r}. {hint}{there_are}", value=name)
    return tuple(kind for kind in WATCHABLE if kind in given)


def check_tool(tool: Any) -> str | None:
    """Return the glob that tool events are narrowed by; None for no narrowing.

    Raises:
        ConfigError: It is no text, or a blank one.
    """
    if tool is None or (isinstance(tool, str) and tool.strip()):
        return tool
    raise ConfigError(
        f"tool={tool!r} matches no tool: give a name or a glob such as 'deploy_*'.", value=tool
    )


def check_ttl(ttl: Any) -> float:
    """Return for how many seconds to watch.

    Raises:
        ConfigError: Not more than 0, or more than 30 days.
    """
    number = isinstance(ttl, (int, float)) and not isinstance(ttl, bool)
    if number and 0 < ttl <= LONGEST_TTL:
        return float(ttl)
    raise ConfigError(
        f"ttl={ttl!r} (seconds) will not do: give a number above 0, at most {LONGEST_TTL:.0f} "
        f"(30 days). The default is {DEFAULT_TTL:g}.",
        value=ttl,
    )


def wanted(event: Event, events: Sequence[str], tool: str | None) -> bool:
    """Tell whether a watch of ``events`` and ``tool`` forwards ``event``.

    ``tool`` narrows ``tool.*`` events alone (M-126). Of a session's updates only its new turns count,
    not every change of its record; of its mail all but what watches put there, or two watches would
    feed each other for ever.
    """
    if event.kind not in events:
        return False
    match event.kind:
        case EventKind.SESSION_UPDATED:
            return "turn" in event.data
        case EventKind.MAIL_ACCEPTED:
            return _kind(event) != BodyKind.WATCHED_EVENT
        case EventKind.TOOL_STARTED | EventKind.TOOL_COMPLETED:
            return tool is None or fnmatchcase(str(event.data["call"]["tool"]), tool)
        case _:
            return True


def _kind(event: Event) -> str:
    return str(event.data["mail"]["body"]["kind"])


def hops_of(event: Event, hops: int) -> int:
    """Return what a forwarded event carries: the hops of a letter of the watched session (M-108).

    Args:
        event: What happened.
        hops: What the watched session's next letter carries.

    Mail that just came has not been read, so what it brings along counts by itself.
    """
    if event.kind == EventKind.MAIL_ACCEPTED:
        return max(hops, int(event.data["mail"].get("hops", 0)))
    return hops


def told_of(event: Event, name: str, last_words: str) -> dict[str, Json]:
    """Return what the watcher's model is told of ``event``.

    Args:
        event: One that may be forwarded.
        name: What the watched session is called.
        last_words: What its model said in the turn that a run ended with; '' for nothing.
    """
    return {"name": name, **_facts(event, last_words)}


def _facts(event: Event, last_words: str) -> dict[str, Json]:
    data: Mapping[str, Any] = event.data
    match event.kind:
        case EventKind.RUN_STARTED:
            return {"turn": data.get("turn")}
        case EventKind.RUN_STOPPED:
            said = {"text": cut(last_words)} if last_words else {}
            return {"reason": str(data["reason"]), "rounds": data.get("rounds"), **said}
        case EventKind.SESSION_UPDATED:
            return _turn(data["turn"])
        case EventKind.TOOL_STARTED:
            return _call(data["call"])
        case EventKind.TOOL_COMPLETED:
            call = data["call"]
            return {
                "call": call["id"],
                "tool": call["tool"],
                "state": str(call["state"]),
                "result": _short(call.get("result")),
            }
        case EventKind.CALLS_DEFERRED:
            call = data["call"]
            why = {"reason": cut(call["reason"])} if call.get("reason") else {}
            return {**_call(call), **why}
        case EventKind.SESSION_FAILED:
            return {"error": cut(str(data["error"]))}
        case _:
            return _letter(data["mail"])


def _turn(turn: Mapping[str, Any]) -> dict[str, Json]:
    called = [call["tool"] for call in turn.get("calls", ())]
    ended = {"end_reason": turn["end_reason"]} if turn.get("end_reason") else {}
    return {
        "turn": turn["index"],
        "role": str(turn["role"]),
        "text": cut(turn["text"]),
        **({"calls": called} if called else {}),
        **ended,
    }


def _call(call: Mapping[str, Any]) -> dict[str, Json]:
    return {"call": call["id"], "tool": call["tool"], "arguments": _short(call["arguments"])}


def _letter(mail: Mapping[str, Any]) -> dict[str, Json]:
    sender, body = mail["sender"], mail["body"]
    who = next((sender[key] for key in ("session", "call", "name", "owner") if sender.get(key)), "")
    said = body.get("text") or ""
    return {
        "mail": mail["id"],
        "from": f"{sender['kind']} {who}".strip(),
        "kind": str(body["kind"]),
        **({"text": cut(said)} if said else {}),
    }


def cut(text: str) -> str:
    """Return ``text``, or its beginning and how long it is."""
    return text if len(text) <= TOLD else f"{text[:TOLD]}… ({len(text)} characters)"


def _short(value: Json) -> Json:
    """Return a JSON value as it is, or cut and as text where it is long."""
    if isinstance(value, str):
        return cut(value)
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= TOLD else cut(text)
