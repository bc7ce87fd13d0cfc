"""A room and a session that do what a test tells them, for views to watch."""

import asyncio
import contextvars
import json
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.errors import PostroomError, UnknownRecipient
from postroom_runtime.contracts.event import LIVE_ONLY, Event
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_widgets.session_view import SessionView
from widgets.story import PEOPLE, Story


def quiet_context() -> contextvars.Context:
    """Return a context in which what is published belongs to no cell."""
    context = contextvars.copy_context()
    try:
        from IPython.core.getipython import get_ipython

        context.run(get_ipython().set_thread_parent, {})
    except (ImportError, AttributeError):
        pass  # no kernel: nothing to be quiet about
    return context


class FakeRoom:
    """A loop and the people in it."""

    def __init__(self, name: str = "lab") -> None:
        self.answers: list[tuple[str, ...]] = []
        self.records = dict(PEOPLE)
        self.members: list[FakeSession] = []
        self.reads: dict[str, dict[int, int]] = {}
        self.looks: list[tuple[str, list[int], int]] = []
        self.listeners: list[Callable[[str], None]] = []
        self.asked: list[Approval] = []
        self.too_late: Exception | None = None
        self.name, self.tasks, self.closed = name, set[asyncio.Task[Any]](), False
        self.loop = asyncio.get_running_loop()
        self.context = quiet_context()

    def hop(self, fn: Callable[..., object], *args: Any) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(fn, *args, context=self.context)

    def task(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = self.loop.create_task(work, name=name, context=self.context)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def approvals(self) -> Sequence[Approval]:
        return self.asked

    def approve(self, id: str, args: Mapping[str, Any] | None = None, *, by: str) -> None:
        self._answer("approve", id, *([json.dumps(args)] if args is not None else []), by)

    def deny(self, id: str, reason: str, *, by: str) -> None:
        self._answer("deny", id, reason, by)

    def _answer(self, *said: str) -> None:
        if self.too_late is not None:
            raise self.too_late
        self.answers.append(said)

    def people(self) -> Mapping[str, SessionRecord]:
        return self.records

    def turns_reading(
        self, reader: str, letters: Collection[int], after: int = 0
    ) -> Mapping[int, int]:
        self.looks.append((reader, sorted(letters), after))
        turns = self.reads.get(reader, {})
        return {seq: turns[seq] for seq in letters if seq in turns}

    def hear_sessions(self, heard: Callable[[str], None]) -> Callable[[], None]:
        self.listeners.append(heard)
        return lambda: self.listeners.remove(heard)

    def reads_mail(self, reader: str, upto: int, turn: int | None = None, **more: Any) -> None:
        """Let another session read its mail, in a turn or in none."""
        self.records[reader] = replace(self.records[reader], cursor=upto, **more)
        if turn is not None:
            self.reads.setdefault(reader, {})[upto] = turn
        for heard in tuple(self.listeners):
            heard(reader)

    def session(self, key: str, *, closed: bool = False) -> "FakeSession":
        for session in self.members:
            if key in (session.id, session.name):
                return session
        raise UnknownRecipient(key, [session.name for session in self.members])


class FakeSession:
    """A session whose events come out of a story, and whose owner's mail goes into it."""

    agent, model_name, id, name = "reviewer", "scripted", "s-0002", "rev"

    def __init__(self, story: Story | None = None, room: FakeRoom | None = None) -> None:
        self.story, self.room = story or Story(), room or FakeRoom()
        self.room.members.append(self)
        self.status = SessionStatus.IDLE
        self.refusal: Exception | None = None
        self.undefined = False
        self.made: list[Call] = []
        self.orders: list[tuple[str, ...]] = []
        self.sent: list[tuple[str, bool, str | None]] = []
        self.answer: Callable[[FakeSession, str], Coroutine[Any, Any, None]] | None = None
        self._one_run = asyncio.Lock()
        self._told = len(self.story.events)
        self._queues: list[asyncio.Queue[Event | None]] = []

    def tell(self) -> None:
        """Hand what was written in the story since the last time to everyone who listens."""
        news = self.story.events[self._told :]
        self._told = len(self.story.events)
        for queue in self._queues:
            for event in news:
                queue.put_nowait(event)

    def end(self) -> None:
        """Close the room as far as this session's listeners can see."""
        for queue in self._queues:
            queue.put_nowait(None)

    def history(self, since: int = 0) -> list[Event]:
        told = self.story.events[: self._told]
        return [e for e in told if e.seq > since and e.kind not in LIVE_ONLY]

    def calls(self) -> Sequence[Call]:
        return self.made

    async def events(self, since: int | None = None) -> AsyncIterator[Event]:
        queue = asyncio.Queue[Event | None]()
        stored = self.history(since or 0)
        self._queues.append(queue)
        try:
            for event in stored:
                yield event
            while (event_or_end := await queue.get()) is not None:
                yield event_or_end
        finally:
            self._queues.remove(queue)

    async def asend(
        self,
        text: str,
        *,
        interrupt: bool = False,
        reply_to: str | None = None,
        id: str | None = None,
    ) -> Receipt:
        if self.refusal is not None:
            raise self.refusal
        self.sent.append((text, interrupt, reply_to))
        more: dict[str, Any] = {"in_reply_to": reply_to} if reply_to else {}
        envelope = self.story.mail(text, interrupt=interrupt, **more)
        self.tell()
        if self.answer is not None:
            self.room.task(self._run(text), "answer")
        return Receipt(id=envelope["id"], seq=envelope["seq"], session=self.id)

    async def _run(self, text: str) -> None:
        # A session has one run at a time, and its story can tell of no other.
        async with self._one_run:
            assert self.answer is not None
            await self.answer(self, text)

    def view(self) -> SessionView:
        return SessionView(self)

    def stop(self) -> None:
        self.orders.append(("stop",))

    def pause(self) -> None:
        self.orders.append(("pause",))

    def resume(self) -> None:
        self.orders.append(("resume",))

    def cancel(self, *calls: str) -> None:
        self.orders.append(("cancel", *calls))

    def status_words(self) -> str:
        return f"{self.status} (needs agent reviewer)" if self.undefined else str(self.status)


async def echo(session: FakeSession, text: str) -> None:
    """Answer mail as a model would that says the same again, piece by piece."""
    story = session.story
    session.status = SessionStatus.RUNNING
    story.run().heard()
    session.tell()
    for piece in ("echo: ", *text.partition(" ")):
        await asyncio.sleep(0.05)
        story.delta(piece)
        session.tell()
    session.status = SessionStatus.IDLE
    story.said(f"echo: {text}", end_reason="answer").stopped()
    session.tell()


class Refused(PostroomError):
    """A refusal as the mail floor would give it."""
