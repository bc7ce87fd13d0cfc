"""What running calls need of their session and its room."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from postroom_runtime.calls.policy import Policy
from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Progress
from postroom_runtime.contracts.envelope import Outgoing
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.contracts.journal import Record


@dataclass(frozen=True, slots=True)
class Beside:
    """What is stored with the end of a call, in its transaction."""

    rows: Sequence[Record] = ()
    mail: Sequence[Outgoing] = ()


class Desk(Protocol):
    """What running calls need of the session and the room."""

    @property
    def agent(self) -> str:
        """The slug of the agent."""
        ...

    def policy(self) -> Policy:
        """The agent's policy as defined now."""
        ...

    def approve(self) -> Callable[..., Any] | None:
        """What the agent asks before each call, if anything."""
        ...

    def hook_tools(self) -> Mapping[str, Tool]:
        """Tools that hooks may name, visible to the model or not."""
        ...

    def time_limit(self) -> float | None:
        """The agent's time limit for calls without one of their own, in seconds."""
        ...

    def ask(self, call: CallId, tool: str, arguments: Json, reason: str) -> Approval:
        """Return a new question to the owner, to be stored with the call that waits for it."""
        ...

    def permitted(self, tool: str, arguments: Mapping[str, Json]) -> str:
        """Return the id of the standing permission by which a call runs unasked; '' for none."""
        ...

    def card(self, approval: Approval) -> Sequence[Outgoing]:
        """Return what puts a question before the owner, to be stored with it."""
        ...

    def asked(self, approval: Approval) -> None:
        """The question is stored: it may be answered."""
        ...

    def cancelled(self, token: str) -> Beside | None:
        """Return what closes the question of a call that ends unanswered; None when it has its result."""
        ...

    def guard_failed(self, call: CallId, words: str) -> None:
        """Tell the owner that a guard failed, so that ``call`` was denied."""
        ...

    def progressed(self, call: CallId, progress: Progress) -> None:
        """Tell the listeners of a report."""
        ...
