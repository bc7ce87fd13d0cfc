"""What mail may do at the receive points: pure, one answer for everybody who asks.

Whether an envelope *renders* decides at once whether it wakes, whether it extends a run, whether it
is told as delivered and whether ``wait`` sees it (M-54, M-65, A-14, A-16).
"""

from collections.abc import Callable, Container, Iterable, Sequence

from postroom_runtime.contracts.envelope import (
    AgentMessage,
    CancelCalls,
    ContinuationResult,
    Control,
    Envelope,
    FromSession,
    FromUser,
    Notification,
    Pause,
    Priority,
    Release,
    Resume,
    StopRun,
    ToolCallFinished,
    UnknownBody,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason

WakeKindOf = Callable[[SessionId], str]
"""Gives the word of ``wake_on`` for another session, as seen from the reader."""


def renders(envelope: Envelope, placeholders: Container[CallId]) -> bool:
    """Tell whether the model gets to read anything of ``envelope``.

    Args:
        envelope: Any mail.
        placeholders: Calls whose tool message was a placeholder: the result of any other is in its
            own tool message already and must not come twice (M-64).
    """
    match envelope.body:
        case UserMessage(text=text) | AgentMessage(text=text):
            return bool(text.strip())
        case ToolCallFinished(call=call) | ContinuationResult(call=call):
            return call in placeholders
        case WatchedEvent():
            return True
        case Control() | Notification() | UnknownBody():
            return False


def is_human(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` is a word from a person: a property of the sender alone (M-1)."""
    return (
        isinstance(envelope.sender, FromUser)
        and isinstance(envelope.body, UserMessage)
        and bool(envelope.body.text.strip())
    )


def is_owners(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` is a word of the room's owner, and not of a guest."""
    return (
        is_human(envelope)
        and isinstance(envelope.sender, FromUser)
        and envelope.sender.owner is None
    )


def wake_word(envelope: Envelope, kind_of: WakeKindOf) -> str:
    """Return the word of ``wake_on`` that ``envelope`` stands for, by body then sender (M-94)."""
    match envelope.body:
        case WatchedEvent(session=session):
            return kind_of(session)
        case ToolCallFinished() | ContinuationResult():
            # Of a call, whoever gave the result: a person may answer for a deferred one.
            return "tool"
    match envelope.sender:
        case FromUser():
            return "user"
        case FromSession(session=session):
            return kind_of(session)
        case _:
            return "tool"


def interrupts(envelope: Envelope, placeholders: Container[CallId]) -> bool:
    """Tell whether ``envelope`` breaks a wait on attached calls (R3a) or, opt-in, a completion (R4)."""
    return envelope.priority is Priority.INTERRUPT and renders(envelope, placeholders)


def cancels(envelope: Envelope) -> tuple[CallId, ...]:
    """Return the calls that ``envelope`` orders to cancel; acted on as soon as it is seen (M-84)."""
    if isinstance(envelope.body, Control) and isinstance(envelope.body.message, CancelCalls):
        return envelope.body.message.ids
    return ()


def released(envelope: Envelope) -> Release | None:
    """Return the answer to an approval that ``envelope`` carries, if any."""
    if isinstance(envelope.body, Control) and isinstance(envelope.body.message, Release):
        return envelope.body.message
    return None


def halts(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` ends the run at the next receive point."""
    return isinstance(envelope.body, Control) and isinstance(
        envelope.body.message, (Pause, StopRun)
    )


def ending_order(
    unread: Iterable[Envelope], placeholders: Container[CallId], *, running: bool
) -> Envelope | None:
    """Return the order among ``unread`` at which a run ends, if any: what is behind it stays unread.

    Args:
        unread: Mail above a cursor, ascending.
        placeholders: Calls whose tool message was a placeholder.
        running: A run is under way. Before one, a StopRun with nothing to stop is just read.
    """
    says = False
    for envelope in unread:
        if halts(envelope):
            if running or says or pauses(envelope):
                return envelope
        else:
            says = says or renders(envelope, placeholders)
    return None


def pauses(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` is a Pause."""
    return isinstance(envelope.body, Control) and isinstance(envelope.body.message, Pause)


def stops(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` ends the run at once, a completion included (M-85)."""
    return isinstance(envelope.body, Control) and isinstance(envelope.body.message, StopRun)


def resumes(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` makes a session at rest runnable again (M-83)."""
    return isinstance(envelope.body, Control) and isinstance(envelope.body.message, Resume)


def starts_run(
    record: SessionRecord,
    unread: Iterable[Envelope],
    placeholders: Container[CallId],
    wake_on: Container[str],
    kind_of: WakeKindOf,
    resume_on_any_mail: bool = False,
) -> bool:
    """Tell whether a session at rest has a reason to run (M-93): R2 with no run.

    A stored, stopped or capped session needs a word from its owner that is newer than its waterline,
    a failed one any waking mail that is; a paused one needs Resume, or, by a knob, any waking mail
    that is. A Resume older than the waterline had its chance. Mail that does not wake waits and is
    read with what does (M-96).
    """
    status = record.status
    if status is SessionStatus.CLOSED:
        return False
    for envelope in unread:
        if (
            resumes(envelope)
            and (status is not SessionStatus.IDLE or record.end_reason is EndReason.STOPPED)
            and envelope.seq > record.waterline
        ):
            return True
        if not renders(envelope, placeholders):
            continue
        if status is SessionStatus.PAUSED and not resume_on_any_mail:
            continue
        if (
            status in (SessionStatus.READY, SessionStatus.CAPPED)
            or record.end_reason is EndReason.STOPPED
        ):
            # Running a stored one spends money that nobody but the owner has a say in (M-91).
            if is_owners(envelope) and envelope.seq > record.waterline:
                return True
            continue
        if (
            status in (SessionStatus.FAILED, SessionStatus.PAUSED)
            and envelope.seq <= record.waterline
        ):
            continue
        if wake_word(envelope, kind_of) in wake_on:
            return True
    return False


def silent_prefix(
    unread: Sequence[Envelope], placeholders: Container[CallId], resumable: bool
) -> Sequence[Envelope]:
    """Return the mail before the first that renders or orders something.

    A session at rest consumes it without a turn: blank words, controls without effect, results that
    are in their own tool message (M-53, M-54, M-85). A Pause is no such, nor a Resume where
    ``resumable``: they take effect.
    """
    for position, envelope in enumerate(unread):
        if renders(envelope, placeholders) or (resumes(envelope) and resumable):
            return unread[:position]
        if pauses(envelope):
            return unread[:position]
    return unread
