"""Fold unread mail into the next user turn: what the model reads, and what is then read; pure."""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from postroom_runtime.contracts.call import Call, CallState, ToolMessage, ToolRequest
from postroom_runtime.contracts.envelope import Control, Envelope, FromSession, Pause, WatchedEvent
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.stepper.receive_points import halts, is_human, renders
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
    halt: Envelope | None = None
    """A Pause or StopRun: everything before it is folded, and the run ends here (M-86)."""

    @property
    def pauses(self) -> bool:
        """Whether ``halt`` is a Pause."""
        return (
            self.halt is not None
            and isinstance(self.halt.body, Control)
            and isinstance(self.halt.body.message, Pause)
        )


def fold(
    unread: Sequence[Envelope],
    record: SessionRecord,
    placeholders: Container[CallId],
    *,
    running: bool,
) -> Folded:
    """Fold unread mail, up to the first order that ends the run.

    Args:
        unread: Mail above the record's cursor, ascending. May be empty.
        record: The session as stored: its cursor, hops and whom it has read.
        placeholders: Calls whose tool message was a placeholder.
        running: A run is under way. Before one, a StopRun with nothing to stop is just read.

    Source:
        S1 §1.3 (consumption commits with its effect) and §2, R1.
    """
    folded: list[Envelope] = []
    cursor, hops, human = record.cursor, record.hops, False
    known = dict.fromkeys(record.read_from)
    halt: Envelope | None = None
    for envelope in unread:
        cursor = envelope.seq
        if halts(envelope):
            pausing = isinstance(envelope.body, Control) and isinstance(
                envelope.body.message, Pause
            )
            if running or folded or pausing:
                halt = envelope
                break
            continue
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
        text=render(folded),
        mail=tuple(folded),
        cursor=cursor,
        human=human,
        hops=hops,
        read_from=tuple(known),
        halt=halt,
    )


def answers(
    requests: Sequence[ToolRequest], calls: Sequence[Call | None]
) -> tuple[ToolMessage, ...]:
    """Return exactly one tool message per call of the last model turn, in its order (M-42).

    Args:
        requests: What the model called.
        calls: Each one as it stands now; None for a call the table does not know any more.
    """
    return tuple(
        ToolMessage(
            call=request.id,
            tool=request.tool,
            content=_content(call),
            state=CallState.ORPHANED if call is None else call.state,
        )
        for request, call in zip(requests, calls, strict=True)
    )


def _content(call: Call | None) -> str:
    if call is None:
        return "orphaned: nothing is known of this call any more"
    if not call.state.final:
        return f"{call.state}: the run ended before this call did"
    return as_words(call.result) or "done"
