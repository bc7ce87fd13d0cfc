"""Approvals: calls that wait for the owner's word (M-97, M-114)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from postroom_runtime.contracts.extra import Extra, Json
from postroom_runtime.contracts.ids import CallId, SessionId


class ApprovalState(StrEnum):
    """Where an approval stands; all but the first are final, and the first answer wins."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    COMPLETED = "completed"
    """Its result was given from outside, without running the tool."""
    CANCELLED = "cancelled"
    """Its call was ended before anybody answered."""
    EXPIRED = "expired"
    """Nobody answered in time: its call was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One question to the owner: may this call run?"""

    id: str
    """``ap-0001``."""
    token: str
    """The continuation token: names the call to whoever answers from outside."""
    session: SessionId
    agent: str
    call: CallId
    tool: str
    arguments: Mapping[str, Json]
    """As the hook saw them, which is what will run."""
    reason: str = ""
    """Why the hook asks."""
    state: ApprovalState = ApprovalState.PENDING
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    answered_by: str = ""
    """Through what the answer came: ``%approve``, ``api``, ``view``."""
    decision: Json = None
    """The edited arguments of an approval, the reason of a denial."""
    expires_at: datetime | None = None
    """When it is refused by itself; None for never."""
    extra: Extra = None

    @property
    def allowed(self) -> Mapping[str, Json]:
        """The arguments its owner has agreed to: the edited ones, else those asked for."""
        edited = self.state is ApprovalState.APPROVED and isinstance(self.decision, Mapping)
        return self.decision if edited else self.arguments
