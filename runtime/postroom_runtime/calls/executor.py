"""Run each call as a task of its own, and end it in the table whatever happens."""

import asyncio
import inspect
import json
from collections.abc import Callable, Container, Coroutine, Mapping, MutableMapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from postroom_runtime.calls.context import CURRENT, CallContext
from postroom_runtime.calls.desk import Beside, Desk
from postroom_runtime.calls.hooks import AskOwner, BeforeAnswer, GoOn, Hooks
from postroom_runtime.calls.insisting import insist
from postroom_runtime.calls.middleware import (
    CallInput,
    Done,
    Outcome,
    Surroundings,
    TimedOut,
    Yielded,
    compose,
)
from postroom_runtime.calls.policy import (
    AppliedPolicy,
    Before,
    Defer,
    Label,
    Timeout,
    apply,
)
from postroom_runtime.calls.processes import ProcessFailed
from postroom_runtime.calls.strays import PATIENCE_SECONDS, Strays
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import BadArguments, Tool, as_json
from postroom_runtime.contracts.call import Call, CallState, Progress, ToolRequest
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId

_CUT = (CallState.CANCELLED, CallState.TIMED_OUT)

REALTIME_SECONDS = 120.0
"""How long the agent's own ``approve`` may take to say yes."""


@dataclass(frozen=True, slots=True)
class Work:
    """A call with what the policy makes of it."""

    request: ToolRequest
    tool: Tool | None
    """None when there is no such tool."""
    known: tuple[str, ...]
    """The names there are."""
    applied: AppliedPolicy

    @property
    def own(self) -> bool:
        """Whether the tool is one of Postroom's own that only look, end or wait."""
        return self.tool is not None and bool(self.tool.toolbox) and not self.tool.places


