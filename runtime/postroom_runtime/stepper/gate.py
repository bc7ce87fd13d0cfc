"""How far a session sees its mail while its room steps: one letter is let through at a time; pure.

Mail behind the gate has not arrived, as far as the session can tell: every receive point looks
through the gate, so a stepped room does nothing that a room could not do whose mail came later.
"""

from collections.abc import Collection, Container, Sequence

from postroom_runtime.contracts.envelope import (
    CancelCalls,
    ContinuationResult,
    Control,
    Envelope,
    Pause,
    Release,
    Resume,
    StopRun,
    ToolCallFinished,
)
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.stepper.receive_points import renders

_ORDERS = (Pause, Resume, StopRun, CancelCalls, Release)


def orders(envelope: Envelope) -> bool:
    """Tell whether ``envelope`` is an order: it opens the gate up to itself, or it would be late."""
    return isinstance(envelope.body, Control) and isinstance(envelope.body.message, _ORDERS)


def called(head: Turn | None) -> Collection[CallId]:
    """Return the calls whose tool messages are still to be written: those of a last model turn.

    Whether the end of one renders is not decided yet: it depends on what its tool message says.
    """
    if head is None or head.role is not Role.MODEL:
        return ()
    return {request.id for request in head.calls}


def seen(
    mail: Sequence[Envelope],
    gate: int,
    placeholders: Container[CallId],
    undecided: Collection[CallId],
) -> int:
    """Return how many of ``mail``, from its beginning, are in front of the gate.

    Args:
        mail: All mail above the cursor, ascending.
        gate: ``seq`` of the last mail let through.
        placeholders: Calls whose tool message was a placeholder.
        undecided: Calls whose tool message is still to be written.
    """
    count = 0
    for position, envelope in enumerate(mail):
        passes = count == position and _silent(envelope, placeholders, undecided)
        if passes or envelope.seq <= gate or orders(envelope):
            count = position + 1
    return count


def _silent(
    envelope: Envelope, placeholders: Container[CallId], undecided: Collection[CallId]
) -> bool:
    """Tell whether ``envelope`` can pass by itself: it says nothing, and never will."""
    if renders(envelope, placeholders):
        return False
    body = envelope.body
    return not (isinstance(body, (ToolCallFinished, ContinuationResult)) and body.call in undecided)
