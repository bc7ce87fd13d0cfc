"""Run each call as a task of its own, and end it in the table whatever happens."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from postroom_runtime.calls.context import CURRENT, CallContext
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.threads import in_thread
from postroom_runtime.calls.tool import BadArguments, Tool, as_json
from postroom_runtime.contracts.call import CallState, ToolRequest
from postroom_runtime.contracts.errors import PostroomError, StoreFailed
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId

_RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0)
"""Between tries to store a result that the disk refused: a result is never dropped."""


class Executor:
    """What runs the calls of one session. Loop-bound.

    Args:
        session: Whose calls.
        table: Where they stand.
        max_concurrency: How many run at the same time; the others are pending.
        context: The context their tasks run in; a copy is made for each.
        on_failure: Called on the loop when ``failure`` was set.
    """

    def __init__(
        self,
        session: SessionId,
        table: CallTable,
        max_concurrency: int,
        context: Context | None = None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._session, self._table, self._context = session, table, context
        self._on_failure = on_failure
        self.max_concurrency = max_concurrency
        self._slots = asyncio.Semaphore(max_concurrency)
        self._tasks: dict[CallId, asyncio.Task[None]] = {}
        self.failure: BaseException | None = None
        """Why a call could not be ended in the store; the step that waits for it raises this."""

    def free(self) -> int:
        """Return how many calls could start at once."""
        return max(0, self.max_concurrency - len(self._tasks))

    def start(self, requests: Sequence[ToolRequest], tools: Mapping[str, Tool]) -> None:
        """Start calls whose records are stored and entered in the table, each as a task."""
        for request in requests:
            context = (self._context or copy_context()).copy()
            context.run(CURRENT.set, CallContext(self._session, request.id))
            task = asyncio.get_running_loop().create_task(
                self._run(request, tools), name=f"postroom:{request.id}", context=context
            )
            self._tasks[request.id] = task
            task.add_done_callback(partial(self._ended, request.id))

    def _ended(self, id: CallId, task: asyncio.Task[None]) -> None:
        self._tasks.pop(id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = error
            self._on_failure()

    async def cancel(self, id: CallId, state: CallState = CallState.CANCELLED) -> bool:
        """End a call now; what it still returns is discarded. False when it had ended."""
        task, call = self._tasks.get(id), self._table.get(id)
        if task is None or call is None or call.state.final:
            return False
        why = f"{state}: the call was ended before its result"
        ended = await _insist(partial(self._table.end, id, state, why))
        task.cancel()
        return ended

    def abandon(self) -> None:
        """Cancel every task and store nothing: the room closes. Recovery tells what became of them."""
        for task in tuple(self._tasks.values()):
            task.cancel()

    async def cancel_all(self) -> None:
        """End every call that runs or waits to run."""
        for id in tuple(self._tasks):
            await self.cancel(id)

    async def _run(self, request: ToolRequest, tools: Mapping[str, Tool]) -> None:
        async with self._slots:
            if not await _insist(partial(self._table.start, request.id)):
                return
            state, result = await self._outcome(request, tools)
        await _insist(partial(self._table.end, request.id, state, result))

    async def _outcome(
        self, request: ToolRequest, tools: Mapping[str, Tool]
    ) -> tuple[CallState, Json]:
        if request.malformed:
            return CallState.FAILED, f"{request.tool} was not called: {request.malformed}"
        if (tool := tools.get(request.tool)) is None:
            known = ", ".join(sorted(tools)) or "none"
            return CallState.FAILED, f"there is no tool {request.tool!r}; yours: {known}."
        try:
            kwargs = tool.arguments(request.arguments)
            if tool.is_async:
                returned = await tool.function(**kwargs)
            else:
                returned = await in_thread(tool.function, kwargs)
            return CallState.COMPLETED, _result(returned)
        except (BadArguments, PostroomError) as error:
            return CallState.FAILED, str(error)
        except asyncio.CancelledError:
            if _cancelled_from_outside():
                raise
            return CallState.FAILED, "CancelledError: the tool's own task was cancelled"
        except BaseException as error:  # a tool may do anything, exit() included: it is a result
            return CallState.FAILED, f"{type(error).__name__}: {error}".rstrip(": ")


async def _insist(store: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
    """Return what ``store`` does, tried again while the disk refuses."""
    for seconds in _RETRY_SECONDS:
        try:
            return await store()
        except StoreFailed:
            await asyncio.sleep(seconds)
    return await store()


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _result(returned: Any) -> Json:
    return "done" if returned is None else as_json(returned)
