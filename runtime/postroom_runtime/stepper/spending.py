"""What a session, and a room, may spend: a cap that is reached lets no further request out; pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from postroom_runtime.contracts.config import AgentConfig
from postroom_runtime.contracts.spending import MEASURES
from postroom_runtime.contracts.turn import Usage


@dataclass(frozen=True, slots=True)
class Cap:
    """A spending cap that is reached."""

    knob: str
    """One of ``MEASURES``."""
    limit: float
    used: float
    """What was spent against it; a request that began below the cap may have gone over it."""
    room: bool = False
    """It is the room's, over all its sessions; else the session's own."""

    @property
    def called(self) -> str:
        """What the owner sets to raise it."""
        return f"room.{self.knob}" if self.room else self.knob

    def words(self, name: str, agent: str) -> str:
        """Return what holds the session ``name`` of ``agent`` back, and the remedy."""
        raising = self.called if self.room else f"{self.knob} of agent {agent} (%%agent {agent})"
        amount = MEASURES[self.knob].bare
        return (
            f"{name} is capped: {self.called}={amount(self.limit)}, {amount(self.used)} used; "
            f"raise {raising}, then %resume {name}"
        )


def caps_of(agent: AgentConfig) -> dict[str, float | None]:
    """Return the caps of a session of ``agent``."""
    return {knob: getattr(agent, knob) for knob in MEASURES}


def reached(usage: Usage, caps: Mapping[str, float | None], *, room: bool = False) -> Cap | None:
    """Return the cap that ``usage`` has reached, None while another request may be made.

    Args:
        usage: What was spent, requests under way included.
        caps: By knob; None, or no entry, for no limit. How many tokens a request takes, and what it
            costs, is known only when it is answered, so the last one may go over.
        room: Whether these are the room's.
    """
    for knob, measure in MEASURES.items():
        limit = caps.get(knob)
        if limit is not None and (used := measure.of(usage)) >= limit:
            return Cap(knob, limit, used, room)
    return None


class Capped(Exception):
    """A cap is reached in the middle of a round: what was cut is not asked again."""

    def __init__(self, cap: Cap) -> None:
        super().__init__(cap)
        self.cap = cap
