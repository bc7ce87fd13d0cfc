"""The view model: a session's events folded into the rows a view shows. Pure.

The state after a list of events depends on the events alone, however they were cut into batches,
so a view that was closed, reloaded or late shows what every other view shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from postroom_runtime.contracts.event import LIVE_ONLY, Event, EventKind
from postroom_runtime.contracts.extra import Json
from postroom_widgets.view_rows import (
    SEND_TOOL,
    People,
    Row,
    asked_arguments,
    call_fields,
    child_field,
    clipped,
    decision_words,
    mail_fields,
    placeholder,
    seconds_between,
    sent_fields,
    told,
)
from postroom_widgets.view_state import OPEN_CALL, UNREAD, RowTable, Run, ViewState

# Places inside one exchange: its mark, its mail by ``seq``, the model's turn, the calls of it.
_MARK: Final = 0
_TURN: Final = 2**40

_INTERRUPTED: Final = "interrupted"
"""Why a call goes on without its turn, in its placeholder."""

_ANSWERED: Final = ("answer", "budget")
_UNFINISHED: Final = ("failed", "paused", "interrupted")
_AT_REST: Final = ("failed", "paused", "capped", "closed")


def fold(state: ViewState, events: Iterable[Event], people: People) -> ViewState:
    """Return ``state`` after ``events``.

    Args:
        state: What was shown before; it stays as it is.
        events: Events of this session, in order. Stored events that are in it already, and
            live-only events older than it, are passed over, so feeds may overlap.
        people: Records of the room's sessions, for names and relations.
    """
    draft = _Draft(state, people)
    for event in events:
        draft.take(event)
    return draft.done()


class _Draft:
    """One batch at work: copies of the state's tables, changed in place until ``done``."""

    def __init__(self, state: ViewState, people: People) -> None:
        self.state, self.people = state, people
        self.table = RowTable(state.rows, state.version)
        self.head, self.queued = dict(state.head), dict(state.queued)
        self.mail, self.ended = dict(state.mail), dict(state.ended)
        self.open_calls, self.asking = set(state.open_calls), set(state.asking)
        self.letters = set(state.letters)
        self.slot_calls = state.slot_calls
        self.seq, self.slot, self.asked_at = state.seq, state.slot, state.asked_at
        self.live, self.run = state.live, state.run

    def done(self) -> ViewState:
        counts = {
            "unread": len(self.queued),
            "calls": len(self.open_calls),
            "asks": len(self.asking),
        }
        return replace(
            self.state,
            head=self.head | counts,
            rows=self.table.rows,
            version=self.table.version,
            seq=self.seq,
            slot=self.slot,
            slot_calls=self.slot_calls,
            asked_at=self.asked_at,
            live=self.live,
            run=self.run,
            queued=self.queued,
            mail=self.mail,
            open_calls=frozenset(self.open_calls),
            asking=frozenset(self.asking),
            letters=frozenset(self.letters),
            ended=self.ended,
        )

    def take(self, event: Event) -> None:
        if event.kind in LIVE_ONLY:
            if event.seq < self.seq:
                return  # what it was part of is stored meanwhile
        elif event.seq <= self.seq:
            return
        else:
            self.seq, self.head["at"] = event.seq, event.at.isoformat()
        data, at = event.data, event.at.isoformat()
        match event.kind:
            case EventKind.MAIL_ACCEPTED:
                self.accepted(data["mail"])
            case EventKind.INBOX:
                for seq in data.get("mail") or ():
                    if seq in self.queued:  # else its turn has placed it
                        self.delivered(seq, int(data.get("turn", 0)), event.seq)
            case EventKind.RUN_STARTED:
                self.run = Run(int(data.get("turn", 0)), at, self.run.mail)
                self.head["status"] = "running"
            case EventKind.RUN_STOPPED:
                self.stopped(at, data)
            case EventKind.SESSION_UPDATED if "turn" in data:
                turn = data["turn"]
                (self.heard if turn.get("role") == "user" else self.said)(at, turn)
            case EventKind.SESSION_UPDATED if "session" in data:
                self.record(data["session"])
            case EventKind.SESSION_FAILED:
                self.failed(at, data)
            case EventKind.TOOL_STARTED | EventKind.TOOL_COMPLETED | EventKind.CALLS_DEFERRED:
                if "call" in data:
                    self.call(data["call"])
            case EventKind.APPROVAL_REQUESTED | EventKind.APPROVAL_RESOLVED:
                self.approval(data["approval"])
            case EventKind.TOOL_PROGRESS:
                self.progress(data)
            case EventKind.TEXT_DELTA:
                self.streamed(at, str(data.get("text", "")))
            case EventKind.TEXT_DISCARDED if self.live:
                self.table.put(self.live, {"text": "", "more": 0})
            case _:
                pass  # for other views, or of a newer Postroom

    # ── Mail ──

    def accepted(self, envelope: Mapping[str, Json]) -> None:
        row = mail_fields(envelope, self.state.session, self.people)
        kind, of = envelope["body"].get("kind"), self.table.get(f"c:{row.get('call')}")
        if kind == "tool_call_finished" and not of.get("hold"):
            self.ended[row["call"]] = envelope  # its result is the reply of the call itself
            return
        if of and kind in ("tool_call_finished", "continuation_result"):
            self.table.put(of["key"], {"mail": row["id"]})
        if row.get("control") == "release":
            return  # the row of the call tells who answered
        if row.get("control") == "withdraw":
            taken = int((envelope["body"].get("message") or {}).get("seq", 0))
            if (key := self.queued.pop(taken, None)) is not None:
                self.table.put(key, {"state": "withdrawn", "o": [self.seq, taken]})
        if row.get("control"):
            self.mail[row["id"]] = row["key"]
            self.table.put(row["key"], {**row, "o": [self.seq, _MARK], "state": "read"})
        else:
            self.queue(row)

    def queue(self, row: Row) -> None:
        self.mail[row["id"]] = row["key"]
        self.queued[row["seq"]] = row["key"]
        of = self.table.get(f"c:{row.get('call')}")
        place = {"o": [UNREAD, row["seq"]], "state": "queued", "turn_of_call": of.get("turn")}
        if row.get("result") and of.get("state") == "denied":
            place["result"] = "denied"
        self.table.put(row["key"], {**row, **place})

    def delivered(self, seq: int, turn: int, slot: int) -> None:
        key = self.queued.pop(seq, None) or f"m:{seq}"
        row = self.table.get(key)
        if not row or row["state"] == "answered":
            return
        self.table.put(key, {"state": "delivered", "turn": turn, "o": [slot, seq]})
        if row.get("tone") == "user" and key not in self.run.mail:
            self.run = replace(self.run, mail=(*self.run.mail, key))

    # ── Turns ──

    def heard(self, at: str, turn: Mapping[str, Json]) -> None:
        """Take a user turn: mail is read, calls get their replies, the model is asked.

        One that was there already is amended: it moves here, with the mail that came too.
        """
        index = int(turn["index"])
        self.head["turn"] = index + 1
        self.slot, self.slot_calls, self.asked_at = self.seq, 0, at
        why = [self.replied(message) for message in turn.get("results") or ()]
        mail = turn.get("mail") or ()
        for envelope in mail:
            if f"m:{envelope['seq']}" not in self.table.rows:  # a call's, thought to be silent
                self.ended.pop(envelope["body"].get("call", ""), None)
                self.queue(mail_fields(envelope, self.state.session, self.people))
            self.delivered(envelope["seq"], index, self.slot)
        self.mark(index, [self.table.get(f"m:{e['seq']}") for e in mail], why, turn)
        self.stream(index + 1, at)

    def mark(
        self, index: int, mail: Sequence[Row], why: Sequence[str], turn: Mapping[str, Json]
    ) -> None:
        urgent = [row for row in mail if row.get("interrupt")]
        place: float = _MARK
        if urgent:
            by, detached = urgent[0], why.count(_INTERRUPTED)
            place = by["seq"] - 0.5  # right above the mail that did it
            what = {"mark": "interrupt", "by": by["name"], "id": by["id"], "detached": detached}
        elif mail and 0 < self.run.first_turn < index:
            what = {"mark": "inbox", "count": len(mail), "turn": index}
        elif turn.get("provenance"):
            what = {"mark": turn["provenance"]}
        else:
            return
        self.table.put(f"x:{index}", {"kind": "mark", "o": [self.slot, place], **what})

    def replied(self, message: Mapping[str, Json]) -> str:
        """Take one tool message; return why its call goes on without the turn, '' if it ended."""
        call, state = message["call"], str(message.get("state", ""))
        row = self.table.get(f"c:{call}")
        envelope = self.ended.pop(call, None)
        if not row:
            return ""
        if state in ("running", "deferred"):
            content = told(str(message.get("content", "")))
            why = placeholder(content)
            self.table.put(row["key"], {"hold": why, **child_field(content, self.people)})
            if envelope is not None:  # it ended between the two
                self.accepted(envelope)
            return why
        if row.get("state") in OPEN_CALL:
            self.call({"id": call, "state": state, "result": message.get("content")})
        return ""

    def stream(self, index: int, at: str) -> None:
        self.quiet()
        self.live = f"t:{index}"
        place = {"kind": "turn", "o": [self.slot, _TURN], "index": index, "at": at, "live": True}
        self.table.put(self.live, place)

    def streamed(self, at: str, piece: str) -> None:
        if not self.live:
            self.stream(int(self.head.get("turn", 1)), at)
        now = self.table.get(self.live)
        text, more = clipped(now.get("text", "") + piece)
        self.table.put(self.live, {"text": text, "more": now.get("more", 0) + more})

    def said(self, at: str, turn: Mapping[str, Json]) -> None:
        """Take a model turn: its words, and the calls it made."""
        index = int(turn["index"])
        if self.live != f"t:{index}":
            self.stream(index, at)
        text, more = clipped(str(turn.get("text", "")))
        usage = turn.get("usage") or {}
        fields = {
            "live": False,
            "seconds": seconds_between(self.asked_at, at),
            "in": usage.get("input_tokens"),
            "out": usage.get("output_tokens"),
            "cost": usage.get("cost"),
            "text": text,
            "more": more,
        }
        self.table.put(self.live, fields)
        self.live, self.head["turn"] = "", index
        for request in turn.get("calls") or ():
            self.requested(index, request)
        if turn.get("end_reason") in _ANSWERED:
            self.answer_run(index)

    def answer_run(self, turn: int) -> None:
        for key in self.run.mail:
            self.table.put(key, {"state": "answered", "answered": turn})
        self.run = replace(self.run, mail=())

    # ── Calls ──

    def requested(self, turn: int, request: Mapping[str, Json]) -> None:
        key = f"c:{request['id']}"
        known = self.table.get(key)
        if not known:
            self.slot_calls += 1
        wrong = request.get("malformed")
        fields = {
            "kind": "call",
            "o": known.get("o") or [self.slot, _TURN + self.slot_calls],
            "id": request["id"],
            "turn": turn,
            "tool": request.get("tool"),
            "args": dict(request.get("arguments") or {}),
            "state": known.get("state") or ("failed" if wrong else "pending"),
            "error": known.get("error") or wrong,
        }
        self.state_of(self.table.put(key, fields))

    def call(self, call: Mapping[str, Json]) -> None:
        key = f"c:{call['id']}"
        if key not in self.table.rows:
            self.requested(int(self.head.get("turn", 0)), call)
        row = self.table.get(key)
        fields = {"reason": None, **call_fields(call), **child_field(call, self.people)}
        if fields["state"] == "failed" and row.get("denied"):
            fields["state"] = "denied"
        if row.get("tool") == SEND_TOOL and fields["state"] == "completed":
            args = row.get("args", {})
            fields |= sent_fields(args, call.get("result"), self.people)
            if fields.get("sent", {}).get("seq"):
                self.letters.add(key)
            about = self.mail.get(str(args.get("in_reply_to", "")))
            if about:
                by = fields.get("sent", {}).get("mail")
                answer = {"state": "answered", "answered": row.get("turn"), "by": by}
                self.table.put(about, answer)
        if fields["state"] not in OPEN_CALL:
            fields["progress"] = None
        self.state_of(self.table.put(key, fields))

    def state_of(self, row: Row) -> None:
        key, state = row["key"], row["state"]
        (self.open_calls.add if state in OPEN_CALL else self.open_calls.discard)(key)
        (self.asking.add if state == "deferred" else self.asking.discard)(key)

    def approval(self, approval: Mapping[str, Json]) -> None:
        key = f"c:{approval.get('call')}"
        if key in self.table.rows:
            denied = approval.get("state") == "denied"
            fields = {"decided": decision_words(approval), "denied": denied}
            fields |= asked_arguments(approval) | {"until": approval.get("expires_at")}
            self.table.put(key, {"approval": approval.get("id"), **fields})

    def progress(self, data: Mapping[str, Json]) -> None:
        key = f"c:{data.get('call')}"
        if key in self.open_calls:
            report = {k: data[k] for k in ("done", "total", "text") if data.get(k)}
            self.table.put(key, {"progress": report})

    # ── Runs ──

    def stopped(self, at: str, data: Mapping[str, Json]) -> None:
        reason = str(data.get("reason", ""))
        self.quiet()
        self.head |= {"end": reason, "status": reason if reason in _AT_REST else "idle"}
        if reason in _ANSWERED:
            self.answer_run(int(self.head.get("turn", 0)))
        fields = {
            "kind": "end",
            "o": [self.seq, _MARK],
            "at": at,
            "reason": "closed" if data.get("closing") else reason,
            **{name: data.get(name) for name in ("rounds", "allowed", "extended", "cap")},
            "seconds": seconds_between(self.run.at, at),
        }
        self.table.put(f"e:{self.seq}", fields)
        self.run = Run(mail=self.run.mail if reason in _UNFINISHED else ())

    def failed(self, at: str, data: Mapping[str, Json]) -> None:
        self.quiet()
        traceback, more = clipped(str(data.get("traceback") or ""))
        fields = {
            "kind": "fail",
            "o": [self.seq, _MARK],
            "at": at,
            "text": str(data.get("error", "")),
            "traceback": traceback,
            "more": more,
        }
        self.table.put(f"f:{self.seq}", fields)

    def quiet(self) -> None:
        """Nothing streams any more: a turn that was not stored did not happen."""
        if self.live:
            self.table.drop(self.live)
            self.live = ""

    def record(self, record: Mapping[str, Json]) -> None:
        usage = record.get("usage") or {}
        parent = str(record.get("parent") or "")
        self.head |= {
            "name": record.get("name", self.head["name"]),
            "agent": record.get("agent", self.head["agent"]),
            "status": record.get("status", "ready"),
            "end": record.get("end_reason"),
            "tokens": usage.get("input_tokens", 0) + usage.get("output_tokens", 0),
            "cost": usage.get("cost"),
            "parent": self.people[parent].name if parent in self.people else parent,
        }
        if self.head["status"] not in ("running", "waiting"):
            self.quiet()
        cursor = int(record.get("cursor", 0))
        for seq in [seq for seq in self.queued if seq <= cursor]:
            # Read, and not worth a word to the model: it is in no turn's mail.
            self.table.put(self.queued.pop(seq), {"state": "read", "o": [self.seq, seq]})
