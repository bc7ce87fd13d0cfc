"""The link between a session and its views: one feed per session, any number of readers.

What a reader writes is numbered by the reader, accepted once, and answered.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Final
from weakref import WeakValueDictionary

from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_widgets.edits import edited_call
from postroom_widgets.hub import Hub
from postroom_widgets.reader import Message, Reader
from postroom_widgets.view_children import with_children
from postroom_widgets.view_letters import awaited, with_letters
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import lean
from postroom_widgets.view_state import ViewState, opened
from postroom_widgets.watched import Watched

MAX_ANSWERS: Final = 1000
"""Words of readers whose answer is kept, in case they did not hear it."""
BY: Final = "view"
"""Through what an approval is answered here."""


class Feed(Hub):
    """A session's events, folded once and pushed to all its readers. Lives on the room's loop."""

    orders = ("stop", "pause", "resume", "cancel", "approve", "deny")

    def __init__(self, session: Watched) -> None:
        self.session, self.room = session, session.room
        self.state: ViewState = opened(
            session.id, name=session.name, agent=session.agent, model=session.model_name
        )
        self._answers: OrderedDict[str, Message | None] = OrderedDict()
        self._new: list[Event] = []
        self._listening = False
        self._awaited: frozenset[SessionId] = frozenset()
        """Sessions that have a letter of this one to read."""
        self._stop_hearing: Callable[[], None] | None = None
        """Ends the hearing of their records."""
        name = session.name
        self.broken = (
            f"This view of {name} broke; the kernel's log says why. Run %watch {name} again."
        )
        self.ended = f"The room was closed, so this view is over. Open it, then run %watch {name}."
        super().__init__(name)
        self._fold(self._reports())

    # ── Events in ──

    def _reports(self) -> list[Event]:
        """Return what running calls reported last: reports are stored nowhere, and told once."""
        at, session = datetime.now(UTC), self.session
        running = self.state.open_calls and not self.room.closed
        return [
            Event(
                kind=EventKind.TOOL_PROGRESS,
                seq=self.state.seq,
                session=session.id,
                at=at,
                data={"call": call.id, **asdict(call.progress[-1])},
            )
            for call in (session.calls() if running else ())
            if call.progress
        ]

    def catch_up(self) -> ViewState:
        """Fold what is stored up to now, without waiting for the loop; return the state."""
        if not self.session.room.closed:
            self._fold(self.session.history(self.state.seq))
        return self.state

    def fold(self) -> ViewState:
        """Fold what was heard; return the state."""
        events, self._new = self._new, []
        self._fold(events)
        self._follow_letters()
        return self.state

    def _fold(self, events: list[Event]) -> None:
        people = self.session.room.people()
        state = fold(self.state, events, people) if events else self.state
        state = with_children(state, people)
        if not self.session.room.closed:
            state = with_letters(state, people, self.session.room.turns_reading)
        # Records are stored after the fact; the session itself knows what it does now.
        status, words = str(self.session.status), self.session.status_words()
        needs = words if words != status else None
        now = {"status": status, "needs": needs, "model": self.session.model_name}
        head = lean({**state.head, **now})
        self.state = state if head == state.head else replace(state, head=head)

    async def listen(self) -> None:
        """Hear the session's events, and who reads the letters it sent."""
        self._listening = True
        try:
            self._follow_letters()
            async for event in self.session.events(self.state.seq):
                self._new.append(event)
                self.soon()
        finally:
            self._listening = False
            self._follow_letters()

    def _follow_letters(self) -> None:
        """Hear of the other sessions as long as one has a letter to read, and no longer."""
        self._awaited = awaited(self.state) if self._listening else frozenset()
        if self._awaited and self._stop_hearing is None:
            self._stop_hearing = self.session.room.hear_sessions(self._stored)
            self.soon()  # it may have been read in this moment
        elif not self._awaited and self._stop_hearing is not None:
            self._stop_hearing()
            self._stop_hearing = None

    def _stored(self, session: SessionId) -> None:
        if session in self._awaited:
            self.session.room.hop(self.soon)

    @property
    def busy(self) -> bool:
        """Whether the session runs, or calls of it do."""
        return self.state.head["status"] in ("running", "waiting") or bool(self.state.open_calls)

    # ── Words of the readers ──

    def other(self, reader: Reader, message: Message) -> None:
        """Take words for the session."""
        if message.get("op") == "send":
            self._accept(reader, message)
        else:
            super().other(reader, message)

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
        self.tell(answer)

    def do(self, op: str, message: Message) -> None:
        """Do what a button says."""
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
        room.approve(id, edited_call(room.approvals(), id, edits), by=BY)


_feeds: "WeakValueDictionary[tuple[int, SessionId], Feed]" = WeakValueDictionary()


def feed_of(session: Watched) -> Feed:
    """Return the feed of ``session``, the same for all its views."""
    key = (id(session.room), session.id)
    feed = _feeds.get(key)
    if feed is None:
        feed = _feeds[key] = Feed(session)
    return feed
