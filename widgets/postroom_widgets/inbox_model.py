"""What an owner inbox looks like in a view: its entries as cards, and how each card stands. Pure.

A card is a row as the links of all views push it (``key``, ``v``, ``o``): ``e:AGENT:SEQ``, in the
order of acceptance. ``face`` says how it is drawn (``approval``, ``failed``, ``budget``, ``notice``),
``state`` whether it is ``open`` or ``done``; one that is done says in ``outcome`` how it ended.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.entries import QUIET
from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.ids import SessionId, inbox_agent
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.spending import measure_of
from postroom_widgets.view_rows import People, Row, clipped, decision_words, lean

APPROVAL, FAILED, BUDGET, NOTICE = "approval", "failed", "budget", "notice"
FACES: Final = {APPROVAL: APPROVAL, FAILED: FAILED, "poisoned": FAILED, BUDGET: BUDGET}
"""How entries of a type are drawn; all others are notices."""

OPEN, DONE = "open", "done"

REACH: Final = {
    "args": "these arguments, this session",
    "tool": "this tool, this session",
    "agent": "this tool, this agent",
}
"""How far a standing permission goes, in words."""

_TONES: Final = {"guard": "bad", "orphaned": "bad", "expired": "now"}
_FACE_TONES: Final = {APPROVAL: "now", FAILED: "bad", BUDGET: "now"}
_HELD: Final = {FAILED: SessionStatus.FAILED, BUDGET: SessionStatus.CAPPED}
_FACE_ACTS: Final = {FAILED: ("resume", "open", "close"), BUDGET: ("resume", "open", "close")}
_ENDS: Final = {
    "expired": "expired, counted as denied",
    "cancelled": "withdrawn: its run was stopped",
}
_CARRIED: Final = ("approval", "call", "tool", "reason", "traceback", "limit", "used", "knob")
_SHORT, _HEADLINE = 60, 90
"""Characters up to which a notice's first line is its headline, and up to which it may be cut."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything outside its entry that decides how a card stands."""

    approvals: Mapping[str, Approval] = field(default_factory=dict)
    """By id, the answered too."""
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What ``approval_resolved`` entries say, by approval: it is stored before an approval tells."""
    granted: Mapping[str, str] = field(default_factory=dict)
    """How far the standing permission reaches that was given with an approval: ``args`` …"""
    people: People = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    """The viewer's cursor, by agent."""
    last: Mapping[tuple[SessionId, str], str] = field(default_factory=dict)
    """The key of the last card of a session with that face."""


def facts_of(entry: Envelope) -> Mapping[str, Any]:
    """Return an entry's metadata; empty for none."""
    return (entry.body.metadata or {}) if isinstance(entry.body, Notification) else {}


def type_of(entry: Envelope) -> str:
    """Return what an entry is: its metadata's own ``type`` before the body's (I-37)."""
    body = entry.body
    if not isinstance(body, Notification):
        return str(body.kind)
    said = facts_of(entry).get("type")
    # The types of the runtime cannot be put on by metadata: a card with buttons needs more than words.
    return str(said) if said and body.type == "notification" and said not in QUIET else body.type


def card(entry: Envelope, people: People) -> Row:
    """Return what never changes of an entry's card.

    Args:
        entry: Of an owner inbox, of a type that is not in ``QUIET``.
        people: The room's sessions, for the path where the entry has none.
    """
    facts, type = facts_of(entry), type_of(entry)
    face = FACES.get(type, NOTICE)
    if face == APPROVAL and not facts.get("approval"):
        face = NOTICE
    agent = inbox_agent(entry.session)
    session = str(facts.get("session") or "")
    record = people.get(session)
    name = str(facts.get("session_name") or (record.name if record else ""))
    title, rest = _words(face, name, entry.text, facts)
    # A line of commands is what the buttons of a card do.
    said, _, how = (
        rest.rpartition("\n") if rest.rpartition("\n")[2].startswith("%") else (rest, "", "")
    )
    why, more = clipped(said)
    args, path = facts.get("arguments"), path_of(facts, session, people)
    return lean(
        {
            **{key: facts.get(key) for key in _CARRIED},
            "key": f"e:{agent}:{entry.seq}",
            "o": [int(entry.accepted_at.timestamp() * 1_000_000), entry.seq],
            "kind": "card",
            "face": face,
            "tone": _FACE_TONES.get(face) or _TONES.get(type, "sys"),
            "entry": entry.id,
            "id": facts.get("approval") if face == APPROVAL else _shown_id(entry.id),
            "seq": entry.seq,
            "agent": agent,
            "at": entry.accepted_at.isoformat(),
            "session": session,
            "name": name,
            "title": title,
            "why": why,
            "more": more,
            "how": how,
            "args": dict(args) if face == APPROVAL and isinstance(args, Mapping) else None,
            "path": path if len(path) > 1 or name not in title else None,
            "expires": facts.get("expires_at"),
            "always": _always(facts.get("actions")) or None,
            "links": _links(facts.get("actions")) or None,
        }
    )


