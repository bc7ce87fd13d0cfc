"""What the verbs of a room stand on: declared once, given by :class:`Room`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
