"""What the verbs of a room stand on: declared once, given by :class:`Room`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session


class RoomVerbs(ABC):
    """What a room does in some matter; :class:`Room` is the rest."""

    @abstractmethod
    def session(self, key: str, *, closed: bool = False) -> "Session":
        """Return an open session; where asked, a closed one too."""

    @abstractmethod
    def attach(self) -> None:
        """Live on the running loop."""

    @abstractmethod
    def hop(self, function: Callable[..., object], *args: Any) -> None:
        """Run a function on the room's loop."""

    @abstractmethod
    def check_open(self) -> None:
        """Raise unless the room is open."""

    @overload
    def _one(self, session: "Session | str") -> "Session": ...

    @overload
    def _one(self, session: "Session | str | None") -> "Session | None": ...

    def _one(self, session: "Session | str | None") -> "Session | None":
        """Return the session that a name or an object means; None for None.

        Raises:
            UnknownRecipient: No such session is open.
        """
        return self.session(session) if isinstance(session, str) else session

    def _open(self, session: "Session | str") -> "Session":
        """Return the session that a name or an object means, which must be open.

        Raises:
            UnknownRecipient: It is not; also of an object whose session was closed meanwhile.
        """
        found = self._one(session)
        return self.session(found.id) if found.closed else found  # which says that it is closed
