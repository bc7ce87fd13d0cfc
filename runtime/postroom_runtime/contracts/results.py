"""What the waiting verbs give back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.contracts.turn import EndReason, Usage


class WokenBy(StrEnum):
    """What ended a wait."""

    IDLE = "idle"
    ANSWER = "answer"
    MAIL = "mail"
    CALL = "call"
    EVENT = "event"
    TIMEOUT = "timeout"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitResult:
    """How a wait ended. Its text says it in words, and is what a notebook shows."""

    woken_by: WokenBy
    sessions: tuple[str, ...]
    """Names of the sessions for which the wait was over."""
    left: tuple[str, ...] = ()
    """Names of the sessions for which it was not."""
    text: str = ""

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The final text of the run that read a question."""

    text: str
    turn: int
    """Index of the turn that holds it."""
    usage: Usage
    """Of the turns from the question to the answer."""
    mail: tuple[Envelope, ...] = ()
    """The envelopes that the answering run had read since the question."""
    value: Any = None
    """Of a structured turn: the object that fits its schema."""

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """Whether every session came to rest."""

    quiet: bool
    left: tuple[str, ...] = ()
    """Names of the sessions that had not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How one run went: which mail it read, and what it ended with."""

    after: int
    """The cursor when it began."""
    cursor: int
    """The cursor when it ended."""
    reason: EndReason | None
    first_turn: int
    last_turn: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Somebody whom nothing was sent to, or who gave no answer."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastResult:
    """What became of a letter to many. Its text says it in words."""

    delivered: tuple[Receipt, ...]
    """In the order of the recipients, a receipt each; nobody learns of the others."""
    refused: tuple[Refusal, ...] = ()

    def __str__(self) -> str:
        """Return ``3 delivered, 2 refused``, with why."""
        why = "".join(f"\n  {refusal.name}: {refusal.why}" for refusal in self.refused)
        return f"{len(self.delivered)} delivered, {len(self.refused)} refused{why}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherResult:
    """What many answered to one question. Every name is in exactly one of the fields.

    Each field has the order in which they were asked, whatever the order of the answers.
    """

    answers: Mapping[str, Answer] = field(default_factory=dict)
    """By name."""
    late: tuple[str, ...] = ()
    """Who still works on it; what they answer later is theirs alone."""
    silent: tuple[str, ...] = ()
    """Who chose not to reply."""
    failed: tuple[Refusal, ...] = ()
    """Whose run ended without an answer, or cannot start."""
    refused: tuple[Refusal, ...] = ()
    """Whom the question did not reach."""

    @property
    def texts(self) -> dict[str, str]:
        """The answers' texts, by name."""
        return {name: answer.text for name, answer in self.answers.items()}

    @property
    def values(self) -> dict[str, Any]:
        """The objects of structured answers, by name."""
        return {name: answer.value for name, answer in self.answers.items()}

    def __str__(self) -> str:
        """Return the answers, a line each, and who gave none."""
        lines = [f"{name}: {answer.text}" for name, answer in self.answers.items()]
        for words, names in (
            ("late", self.late),
            ("silent", self.silent),
            ("failed", [f"{r.name} ({r.why})" for r in self.failed]),
            ("refused", [f"{r.name} ({r.why})" for r in self.refused]),
        ):
            if names:
                lines.append(f"{words}: {', '.join(names)}")
        return "\n".join(lines) or "nobody was asked"

    __repr__ = __str__
