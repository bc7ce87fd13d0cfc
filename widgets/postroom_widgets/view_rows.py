"""What one stored record looks like in a view: pure functions from its JSON to a row's fields.

A row is a JSON object a view can draw without knowing the runtime. Every row has ``key`` (what it
is, for ever), ``v`` (the change of the view that last touched it), ``o`` (its place: two numbers,
compared one after the other) and ``kind``: mail, turn, call, mark, end or fail. Fields that are
empty, zero or false are left out.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.session_record import SessionRecord

Row: TypeAlias = dict[str, Any]
People: TypeAlias = Mapping[SessionId, SessionRecord]

MAX_TEXT: Final = 20_000
"""Characters of one text in a row. A notebook is no place for a tool's five megabytes."""

SEND_TOOL: Final = "send-message"
SPAWNS: Final = ("prompt-agent-", "spawn-session")
"""How the names of tools begin that make a session."""

_CONTROLS: Final = {
    "pause": "pause",
    "resume": "resume",
    "stop_run": "stop",
    "cancel_calls": "cancel",
    "withdraw": "withdraw",
}

_ANSWERED_BY: Final = {"view": "in a view", "api": "from Python"}


def lean(row: Mapping[str, Any]) -> Row:
    """Return ``row`` without the fields that say nothing."""
    return {k: v for k, v in row.items() if v is not None and v is not False and v not in ("", 0)}


def clipped(text: str, limit: int = MAX_TEXT) -> tuple[str, int]:
    """Return at most ``limit`` characters of ``text``, and how many were left out."""
    return (text, 0) if len(text) <= limit else (text[:limit], len(text) - limit)


def as_text(value: Json) -> str:
    """Return a JSON value as a person reads it: text as it is, the rest as indented JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Return the seconds from one ISO time to another; None when either is missing."""
    if not start or not end:
        return None
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def name_of(session: SessionId, people: People) -> str:
    """Return what a session is called; its id when the room does not know it."""
    record = people.get(session)
    return record.name if record else session


def relation(me: SessionId, other: SessionId, people: People) -> str:
    """Return ``child`` or ``parent`` if ``other`` is that to ``me``, else ''."""
    mine, theirs = people.get(me), people.get(other)
    if theirs and theirs.parent == me:
        return "child"
    return "parent" if mine and mine.parent == other else ""


def who(envelope: Mapping[str, Json], me: SessionId, people: People) -> Row:
    """Return the sender as a chip: ``tone`` (its colour), ``name``, and what it is ``of``."""
    sender, body = envelope["sender"], envelope["body"]
    match sender.get("kind"):
        case "user":
            return {"tone": "user", "name": sender.get("owner") or "you"}
        case "session":
            other = sender.get("session", "")
            return {
                "tone": "agent",
                "name": name_of(other, people),
                "of": relation(me, other, people),
                "from": other,
            }
        case "tool":
            call = sender.get("call", "")
            return {"tone": "tool", "name": body.get("tool") or call, "of": call, "call": call}
        case _:
            return {"tone": "sys", "name": sender.get("name") or "system"}


def words(body: Mapping[str, Json], people: People) -> str:
    """Return what a body says, whatever its kind."""
    match body.get("kind"):
        case "user_message" | "agent_message":
            return str(body.get("text", ""))
        case "tool_call_finished" | "continuation_result":
            return as_text(body.get("response"))
        case "watched_event":
            what = f"{name_of(body.get('session', ''), people)} {body.get('event', '')}"
            data = body.get("data")
            return f"{what}\n{json.dumps(data, ensure_ascii=False)}" if data else what
        case "notification":
            return str(body.get("content", ""))
        case "control":
            return " ".join([_CONTROLS.get(tag := control_tag(body), tag), *_ids(body)])
        case other:
            return f"mail of a kind this version does not know: {other}"


def _ids(body: Mapping[str, Json]) -> list[str]:
    message = body.get("message")
    if not isinstance(message, Mapping):
        return []
    return [*(message.get("ids") or ()), *filter(None, [message.get("mail")])]


