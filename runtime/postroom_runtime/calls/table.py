"""Every call of a session and its state; ending a call posts its mail in the same transaction."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from postroom_runtime.contracts.call import Call, CallState, ToolRequest
from postroom_runtime.contracts.envelope import FromToolCall, Outgoing, ToolCallFinished
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.storage.protocol import Committed, Pending, Storage


class CallTable:
    """The calls of one session.

    A final state is final: what arrives later is discarded and posts nothing (M-73). The table says a
    call has ended only when that and its mail are stored, so nobody sees an end without its mail
    (M-62b).

    Args:
        session: Whose calls.
        storage: The room's store.
        epoch: Under which claim the session is held.
        now: The room's clock.
        changed: Called on the loop after each change: the store rings when the rows are published,
            which is before the table knows of it.
    """

    def __init__(
        self,
        session: SessionId,
        storage: Storage,
        epoch: int,
        now: Callable[[], datetime],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._session, self._storage, self._epoch, self._now = session, storage, epoch, now
        self._changed = changed
        self._calls: dict[CallId, Call] = {}
        self._ending: dict[CallId, asyncio.Future[None]] = {}

    def load(self, calls: Sequence[Call]) -> None:
        """Take the stored calls of the session, each in its latest state, oldest first."""
        self._calls.update((call.id, call) for call in calls)

    def all(self) -> list[Call]:
        """Return every call, oldest first."""
        return list(self._calls.values())

    def get(self, id: CallId) -> Call | None:
        """Return the call ``id``, or None."""
        return self._calls.get(id)

    def open_calls(self) -> list[Call]:
        """Return the calls that have not ended and are not deferred, oldest first."""
        return [
            call
            for call in self._calls.values()
            if call.state in (CallState.PENDING, CallState.RUNNING)
        ]

    def opened(self, request: ToolRequest, *, running: bool) -> Call:
        """Return the record of a new call, to be stored in the commit of its model turn."""
        return Call(
            id=request.id,
            session=self._session,
            tool=request.tool,
            arguments=request.arguments,
            state=CallState.RUNNING if running else CallState.PENDING,
            started_at=self._now() if running else None,
        )

    def enter(self, call: Call) -> None:
        """Keep a call whose record is stored."""
        self._calls[call.id] = call
        self._changed()

    async def start(self, id: CallId) -> bool:
        """Mark a pending call running, stored.

        Returns:
            False when it has ended, or is just being ended: then it must not run.

        Raises:
            StoreFailed: Nothing is stored; the call is as pending as before.
        """
        call = self._calls[id]
        if call.state is CallState.PENDING and id not in self._ending:
            running = replace(call, state=CallState.RUNNING, started_at=self._now())
            await self._store(running, ())
            if self._calls[id] is call:
                self.enter(running)
        return not (self._calls[id].state.final or id in self._ending)

    async def end(self, id: CallId, state: CallState, result: Json) -> bool:
        """End a call: its final state and ``ToolCallFinished`` in one transaction.

        Returns:
            False when another end came first; that one is stored by then, and this one is discarded.

        Raises:
            StoreFailed: Nothing is stored; the call is as open as before and may be ended again.
        """
        while (first := self._ending.get(id)) is not None:
            await asyncio.wait([first])
        call = self._calls[id]
        if call.state.final:
            return False
        self._ending[id] = mine = asyncio.get_running_loop().create_future()
        try:
            ended = replace(call, state=state, result=result, ended_at=self._now())
            await self._store(ended, (self._finished(ended),))
            self._calls[id] = ended
        finally:
            del self._ending[id]
            mine.set_result(None)
        self._changed()
        return True

    def orphan(self, call: Call) -> tuple[Call, Outgoing]:
        """Return the record and mail that end a call whose kernel died (M-71)."""
        ended = replace(
            call,
            state=CallState.ORPHANED,
            result="orphaned: the kernel ended while this call ran; whether it took effect is unknown",
            ended_at=self._now(),
        )
        return ended, replace(self._finished(ended), id=f"orphan-{call.id}")

    def _finished(self, call: Call) -> Outgoing:
        return Outgoing(
            session=self._session,
            sender=FromToolCall(call.id),
            body=ToolCallFinished(call.id, call.tool, call.state, call.result),
        )

    def _store(self, call: Call, mail: Sequence[Outgoing]) -> Pending[Committed]:
        return self._storage.commit(
            self._session, epoch=self._epoch, version=None, rows=(call,), mail=mail
        )
