"""A model that answers at a given price."""

import asyncio

from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.model import Emit, Prompt, Thought


class Reckoner:
    """A model that answers in one request of ``tokens`` tokens and ``cost`` dollars, after ``seconds``."""

    name = "reckoner"
    owed = Usage()

    def __init__(self, tokens: int = 0, seconds: float = 0, cost: float | None = None) -> None:
        self.tokens, self.seconds, self.cost, self.asked = tokens, seconds, cost, 0

    def begin(self, session: str) -> "Reckoner":
        return self

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        half = self.tokens // 2
        return Thought(
            text="ok",
            usage=Usage(
                requests=1,
                input_tokens=half,
                output_tokens=self.tokens - half,
                cost=self.cost,
            ),
        )

    def close(self) -> None:
        """Nothing to let go of."""
