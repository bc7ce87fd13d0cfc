"""What a room has spent, and what it may: caps over all its sessions, closed ones and helpers too."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from postroom_runtime.contracts.config import check_knob
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.turn import Usage, total
from postroom_runtime.stepper.spending import Cap, caps_of, reached

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
    _caps: Mapping[str, float] = MappingProxyType({})
    """The room's own, by knob; only those that are set."""

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
    def caps(self) -> Mapping[str, float]:
        """The caps that are set, by knob."""
        return self._caps

    def _cap(self, knob: str, value: float | None) -> None:
        check_knob(knob, value, called=f"room.{knob}")
        others = {name: limit for name, limit in self._caps.items() if name != knob}
        self._caps = others if value is None else {**others, knob: value}

    @property
    def max_requests(self) -> int | None:
        """Model requests of all its sessions in the life of its file; None for no limit."""
        return self._whole("max_requests")

    @max_requests.setter
    def max_requests(self, value: int | None) -> None:
        self._cap("max_requests", value)

    @property
    def max_tokens(self) -> int | None:
        """Tokens, in and out, of all its sessions in the life of its file; None for no limit."""
        return self._whole("max_tokens")

    @max_tokens.setter
    def max_tokens(self, value: int | None) -> None:
        self._cap("max_tokens", value)

    @property
    def max_cost(self) -> float | None:
        """US dollars of all its sessions in the life of its file, at list prices; None for no limit.

        A model whose price is not known (a script, a local model) spends none.
        """
        return self._caps.get("max_cost")

    @max_cost.setter
    def max_cost(self, value: float | None) -> None:
        self._cap("max_cost", value)

    def _whole(self, knob: str) -> int | None:
        limit = self._caps.get(knob)
        return None if limit is None else int(limit)

    def spending_cap(self, life: "Life") -> Cap | None:
        """Return the cap that keeps a session from asking its model, its own before the room's."""
        if (definition := life.defined()) is not None:
            own = life.state.record.usage + life.state.unbooked
            if (cap := reached(own, caps_of(definition.agent))) is not None:
                return cap
        return reached(self.usage, self._caps, room=True) if self._caps else None
