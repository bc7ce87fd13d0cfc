"""Fold unread mail into the next user turn: what the model reads, and what is then read; pure."""

import json
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, field, replace

from postroom_runtime.contracts.call import Call, CallState, ToolMessage, ToolRequest
from postroom_runtime.contracts.envelope import (
    ContinuationResult,
    Envelope,
    FromSession,
    Release,
    ToolCallFinished,
    WatchedEvent,
)
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.stepper.receive_points import (
    ending_order,
    is_human,
    pauses,
    released,
    renders,
)
from postroom_runtime.stepper.rendering import as_words, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What R1 makes of the unread mail."""

    text: str
    """What the model reads of it; '' when nothing renders."""
    mail: tuple[Envelope, ...]
    """The envelopes rendered in ``text``, in order of ``seq``."""
    cursor: int
    """``seq`` of the last envelope folded; never smaller than before."""
    human: bool
    """A person's word is among them."""
    hops: int
    """What the session's next letter carries (M-108)."""
    read_from: tuple[SessionId, ...]
    """Sessions it may reply to."""
    releases: tuple[Release, ...] = ()
    """Approvals answered: their calls go on (or end) now."""
    halt: Envelope | None = None
    """A Pause or StopRun: everything before it is folded, and the run ends here (M-86)."""

    @property
    def pauses(self) -> bool:
        """Whether ``halt`` is a Pause."""
        return self.halt is not None and pauses(self.halt)


def fold(
    unread: Sequence[Envelope],
    record: SessionRecord,
    placeholders: Container[CallId],
    *,
    running: bool,
    read: Collection[CallId] = (),
) -> Folded:
    """Fold unread mail, up to the first order that ends the run.

    Args:
        unread: Mail above the record's cursor, ascending. May be empty.
        record: The session as stored: its cursor, hops and whom it has read.
        placeholders: Calls whose tool message was a placeholder.
        read: Calls whose result a status call has shown in full.
        running: A run is under way. Before one, a StopRun with nothing to stop is just read.

    Source:
        S1 §1.3 (consumption commits with its effect) and §2, R1.
    """
    folded: list[Envelope] = []
    cursor, hops, human = record.cursor, record.hops, False
    known = dict.fromkeys(record.read_from)
    halt = ending_order(unread, placeholders, running=running)
    releases: list[Release] = []
    for envelope in unread:
        cursor = envelope.seq
        if (release := released(envelope)) is not None:
            releases.append(release)
        if envelope is halt:
            break
        if not renders(envelope, placeholders):
            continue
        folded.append(envelope)
        if is_human(envelope):
            human, hops = True, 0
        elif isinstance(envelope.sender, FromSession):
            known[envelope.sender.session] = None
            hops = max(hops, envelope.hops + 1)
        elif isinstance(envelope.body, WatchedEvent):
            hops = max(hops, envelope.hops + 1)
    return Folded(
        text=render(folded, {*read, *shown_in_full((), folded)}),
        mail=tuple(folded),
        cursor=cursor,
        human=human,
        hops=hops,
        read_from=tuple(known),
        releases=tuple(releases),
        halt=halt,
    )


@dataclass(frozen=True, slots=True)
class Detached:
    """Calls of a turn that go on without the step."""

    why: dict[CallId, str] = field(default_factory=dict)
    """The reason, as the placeholder tells it."""
    always: set[CallId] = field(default_factory=set)
    """Those that are answered by a placeholder even when they have ended by now (M-60)."""


def answers(
    requests: Sequence[ToolRequest],
    calls: Sequence[Call | None],
    unread: Sequence[Envelope],
    detached: Detached,
) -> tuple[ToolMessage, ...]:
    """Return exactly one tool message per call of the last model turn, in its order (M-42).

    Args:
        requests: What the model called.
        calls: Each one as it stands now; None for a call the table does not know any more.
        unread: The mail read with them. An end that is mail already counts, whatever the table knows:
            or its result would be in neither.
        detached: Calls that the step no longer waits for.
    """
    ended = {
        e.body.call: e.body
        for e in unread
        if isinstance(e.body, (ToolCallFinished, ContinuationResult))
    }
    return tuple(
        _answer(request, call, ended.get(request.id), detached)
        for request, call in zip(requests, calls, strict=True)
    )


def _answer(
    request: ToolRequest,
    call: Call | None,
    end: ToolCallFinished | ContinuationResult | None,
    detached: Detached,
) -> ToolMessage:
    why = detached.why.get(request.id, "the run ended before this call did")
    if call is not None and end is not None and not call.state.final:
        call = replace(call, state=CallState(end.state), result=end.response)
    if call is None:
        state, content = CallState.ORPHANED, "orphaned: nothing is known of this call any more"
    elif request.id in detached.always:
        state, content = CallState.RUNNING, placeholder(replace(call, state=CallState.RUNNING), why)
    elif call.state.final:
        state, content = call.state, as_words(call.result) or "done"
    else:
        state, content = _shown(call.state), placeholder(call, why)
    return ToolMessage(call=request.id, tool=request.tool, content=content, state=state)


def _shown(state: CallState) -> CallState:
    return CallState.RUNNING if state is CallState.PENDING else state


def placeholder(call: Call, why: str) -> str:
    """Return the tool message of a call that goes on without the step (M-62)."""
    if call.state is CallState.DEFERRED:
        told = {
            "status": "deferred",
            "tool_call_id": call.id,
            "deferred": call.reason or "waits for the owner",
            "message": "It has not run. Its result will arrive as mail once the owner has decided.",
        }
    else:
        told = {
            "status": "running",
            "tool_call_id": call.id,
            "detached": why,
            "message": (
                "Its result will arrive as mail. "
                "Use wait, get-tool-call-status or cancel-tool-call."
            ),
        }
        if child := (call.extra or {}).get("child_session_id"):
            told["child_session_id"] = child
    return json.dumps(told)


STATUS_TOOL = "get-tool-call-status"


def shown_in_full(
    messages: Sequence[ToolMessage], mail: Sequence[Envelope] = ()
) -> tuple[CallId, ...]:
    """Return the calls whose final result a status call has shown (M-63).

    Args:
        messages: Tool messages of a turn, with the answers of status calls that stayed attached.
        mail: What is read with them, with the answers of those that did not.
    """
    answers = [message.value for message in messages if message.tool == STATUS_TOOL]
    for envelope in mail:
        body = envelope.body
        if isinstance(body, (ToolCallFinished, ContinuationResult)) and body.tool == STATUS_TOOL:
            answers.append(body.response)
    shown = []
    for told in answers:
        if not isinstance(told, dict):
            continue
        try:
            final = CallState(str(told.get("status"))).final
        except ValueError:
            continue
        if final and "result" in told:
            shown.append(str(told.get("tool_call_id")))
    return tuple(shown)
