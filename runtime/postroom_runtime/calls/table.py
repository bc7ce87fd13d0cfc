"""Every call of a session and its state; ending a call posts its mail in the same transaction."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from postroom_runtime.calls.desk import Beside
from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call, CallState, Progress, ToolRequest
from postroom_runtime.contracts.envelope import (
    ContinuationResult,
    FromToolCall,
    Outgoing,
    ToolCallFinished,
)
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import Record
from postroom_runtime.storage.protocol import Committed, Pending, Storage

KEPT_PROGRESS = 50
"""Reports kept per call (M-2)."""

_OPEN = (CallState.PENDING, CallState.RUNNING)


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
        return [call for call in self._calls.values() if call.state in _OPEN]

    def deferred(self) -> list[Call]:
        """Return the calls that wait for the owner, oldest first."""
        return [call for call in self._calls.values() if call.state is CallState.DEFERRED]

    def by_token(self, token: str) -> Call | None:
        """Return the call with that continuation token, or None."""
        return next((c for c in self._calls.values() if token and c.token == token), None)

    def opened(self, request: ToolRequest, policy: Json, *, running: bool) -> Call:
        """Return the record of a new call, to be stored in the commit of its model turn."""
        return Call(
            id=request.id,
            session=self._session,
            tool=request.tool,
            arguments=request.arguments,
            state=CallState.RUNNING if running else CallState.PENDING,
            policy=policy,
            started_at=self._now() if running else None,
        )

    def enter(self, call: Call) -> None:
        """Keep a call whose record is stored."""
        self._calls[call.id] = call
        self._changed()

    def report(self, id: CallId, progress: Progress) -> bool:
        """Keep a report of an open call, the last 50; False when it has ended. Never stored (M-2)."""
        call = self._calls.get(id)
        if call is None or call.state.final:
            return False
        kept = (*call.progress, progress)[-KEPT_PROGRESS:]
        self._calls[id] = replace(call, progress=kept)
        self._changed()
        return True

    def learn(self, id: CallId, **facts: Json) -> None:
        """Add facts to an open call, for its placeholder and status; stored with its next state."""
        call = self._calls.get(id)
        if call is not None and not call.state.final:
            self._calls[id] = replace(call, extra={**(call.extra or {}), **facts})
            self._changed()

    async def start(self, id: CallId) -> bool:
        """Mark a pending or released call running, stored.

        Returns:
            False when it has ended, or is just being ended: then it must not run.

        Raises:
            StoreFailed: Nothing is stored; the call stands as before.
        """
        call = self._calls[id]
        if call.state in (CallState.PENDING, CallState.DEFERRED) and id not in self._ending:
            change: dict[str, Any] = {"state": CallState.RUNNING, "started_at": self._now()}
            await self._store((replace(call, **change),), ())
            self._change(id, call.state, **change)
        return not (self._calls[id].state.final or id in self._ending)

    async def defer(
        self, id: CallId, approval: Approval, below: int, card: Sequence[Outgoing] = ()
    ) -> bool:
        """Park a call until its approval is answered, with its card in one transaction (M-114, I-26).

        Returns:
            False when it has ended meanwhile: nothing is stored then.
        """
        call = self._calls[id]
        if call.state.final or id in self._ending:
            return False
        change: dict[str, Any] = {
            "state": CallState.DEFERRED,
            "token": approval.token,
            "reason": approval.reason,
            "arguments": approval.arguments,
            "below": below,
        }
        # Whoever ends it meanwhile waits until this is stored, and ends a call that asks.
        self._ending[id] = mine = asyncio.get_running_loop().create_future()
        try:
            await self._store((replace(call, **change), approval), card)
            self._change(id, call.state, **change)
        finally:
            del self._ending[id]
            mine.set_result(None)
        return True

    async def end(
        self,
        id: CallId,
        state: CallState,
        result: Json,
        also: Callable[[Call], Beside | None] = lambda call: Beside(),
    ) -> bool:
        """End a call: its final state and its mail in one transaction.

        Args:
            id: The call.
            state: A final state.
            result: The result, or the failure in words.
            also: Gives, of the call as it stands then, what is to be stored with its end; None when
                another end is on its way.

        Returns:
            False when another end came first; that one is stored by then, and this one is discarded.

        Raises:
            StoreFailed: Nothing is stored; the call is as open as before and may be ended again.
        """
        while (first := self._ending.get(id)) is not None:
            await asyncio.wait([first])
        call = self._calls[id]
        if call.state.final or (beside := also(call)) is None:
            return False
        self._ending[id] = mine = asyncio.get_running_loop().create_future()
        try:
            change: dict[str, Any] = {"state": state, "result": result, "ended_at": self._now()}
            ended = replace(call, **change)
            await self._store((ended, *beside.rows), (self._finished(ended), *beside.mail))
            self._calls[id] = replace(self._calls[id], **change)
        finally:
            del self._ending[id]
            mine.set_result(None)
        self._changed()
        return True

    def _change(self, id: CallId, was: CallState, **change: Any) -> None:
        # Whoever changed its state meanwhile is right; what else it learned (progress) is kept.
        if self._calls[id].state is was:
            self._calls[id] = replace(self._calls[id], **change)
        self._changed()

    def unended(self) -> list[Call]:
        """Return the calls that have not ended and are not just being ended, oldest first."""
        return [
            call
            for call in self._calls.values()
            if not call.state.final and call.id not in self._ending
        ]

    def closed(self, call: Call) -> tuple[Call, Outgoing]:
        """Return the record and mail that end a call whose session is closed."""
        why = f"{CallState.CANCELLED}: its session was closed"
        ended = replace(call, state=CallState.CANCELLED, result=why, ended_at=self._now())
        return ended, self._finished(ended)

    def orphan(self, call: Call) -> tuple[Call, Outgoing]:
        """Return the record and mail that end a call whose kernel died (M-71)."""
        began = f" at {call.started_at:%Y-%m-%d %H:%M:%S} UTC" if call.started_at else ""
        ended = replace(
            call,
            state=CallState.ORPHANED,
            result=(
                f"orphaned: the kernel ended while {call.tool} ran, started{began}; whether it took "
                f"effect is unknown. Arguments: {dict(call.arguments)}"
            ),
            ended_at=self._now(),
        )
        body = ToolCallFinished(call.id, call.tool, ended.state, ended.result)
        outgoing = Outgoing(
            session=self._session, sender=FromToolCall(call.id), body=body, id=f"orphan-{call.id}"
        )
        return ended, outgoing

    def _finished(self, call: Call) -> Outgoing:
        if call.token:
            # The token names the envelope: its result is accepted once, whoever gives it (M-97).
            return Outgoing(
                session=self._session,
                sender=FromToolCall(call.id),
                body=ContinuationResult(call.token, call.id, call.tool, call.state, call.result),
                id=f"cont-{call.token}",
            )
        return Outgoing(
            session=self._session,
            sender=FromToolCall(call.id),
            body=ToolCallFinished(call.id, call.tool, call.state, call.result),
        )

    def _store(self, rows: Sequence[Record], mail: Sequence[Outgoing]) -> Pending[Committed]:
        return self._storage.commit(
            self._session, epoch=self._epoch, version=None, rows=rows, mail=mail
        )