def _words(face: str, name: str, text: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    if face == APPROVAL:
        return f"{name or 'A session'} wants to run", str(facts.get("reason") or "")
    failed = f"{name} failed: "
    if face == FAILED and name and text.startswith(failed):
        return f"{name} failed", text.removeprefix(failed)
    knob = str(facts.get("knob") or "")
    measure = measure_of(knob)
    if face == BUDGET and name and facts.get("used") and facts.get("limit") and measure:
        whose = "the room's" if knob.startswith("room.") else "its"
        rest = text.partition("; ")[2]
        return f"{name} reached {whose} cap of {measure.words(facts['limit'])}", rest[
            :1
        ].upper() + rest[1:]
    return headline(text)


def _shown_id(id: str) -> str:
    # Others are made up by whoever wrote the entry, so that it is written once.
    return id if id.startswith("m-") else ""


def headline(text: str) -> tuple[str, str]:
    """Return a short first sentence of a notice, and the rest of it."""
    first, _, rest = text.strip().partition("\n")
    if len(first) <= _SHORT and ". " not in first:
        return first, rest.strip()
    cuts = [at for mark in (". ", "; ", ": ") if 0 < (at := first.find(mark)) <= _HEADLINE]
    if not cuts:
        return first, rest.strip()
    at = min(cuts)
    tail = first[at + 2 :].strip()
    return first[:at], "\n".join(filter(None, (tail[:1].upper() + tail[1:], rest.strip())))


def path_of(facts: Mapping[str, Any], session: SessionId, people: People) -> list[list[str]]:
    """Return the way from the owner to what a card is about, as pairs of a tone and a name."""
    given = facts.get("path")
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 1:
        owner, *names, call = map(str, given)
        whole = [["user", "you" if owner == "owner" else owner]]
        return [*whole, *(["agent", name] for name in names), ["call", call]]
    names = lineage(session, people)
    if not facts.get("call"):
        return [["agent", name] for name in names]
    return [["user", "you"], *(["agent", name] for name in names), ["call", str(facts["call"])]]


def lineage(session: SessionId, people: People) -> list[str]:
    """Return the names of a session's ancestors, the oldest first, and its own."""
    names: list[str] = []
    at: SessionRecord | None = people.get(session)
    while at is not None and len(names) < len(people):
        names.append(at.name)
        at = people.get(at.parent) if at.parent else None
    return names[::-1]


def _actions(actions: Any) -> Iterable[Mapping[str, Any]]:
    return [a for a in actions if isinstance(a, Mapping)] if isinstance(actions, Sequence) else []


def _always(actions: Any) -> list[str]:
    offered = [w for a in _actions(actions) for w in a.get("always") or ()]
    return [word for word in REACH if word in offered]


def _links(actions: Any) -> list[Row]:
    # Whoever notifies may offer a page to look at; nothing but a page, for the words are others'.
    return [
        {"label": str(action.get("label") or action["url"]), "url": action["url"]}
        for action in _actions(actions)
        if str(action.get("url", "")).startswith(("https://", "http://"))
    ]


# ── How it stands ──


def stand(row: Row, now: Standing) -> Row:
    """Return the fields of a card that change: ``state``, what can be done, or how it ended."""
    seen = row["seq"] <= now.seen.get(row["agent"], 0)
    if row["face"] == APPROVAL:
        return _asked(row, now, seen)
    held, key = _HELD.get(row["face"]), row["key"]
    if held is not None and row.get("session"):
        record = now.people.get(row["session"])
        status = record.status if record else SessionStatus.CLOSED
        if now.last.get((row["session"], row["face"]), key) != key:
            again = "failed again" if row["face"] == FAILED else "stopped again"
            return _done(seen, again, "sys")
        if status is not held:
            return _done(seen, "closed" if status is SessionStatus.CLOSED else "went on", "sys")
        return {"state": OPEN, "acts": list(_acts(row)), "fresh": not seen}
    if seen:
        return _done(seen, "read", "sys")
    return {"state": OPEN, "acts": ["open"] if row.get("session") else [], "fresh": True}


def _acts(row: Row) -> tuple[str, ...]:
    acts = _FACE_ACTS[row["face"]]
    return ("raise", *acts) if str(row.get("knob", "")).startswith("room.") else acts


def _done(seen: bool, outcome: str, tone: str, **more: Any) -> Row:
    gone = {"acts": None, "fresh": False, "expires": None}
    return {**gone, "state": DONE, "outcome": outcome, "end": tone, **more}


def _asked(row: Row, now: Standing, seen: bool) -> Row:
    approval = now.approvals.get(row["approval"])
    answer = now.answers.get(row["approval"], {})
    if approval is None and not answer:
        # Its card is stored a moment before it can be answered. One that nobody asks is a notice.
        return _done(seen, "read", "sys") if seen else {"state": OPEN, "fresh": True}
    state = str(approval.state) if approval else str(answer.get("decision"))
    told: Row = {}
    if approval is not None:
        until = approval.expires_at
        told = {
            "tool": approval.tool,
            "call": approval.call,
            "args": dict(approval.arguments),
            "why": approval.reason,
            "expires": until.isoformat() if until else None,
        }
        if state == ApprovalState.PENDING and not answer:
            return {**told, "state": OPEN, "acts": ["answer"], "fresh": not seen}
    pending = state == ApprovalState.PENDING
    state = str(answer.get("decision")) if pending else state
    by = approval.answered_by if approval and not pending else str(answer.get("resolved_by") or "")
    decision = approval.decision if approval and not pending else None
    said = decision_words({"state": state, "answered_by": by, "decision": decision})
    words = _ENDS.get(state) or said or state
    reach = REACH.get(now.granted.get(row["approval"], ""), "")
    outcome = words + (f", always: {reach}" if reach else "")
    at = approval.answered_at.isoformat() if approval and approval.answered_at else None
    tone = {"approved": "ok", "completed": "ok", "denied": "bad"}.get(state, "sys")
    ended = {**told, "by": by, "ended": at, "decision": state}
    fresh = state == "expired" and not seen
    return {**_done(seen, outcome, tone, **ended), "fresh": fresh}


def about(row: Row) -> str:
    """Return what a resolved card was about, on one line: ``coder · deploy``."""
    if row["face"] == APPROVAL:
        return " · ".join(filter(None, (row.get("name"), row.get("tool"))))
    return str(row["title"])
