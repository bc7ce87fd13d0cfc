"""What the waiting verbs give back."""

from dataclasses import dataclass
from enum import StrEnum

from postroom_runtime.contracts.envelope import Envelope
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
