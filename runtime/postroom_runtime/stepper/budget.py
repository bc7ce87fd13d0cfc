"""How many model turns a run may take: pure (A-24…A-30)."""

from dataclasses import dataclass, replace

EXTENSIONS_SPENT = (
    "The inbox has extended this run's round budget %d times; refusing further extensions.\n"
    "A drain returning already-delivered messages instead of the unread slice does this."
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The rounds of one run.

    A word from a person puts a human back in the loop and starts the count anew from the round it
    landed in, at most ``limit`` times in a run.
    """

    limit: int
    """Model turns, from the start or from the last word of a person."""
    rounds: int = 0
    """Model turns taken in this run."""
    base: int = 0
    extensions: int = 0
    refused: bool = False
    """An extension was refused."""

    @property
    def spent(self) -> bool:
        """Whether no further model turn is left."""
        return self.rounds - self.base >= self.limit

    @property
    def allowed(self) -> int:
        """Model turns this run may take in all, as its extensions stand."""
        return self.base + self.limit

    def took_round(self) -> "Budget":
        """Return the budget after one more model turn."""
        return replace(self, rounds=self.rounds + 1)

    def heard_human(self) -> "Budget":
        """Return the budget after a person's word was delivered in the round about to be taken."""
        if self.extensions >= self.limit:
            return replace(self, refused=True)
        return replace(self, base=self.rounds, extensions=self.extensions + 1)
