"""What a live session is made of while it runs: its record, its transcript, and how both are stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from postroom_runtime.contracts.envelope import Envelope, Outgoing, ToolCallFinished
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Role, Turn, Usage
from postroom_runtime.stepper.gate import called, seen
from postroom_runtime.stepper.receive_points import renders
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
        self.gate: int | None = None
        """While the room steps: ``seq`` of the last mail let through. None: all mail is seen."""
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

    def arrived(self) -> list[Envelope]:
        """Return all mail above the cursor, also what the session does not see yet.

        What was withdrawn says nothing any more.
        """
        return without_withdrawn(self._storage.fetch({self.id: self.record.cursor})[self.id])

    def unread(self) -> list[Envelope]:
        """Return the mail above the cursor that the session sees: all, unless its room steps."""
        mail, gate = self.arrived(), self.gate
        return mail if gate is None else mail[: self._seen(mail, gate)]

    def held(self) -> list[Envelope]:
        """Return the mail that waits behind the gate for a step, and that its model would read."""
        if (gate := self.gate) is None:
            return []
        mail = self.arrived()
        return [e for e in mail[self._seen(mail, gate) :] if renders(e, self.placeholders)]

    def held_ends(self) -> list[CallId]:
        """Return the detached calls of whose end the session is not told yet.

        As far as it can tell they run: what waits for them goes on waiting.
        """
        return [e.body.call for e in self.held() if isinstance(e.body, ToolCallFinished)]

    def no_news(self) -> int:
        """Return ``seq`` of the last mail that a run which fails now has had: no news start it again.

        That is what it sees, and behind that the ends of its own calls, which its failing cancelled.
        """
        mail, upto = self.arrived(), len(self.unread())
        while upto < len(mail) and isinstance(mail[upto].body, ToolCallFinished):
            upto += 1
        return mail[upto - 1].seq if upto else self.record.cursor

    def _seen(self, mail: Sequence[Envelope], gate: int) -> int:
        return seen(mail, gate, self.placeholders, called(self.head))

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
