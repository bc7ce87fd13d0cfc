"""What every request to a model must look like, whatever happened before it; pure."""

from collections.abc import Sequence

from postroom_runtime.contracts.turn import Role, Turn


def faults(turns: Sequence[Turn]) -> list[str]:
    """Return what is wrong with a request, in words; nothing when every provider would take it.

    It begins and ends with a user turn, and no model turn follows another; user turns may, where the
    first was never answered. A model turn that calls is answered by the next turn with exactly one
    tool message per call, in order, and there is no other tool message. No call id is used twice, no
    user turn is empty, and the turns are numbered without a gap.
    """
    found: list[str] = []
    seen: set[str] = set()
    if not turns or turns[-1].role is not Role.USER:
        found.append("the last turn is no user turn")
    before: Turn | None = None
    for place, turn in enumerate(turns, 1):
        at = f"turn {place}"
        if turn.index != place:
            found.append(f"{at} has the number {turn.index}")
        if turn.role is Role.MODEL and (before is None or before.role is Role.MODEL):
            found.append(f"{at} is a model turn that answers none of a user's")
        due = [call.id for call in before.calls] if before is not None else []
        got = [message.call for message in turn.results]
        if got != due:
            found.append(f"{at} answers {got}, called were {due}")
        if turn.role is Role.USER and not (turn.text.strip() or turn.results):
            found.append(f"{at} says nothing")
        if turn.role is Role.USER and turn.calls:
            found.append(f"{at} is a user turn that calls")
        for call in turn.calls:
            if not call.id or call.id in seen:
                found.append(f"{at} calls {call.id!r} a second time")
            seen.add(call.id)
        before = turn
    return found
