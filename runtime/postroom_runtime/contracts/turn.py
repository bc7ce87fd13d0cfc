"""Turns: the transcript of a session, user and model in alternation."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from postroom_runtime.contracts.call import ToolMessage, ToolRequest
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.extra import Extra, Json
from postroom_runtime.contracts.ids import CallId


class Role(StrEnum):
    """Who a turn belongs to."""

    USER = "user"
    MODEL = "model"


class EndReason(StrEnum):
    """Why a run ended; on its last turn, on the event ``run.stopped`` and on the session."""

    ANSWER = "answer"
    """The model answered and nothing unread was left."""
    BUDGET = "budget"
    """``max_iterations`` model turns; the last answer was forced with tools off."""
    NO_REPLY = "no_reply"
    """The model chose to say nothing: its whole answer was ``no_reply``."""
    STOPPED = "stopped"
    PAUSED = "paused"
    FAILED = "failed"
    CLOSED = "closed"
    CAPPED = "capped"
    """``max_autonomous_rounds`` (or a spending cap) without a word from the owner."""
    INTERRUPTED = "interrupted"
    """The kernel ended in the middle of the run."""


no_reply: Final = "NO_REPLY"
"""The whole answer of a model that has nothing to say: it ends the run and reaches nobody."""


def end_of(answer: str) -> EndReason:
    """Return how a run ends that ``answer`` ends."""
    return EndReason.NO_REPLY if answer.strip() == no_reply else EndReason.ANSWER


class Provenance(StrEnum):
    """Who composed the text of a user turn, when it was not mail (A-23)."""

    CONTINUATION = "continuation"
    FINAL_ANSWER = "final_answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a turn, or a session so far, cost."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars, at the list price of the day it was spent.

    None where nobody knows the price: of a script, of a local model, of a request that was cut. A sum
    counts what is known, and is None only where nothing is.
    """
    extra: Extra = None

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return total((self, other))


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of ``usages``; a cost that is not known adds nothing to those that are."""
    spent = tuple(usages)
    costs = [usage.cost for usage in spent if usage.cost is not None]
    return Usage(
        requests=sum(usage.requests for usage in spent),
        input_tokens=sum(usage.input_tokens for usage in spent),
        output_tokens=sum(usage.output_tokens for usage in spent),
        cost=sum(costs) if costs else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One stored turn of a session (M-47: the raw mail stands beside the rendered text)."""

    index: int
    """From 1, over user and model turns of the session."""
    role: Role
    text: str
    """A user turn: exactly what the model reads after the tool messages. A model turn: its words."""
    mail: tuple[Envelope, ...] = ()
    """User turn: the envelopes rendered in ``text``, in order of ``seq``."""
    results: tuple[ToolMessage, ...] = ()
    """User turn: one tool message per call of the model turn before, in its order."""
    calls: tuple[ToolRequest, ...] = ()
    """Model turn: what the model called."""
    read_calls: tuple[CallId, ...] = ()
    """User turn: calls whose result a status call in ``results`` has shown in full (M-63)."""
    usage: Usage | None = None
    end_reason: EndReason | None = None
    """On the last turn of a run."""
    provenance: Provenance | None = None
    opaque: Json = None
    """What the provider needs back to continue: signatures, its own ids. Read by it alone."""
    extra: Extra = None
