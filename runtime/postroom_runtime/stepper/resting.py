"""What a session at rest does with mail that starts no run."""

from collections.abc import Sequence

from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.stepper.folding import Detached
from postroom_runtime.stepper.loop import Run
from postroom_runtime.stepper.receive_points import ending_order, pauses, silent_prefix
from postroom_runtime.stepper.state import SessionState
from postroom_runtime.stepper.step import Host


async def settle(host: Host) -> None:
    """Take in what needs no run: mail that says nothing to the model, and a pause at rest.

    The cursor moves past it and no turn is made (M-53, M-54). A Pause keeps the words before it in a
    stored, unanswered turn (M-86).
    """
    state = host.state
    # Looked at before the orders are taken: none is passed over that has not been seen.
    silent = silent_prefix(state.unread(), state.placeholders, _resumable(state))
    host.take_orders()
    if silent:
        await state.commit(cursor=silent[-1].seq)
    if _pausing(state, state.unread()):
        await Run(host).halt(Detached(), running=False)


def unsettled(host: Host) -> bool:
    """Tell whether ``settle`` has something to do."""
    state = host.state
    unread = state.unread()
    if not unread:
        return False
    return bool(silent_prefix(unread, state.placeholders, _resumable(state))) or (
        _pausing(state, unread)
    )


def _pausing(state: SessionState, unread: Sequence[Envelope]) -> bool:
    order = ending_order(unread, state.placeholders, running=False)
    return order is not None and pauses(order)


def _resumable(state: SessionState) -> bool:
    record = state.record
    return record.status is not SessionStatus.IDLE or record.end_reason is EndReason.STOPPED
