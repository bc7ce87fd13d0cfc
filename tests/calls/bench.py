"""A session's calls with nothing else around them: a table and an executor over a store in memory."""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from typing import Any, Generic, TypeVar

from contracts.envelopes import clock, record
from postroom_runtime.calls.desk import Beside
from postroom_runtime.calls.executor import Executor
from postroom_runtime.calls.policy import Policy
from postroom_runtime.calls.table import CallTable
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState, Progress, ToolRequest
from postroom_runtime.contracts.envelope import Envelope, Outgoing, ToolCallFinished
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.journal import Record, Row
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.storage.pending import Refused
from postroom_runtime.storage.protocol import Committed, Pending

T = TypeVar("T")

# The first tool of a process looks for pydantic's plugins on the disk, which a loop must not.
make_tool(clock, name="first")


class Later(Generic[T]):
    """An outcome that is decided and acknowledged some seconds later."""

    def __init__(self, decided: Pending[T], seconds: float) -> None:
        self.decided, self.seconds = decided, seconds

    def done(self) -> bool:
        return False

    def result(self, timeout: float | None = None) -> T:
        return self.decided.result(timeout)

    def __await__(self) -> Generator[Any, None, T]:
        yield from asyncio.sleep(self.seconds).__await__()
        return (yield from self.decided.__await__())


class Disk(MemoryStorage):
    """A store that acknowledges late and fails now and then, as a disk does."""

    def __init__(self) -> None:
        super().__init__(now=clock)
        self.seconds = 0.0
        """Until a commit is acknowledged."""
        self.failures = 0
        """How many commits from now on fail."""
        self.tries = 0

    def commit(
        self,
        session: str,
        *,
        epoch: int,
        version: int | None,
        cursor: int | None = None,
        rows: Sequence[Record] = (),
        mail: Sequence[Outgoing] = (),
    ) -> Pending[Committed]:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            return Refused(StoreFailed("nothing was stored", "disk full"))
        decided = super().commit(
            session, epoch=epoch, version=version, cursor=cursor, rows=rows, mail=mail
        )
        return Later(decided, self.seconds) if self.seconds else decided


class FakeDesk:
    """What calls need of a session and its room, and nothing behind it."""

    agent = "reviewer"

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.tools = tools
        self.rules = Policy()
        self.gate: Callable[..., Any] | None = None
        self.limit: float | None = None
        self.approvals: dict[str, Approval] = {}
        self.permits: dict[str, Callable[[str, Mapping[str, Json]], bool]] = {}
        """Standing permissions: what each covers."""
        self.put: list[str] = []
        """Ids of the questions put before the owner."""
        self.told: list[tuple[str, str]] = []
        """Reports told to the listeners: the call and the words."""
        self.broken: list[tuple[str, str]] = []
        """Guards that denied because they failed: the call and the words."""

    def policy(self) -> Policy:
        return self.rules

    def approve(self) -> Callable[..., Any] | None:
        return self.gate

    def hook_tools(self) -> Mapping[str, Tool]:
        return self.tools

    def time_limit(self) -> float | None:
        return self.limit

    def ask(self, call: str, tool: str, arguments: Json, reason: str) -> Approval:
        number = len(self.approvals) + 1
        approval = Approval(
            id=f"ap-{number:04d}",
            token=f"t-{number:04d}",
            session="s-0001",
            agent=self.agent,
            call=call,
            tool=tool,
            arguments=arguments,
            reason=reason,
        )
        self.approvals[approval.token] = approval
        return approval

    def permitted(self, tool: str, arguments: Mapping[str, Json]) -> str:
        return next((id for id, covers in self.permits.items() if covers(tool, arguments)), "")

    def card(self, approval: Approval) -> Sequence[Outgoing]:
        return ()

    def asked(self, approval: Approval) -> None:
        self.put.append(approval.id)

    def cancelled(self, token: str) -> Beside | None:
        return Beside((replace(self.approvals[token], state=ApprovalState.CANCELLED),))

    def guard_failed(self, call: str, words: str) -> None:
        self.broken.append((call, words))

    def progressed(self, call: str, progress: Progress) -> None:
        self.told.append((call, progress.text))


class Bench:
    """Calls of session ``s-0001``. Make it on the loop it is used on."""

    def __init__(self, max_concurrency: int = 4, context: Context | None = None) -> None:
        self.storage, self.bell, self.groups = Disk(), Bell(), list[list[Row]]()
        self.failures: list[BaseException | None] = []
        first = record(max_unread=1)
        self.storage.commit("s-0001", epoch=1, version=0, rows=(first,)).result()
        self.storage.bells(lambda rows: self.groups.append(list(rows)))
        self.table = CallTable("s-0001", self.storage, 1, clock)
        self.tools: dict[str, Tool] = {}
        self.desk = FakeDesk(self.tools)
        self.executor = Executor(
            "s-0001", self.table, max_concurrency, self.desk, context, self._changed
        )
        self.numbers = 0

    def _changed(self) -> None:
        if self.executor.failure is not None:
            self.failures.append(self.executor.failure)
        self.bell.ring()

    def tool(self, function: Callable[..., Any], **options: Any) -> str:
        """Offer a function as a tool; return its name."""
        made = make_tool(function, **options)
        self.tools[made.name] = made
        return made.name

    def request(self, tool: str, malformed: str = "", **arguments: Any) -> ToolRequest:
        self.numbers += 1
        return ToolRequest(
            tool=tool,
            arguments=arguments,
            id=f"call_{self.numbers:04d}",
            malformed=malformed,
        )

    async def open(self, *requests: ToolRequest) -> list[str]:
        """Store calls as those of a model turn are, and start them; return their ids."""
        free = self.executor.free()
        works = [self.executor.work(each, self.tools) for each in requests]
        opened = [
            self.table.opened(each.request, each.applied.to_json(), running=n < free)
            for n, each in enumerate(works)
        ]
        await self.storage.commit("s-0001", epoch=1, version=None, rows=opened)
        for call in opened:
            self.table.enter(call)
        self.executor.start(works)
        return [each.id for each in requests]

    async def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool that is offered; return the call's id."""
        return (await self.open(self.request(tool, **arguments)))[0]

    async def ended(self, *ids: str) -> list[Call]:
        """Wait until these calls have ended; for tools that end by themselves."""

        def over() -> list[Call] | None:
            calls = [self.get(id) for id in ids]
            return calls if all(call.state.final for call in calls) else None

        while (found := over()) is None and not self.failures:
            await wait_until(over, self.bell, 0.01)
        return found or []

    async def run(self, function: Callable[..., Any], **arguments: Any) -> Call:
        """Call a function as a tool and return the call when it has ended."""
        (call,) = await self.ended(await self.call(self.tool(function), **arguments))
        return call

    def get(self, id: str) -> Call:
        call = self.table.get(id)
        assert call is not None
        return call

    def state(self, id: str) -> CallState:
        return self.get(id).state

    def mail(self) -> list[Envelope]:
        return self.storage.fetch({"s-0001": 0})["s-0001"]

    def finished(self) -> list[tuple[str, str]]:
        """What the mailbox says of calls that ended: their ids and states, in order."""
        return [
            (each.body.call, each.body.state)
            for each in self.mail()
            if isinstance(each.body, ToolCallFinished)
        ]

    def stored(self) -> Mapping[str, list[CallState]]:
        """The states each call was stored in, in order."""
        states: dict[str, list[CallState]] = {}
        for row in self.storage.rows("s-0001"):
            if isinstance(row.record, Call):
                states.setdefault(row.record.id, []).append(row.record.state)
        return states
