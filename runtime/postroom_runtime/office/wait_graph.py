"""Who waits for whom: no call may wait for a session that, by whatever way, waits for it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from postroom_runtime.calls.context import CURRENT, CallContext
from postroom_runtime.contracts.errors import WaitCycle
from postroom_runtime.contracts.ids import CallId, SessionId


@dataclass(frozen=True, slots=True)
class Target:
    """What is waited for: that a session comes to rest, or that one call of it ends."""

    session: SessionId
    call: CallId | None = None


@dataclass(frozen=True, eq=False, slots=True)
class _Wait:
    session: SessionId
    call: CallId
    targets: Sequence[Target]
    any: bool


class WaitGraph:
    """The waits that tool calls of a room are in. Loop-bound.

    A session does not come to rest while a call of it runs, so whoever waits for the session waits for
    all that its calls wait for. Waits from outside of calls, in a cell say, hold nobody up.

    Args:
        name: Gives the name of a session, for the message.
        mine: Tells whether a call is one of this room: a tool may open another.
    """

    def __init__(
        self, name: Callable[[SessionId], str], mine: Callable[[CallContext], bool]
    ) -> None:
        self._name, self._mine = name, mine
        self._waits: dict[SessionId, list[_Wait]] = {}

    @contextmanager
    def waiting(self, targets: Sequence[Target], *, any: bool = False) -> Iterator[None]:
        """Wait inside of this; outside of tool calls nothing is looked at.

        Args:
            targets: What is waited for.
            any: The first of them ends the wait; else all must.

        Raises:
            WaitCycle: The wait could not end. With ``any`` only if no target could.
        """
        context = CURRENT.get()
        if context is None or not targets or not self._mine(context):
            yield
            return
        wait = _Wait(context.session, context.call, tuple(targets), any)
        held = self._waits.setdefault(wait.session, [])
        held.append(wait)
        try:
            if wait in (blocked := self._blocked(wait)):
                raise WaitCycle([self._name(session) for session in self._circle(wait, blocked)])
            yield
        finally:
            held.remove(wait)
            if not held and self._waits.get(wait.session) is held:
                del self._waits[wait.session]

    def inside(self, session: SessionId, call: CallId) -> bool:
        """Tell whether that call waits in here: for sessions, and for nothing else."""
        return any(wait.call == call for wait in self._waits.get(session, ()))

    def _behind(self, target: Target) -> list[_Wait]:
        """Return the waits that must end before ``target`` can."""
        return [
            wait for wait in self._waits.get(target.session, ()) if target.call in (None, wait.call)
        ]

    def _blocked(self, wait: _Wait) -> set[_Wait]:
        """Return the waits that can never end, of those that ``wait`` depends on, itself included."""
        reached, todo = {wait}, [wait]
        while todo:
            for target in todo.pop().targets:
                new = [each for each in self._behind(target) if each not in reached]
                reached.update(new)
                todo += new
        # Everything is taken for blocked; what can end is struck out until nothing more can.
        blocked = set(reached)
        while free := [each for each in blocked if self._can_end(each, blocked)]:
            blocked.difference_update(free)
        return blocked

    def _can_end(self, wait: _Wait, blocked: set[_Wait]) -> bool:
        ends = (blocked.isdisjoint(self._behind(target)) for target in wait.targets)
        return any(ends) if wait.any else all(ends)

    def _circle(self, wait: _Wait, blocked: set[_Wait]) -> list[SessionId]:
        """Return the shortest way from ``wait`` to itself, as the sessions on it."""
        ways: dict[_Wait, list[SessionId]] = {wait: [wait.session]}
        todo = [wait]
        for here in todo:  # grows while it is walked
            for target in here.targets:
                way = [*ways[here], target.session]
                for each in self._behind(target):
                    if each is wait:
                        return way
                    if each in blocked and each not in ways:
                        ways[each] = way
                        todo.append(each)
        return [wait.session, *(target.session for target in wait.targets[:1])]