def control_tag(body: Mapping[str, Json]) -> str:
    """Return which order a control body gives; '' for other bodies."""
    if body.get("kind") != "control":
        return ""
    message = body.get("message")
    return str((message if isinstance(message, Mapping) else body).get("tag", "control"))


def mail_fields(envelope: Mapping[str, Json], me: SessionId, people: People) -> Row:
    """Return the row of one envelope, without its place and its fate."""
    body = envelope["body"]
    text, more = clipped(words(body, people))
    result = body.get("kind") in ("tool_call_finished", "continuation_result")
    state = body.get("state", "")
    return lean(
        {
            "key": f"m:{envelope['seq']}",
            "kind": "mail",
            "id": envelope["id"],
            "seq": envelope["seq"],
            "at": envelope["accepted_at"],
            **who(envelope, me, people),
            "interrupt": envelope.get("priority") == "interrupt",
            "hops": envelope.get("hops", 0),
            "re": body.get("in_reply_to"),
            "expects": body.get("expects_reply"),
            "control": control_tag(body),
            "text": text,
            "more": more,
            "mono": result or body.get("kind") == "watched_event",
            "result": state if result else "",
            "call": body.get("call"),
        }
    )


def call_fields(call: Mapping[str, Json]) -> Row:
    """Return what a call's record adds to its row: state, times, result or error in words."""
    state = str(call.get("state", "pending"))
    final = state not in ("pending", "running", "deferred")
    text, more = clipped(as_text(call.get("result"))) if final else ("", 0)
    return lean(
        {
            "state": state,
            "reason": call.get("reason") if state == "deferred" else "",
            "started": call.get("started_at"),
            "seconds": seconds_between(call.get("started_at"), call.get("ended_at")),
            ("result" if state == "completed" else "error"): text,
            "more": more,
        }
    )


def asked_arguments(approval: Mapping[str, Json]) -> Row:
    """Return with what a call runs: as a hook passed them on, and as they were edited."""
    decision, arguments = approval.get("decision"), approval.get("arguments")
    edited = approval.get("state") == "approved" and isinstance(decision, Mapping)
    args = decision if edited else arguments
    return {"args": dict(args)} if isinstance(args, Mapping) else {}


def decision_words(approval: Mapping[str, Json]) -> str:
    """Return how an approval was answered: ``approved by %approve``, ``denied in a view: why``."""
    state, by = str(approval.get("state", "pending")), str(approval.get("answered_by") or "")
    if state not in ("approved", "denied", "completed", "expired"):
        return ""
    how = _ANSWERED_BY.get(by, f"by {by}" if by else "")
    what = "result given" if state == "completed" else state
    decision = approval.get("decision")
    why = f": {decision}" if state == "denied" and decision else ""
    edited = ", arguments edited" if isinstance(decision, Mapping) else ""
    return f"{f'{what} {how}'.rstrip()}{edited}{why}"


def sent_fields(arguments: Mapping[str, Json], result: Json, people: People) -> Row:
    """Return what became of a ``send-message``: the new mail's id, and its place in whose mailbox."""
    receipt = result
    if isinstance(result, str):
        try:
            receipt = json.loads(result)
        except ValueError:
            return {}
    if not isinstance(receipt, Mapping):
        return {}
    to = str(receipt.get("session") or arguments.get("to", ""))
    mail, seq = receipt.get("id"), receipt.get("seq")
    return {"sent": lean({"mail": mail, "to": to, "name": name_of(to, people), "seq": seq})}


def told(content: str) -> Json:
    """Return the content of a tool message: parsed where it is JSON, else its first line."""
    try:
        return json.loads(content)
    except ValueError:
        return content.strip().partition("\n")[0]


def placeholder(content: Json) -> str:
    """Return why a call goes on without its turn, out of the tool message that says so."""
    if not isinstance(content, Mapping):
        return str(content)[:200]
    if content.get("status") == "deferred":
        return "asked you first"
    return str(content.get("detached") or json.dumps(content))[:200]


def child_field(told: Json, people: People) -> Row:
    """Return in which session a call of a sub-agent works, out of its record or placeholder."""
    child = told.get("child_session_id") if isinstance(told, Mapping) else None
    return {"child": {"id": child, "name": name_of(child, people)}} if child else {}
