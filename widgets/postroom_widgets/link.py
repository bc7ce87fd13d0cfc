"""The link between a session and its views: one feed per session, any number of readers.

The feed lives on the room's loop. It folds the session's events and pushes what changed to every
reader that said hello: at most 20 messages a second, 200 rows each, paced by bytes, because the
Jupyter server drops what comes faster. Every batch says which change it continues, so a reader
notices a gap and asks again. A reader's own words travel the other way: numbered by the reader,
accepted once, and answered, whatever happened to them.
"""

import asyncio
import itertools
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import Row
from postroom_widgets.view_state import ViewState, opened

Message = Mapping[str, Json]
Post = Callable[[Message], None]

BATCH_SECONDS: Final = 0.05
BATCH_ROWS: Final = 200
BYTES_PER_SECOND: Final = 400_000
"""Half of what the Jupyter server lets one kernel publish."""
BEAT_SECONDS: Final = 1.0
"""While a session runs, its views hear at least this often that the loop is alive."""
WINDOW_ROWS: Final = 500
"""Rows a view gets when it opens; it asks for earlier ones."""
MAX_ANSWERS: Final = 1000
"""Words of readers whose answer is kept, in case they did not hear it."""

_log = logging.getLogger(__name__)


class WatchedRoom(Protocol):
    """What a view needs of a room."""

    @property
    def name(self) -> str:
        """What people call it."""
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


