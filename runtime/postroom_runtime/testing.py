"""For tests of agents: a loop whose clock jumps, and stories of what happened.

``run_virtual`` runs a coroutine on a loop whose clock jumps to the next timer when nothing is ready,
so a test of a five-minute time-out takes no time and its seconds are exact. It serves loop code
only: on a loop that waits for a thread or a socket the clock would jump over the waiting.
"""

import asyncio
import selectors
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from postroom_runtime.contracts.event import Event, EventKind

__all__ = ["VirtualClockLoop", "run_virtual", "story"]

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Polls without blocking, and takes every wait as passed."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: every task waits and no timer is set")
            self.seconds += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose ``time()`` starts at 0.0 and jumps over every wait, in seconds."""

    def __init__(self) -> None:
        self._jumper = _JumpingSelector()
        super().__init__(self._jumper)

    def time(self) -> float:
        """Return the seconds passed on this loop's own clock."""
        return self._jumper.seconds


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end on a loop whose clock jumps; return what it returns.

    Raises:
        RuntimeError: Everything waits and no timer is set: the test would hang.
    """
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main)


def story(events: Iterable[Event], *kinds: EventKind | str) -> list[str]:
    """Return what happened, in order, as short words: what an assertion compares and prints.

    Args:
        events: As ``s.history()`` gives them.
        kinds: Only these; none for all.
    """
    return [_words(event) for event in events if not kinds or event.kind in kinds]


def _words(event: Event) -> str:
    data = event.data
    match event.kind:
        case EventKind.RUN_STOPPED:
            return f"{event.kind} {data['reason']}"
        case EventKind.INBOX:
            return f"{event.kind} {','.join(map(str, data['mail']))}"
        case EventKind.SESSION_UPDATED if "turn" in data:
            return f"turn {data['turn']['index']} {data['turn']['role']}"
        case EventKind.SESSION_UPDATED:
            return f"status {data['session'].get('status', 'ready')}"
        case EventKind.TOOL_STARTED | EventKind.TOOL_COMPLETED:
            return f"{event.kind} {data['call']['tool']} {data['call']['state']}"
        case _:
            return str(event.kind)
