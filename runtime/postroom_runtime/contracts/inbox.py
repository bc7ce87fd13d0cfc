"""What steers a run from outside: an object whose reader gives messages while the run is under way."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

Drain: TypeAlias = Callable[[], list[str]]
"""Returns what came since it was called last, oldest first; must not block (A-5, A-6)."""


@runtime_checkable
class Inbox(Protocol):
    """A source of messages for runs that are under way (A-2, A-3).

    Any object with such a method is one; there is no class to inherit from. Whoever feeds it may be
    another thread: it has to guard itself (A-7).
    """

    def reader(self, agent: str | None = None) -> Drain:
        """Return a drain of its own for one run; called once, at the run's start (A-4).

        Args:
            agent: What the run is called: a session's name, or ``subagent-SLUG`` for a helper. Given
                as one positional argument, so the parameter may be called anything (A-32).
        """
        ...


INBOX_RULE = "an object with a reader(agent) method (a pr.Inbox), or None"


def is_inbox(value: Any) -> bool:
    """Tell whether ``value`` could be an :class:`Inbox`: a class of inboxes is none itself (A-47)."""
    reader = getattr(value, "reader", None)
    return callable(reader) and (not isinstance(value, type) or hasattr(reader, "__self__"))