class Reader:
    """One widget's place in a feed. It is silent until its front end says hello."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.listening = False
        self.version = 0
        """It has every change up to here."""
        self.top: list[int] = [0, 0]
        """The place of its first row."""
        self.earlier = 0
        """Rows above that."""
        self.head: Row | None = None
        self.streamed: dict[str, Row] = {}
        """Streaming rows as it last got them, so that only what is new is sent."""
        self.not_before = 0.0
        """Loop time before which it gets no more."""


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
        """Called when the session has come to rest."""
        self._readers: list[Reader] = []
        self._task: asyncio.Task[None] | None = None
        self._answers: OrderedDict[str, Message | None] = OrderedDict()
        self._new: list[Event] = []
        self._context: Context | None = None
        self._flush: asyncio.TimerHandle | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._at_rest = True
        self.catch_up()

    # ── Events in ──

    def catch_up(self) -> ViewState:
        """Fold what is stored up to now, without waiting for the loop; return the state."""
        self._fold(self.session.history(self.state.seq))
        return self.state

    def _fold(self, events: list[Event]) -> None:
        state = fold(self.state, events, self.session.room.people()) if events else self.state
        # The record is stored after the fact; the session itself knows what it does now.
        head = {**state.head, "status": str(self.session.status), "model": self.session.model_name}
        self.state = state if head == state.head else replace(state, head=head)

    async def _follow(self) -> None:
        self._context = copy_context()
        over = f"This view of {self.session.name} broke; the kernel's log says why."
        try:
            async for event in self.session.events(self.state.seq):
                self._new.append(event)
                self._soon()
            over = f"This view of {self.session.name} has ended: its room was closed."
        except asyncio.CancelledError:
            over = ""  # nobody reads it any more
            raise
        finally:
            self._flush_now()
            if over:
                self._tell({"op": "over", "words": over})

    # ── Readers ──

    def join(self, reader: Reader) -> None:
        """Add a reader. Call it on the loop."""
        self._readers.append(reader)
        if self._task is None:
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
                self._hello(reader, int(message.get("after") or 0), message.get("top"))
            case "older":
                self._older(reader, int(message.get("count") or WINDOW_ROWS))
            case "ping":
                reader.post({"op": "pong", "id": message.get("id"), "upto": reader.version})
            case "bye":
                reader.listening = False
            case "send":
                self._accept(reader, message)
            case "stop":
                self.session.room.task(self._stop(reader, message), f"stop {self.session.name}")
            case other:
                _log.warning("a view of %s asked for %r", self.session.name, other)

    def _hello(self, reader: Reader, after: int, top: list[int] | None) -> None:
        rows = self.state.ordered()
        shown = [row for row in rows if top is None or row["o"] >= top]
        reader.earlier = len(rows) - len(shown)
        if top is None and len(rows) > WINDOW_ROWS:
            reader.earlier = len(rows) - WINDOW_ROWS
            top = rows[reader.earlier]["o"]
        reader.top = top or [0, 0]
        reader.version = min(after, self.state.version)
        reader.listening, reader.head, reader.streamed = True, None, {}
        self._soon()

    def _older(self, reader: Reader, count: int) -> None:
        above = [row for row in self.state.ordered() if row["o"] < reader.top]
        rows = above[-min(count, BATCH_ROWS) :]
        if rows:
            reader.top = rows[0]["o"]
        reader.earlier = len(above) - len(rows)
        reader.post({"op": "older", "rows": rows, "earlier": reader.earlier, "top": reader.top})

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
        waits = [self._push(reader, now) for reader in self._readers if reader.listening]
        left = [seconds for seconds in waits if seconds]
        if left:
            self._soon(max(BATCH_SECONDS, min(left)))
        self._rested()

    def _push(self, reader: Reader, now: float) -> float:
        """Send a reader its next batch; return in how many seconds it wants more, 0 for never."""
        if reader.not_before > now:
            return reader.not_before - now
        changed = [row for row in self.state.since(reader.version) if row["o"] >= reader.top]
        if not changed and reader.head == self.state.head:
            reader.version = self.state.version
            return 0
        batch = changed[:BATCH_ROWS]
        left = len(changed) - len(batch)
        upto = batch[-1]["v"] if left else self.state.version
        message = {
            "op": "rows",
            "life": self.life,
            "after": reader.version,
            "upto": upto,
            "left": left,
            "earlier": reader.earlier,
            "top": reader.top,
            "head": self.state.head,
            "rows": [_news(reader, row) for row in batch],
        }
        reader.post(message)
        reader.version, reader.head = upto, self.state.head
        reader.not_before = now + len(json.dumps(message["rows"])) / BYTES_PER_SECOND
        return max(BATCH_SECONDS, reader.not_before - now) if left else 0

    def _rested(self) -> None:
        busy = self.state.head["status"] in ("running", "waiting") or bool(self.state.open_calls)
        if busy and self._beat is None:
            self._beat = self._later(BEAT_SECONDS, self._beat_now)
        if not busy and not self._at_rest:
            for call in self.on_rest:
                call()
        self._at_rest = not busy

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
        for old in itertools.islice(list(self._answers), len(self._answers) - MAX_ANSWERS):
            del self._answers[old]
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

    async def _stop(self, reader: Reader, message: Message) -> None:
        try:
            done = self.session.stop()
            if asyncio.iscoroutine(done) or asyncio.isfuture(done):
                await done
        except PostroomError as error:
            reader.post({"op": "refused", "id": message.get("id"), "words": str(error)})
        else:
            reader.post({"op": "ack", "id": message.get("id")})


def _news(reader: Reader, row: Row) -> Row:
    """Return what a reader needs to know of ``row``: of a streaming text only what is new."""
    key, before = row["key"], reader.streamed.get(row["key"])
    if not row.get("live"):
        reader.streamed.pop(key, None)
        return row
    reader.streamed[key] = row
    text = row.get("text", "")
    if before is None or not text.startswith(before.get("text", "")):
        return row
    added = text[len(before.get("text", "")) :]
    return {"key": key, "v": row["v"], "o": row["o"], "base": before["v"], "add": added}


_feeds: "WeakValueDictionary[tuple[int, SessionId], Feed]" = WeakValueDictionary()


def feed_of(session: Watched) -> Feed:
    """Return the feed of ``session``, the same for all its views."""
    key = (id(session.room), session.id)
    feed = _feeds.get(key)
    if feed is None:
        feed = _feeds[key] = Feed(session)
    return feed