class Executor:
    """What runs the calls of one session. Loop-bound.

    Args:
        session: Whose calls.
        table: Where they stand.
        max_concurrency: How many run at the same time; the others are pending.
        desk: What they need of the session.
        context: The context their tasks run in; a copy is made for each.
        changed: Called on the loop when a task has ended, or ``failure`` was set.
        strays: Where what ignores its cancellation is kept; default a place of its own.
    """

    def __init__(
        self,
        session: SessionId,
        table: CallTable,
        max_concurrency: int,
        desk: Desk,
        context: Context | None = None,
        changed: Callable[[], None] = lambda: None,
        strays: Strays | None = None,
    ) -> None:
        self._session, self._table, self._context, self._desk = session, table, context, desk
        self._changed = changed
        self._strays = Strays(changed) if strays is None else strays
        self.max_concurrency = max_concurrency
        self._slots = asyncio.Semaphore(max_concurrency)
        self._placed: set[CallId] = set()
        """Calls that have one of the places."""
        self._tasks: dict[CallId, asyncio.Task[None]] = {}
        self._cache: MutableMapping[str, Json] = {}
        self._hooks = Hooks(self._run_hook_tool, self._trace, broken=desk.guard_failed)
        self.failure: BaseException | None = None
        """Why a call could not be ended in the store; the step that waits for it raises this."""

    # ── starting ──

    def free(self) -> int:
        """Return how many calls could start at once."""
        return max(0, self.max_concurrency - len(self._tasks))

    @property
    def busy(self) -> bool:
        """Whether a call runs or waits to run."""
        return bool(self._tasks)

    def work(self, request: ToolRequest, tools: Mapping[str, Tool]) -> Work:
        """Return what the policy makes of a call."""
        tool = tools.get(request.tool)
        applied = apply(
            self._desk.policy(),
            request.tool,
            request.arguments,
            toolbox=tool.toolbox if tool else "",
            attach_seconds=tool.attach_seconds if tool else None,
        )
        return Work(request, tool, tuple(sorted(tools)), applied)

    def start(self, works: Sequence[Work]) -> None:
        """Start calls whose records are stored and entered in the table, each as a task."""
        for work in works:
            self._start(work.request.id, self._run(work))

    def _start(self, id: CallId, run: Coroutine[Any, Any, None]) -> None:
        loop = asyncio.get_running_loop()
        context = (self._context or copy_context()).copy()

        def report(progress: Progress) -> None:
            # A thread that nobody waits for any more may outlive the loop.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._report, id, progress)

        context.run(CURRENT.set, CallContext(self._session, id, report, self._table))
        task = loop.create_task(run, name=f"postroom:{id}", context=context)
        self._tasks[id] = task
        task.add_done_callback(partial(self._ended, id))

    def _ended(self, id: CallId, task: asyncio.Task[None]) -> None:
        if self._tasks.get(id) is task:
            del self._tasks[id]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = error
        self._changed()

    # ── ending from outside ──

    async def cancel(self, id: CallId, state: CallState = CallState.CANCELLED) -> bool:
        """End a call now; what it still returns is discarded. False when it had ended (M-68)."""
        call = self._table.get(id)
        if call is None or call.state.final:
            return False
        why = f"{state}: the call was ended before its result{self._strays.words(id)}"
        ended = await insist(partial(self._table.end, id, state, why, self._question))
        if (task := self._tasks.get(id)) is not None:
            self._dismiss(id, task)
        return ended

    def _dismiss(self, id: CallId, task: asyncio.Task[None]) -> None:
        """Cancel a task; what ignores that is left to itself after a while: it holds up nobody."""
        task.cancel()
        self._strays.watch(id, task)
        leaving = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._leave, id, task)
        task.add_done_callback(lambda _: leaving.cancel())

    def _leave(self, id: CallId, task: asyncio.Task[None]) -> None:
        if self._tasks.get(id) is task:
            del self._tasks[id]
        self._give_back(id)
        self._changed()

    def _give_back(self, id: CallId) -> None:
        if id in self._placed:
            self._placed.discard(id)
            self._slots.release()

    def lingering(self) -> list[Call]:
        """Return the calls that were cancelled or timed out and still go on, oldest first (M-73)."""
        return [call for call in self._table.all() if self.lingers(call)]

    def lingers(self, call: Call) -> bool:
        """Whether what a call started ignores that it was cancelled or its time is up (M-73)."""
        return call.state in _CUT and call.id in self._strays

    async def settle(self, id: CallId) -> None:
        """Give a call that was cancelled a moment to end."""
        await self._strays.settle(id)

    def _question(self, call: Call) -> Beside | None:
        deferred = call.state is CallState.DEFERRED
        return self._desk.cancelled(call.token) if deferred else Beside()

    async def cancel_all(self) -> None:
        """End every call that runs, waits to run or waits for the owner."""
        for call in (*self._table.open_calls(), *self._table.deferred()):
            await self.cancel(call.id)

    def abandon(self) -> None:
        """Cancel every task and store nothing: the room closes. Recovery tells what became of them."""
        for id, task in tuple(self._tasks.items()):
            task.cancel()
            self._strays.watch(id, task)

    # ── approvals ──

    def release(
        self, id: CallId, tools: Mapping[str, Tool], decision: str, arguments: Json, reason: str
    ) -> None:
        """Let a deferred call go on, or end it as denied (M-114).

        The hook that deferred it and those above it are not asked again; all else that wraps the call
        does, from the start: a cut of the result that is listed first would be lost otherwise.
        """
        call = self._table.get(id)
        if call is None or call.state is not CallState.DEFERRED or id in self._tasks:
            return
        if decision != "approved":
            words = f"Tool '{call.tool}' was not approved{f': {reason}' if reason else '.'}"
            self._start(id, self._deny(id, words))
            return
        given = call.arguments if arguments is None else arguments
        request = ToolRequest(tool=call.tool, arguments=given, id=id)
        work = self.work(request, tools)
        if call.policy is not None:
            # What wrapped it when it was asked for goes on wrapping it, whatever the policy says now.
            work = replace(work, applied=AppliedPolicy.from_json(call.policy))
        self._start(id, self._run(work, below=call.below, released=True))

    async def _deny(self, id: CallId, words: str) -> None:
        await insist(partial(self._table.end, id, CallState.FAILED, words))

    # ── running ──

    async def _run(self, work: Work, *, below: int = 0, released: bool = False) -> None:
        id = work.request.id
        # Postroom's own tools take no place from those that work: they look at calls, end them or wait
        # for them, and must not stand in line behind the calls that they are about.
        if not work.own:
            await self._slots.acquire()
            self._placed.add(id)
        try:
            if not await insist(partial(self._table.start, id)):
                return
            outcome = await self._outcome(work, below, released)
        finally:
            self._give_back(id)
        if isinstance(outcome, Yielded):
            await self._defer(work, outcome)
        else:
            await insist(partial(self._table.end, id, *outcome))

    async def _defer(self, work: Work, yielded: Yielded) -> None:
        id = work.request.id
        approval = self._desk.ask(id, work.request.tool, yielded.arguments, yielded.reason)
        card = self._desk.card(approval)
        if await insist(partial(self._table.defer, id, approval, yielded.below, card)):
            # Over as of now, not when this task is: an answer may come before that.
            del self._tasks[id]
            self._desk.asked(approval)

    async def _outcome(
        self, work: Work, below: int, released: bool
    ) -> tuple[CallState, Json] | Yielded:
        request = work.request
        if request.malformed:
            return CallState.FAILED, f"{request.tool} was not called: {request.malformed}"
        if work.tool is None:
            known = ", ".join(work.known) or "none"
            return CallState.FAILED, f"there is no tool {request.tool!r}; yours: {known}."
        call = CallInput(
            session=self._session,
            call=request.id,
            agent=self._desk.agent,
            tool=request.tool,
            arguments=dict(request.arguments),
        )
        try:
            outcome = await self._chain(work, work.tool, below, released)(call)
        except (BadArguments, PostroomError, ProcessFailed) as error:
            return CallState.FAILED, str(error)
        except TimedOut as error:
            return CallState.TIMED_OUT, f"{error}{self._strays.words(request.id)}"
        except asyncio.CancelledError:
            if _cancelled_from_outside():
                raise
            return CallState.FAILED, "CancelledError: the tool's own task was cancelled"
        except BaseException as error:  # a tool may do anything, exit() included: it is a result
            return CallState.FAILED, f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(outcome, Yielded):
            return replace(outcome, arguments=work.tool.unbound(outcome.arguments))
        return (CallState.FAILED if outcome.denied else CallState.COMPLETED), outcome.result

    def _chain(self, work: Work, tool: Tool, below: int, released: bool) -> Any:
        # The hooks before the tool have said what they had to say; all else wraps what is to come.
        decorators = [
            Label(label="passed") if place < below and isinstance(each, Before) else each
            for place, each in enumerate(work.applied.decorators)
        ]
        around = Surroundings(
            progress=self._trace,
            cache=self._cache,
            before=partial(self._before, tool),
            after=self._hooks.after,
            stray=self._strays.watch,
        )
        base: Any = partial(self._call_tool, tool, () if released else work.request.arguments)
        if not released and isinstance(work.applied.disposition, Defer):
            below = len(work.applied.decorators)
            base = partial(self._ask, work.applied.disposition.reason, below, tool, base)
        chain = compose(decorators, base, around)
        limit = self._desk.time_limit()
        if limit is not None and not any(isinstance(d, Timeout) for d in decorators):
            # The agent's own limit holds where the call has none (M-118).
            chain = compose((Timeout(seconds=limit),), chain, around)
        ask = self._desk.approve()
        return chain if ask is None or released else partial(self._gate, ask, chain)

    async def _before(self, tool: Tool, own: Before, call: CallInput) -> BeforeAnswer:
        answer = await self._hooks.before(own, call)
        return GoOn() if isinstance(answer, AskOwner) and self._permitted(tool, call) else answer

    async def _ask(self, why: str, below: int, tool: Tool, base: Any, call: CallInput) -> Outcome:
        if not self._permitted(tool, call):
            return Yielded(why, call.arguments, below)
        outcome: Outcome = await base(call)
        return outcome

    def _permitted(self, tool: Tool, call: CallInput) -> bool:
        """Whether a standing permission answers for the owner; it says so in the call's progress."""
        by = self._desk.permitted(call.tool, tool.unbound(call.arguments))
        if by:
            self._trace(call.call, f"runs without asking: {by} allows it")
        return bool(by)

    async def _gate(self, ask: Callable[..., Any], inner: Any, call: CallInput) -> Outcome:
        """Ask the agent's ``approve``: anything but a yes within two minutes is a no."""
        refusal = f"Tool '{call.tool}' was not approved."
        try:
            async with asyncio.timeout(REALTIME_SECONDS):
                if inspect.iscoroutinefunction(ask):
                    said = await ask(call.tool, call.arguments)
                else:
                    said = await self._strays.in_thread(ask, {}, call.tool, call.arguments)
                    # A lambda around a coroutine function: what it returns is no answer yet.
                    said = await said if inspect.isawaitable(said) else said
        except Exception as error:  # a gate that fails stays shut
            words = f"approve failed: {type(error).__name__}: {error}"
            self._trace(call.call, words)
            self._desk.guard_failed(call.call, f"{words}; so {call.tool} was not run")
            said = False
        outcome: Outcome = await inner(call) if said else Done(refusal, denied=True)
        return outcome

    async def _run_hook_tool(self, name: str, seen: Mapping[str, Json]) -> Any:
        tools = self._desk.hook_tools()
        if (tool := tools.get(name)) is None:
            raise LookupError(f"there is no tool {name!r} to ask; there are: {', '.join(tools)}")
        wanted = tool.spec.parameters.get("properties", {})
        given = {key: value for key, value in seen.items() if key in wanted}
        if "call" in wanted:
            given["call"] = dict(seen)
        if tool.toolbox and "message" in wanted:
            # A sub-agent as a guard: what it is asked about is its message (M-122).
            given["message"] = json.dumps(dict(seen), ensure_ascii=False)
        return await self._returned(tool, tool.arguments(given))

    async def _call_tool(self, tool: Tool, sent: Container[str], call: CallInput) -> Outcome:
        # Bound values are merged here, below every hook. A rewrite that sets one has no effect (M-123);
        # a model that sends one is told that there is no such argument.
        given = {k: v for k, v in call.arguments.items() if k in sent or k not in tool.bound}
        returned = await self._returned(tool, tool.arguments(given))
        return Done("done" if returned is None else as_json(returned))

    async def _returned(self, tool: Tool, kwargs: Mapping[str, Any]) -> Any:
        if tool.is_async:
            return await tool.function(**kwargs)
        return await self._strays.in_thread(tool.function, kwargs)

    # ── progress ──

    def _trace(self, id: CallId, words: str) -> None:
        self._report(id, Progress(done=0, text=words))

    def _report(self, id: CallId, progress: Progress) -> None:
        if self._table.report(id, progress):
            self._desk.progressed(id, progress)


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
