"""One step of a run: receive, think, call. Each part stores what it did before the next begins."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from postroom_runtime.calls.executor import Executor, Work
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.call import ToolMessage, ToolRequest
from postroom_runtime.contracts.config import AgentConfig
from postroom_runtime.contracts.envelope import Envelope, Release
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.turn import Provenance, Role, Turn
from postroom_runtime.models.model import Mind, Model, Prompt, Thought
from postroom_runtime.models.schema import OutputSchema
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.stepper.folding import Detached, Folded, answers, shown_in_full
from postroom_runtime.stepper.receive_points import (
    halts,
    interrupts,
    released,
    silent_prefix,
    stops,
)
from postroom_runtime.stepper.spending import Cap
from postroom_runtime.stepper.state import SessionState


class Host(Protocol):
    """What a run needs of the session it belongs to."""

    @property
    def state(self) -> SessionState:
        """Record and transcript."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is about to be."""
        ...

    @property
    def bell(self) -> Bell:
        """Rung after each change of the session."""
        ...

    @property
    def table(self) -> CallTable:
        """Its calls."""
        ...

    @property
    def executor(self) -> Executor:
        """What runs them."""
        ...

    def definition(self) -> AgentConfig:
        """The agent as defined now; a new definition counts from the next turn."""
        ...

    def model(self) -> Model:
        """The model as defined now: the same object while the definition is the same."""
        ...

    def tools(self) -> Mapping[str, Tool]:
        """What its model may call, by name."""
        ...

    def new_call_id(self) -> CallId:
        """The room's next call id."""
        ...

    def take_orders(self) -> None:
        """Act on unread orders that need no receive point, each once.

        Cancelled calls always (M-84); answered approvals when no run is under way, which reads them.
        """
        ...

    def release(self, release: Release) -> None:
        """Let the call of an answered approval go on, or end it when it was denied."""
        ...

    def open_inbox(self) -> None:
        """Open what steers this run from outside: once, before its model is asked (A-4)."""
        ...

    async def pump(self) -> None:
        """Take in what has come from there, as mail, at a round boundary (A-12…A-14)."""
        ...

    def live(self, kind: EventKind, **data: Any) -> None:
        """Tell the listeners something that is never stored."""
        ...

    def spending(self) -> Cap | None:
        """The spending cap that it, or its room, has reached; None while it may ask its model."""
        ...

    def report(self, type: str, content: str, *, id: str | None = None, **metadata: Any) -> None:
        """Write an entry in the owner inbox of its agent; an ``id`` writes it once."""
        ...

    def failed_to_parent(self, error: str) -> None:
        """Tell the parent, by mail, that the session failed."""
        ...


class Stopped(Exception):
    """A StopRun arrived; what it left open was cancelled."""


class Halted(Exception):
    """An order to end the run is among the mail that an interrupt would have put before the model."""


class Interrupted(Exception):
    """An interrupt cut the completion: the head turn is to be amended and asked again (M-78)."""


def halting(host: Host) -> bool:
    """Tell whether a StopRun is unread: it ends calls and completions at once (M-85)."""
    return any(stops(envelope) for envelope in host.state.unread())


def interrupting(host: Host) -> bool:
    """Tell whether a word is unread that breaks a wait, before any order that ends the run."""
    state = host.state
    for envelope in state.unread():
        if halts(envelope):
            return False  # what stands behind it is read by the next run
        if interrupts(envelope, state.placeholders):
            return True
    return False


async def read_silent(host: Host) -> None:
    """Move a run's cursor past mail that tells it nothing; an answered approval has its effect."""
    state = host.state
    silent = silent_prefix(state.unread(), state.placeholders, resumable=False)
    if silent:
        await state.commit(cursor=silent[-1].seq)
    for envelope in silent:
        if (release := released(envelope)) is not None:
            host.release(release)


def tool_messages(
    host: Host, unread: Sequence[Envelope], detached: Detached | None = None
) -> tuple[ToolMessage, ...]:
    """Return the tool messages due to the last model turn; empty when none are.

    Args:
        host: The session.
        unread: The mail that is read with them.
        detached: Calls that the step no longer waits for.
    """
    head = host.state.head
    if head is None or head.role is not Role.MODEL or not head.calls:
        return ()
    calls = [host.table.get(request.id) for request in head.calls]
    return answers(head.calls, calls, unread, detached or Detached())


