"""The model's tools for its own calls: status, list and cancel (M-67, M-68)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from postroom_runtime.calls.context import current_call
from postroom_runtime.calls.executor import Executor
from postroom_runtime.calls.strays import NOTE
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.toolbox.waiting import Waits

TOOLBOX = "calls"


async def get_tool_call_status(
    tool_call_id: str,
    wait_for_completion: bool = False,
    timeout_seconds: float = 30,
    progress: bool = False,
    *,
    _table: CallTable,
    _waits: Waits,
    _executor: Callable[[], Executor],
) -> dict[str, Any]:
    """Look at one of your tool calls; a result read here comes as mail in one line only.

    Args:
        tool_call_id: The call's id, as in its placeholder.
        wait_for_completion: Wait until it ends, mail comes, or the time is up.
        timeout_seconds: How long to wait at most.
        progress: Show its last reports too.

    Returns:
        Its status, and its result once it has ended.
    """
    call = _found(_table, tool_call_id)
    if wait_for_completion and not call.state.final:
        await _waits.wait([tool_call_id], timeout_seconds, told=False)
        call = _found(_table, tool_call_id)
    told: dict[str, Any] = {
        "tool_call_id": call.id,
        "tool": call.tool,
        "status": str(call.state),
    }
    if child := (call.extra or {}).get("child_session_id"):
        told["child_session_id"] = child
    if call.state.final:
        told["result"] = call.result
    if progress or not call.state.final:
        shown = call.progress if progress else call.progress[-1:]
        told["progress"] = [{"done": p.done, "total": p.total, "text": p.text} for p in shown]
    return told | _lingering(call, _executor())


async def list_running_tool_calls(
    *, _table: CallTable, _executor: Callable[[], Executor]
) -> list[dict[str, Any]]:
    """List your tool calls that have not ended, or were ended and still run."""
    mine, executor = current_call().call, _executor()
    return [
        {
            "tool_call_id": call.id,
            "tool": call.tool,
            "status": str(call.state),
            "arguments": dict(call.arguments),
            **_lingering(call, executor),
        }
        for call in (*_table.open_calls(), *_table.deferred(), *executor.lingering())
        if call.id != mine
    ]


async def cancel_tool_call(
    tool_call_id: str, *, _table: CallTable, _executor: Callable[[], Executor]
) -> dict[str, Any]:
    """Cancel one of your tool calls; its process and that process's children end too.

    Args:
        tool_call_id: The call's id.

    Returns:
        Whether it was cancelled, and its status before; one that had ended stays as it is.
    """
    call, executor = _found(_table, tool_call_id), _executor()
    cancelled = await executor.cancel(tool_call_id)
    await executor.settle(tool_call_id)
    return {
        "tool_call_id": tool_call_id,
        "cancelled": cancelled,
        "previous_status": str(call.state),
        **_lingering(_found(_table, tool_call_id), executor),
    }


def _lingering(call: Call, executor: Executor) -> dict[str, Any]:
    # Its state is final and says how it was ended; that its tool does not care is told beside it (M-73).
    return {"still_running": True, "note": NOTE} if executor.lingers(call) else {}


def _found(table: CallTable, id: str) -> Call:
    if (call := table.get(id)) is None:
        known = ", ".join(call.id for call in table.all()[-8:]) or "none"
        raise ConfigError(
            f"there is no tool call {id!r} of yours; the last ones: {known}.", value=id
        )
    return call


_STATUS = make_tool(
    get_tool_call_status,
    name="get-tool-call-status",
    bound={"_table": None, "_waits": None, "_executor": None},
    toolbox=TOOLBOX,
)
_LIST = make_tool(
    list_running_tool_calls,
    name="list-running-tool-calls",
    bound={"_table": None, "_executor": None},
    toolbox=TOOLBOX,
)
_CANCEL = make_tool(
    cancel_tool_call,
    name="cancel-tool-call",
    bound={"_table": None, "_executor": None},
    toolbox=TOOLBOX,
)


def call_tools(table: CallTable, waits: Waits, executor: Callable[[], Executor]) -> list[Tool]:
    """Return the call tools of a session."""
    return [
        replace(_STATUS, bound={"_table": table, "_waits": waits, "_executor": executor}),
        replace(_LIST, bound={"_table": table, "_executor": executor}),
        replace(_CANCEL, bound={"_table": table, "_executor": executor}),
    ]


NAMES = ("get-tool-call-status", "list-running-tool-calls", "cancel-tool-call")
"""What an agent's ``toolbox`` option may name of these."""
