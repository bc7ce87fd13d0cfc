"""What can be capped, of a session and of a room: how it is measured, and how an amount is said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from postroom_runtime.contracts.turn import Usage

_SMALLEST: Final = 0.001
"""US dollars; less is not told apart."""


def money(dollars: float | None) -> str:
    """Return US dollars as people write them; '' for none, and where nobody knows.

    Two figures below a dollar (``$0.017``), cents below a thousand (``$12.30``), whole dollars from
    there (``$1,234``). What did cost something is never nothing: ``<$0.001``.
    """
    if not dollars or dollars < 0:
        return ""
    if dollars < _SMALLEST:
        return f"<${_SMALLEST}"
    exact = Decimal(dollars)
    places = 2 if dollars >= 0.0995 else 3 if dollars >= 0.00995 else 4
    if dollars >= 999.995:
        places = 0
    return f"${exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):,}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that a cap is about."""

    knob: str
    """What its owner sets, of an agent and of a room."""
    of: Callable[[Usage], float]
    unit: str = ""
    """What stands behind a number of it; '' for money, which says so itself."""

    def words(self, amount: float) -> str:
        """Return an amount of it: ``1,200 tokens``, ``$0.50``."""
        return f"{self.number(amount)} {self.unit}".rstrip()

    def number(self, amount: float) -> str:
        """Return an amount of it before its unit: ``1,200``, ``$0.50``."""
        return f"{amount:,}" if self.unit else money(amount) or "$0"

    def bare(self, amount: float) -> str:
        """Return an amount of it beside its knob, as one writes it there: ``1200``, ``$0.50``."""
        return str(amount) if self.unit else self.number(amount)


MEASURES: Final[Mapping[str, Measure]] = {
    each.knob: each
    for each in (
        Measure("max_requests", lambda usage: usage.requests, "requests"),
        Measure("max_tokens", lambda usage: usage.input_tokens + usage.output_tokens, "tokens"),
        Measure("max_cost", lambda usage: usage.cost or 0.0),
    )
}
"""All of them by their knobs, in the order in which they are looked at."""


def measure_of(knob: str) -> Measure | None:
    """Return what ``max_cost``, or ``room.max_cost``, measures; None for a knob of another kind."""
    return MEASURES.get(knob.removeprefix("room."))
