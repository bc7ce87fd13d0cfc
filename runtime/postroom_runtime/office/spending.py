"""What a room has spent, and what it may: caps over all its sessions, closed ones and helpers too."""

from typing import TYPE_CHECKING

from postroom_runtime.contracts.config import check_knob
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.turn import Usage, total
from postroom_runtime.stepper.spending import Cap, reached

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life
    from postroom_runtime.office.session import Session


class SpendingVerbs:
    """The spending caps of a room; :class:`Room` is the rest.

    A cap is looked at before each model request, and counts the requests that are under way. What it
    holds back stays unread; raising the cap starts nothing by itself: ``resume`` a session, or write
    to it.
    """

    _sessions: dict[SessionId, "Session"]
    """Every session of this kernel, closed ones too."""
    _past = Usage()
    """What sessions spent that were closed before this kernel opened the room."""
    _max_requests: int | None = None
    _max_tokens: int | None = None

    @property
    def usage(self) -> Usage:
        """What all sessions of the room have spent, requests under way included."""
        sessions = tuple(self._sessions.values())
        return total(
            (
                self._past,
                *(session.record.usage for session in sessions),
                *(session.life.state.unbooked for session in sessions),
            )
        )

    @property
    def max_requests(self) -> int | None:
        """Model requests of all its sessions in the life of its file; None for no limit."""
        return self._max_requests

    @max_requests.setter
    def max_requests(self, value: int | None) -> None:
        check_knob("max_requests", value, called="room.max_requests")
        self._max_requests = value

    @property
    def max_tokens(self) -> int | None:
        """Tokens, in and out, of all its sessions in the life of its file; None for no limit."""
        return self._max_tokens

    @max_tokens.setter
    def max_tokens(self, value: int | None) -> None:
        check_knob("max_tokens", value, called="room.max_tokens")
        self._max_tokens = value

    def spending_cap(self, life: "Life") -> Cap | None:
        """Return the cap that keeps a session from asking its model, its own before the room's."""
        if (definition := life.defined()) is not None:
            own = life.state.record.usage + life.state.unbooked
            agent = definition.agent
            if (cap := reached(own, agent.max_requests, agent.max_tokens)) is not None:
                return cap
        if self._max_requests is None and self._max_tokens is None:
            return None
        return reached(self.usage, self._max_requests, self._max_tokens, room=True)
