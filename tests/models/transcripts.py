"""Short ways to write turns and prompts in tests of models."""

from collections.abc import Sequence
from dataclasses import replace

from postroom_runtime.contracts.call import CallState, ToolMessage, ToolRequest, ToolSpec
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.models.model import Mind, Prompt, Thought

RUN_TESTS = ToolSpec(
    "run-tests",
    "Run a test suite.",
    {"type": "object", "properties": {"suite": {"type": "string"}}, "required": ["suite"]},
)


def user(text: str = "", *results: ToolMessage) -> Turn:
    """A user turn; ``prompt`` numbers it."""
    return Turn(index=0, role=Role.USER, text=text, results=results)


def model(text: str = "", *calls: ToolRequest, opaque: Json = None) -> Turn:
    """A model turn."""
    return Turn(index=0, role=Role.MODEL, text=text, calls=calls, opaque=opaque)


def request(tool: str, id: str, **arguments: Json) -> ToolRequest:
    """A call as the stepper stores it, with an id."""
    return ToolRequest(tool=tool, arguments=arguments, id=id)


def result(
    id: str, content: str, *, tool: str = "run-tests", state: CallState = CallState.COMPLETED
) -> ToolMessage:
    """The tool message of a call."""
    return ToolMessage(call=id, tool=tool, content=content, state=state)


def prompt(*turns: Turn, tools: Sequence[ToolSpec] = (), instructions: str = "") -> Prompt:
    """A prompt of these turns, numbered from 1."""
    return Prompt(
        session="s-0001",
        agent="tester",
        instructions=instructions,
        turns=[replace(turn, index=index) for index, turn in enumerate(turns, 1)],
        tools=tools,
    )


def quiet(piece: str) -> None:
    """Take streamed text and drop it."""


class Run:
    """One run, driven by hand as the stepper would: thoughts stored, calls given ids, answered."""

    def __init__(self, mind: Mind, *, tools: Sequence[ToolSpec] = (RUN_TESTS,)) -> None:
        self.mind = mind
        self.tools = tools
        self.turns: list[Turn] = []
        self.streamed: list[str] = []
        self._calls = 0

    async def hear(self, text: str = "", *contents: str | ToolMessage) -> Thought:
        """Add a user turn that answers the open calls with ``contents``; return the thought."""
        open_calls = self.turns[-1].calls if self.turns else ()
        results = [
            content
            if isinstance(content, ToolMessage)
            else result(call.id, content, tool=call.tool)
            for call, content in zip(open_calls, contents, strict=True)
        ]
        self.turns.append(user(text, *results))
        thought = await self.mind.think(prompt(*self.turns, tools=self.tools), self.streamed.append)
        self.turns.append(model(thought.text, *self._with_ids(thought), opaque=thought.opaque))
        return thought

    def _with_ids(self, thought: Thought) -> list[ToolRequest]:
        numbered = []
        for call in thought.calls:
            self._calls += 1
            numbered.append(replace(call, id=f"call_{self._calls:04d}"))
        return numbered
