"""Which call the code that runs now belongs to: carried by the context into tasks and threads."""

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass

from postroom_runtime.contracts.call import Progress
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import CallId, SessionId


@dataclass(frozen=True, slots=True)
class CallContext:
    """The call in whose task or thread the code runs."""

    session: SessionId
    call: CallId
    report: Callable[[Progress], None] = lambda progress: None
    """Takes a report from any thread."""
    table: object = None
    """The table the call is in: call ids are unique in a room, and a process has many rooms."""


CURRENT: ContextVar[CallContext | None] = ContextVar("postroom_call", default=None)


def current_call() -> CallContext:
    """Return the running call.

    Raises:
        LookupError: The code does not run inside a tool call.
    """
    if (context := CURRENT.get()) is None:
        raise LookupError("this code does not run inside a tool call")
    return context


def outside_calls() -> Context:
    """Return a copy of the present context that belongs to no call.

    What a tool starts and leaves behind, a session say, is not part of its call.
    """
    context = copy_context()
    context.run(CURRENT.set, None)
    return context


def progress(done: float, total: float | None = None, text: str = "") -> None:
    """Report, from inside a tool, how far its call has come: state to be looked at, never mail (M-2).

    Outside a tool call nothing hears it, so that a tool can be tried by hand.

    Args:
        done: How much is done, in whatever unit the tool counts.
        total: How much there is; None when nobody knows.
        text: What is being done, in a few words.

    Raises:
        ConfigError: ``done`` or ``total`` is no number.
    """
    if not _number(done) or not (total is None or _number(total)):
        wrong = ("total", total) if _number(done) else ("done", done)
        raise ConfigError(f"progress: {wrong[0]}={wrong[1]!r} is no number.", value=wrong[1])
    if (context := CURRENT.get()) is not None:
        context.report(Progress(done=done, total=total, text=str(text)))


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
