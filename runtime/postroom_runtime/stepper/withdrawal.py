"""Mail that was taken back before it was read: it keeps its place and says nothing; pure."""

from collections.abc import Sequence
from dataclasses import replace

from postroom_runtime.contracts.envelope import Control, Envelope, Priority, Withdraw


def taken_back(envelope: Envelope) -> Withdraw | None:
    """Return the withdrawal that ``envelope`` carries, if any."""
    if isinstance(envelope.body, Control) and isinstance(envelope.body.message, Withdraw):
        return envelope.body.message
    return None


def without_withdrawn(unread: Sequence[Envelope]) -> list[Envelope]:
    """Return ``unread`` with each mail that was withdrawn replaced by its withdrawal.

    The cursor still passes over its place, and whoever asks whether it renders, wakes or interrupts
    is told no: one rule for all receive points.

    Args:
        unread: Mail above a cursor, in order of ``seq``.
    """
    gone = {back.seq: back for envelope in unread if (back := taken_back(envelope)) is not None}
    if not gone:
        return list(unread)
    return [
        replace(envelope, body=Control(back), priority=Priority.NORMAL)
        if (back := gone.get(envelope.seq)) is not None
        else envelope
        for envelope in unread
    ]
