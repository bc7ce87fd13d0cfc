"""A session with nothing around it: what a run asks of its host, over a store in memory."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from calls.bench import Disk, FakeDesk
from contracts.envelopes import clock, record
from postroom_runtime.calls.executor import Executor
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.config import AgentConfig
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Control,
    ControlMessage,
    FromSession,
    FromUser,
    Outgoing,
    Priority,
    Release,
    UserMessage,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.model import Emit, Model, Prompt, Thought
from postroom_runtime.signals.bell import Bell
from postroom_runtime.stepper.spending import Cap, caps_of, reached
from postroom_runtime.stepper.state import SessionState

Answer: TypeAlias = Callable[[Prompt, Emit], Awaitable[Thought]]


def say(text: str, *calls: ToolRequest) -> Thought:
    """What a model answers."""
    return Thought(text=text, calls=calls, usage=Usage(requests=1, output_tokens=1))


def ask(tool: str, **arguments: Any) -> ToolRequest:
    """What a model calls, without an id of ours."""
    return ToolRequest(tool=tool, arguments=arguments)


class FakeModel:
    """Answers with one function; remembers what it was asked and how often it was let go."""

    name = "fake"

    def __init__(self, answer: Answer) -> None:
        self.answer, self.prompts, self.begun, self.closed = answer, list[Prompt](), 0, 0
        self.spent = Usage()

    @property
    def owed(self) -> Usage:
        return self.spent

    def begin(self, session: str) -> "FakeModel":
        self.begun += 1
        return self

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        self.prompts.append(prompt)
        return await self.answer(prompt, emit)

    def close(self) -> None:
        self.closed += 1


def saying(*thoughts: Thought) -> FakeModel:
    """A model that says these one after the other."""
    left = iter(thoughts)

    async def answer(prompt: Prompt, emit: Emit) -> Thought:
        return next(left)

    return FakeModel(answer)


class FakeHost:
    """Session ``s-0001``. Make it on the loop it is used on.

    Args:
        model: What answers.
        tools: Functions it may call.
        stored: Fields of its record as stored.
        knobs: Of its agent.
    """

    def __init__(
        self,
        model: FakeModel | None = None,
        *tools: Callable[..., Any],
        stored: Mapping[str, Any] | None = None,
        **knobs: Any,
    ) -> None:
        first = record(**(stored or {}))
        self.storage, self.bell = Disk(), Bell()
        self.storage.commit("s-0001", epoch=1, version=0, cursor=0, rows=(first,)).result()
        self.storage.bells(lambda rows: self.bell.ring())
        self.state = SessionState(first, self.storage, 1, clock, self.bell.ring)
        self.table = CallTable("s-0001", self.storage, 1, clock, self.bell.ring)
        self.agent = AgentConfig(**knobs)
        self.fake = model or saying()
        self.offered = {made.name: made for made in map(make_tool, tools)}
        self.desk = FakeDesk(self.offered)
        self.executor = Executor(
            "s-0001", self.table, self.agent.max_concurrency, self.desk, None, self.bell.ring
        )
        self.orders = 0
        """How often it was asked to act on orders that need no receive point."""
        self.released: list[Release] = []
        self.opened = self.pumped = 0
        """How often what steers the run was opened, and asked."""
        self.foreign: list[list[str]] = []
        """What it gives, boundary by boundary."""
        self.calls = 0
        self.lived: list[tuple[EventKind, dict[str, Any]]] = []
        self.reports: list[tuple[str, str]] = []
        self.told_parent: list[str] = []

    # ── what a run asks for ──

    def definition(self) -> AgentConfig:
        return self.agent

    def model(self) -> Model:
        return self.fake

    def tools(self) -> Mapping[str, Tool]:
        return self.offered

    def new_call_id(self) -> str:
        self.calls += 1
        return f"call_{self.calls:04d}"

    def take_orders(self) -> None:
        self.orders += 1

    def release(self, release: Release) -> None:
        self.released.append(release)

    def open_inbox(self) -> None:
        self.opened += 1

    async def pump(self) -> None:
        self.pumped += 1
        for text in self.foreign.pop(0) if self.foreign else ():
            self.user(text)

    def live(self, kind: EventKind, **data: Any) -> None:
        self.lived.append((kind, data))

    @property
    def closed(self) -> bool:
        return False

    def spending(self) -> Cap | None:
        usage = self.state.record.usage + self.state.unbooked
        return reached(usage, caps_of(self.agent))

    def report(self, type: str, content: str, **metadata: Any) -> None:
        self.reports.append((type, content))

    def failed_to_parent(self, error: str) -> None:
        self.told_parent.append(error)

    # ── for tests ──

    def _put(self, **outgoing: Any) -> None:
        self.storage.accept((Outgoing(session="s-0001", **outgoing),))[0].result()

    def user(self, text: str) -> None:
        """A word of the owner arrives."""
        self._put(sender=FromUser(), body=UserMessage(text))

    def interrupt(self, text: str) -> None:
        """A word of the owner that is not to wait."""
        self._put(sender=FromUser(), body=UserMessage(text), priority=Priority.INTERRUPT)

    def letter(self, text: str, *, session: str = "s-0002", hops: int = 0) -> None:
        """A letter of another session arrives."""
        self._put(sender=FromSession(session, "writer"), body=AgentMessage(text), hops=hops)

    def order(self, message: ControlMessage) -> None:
        """An order arrives."""
        self._put(sender=FromUser(), body=Control(message))

    def events(self) -> list[Event]:
        """The stored events."""
        return [row.record for row in self.storage.rows() if isinstance(row.record, Event)]
