"""``wait``: the model's only blocking tool. It peeks at mail and calls, and always has a limit (M-65)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from postroom_runtime.calls.context import current_call
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.stepper.receive_points import halts, renders
from postroom_runtime.stepper.state import SessionState

TOOLBOX = "mail"


@dataclass(frozen=True, slots=True)
class Waits:
    """What the waiting tools of one session look at.

    Args:
        state: Its mail and cursor.
        table: Its calls.
        bell: Rung after each change.
        limit: The longest a wait may take, in seconds, as its agent is defined now.
    """

    state: SessionState
    table: CallTable
    bell: Bell
    limit: Callable[[], float]

    async def wait(
        self,
        what: Literal["mail", "any-call"] | Sequence[CallId],
        timeout: float,
        *,
        told: bool = True,
    ) -> dict[str, Any]:
        """Return what ended the wait: mail, a call, a control, the time, or that nothing runs.

        While the room steps a call counts as ended once the mail that tells of it is let through;
        without ``told`` as soon as it has, for who looks at the call itself.

        Any mail that the model would read ends it, whatever it waits for; it is read in the same turn
        (M-65). Its own end, results in their own tool messages and blank words are no such mail.
        """
        mine = current_call().call
        named = None if isinstance(what, str) else list(what)
        for id in named or ():
            if self.table.get(id) is None:
                raise ConfigError(f"there is no tool call {id!r} of yours to wait for.", value=id)
        running = [c.id for c in self.table.open_calls() if c.id != mine]
        running += self.state.held_ends()

        def look() -> dict[str, Any] | None:
            unread = self.state.unread()
            if any(halts(envelope) for envelope in unread):
                return {"woken_by": "control"}
            # A call before its mail: both are there in the same breath, and the call was asked for.
            untold = self.state.held_ends() if told else ()
            for id in running if what == "any-call" else named or ():
                call = self.table.get(id)
                if call is not None and call.state.final and id not in untold:
                    return {"woken_by": "call", "tool_call_id": id}
            if any(renders(envelope, self.state.placeholders) for envelope in unread):
                return {"woken_by": "mail"}
            return {"woken_by": "nothing"} if what == "any-call" and not running else None

        seconds = max(0.0, min(float(timeout), self.limit()))
        return await wait_until(look, self.bell, seconds) or {"woken_by": "timeout"}


async def wait(
    for_: Literal["mail", "any-call"] | list[str] = "mail",
    timeout_seconds: float = 30,
    *,
    _waits: Waits,
) -> dict[str, Any]:
    """Wait for mail or for tool calls; whatever mail comes ends the wait, and you read it next.

    Args:
        for_: "mail", "any-call", or a list of tool call ids, of which the first to end counts.
        timeout_seconds: How long at most.

    Returns:
        What woke you: mail, call (with its tool_call_id), timeout, control or nothing.
    """
    return await _waits.wait(for_, timeout_seconds)


_WAIT = make_tool(wait, name="wait", bound={"_waits": None}, toolbox=TOOLBOX)


def wait_tool(waits: Waits) -> Tool:
    """Return the ``wait`` tool of a session."""
    return replace(_WAIT, bound={"_waits": waits})


NAMES = ("wait",)
"""What an agent's ``toolbox`` option may name of these."""
