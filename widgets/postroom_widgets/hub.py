"""A hub: one source of rows, any number of readers. What the links of all views have in common.

A hub lives on the room's loop. It folds what happens and pushes what changed to every reader that
said hello: at most 20 messages a second, 200 rows each, paced by bytes, because the Jupyter server
drops what comes faster. Every batch says which change it continues, so a reader notices a gap and
asks again. A reader's own words travel the other way, and are answered whatever happened to them.
"""

import asyncio
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final

from postroom_runtime.contracts.errors import PostroomError
from postroom_widgets.reader import BATCH_SECONDS, Message, Reader, Told
from postroom_widgets.watched import Watched, WatchedRoom

BEAT_SECONDS: Final = 1.0
"""While something runs, its views hear at least this often that the loop is alive."""

_log = logging.getLogger(__name__)


class Hub(ABC):
    """Folds one source once and pushes it to all its readers. Lives on the room's loop.

    Args:
        name: What is watched, for the log.
    """

    room: WatchedRoom
    """Where what is watched lives."""
    state: Told
    """What there is, as folded last."""
    broken: str
    """Told to the views when this fails."""
    ended: str
    """Told to the views when the room is closed."""
    orders: tuple[str, ...] = ()
    """What a button may ask for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.life = secrets.token_hex(4)
        """Tells this hub from one of an earlier kernel, which never got what was sent to it."""
        self.on_rest: list[Callable[[], None]] = []
        """Called when nothing goes on and there is news since the last time."""
        self._readers: list[Reader] = []
        self._task: asyncio.Task[None] | None = None
        self._context: Context | None = None
        self._flush: asyncio.TimerHandle | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._saved = self.catch_up().version

    # ── What is watched ──

    @abstractmethod
    def catch_up(self) -> Told:
        """Fold what is stored up to now, without waiting for the loop; return the state."""

    @abstractmethod
    def fold(self) -> Told:
        """Fold what was heard; return the state."""

    def named(self, key: str) -> Watched:
        """Return the session of the room called ``key``, a closed one too.

        Raises:
            PostroomError: There is none.
        """
        return self.room.session(key, closed=True)

    @abstractmethod
    async def listen(self) -> None:
        """Hear what happens, until it ends; call :meth:`soon` when there is something to fold."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether something goes on, so that there will be news."""

    @property
    def over(self) -> bool:
        """Whether the room was closed, so that nothing can be heard any more."""
        return self.room.closed

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any] | None":
        """Run ``work`` on the room's loop; what it raises is logged. None without a loop."""
        return self.room.task(work, name)

    @abstractmethod
    def do(self, op: str, message: Message) -> Message | None:
        """Do what a button says; return what to answer besides that it is done.

        Raises:
            PostroomError: It cannot be done; the words go to whoever pressed it.
        """

    def other(self, reader: Reader, message: Message) -> None:
        """Take a message that is none of those all readers send."""
        _log.warning("a view of %s asked for %r", self.name, message.get("op"))

    async def _follow(self) -> None:
        self._context = copy_context()
        over = self.broken
        try:
            await self.listen()
            over = self.ended
        except asyncio.CancelledError:
            over = self.ended if self._readers else ""
            raise
        finally:
            self._flush_now()
            if over:
                self.tell({"op": "over", "words": over})

    # ── Readers ──

    def join(self, reader: Reader) -> None:
        """Add a reader. Call it on the loop."""
        self._readers.append(reader)
        self._watch()

    def _watch(self) -> None:
        # A room that had no loop when the view was made may have one by now.
        if (self._task is None or self._task.done()) and not self.over:
            self._task = self.start(self._follow(), f"view of {self.name}")

    def leave(self, reader: Reader) -> None:
        """Take a reader out; the last one ends the listening. Call it on the loop."""
        if reader in self._readers:
            self._readers.remove(reader)
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None

    def receive(self, reader: Reader, message: Message) -> None:
        """Do what a reader's front end asks. Call it on the loop."""
        match message.get("op"):
            case "hello":
                reader.hello(self.state, int(message.get("after") or 0), message.get("top"))
                self._watch()
                self.soon()
            case "older":
                reader.older(self.state, int(message.get("count") or reader.window))
            case "ping":
                reader.post({"op": "pong", "id": message.get("id"), "upto": reader.version})
            case "bye":
                reader.listening = False
            case str(op) if op in self.orders:
                self.start(self._order(reader, message), f"{op} {self.name}")
            case _:
                self.other(reader, message)

    # ── Rows out ──

    def soon(self, delay: float = BATCH_SECONDS) -> None:
        """Push what there is in ``delay`` seconds. Call it on the loop."""
        if self._flush is None:
            self._flush = self.later(delay, self._flush_now)

    def later(self, delay: float, call: Callable[[], object]) -> asyncio.TimerHandle:
        """Call in ``delay`` seconds. Call it on the loop."""
        # In the room's context: in that of a cell, what is published would count as its output.
        return asyncio.get_running_loop().call_later(delay, call, context=self._context)

    def _flush_now(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        state = self.fold()
        now = asyncio.get_running_loop().time()
        listening = [reader for reader in self._readers if reader.listening]
        waits = [reader.push(state, self.life, now) for reader in listening]
        if any(waits):
            self.soon(min(seconds for seconds in waits if seconds))
        self._rested(state)

    def _rested(self, state: Told) -> None:
        busy = self.busy
        if busy and self._beat is None:
            self._beat = self.later(BEAT_SECONDS, self._beat_now)
        if not busy and self._saved != state.version:
            self._saved = state.version
            for call in self.on_rest:
                call()

    def _beat_now(self) -> None:
        self._beat = None
        for reader in self._readers:
            if reader.listening:
                reader.post({"op": "beat", "upto": reader.version})
        if self._readers:
            self._flush_now()

    def tell(self, message: Message) -> None:
        """Post a message to every reader."""
        for reader in self._readers:
            reader.post(message)

    # ── Buttons ──

    async def _order(self, reader: Reader, message: Message) -> None:
        """Do what a button says; whoever was too late reads why."""
        try:
            more = self.do(str(message["op"]), message)
        except PostroomError as error:
            reader.post({"op": "refused", "id": message.get("id"), "words": str(error)})
        else:
            reader.post({"op": "ack", "id": message.get("id"), **(more or {})})
