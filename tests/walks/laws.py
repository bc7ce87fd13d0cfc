"""What must hold of every journal, whatever happened; pure."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    ContinuationResult,
    Control,
    Envelope,
    Pause,
    Priority,
    StopRun,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
    Withdraw,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import CallId, SessionId, is_inbox_key
from postroom_runtime.contracts.journal import Row
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Provenance, Role, Turn

PAYLOAD = re.compile(r"<<call_\d+#\w+>>")
STATUS = "get-tool-call-status"


def broken(rows: Sequence[Row], ran: Sequence[CallId], *, died: bool = False) -> list[str]:
    """Return every law that a finished journal breaks, in words.

    Args:
        rows: The journal, whole.
        ran: The calls whose tool was begun, once for each time.
        died: A kernel died on the way: what a step knew of its calls died with it.
    """
    by_session: dict[SessionId, list[Row]] = defaultdict(list)
    for row in rows:
        if not is_inbox_key(row.session):
            by_session[row.session].append(row)
    found = [each for mine in by_session.values() for each in _of_a_session(mine, died=died)]
    found += [f"{id} ran {times} times" for id, times in Counter(ran).items() if times > 1]
    return [*found, *_approved(rows, ran)]


def _approved(rows: Sequence[Row], ran: Sequence[CallId]) -> Iterable[str]:
    latest = {row.record.id: row.record for row in rows if isinstance(row.record, Approval)}
    for approval in latest.values():
        if approval.state is ApprovalState.PENDING:
            yield f"{approval.id} still asks for {approval.call}, which has ended"
        if approval.state is not ApprovalState.APPROVED and approval.call in ran:
            yield f"{approval.call} ran, and {approval.id} is {approval.state}"


def _of_a_session(rows: Sequence[Row], *, died: bool) -> Iterable[str]:
    yield from _records(rows)
    yield from _calls(rows)
    yield from _reading(rows)
    yield from _payloads(rows)
    yield from _placeholders(rows, died=died)
    yield from _runs(rows)


def _records(rows: Sequence[Row]) -> Iterable[str]:
    """The cursor never goes back, versions count, and in the end all is read and at rest."""
    before: SessionRecord | None = None
    head = 0
    for row in rows:
        record = row.record
        if isinstance(record, Envelope):
            if record.seq != head + 1:
                yield f"mail {record.seq} of {row.session} follows {head}"
            head = record.seq
        if isinstance(record, SessionRecord):
            if before is not None and record.version != before.version + 1:
                yield f"version {record.version} of {record.id} follows {before.version}"
            if record.cursor > head or (before is not None and record.cursor < before.cursor):
                yield f"the cursor of {record.id} went to {record.cursor}, head {head}"
            before = record
    if before is not None:
        if before.cursor != head and before.status is not SessionStatus.CLOSED:
            yield f"{before.id} has read up to {before.cursor} of {head}"
        if before.status in (SessionStatus.RUNNING, SessionStatus.WAITING):
            yield f"{before.id} is {before.status} at rest"


def _calls(rows: Sequence[Row]) -> Iterable[str]:
    """Every call has one final state, which is its last, and one end envelope that says the same."""
    states: dict[CallId, list[CallState]] = defaultdict(list)
    ends: dict[CallId, list[str]] = defaultdict(list)
    for row in rows:
        match row.record:
            case Call(id=id, state=state):
                states[id].append(state)
            case Envelope(
                body=ToolCallFinished(call=id, state=said) | ContinuationResult(call=id, state=said)
            ):
                ends[id].append(said)
    for id, passed in states.items():
        final = [state for state in passed if state.final]
        if len(final) != 1 or passed[-1] is not final[0]:
            yield f"{id} went through {', '.join(passed)}"
        if ends[id] != [str(state) for state in final]:
            yield f"{id} is {', '.join(final) or 'open'}, its mail says {ends[id] or 'nothing'}"


def _reading(rows: Sequence[Row]) -> Iterable[str]:
    """Every mail that says something is in the one turn whose commit moved the cursor over it."""
    mail: dict[int, Envelope] = {}
    read: set[int] = set()
    placeholders: set[CallId] = set()
    turns: dict[int, Turn] = {}
    fresh: list[Envelope] = []
    gone: set[int] = set()
    cursor = 0
    for row in rows:
        record = row.record
        if isinstance(record, Envelope):
            mail[record.seq] = record
            if isinstance(record.body, Control) and isinstance(record.body.message, Withdraw):
                gone.add(record.body.message.seq)
        elif isinstance(record, Turn):
            old = turns.get(record.index)
            if old is not None and (record.index != max(turns) or old.results != record.results):
                yield f"turn {record.index} of {row.session} was amended after it was answered"
            known = {each.seq for each in old.mail} if old is not None else set()
            fresh += [each for each in record.mail if each.seq not in known]
            turns[record.index] = record
            placeholders |= {m.call for m in record.results if not m.state.final}
        elif isinstance(record, SessionRecord):
            due = [
                each.seq
                for seq in range(cursor + 1, record.cursor + 1)
                if _says(each := mail[seq], placeholders) and seq not in gone
            ]
            if [each.seq for each in fresh] != due:
                got = [each.seq for each in fresh]
                yield (
                    f"{row.session} moved its cursor from {cursor} to {record.cursor} "
                    f"(row {row.n}) and read {got} instead of {due}"
                )
            if twice := read & set(due):
                yield f"{row.session} read {sorted(twice)} again"
            read.update(due)
            cursor, fresh = record.cursor, []


def _says(envelope: Envelope, placeholders: set[CallId]) -> bool:
    match envelope.body:
        case UserMessage(text=text) | AgentMessage(text=text):
            return bool(text.strip())
        case ToolCallFinished(call=call) | ContinuationResult(call=call):
            return call in placeholders
        case WatchedEvent():
            return True
    return False


def _payloads(rows: Sequence[Row]) -> Iterable[str]:
    """The model reads the result of every call that completed, once, unless it asks for it again."""
    turns: dict[int, Turn] = {}
    results: dict[CallId, str] = {}
    for row in rows:
        if isinstance(row.record, Turn):
            turns[row.record.index] = row.record
        if isinstance(row.record, Call) and isinstance(row.record.result, str):
            results[row.record.id] = row.record.result
    told: dict[str, list[int]] = defaultdict(list)
    asked: dict[str, list[int]] = defaultdict(list)
    for turn in turns.values():
        if turn.role is not Role.USER:
            continue
        answers = " ".join(
            str(each.body.response)
            for each in turn.mail
            if isinstance(each.body, ToolCallFinished) and each.body.tool == STATUS
        )
        by_mail = Counter(PAYLOAD.findall(answers))
        for payload, times in Counter(PAYLOAD.findall(turn.text)).items():
            told[payload] += [turn.index] * (times - by_mail[payload])
            asked[payload] += [turn.index] * by_mail[payload]
        for message in turn.results:
            where = asked if message.tool == STATUS else told
            for payload in PAYLOAD.findall(message.content):
                where[payload].append(turn.index)
    closed = any(
        isinstance(row.record, SessionRecord) and row.record.status is SessionStatus.CLOSED
        for row in rows
    )
    due = {match[0] for result in results.values() if (match := PAYLOAD.search(result))}
    for payload in sorted(due | set(told) | set(asked)):
        if payload not in due:
            yield f"{payload} was read, and is no result"
        if len(told[payload]) > 1:
            yield f"{payload} was read in turns {told[payload]}"
        if not told[payload] and not asked[payload] and not closed:
            yield f"{payload} was never read"
        if told[payload] and any(at <= told[payload][0] for at in asked[payload]):
            yield f"{payload} was read by a status call in turn {asked[payload]} and again by mail"


def _placeholders(rows: Sequence[Row], *, died: bool) -> Iterable[str]:
    """A placeholder stands where one is due, says why, and never beside the result it stands for."""
    calls = {row.record.id: row.record for row in rows if isinstance(row.record, Call)}
    # Whoever was stopped, died, or cancels its calls when paused, answers them as they stand.
    cut = died or any(
        isinstance(row.record, Envelope)
        and isinstance(row.record.body, Control)
        and isinstance(row.record.body.message, (Pause, StopRun))
        for row in rows
    )
    seen: set[int] = set()
    for row in rows:
        turn = row.record
        if not isinstance(turn, Turn) or turn.index in seen:
            continue  # what is amended later comes after the placeholders
        seen.add(turn.index)
        ended = {
            each.body.call
            for each in turn.mail
            if isinstance(each.body, (ToolCallFinished, ContinuationResult))
        }
        urgent = any(each.priority is Priority.INTERRUPT for each in turn.mail)
        forced = turn.provenance is Provenance.FINAL_ANSWER
        for message in turn.results:
            at_once = _attach_seconds(calls[message.call]) == 0
            if message.state.final:
                by_itself = message.state in (CallState.COMPLETED, CallState.FAILED)
                if at_once and by_itself and not cut:
                    yield f"{message.call} has no attach time and was answered in turn {turn.index}"
                continue
            if message.call in ended and not at_once:
                yield f"{message.call} has a placeholder in turn {turn.index}, and its result"
            why = json.loads(message.content).get("detached")
            if why == "interrupted" and not urgent and not forced:
                yield f"{message.call} was interrupted in turn {turn.index}, and by nothing in it"


def _attach_seconds(call: Call) -> float | None:
    seconds = ((call.policy or {}).get("disposition") or {}).get("attachSeconds")
    return None if seconds is None else float(seconds)


def _runs(rows: Sequence[Row]) -> Iterable[str]:
    """Every run that was started was stopped before the next one was."""
    under_way = False
    for row in rows:
        if not isinstance(row.record, Event):
            continue
        if row.record.kind is EventKind.RUN_STARTED:
            if under_way:
                yield f"{row.session} started a run in a run (row {row.n})"
            under_way = True
        elif row.record.kind is EventKind.RUN_STOPPED:
            if not under_way and row.record.data["reason"] == EndReason.ANSWER:
                yield f"{row.session} answered in no run (row {row.n})"
            under_way = False
    if under_way:
        yield "a run was never stopped"
