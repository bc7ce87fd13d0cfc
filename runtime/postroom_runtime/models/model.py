"""What a model is to a session: a prompt in, a stream of deltas and one thought out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from postroom_runtime.contracts.call import ToolRequest, ToolSpec
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.turn import Turn, Usage
from postroom_runtime.models.schema import OutputSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a model. The last turn is the user turn to be answered."""

    session: SessionId
    name: str = ""
    """What the session is called."""
    agent: str
    instructions: str
    turns: Sequence[Turn]
    """The whole transcript, ascending; the last one is a user turn."""
    tools: Sequence[ToolSpec] = ()
    """What may be called; empty in a forced last answer, and in a structured turn."""
    schema: OutputSchema | None = None
    """What the answer has to look like; None for words. The text is then its JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """What a model answered, whole."""

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    """In the order the model made them, without ids of ours."""
    usage: Usage = field(default_factory=Usage)
    opaque: Json = None
    """What the provider wants back in the next request; stored on the turn."""
    cut_off: bool = False
    """The output limit ended it: an empty one is then no degenerate turn (A-13)."""


Emit = Callable[[str], None]
"""Takes the next piece of text as it streams; called on the loop, never blocks."""


class Mind(Protocol):
    """A model at work in one run of one session; what it remembers ends with the run."""

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        """Answer ``prompt``, streaming text through ``emit``.

        Cancelling the caller stops the model: an HTTP request is closed, a script's generator too.

        Raises:
            ModelError: The provider failed for good, after its retries; says what to do.
            Exception: Whatever a script raised.
        """
        ...

    @property
    def owed(self) -> Usage:
        """What was spent on requests that gave no thought: cut, or failed for good."""
        ...

    def close(self) -> None:
        """The run is over: let go of what it held. Never raises, never called during ``think``."""
        ...


@runtime_checkable
class Model(Protocol):
    """Something a session can be run with."""

    @property
    def name(self) -> str:
        """How it is called in listings, e.g. ``echo`` or ``openai-chat:gpt-5``."""
        ...

    def begin(self, session: SessionId) -> Mind:
        """Return a mind for one run of ``session``. Cheap: nothing is imported or reached yet."""
        ...
