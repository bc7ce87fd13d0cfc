"""What a session, and a room, may spend: a cap that is reached lets no further request out; pure."""

from dataclasses import dataclass

from postroom_runtime.contracts.turn import Usage


@dataclass(frozen=True, slots=True)
class Cap:
    """A spending cap that is reached."""

    knob: str
    """``max_requests`` or ``max_tokens``."""
    limit: int
    used: int
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
        return (
            f"{name} is capped: {self.called}={self.limit}, {self.used} used; "
            f"raise {raising}, then %resume {name}"
        )


def reached(
    usage: Usage, max_requests: int | None, max_tokens: int | None, *, room: bool = False
) -> Cap | None:
    """Return the cap that ``usage`` has reached, None while another request may be made.

    Args:
        usage: What was spent, requests under way included.
        max_requests: Model requests; None for no limit.
        max_tokens: Tokens in and out; None for no limit. How many a request takes is known only
            when it is answered, so the last one may go over.
        room: Whether these are the room's.
    """
    if max_requests is not None and usage.requests >= max_requests:
        return Cap("max_requests", max_requests, usage.requests, room)
    tokens = usage.input_tokens + usage.output_tokens
    if max_tokens is not None and tokens >= max_tokens:
        return Cap("max_tokens", max_tokens, tokens, room)
    return None


class Capped(Exception):
    """A cap is reached in the middle of a round: what was cut is not asked again."""

    def __init__(self, cap: Cap) -> None:
        super().__init__(cap)
        self.cap = cap
