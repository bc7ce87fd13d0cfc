"""What the views need of a session and its room; the office has it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus


class WatchedRoom(Protocol):
    """What a view needs of a room."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it was closed: nothing can be read or sent any more."""
        ...

    def approvals(self) -> Sequence[Approval]:
        """Return what waits for the owner, oldest first."""
        ...

    def approve(self, id: str, args: Mapping[str, Json] | None = None, *, by: str) -> object:
        """Let a call that waits for its owner run, as edited if ``args``; blocks for milliseconds."""
        ...

    def deny(self, id: str, reason: str, *, by: str) -> object:
        """Keep it from running."""
        ...

    def hop(self, function: Callable[..., object], *args: Any) -> None:
        """Run ``function`` on the room's loop; from any thread."""
        ...

    def task(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any] | None":
        """Run ``work`` on the room's loop; what it raises is logged. None without a loop."""
        ...

    def people(self) -> Mapping[SessionId, SessionRecord]:
        """Return the records of the room's sessions."""
        ...

    def turns_reading(
        self, reader: SessionId, letters: Collection[int], after: int = 0
    ) -> Mapping[int, int]:
        """Return in which of its turns, stored after ``after``, a session read its mail, by ``seq``."""
        ...

    def hear_sessions(self, heard: Callable[[SessionId], None]) -> Callable[[], None]:
        """Call ``heard`` with each session whose record is stored, in any thread; return a stop."""
        ...

    def session(self, key: str, *, closed: bool = False) -> "Watched":
        """Return the session called ``key``, a closed one only if asked for; else raise."""
        ...


class Watched(Protocol):
    """What a view needs of a session."""

    @property
    def id(self) -> SessionId:
        """Its id."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def agent(self) -> str:
        """The slug of its agent."""
        ...

    @property
    def model_name(self) -> str:
        """What its model is called."""
        ...

    @property
    def status(self) -> SessionStatus:
        """What it is doing."""
        ...

    def status_words(self) -> str:
        """Return what it is doing in words, with what it needs to run."""
        ...

    @property
    def room(self) -> WatchedRoom:
        """Where it lives."""
        ...

    def events(self, since: int | None = None) -> AsyncIterator[Event]:
        """Return its events after ``since``: the stored ones, then live ones."""
        ...

    def history(self, since: int = 0) -> list[Event]:
        """Return its stored events after ``since``."""
        ...

    def calls(self) -> Sequence[Call]:
        """Return its tool calls, with what they reported."""
        ...

    def view(self) -> Any:
        """Return a live view of it."""
        ...

    async def asend(
        self,
        text: str,
        *,
        interrupt: bool = False,
        reply_to: str | None = None,
        id: str | None = None,
    ) -> Receipt:
        """Send it mail as the owner."""
        ...

    def stop(self) -> object:
        """End its run."""
        ...

    def pause(self) -> object:
        """Stop its run at the next receive point."""
        ...

    def resume(self) -> object:
        """Let it run again."""
        ...

    def cancel(self, *calls: str) -> object:
        """Cancel calls of it."""
        ...
