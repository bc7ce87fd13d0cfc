"""What a live session is made of while it runs: its record, its transcript, and how both are stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from postroom_runtime.contracts.envelope import Envelope, Outgoing
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Role, Turn, Usage
from postroom_runtime.stepper.withdrawal import without_withdrawn
from postroom_runtime.storage.protocol import Committed, Pending, Storage


class SessionState:
    """The record and transcript of one session, changed only by storing the change. Loop-bound.

    Args:
        record: As stored.
        storage: The room's store.
        epoch: Under which claim the session is held.
        now: The room's clock.
        changed: Called on the loop after each change.
    """

    def __init__(
        self,
        record: SessionRecord,
        storage: Storage,
        epoch: int,
        now: Callable[[], datetime],
        changed: Callable[[], None],
    ) -> None:
        self.record = record
        """As stored last."""
        self.turns: list[Turn] = []
        self.epoch = epoch
        self.placeholders: set[CallId] = set()
        """Calls whose tool message said that they still run: their results come as mail."""
        self.read: set[CallId] = set()
        """Calls whose result a status call has shown in full: their mail is one line."""
        self.unbooked = Usage()
        """What it has spent that its record does not tell yet: the request under way, those cut."""
        self.now = now
        self._storage, self._changed = storage, changed
        self._reserved = record

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self.record.id

    def load(self, turns: Sequence[Turn]) -> None:
        """Take the stored transcript."""
        self.turns = []
        for turn in turns:
            self._enter(turn)

    def _enter(self, turn: Turn) -> None:
        if self.turns and turn.index == self.turns[-1].index:
            self.turns[-1] = turn  # amended before it was answered (M-78)
        else:
            self.turns.append(turn)
        self.read.update(turn.read_calls)
        self.placeholders.update(m.call for m in turn.results if not m.state.final)

    @property
    def head(self) -> Turn | None:
        """The last turn, or None."""
        return self.turns[-1] if self.turns else None

    @property
    def next_index(self) -> int:
        """The index of the turn to be stored next."""
        return self._reserved.turns + 1

    @property
    def unanswered(self) -> bool:
        """Whether the last turn is a user turn that no model turn answers."""
        return self.head is not None and self.head.role is Role.USER

    def unread(self) -> list[Envelope]:
        """Return all mail above the cursor; what was withdrawn says nothing any more."""
        return without_withdrawn(self._storage.fetch({self.id: self.record.cursor})[self.id])

    def event(self, kind: EventKind, **data: Any) -> Event:
        """Return an event to be stored in the next commit, where it gets its number."""
        return Event(kind=kind, seq=0, session=self.id, at=self.now(), data=data)

    async def commit(
        self,
        *rows: Record,
        cursor: int | None = None,
        mail: Sequence[Outgoing] = (),
        **changes: Any,
    ) -> Committed:
        """Store rows and changes of the record in one transaction, and take them over.

        Args:
            rows: Turns, calls and events, in the order they happened; the record comes last.
            cursor: The new cursor; None leaves it.
            mail: Sent in the same transaction.
            changes: Fields of the record.

        Raises:
            StaleRecord: Somebody else stored the session: a second owner.
            StoreFailed: Nothing is stored and nothing has changed.
        """
        record, pending = self._reserve(rows, cursor, mail, changes)
        try:
            committed = await pending
        except PostroomError:
            self._reserved = self.record
            raise
        return self._take(record, rows, committed)

    def commit_now(
        self,
        *rows: Record,
        cursor: int | None = None,
        mail: Sequence[Outgoing] = (),
        **changes: Any,
    ) -> Committed:
        """Do what :meth:`commit` does, blocking: for a caller that cannot wait on the loop."""
        record, pending = self._reserve(rows, cursor, mail, changes)
        try:
            committed = pending.result()
        except PostroomError:
            self._reserved = self.record
            raise
        return self._take(record, rows, committed)

    def _reserve(
        self,
        rows: Sequence[Record],
        cursor: int | None,
        mail: Sequence[Outgoing],
        changes: Mapping[str, Any],
    ) -> tuple[SessionRecord, Pending[Committed]]:
        # Reserved before the wait, so that a commit made meanwhile builds on this one. A failed
        # commit fails every later one of the session too: then what is stored is the base again.
        before = self._reserved
        record = replace(
            before,
            version=before.version + 1,
            cursor=before.cursor if cursor is None else max(cursor, before.cursor),
            turns=max([before.turns, *(row.index for row in rows if isinstance(row, Turn))]),
            **changes,
        )
        self._reserved = record
        pending = self._storage.commit(
            self.id,
            epoch=self.epoch,
            version=before.version,
            cursor=record.cursor,
            rows=(*rows, record),
            mail=mail,
        )
        return record, pending

    def _take(
        self, record: SessionRecord, rows: Sequence[Record], committed: Committed
    ) -> Committed:
        if record.version > self.record.version:
            self.record = record
        for row in rows:
            if isinstance(row, Turn):
                self._enter(row)
        self._changed()
        return committed
