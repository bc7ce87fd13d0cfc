"""The link between a session and its views: one feed per session, any number of readers.

The feed lives on the room's loop. It folds the session's events and pushes what changed to every
reader that said hello: at most 20 messages a second, 200 rows each, paced by bytes, because the
Jupyter server drops what comes faster. Every batch says which change it continues, so a reader
notices a gap and asks again. A reader's own words travel the other way: numbered by the reader,
accepted once, and answered, whatever happened to them.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Final
from weakref import WeakValueDictionary

from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_widgets.edits import edited
from postroom_widgets.reader import BATCH_SECONDS, WINDOW_ROWS, Message, Reader
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import lean
from postroom_widgets.view_state import ViewState, opened
from postroom_widgets.watched import Watched

BEAT_SECONDS: Final = 1.0
"""While a session runs, its views hear at least this often that the loop is alive."""
MAX_ANSWERS: Final = 1000
"""Words of readers whose answer is kept, in case they did not hear it."""
BY: Final = "view"
"""Through what an approval is answered here."""

_ORDERS: Final = ("stop", "pause", "resume", "cancel", "approve", "deny")
_log = logging.getLogger(__name__)


class Feed:
    """A session's events, folded once and pushed to all its readers. Lives on the room's loop."""

    def __init__(self, session: Watched) -> None:
        self.session = session
        self.life = secrets.token_hex(4)
        """Tells this feed from one of an earlier kernel, which never got what was sent to it."""
        self.state: ViewState = opened(
            session.id, name=session.name, agent=session.agent, model=session.model_name
        )
        self.on_rest: list[Callable[[], None]] = []
        """Called when the session is at rest and there is news since the last time."""
        self._readers: list[Reader] = []
        self._task: asyncio.Task[None] | None = None
        self._answers: OrderedDict[str, Message | None] = OrderedDict()
        self._new: list[Event] = []
        self._context: Context | None = None
        self._flush: asyncio.TimerHandle | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._saved = self.catch_up().version

    # ── Events in ──

    def catch_up(self) -> ViewState:
        """Fold what is stored up to now, without waiting for the loop; return the state."""
        if not self.session.room.closed:
            self._fold(self.session.history(self.state.seq))
        return self.state

    def _fold(self, events: list[Event]) -> None:
        state = fold(self.state, events, self.session.room.people()) if events else self.state
        # Records are stored after the fact; the session itself knows what it does now.
        status, words = str(self.session.status), self.session.status_words()
        needs = words if words != status else None
        now = {"status": status, "needs": needs, "model": self.session.model_name}
        head = lean({**state.head, **now})
        self.state = state if head == state.head else replace(state, head=head)

    async def _follow(self) -> None:
        self._context = copy_context()
        name = self.session.name
        over = f"This view of {name} broke; the kernel's log says why. Run %watch {name} again."
        closed = f"The room was closed, so this view is over. Open it, then run %watch {name}."
        try:
            async for event in self.session.events(self.state.seq):
                self._new.append(event)
                self._soon()
            over = closed
        except asyncio.CancelledError:
            over = closed if self._readers else ""
            raise
        finally:
            self._flush_now()
            if over:
                self._tell({"op": "over", "words": over})

    # ── Readers ──

    def join(self, reader: Reader) -> None:
        """Add a reader. Call it on the loop."""
        self._readers.append(reader)
        self._watch()

    def _watch(self) -> None:
        # A room that had no loop when the view was made may have one by now.
        if (self._task is None or self._task.done()) and not self.session.room.closed:
            self._task = self.session.room.task(self._follow(), f"view of {self.session.name}")

    def leave(self, reader: Reader) -> None:
        """Take a reader out; the last one ends the feed. Call it on the loop."""
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
                self._soon()
            case "older":
                reader.older(self.state, int(message.get("count") or WINDOW_ROWS))
            case "ping":
                reader.post({"op": "pong", "id": message.get("id"), "upto": reader.version})
            case "bye":
                reader.listening = False
            case "send":
                self._accept(reader, message)
            case str(op) if op in _ORDERS:
                self.session.room.task(self._order(reader, message), f"{op} {self.session.name}")
            case other:
                _log.warning("a view of %s asked for %r", self.session.name, other)

    # ── Rows out ──

    def _soon(self, delay: float = BATCH_SECONDS) -> None:
        if self._flush is None:
            self._flush = self._later(delay, self._flush_now)

    def _later(self, delay: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        # In the room's context: in that of a cell, what is published would count as its output.
        return asyncio.get_running_loop().call_later(delay, call, context=self._context)

    def _flush_now(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        events, self._new = self._new, []
        self._fold(events)
        now = asyncio.get_running_loop().time()
        listening = [reader for reader in self._readers if reader.listening]
        waits = [reader.push(self.state, self.life, now) for reader in listening]
        if any(waits):
            self._soon(min(seconds for seconds in waits if seconds))
        self._rested()

    def _rested(self) -> None:
        busy = self.state.head["status"] in ("running", "waiting") or bool(self.state.open_calls)
        if busy and self._beat is None:
            self._beat = self._later(BEAT_SECONDS, self._beat_now)
        if not busy and self._saved != self.state.version:
            self._saved = self.state.version
            for call in self.on_rest:
                call()

    def _beat_now(self) -> None:
        self._beat = None
        for reader in self._readers:
            if reader.listening:
                reader.post({"op": "beat", "upto": reader.version})
        if self._readers:
            self._flush_now()

    def _tell(self, message: Message) -> None:
        for reader in self._readers:
            reader.post(message)

    # ── Words of the readers ──

    def _accept(self, reader: Reader, message: Message) -> None:
        """Send a reader's words once, however often the reader says them."""
        id = str(message.get("id"))
        if id in self._answers:
            answer = self._answers[id]
            if answer is not None:
                reader.post(answer)
            return
        self._answers[id] = None
        while len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)
        self.session.room.task(self._send(id, message), f"send to {self.session.name}")

    async def _send(self, id: str, message: Message) -> None:
        try:
            receipt = await self.session.asend(
                str(message.get("text", "")),
                interrupt=bool(message.get("interrupt")),
                reply_to=message.get("reply_to") or None,
            )
        except PostroomError as error:
            self._answer(id, {"op": "refused", "id": id, "words": str(error)})
        except Exception as error:
            # Whatever broke, somebody wrote this text: it has to go back into their hands.
            self._answer(
                id, {"op": "refused", "id": id, "words": f"{type(error).__name__}: {error}"}
            )
            raise
        else:
            told = {"mail": receipt.id, "note": receipt.note, "lowered": receipt.lowered}
            self._answer(id, {"op": "ack", "id": id, **told})

    def _answer(self, id: str, answer: Message) -> None:
        if id in self._answers:
            self._answers[id] = answer
        self._tell(answer)

    async def _order(self, reader: Reader, message: Message) -> None:
        """Do what a button says; whoever was too late reads why."""
        try:
            self._do(str(message["op"]), message)
        except PostroomError as error:
            reader.post({"op": "refused", "id": message.get("id"), "words": str(error)})
        else:
            reader.post({"op": "ack", "id": message.get("id")})

    def _do(self, op: str, message: Message) -> None:
        session = self.session
        match op:
            case "cancel":
                session.cancel(str(message.get("call")))
            case "approve":
                self._approve(str(message.get("approval")), message.get("edits"))
            case "deny":
                session.room.deny(
                    str(message.get("approval")), str(message.get("reason") or ""), by=BY
                )
            case "pause":
                session.pause()
            case "resume":
                session.resume()
            case _:
                session.stop()

    def _approve(self, id: str, edits: Json) -> None:
        room = self.session.room
        asked = next((each.arguments for each in room.approvals() if each.id == id), {})
        # Answered meanwhile, it has no arguments here: the room says who was first.
        room.approve(id, edited(asked, edits) if asked else None, by=BY)


_feeds: "WeakValueDictionary[tuple[int, SessionId], Feed]" = WeakValueDictionary()


def feed_of(session: Watched) -> Feed:
    """Return the feed of ``session``, the same for all its views."""
    key = (id(session.room), session.id)
    feed = _feeds.get(key)
    if feed is None:
        feed = _feeds[key] = Feed(session)
    return feed
