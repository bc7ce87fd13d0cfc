"""Which call the code that runs now belongs to: carried by the context into tasks and threads."""

from contextvars import ContextVar
from dataclasses import dataclass

from postroom_runtime.contracts.ids import CallId, SessionId


@dataclass(frozen=True, slots=True)
class CallContext:
    """The call in whose task or thread the code runs."""

    session: SessionId
    call: CallId


CURRENT: ContextVar[CallContext] = ContextVar("postroom_call")


def current_call() -> CallContext:
    """Return the running call.

    Raises:
        LookupError: The code does not run inside a tool call.
    """
    return CURRENT.get()