def user_turn(
    host: Host,
    folded: Folded,
    results: Sequence[ToolMessage],
    *,
    starts: bool = False,
    injected: str = "",
    provenance: Provenance | None = None,
) -> tuple[list[Record], dict[str, Any]]:
    """Return the rows of a user turn and what it changes in the record, to be stored as one.

    Stored with the folded cursor, that commit is the acknowledgement of the mail in it (M-22).

    Args:
        host: The session.
        folded: What R1 read.
        results: One tool message per call of the last model turn.
        starts: It is the first turn of a run.
        injected: Words of the loop itself, behind the mail.
        provenance: What kind of words.
    """
    state = host.state
    turn = Turn(
        index=state.next_index,
        role=Role.USER,
        text="\n\n".join(filter(None, (folded.text, injected))),
        mail=folded.mail,
        results=tuple(results),
        read_calls=shown_in_full(results, folded.mail),
        provenance=provenance,
    )
    rows: list[Record] = []
    if starts:
        rows.append(state.event(EventKind.RUN_STARTED, turn=turn.index))
    if folded.mail:
        rows.append(
            state.event(
                EventKind.INBOX,
                text=folded.text,
                mail=[envelope.seq for envelope in folded.mail],
                turn=turn.index,
                starts_run=starts,
            )
        )
    changes: dict[str, Any] = {"hops": folded.hops, "read_from": folded.read_from}
    if folded.human:
        changes["rounds_since_human"] = 0
    return [*rows, turn], changes


async def think(
    host: Host,
    mind: Mind,
    tools: Mapping[str, Tool],
    *,
    uncut: bool = False,
    schema: OutputSchema | None = None,
) -> Thought:
    """Ask the model to answer the transcript, streaming to the listeners.

    Args:
        host: The session.
        mind: What answers.
        tools: What it may call.
        uncut: No interrupt cuts it, whatever its agent lets one do.
        schema: What the answer has to look like; None for words.

    Raises:
        Stopped: A StopRun arrived; the model was cancelled and what it said is void.
        Interrupted: So did an interrupt, and the agent lets one cut a completion (R4).
        Exception: Whatever the model raised.
    """
    state = host.state
    cut = host.definition().interrupt_completions and not uncut
    prompt = Prompt(
        session=state.id,
        name=state.record.name,
        agent=state.record.agent,
        instructions=host.definition().instructions,
        turns=tuple(state.turns),
        tools=tuple(tool.spec for tool in tools.values()),
        schema=schema,
    )
    thinking = asyncio.get_running_loop().create_task(
        _thought(mind, prompt, host), name=f"postroom:{state.record.name}:model"
    )
    thinking.add_done_callback(lambda _: host.bell.ring())

    def look() -> bool | None:
        host.take_orders()
        return (thinking.done() or halting(host) or (cut and interrupting(host))) or None

    try:
        await wait_until(look, host.bell)
        if not thinking.done():
            raise Stopped if halting(host) else Interrupted
        # Done in the same breath as the interrupt: it is paid for, so it is kept (M-40).
        return thinking.result()
    finally:
        if not thinking.done():
            thinking.cancel()
            await asyncio.wait([thinking])
            if not thinking.cancelled():
                thinking.exception()  # it failed in the same breath; what it said is void either way
            host.live(EventKind.TEXT_DISCARDED)


async def _thought(mind: Mind, prompt: Prompt, host: Host) -> Thought:
    return await mind.think(prompt, lambda text: host.live(EventKind.TEXT_DELTA, text=text))


def numbered(host: Host, requests: Sequence[ToolRequest]) -> tuple[ToolRequest, ...]:
    """Return ``requests`` with ids of ours: a provider's may repeat (trap 10)."""
    return tuple(replace(request, id=host.new_call_id()) for request in requests)


async def store_calling_turn(
    host: Host, turn: Turn, tools: Mapping[str, Tool], **changes: Any
) -> list[Work]:
    """Store a model turn and the calls it makes, then start them.

    Args:
        host: The session.
        turn: The model turn; its requests have ids.
        tools: What may be called.
        changes: Further fields of the record.

    Returns:
        The calls with what the policy makes of each.
    """
    state, free = host.state, host.executor.free()
    works = [host.executor.work(request, tools) for request in turn.calls]
    opened = [
        host.table.opened(work.request, work.applied.to_json(), running=place < free)
        for place, work in enumerate(works)
    ]
    await state.commit(turn, *opened, calls=state.record.calls + len(opened), **changes)
    for call in opened:
        host.table.enter(call)
    host.executor.start(works)
    return works
