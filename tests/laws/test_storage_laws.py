"""The laws of storage (M-26: one suite, every store): against lists that never forget or hurry."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    Control,
    FromSession,
    FromToolCall,
    FromUser,
    Outgoing,
    Pause,
    Priority,
    Receipt,
    ToolCallFinished,
    UserMessage,
)
from postroom_runtime.contracts.errors import (
    ConfigError,
    MailboxFull,
    PostroomError,
    StaleRecord,
    TooManyHops,
    UnknownRecipient,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import inbox_key, mail_id
from postroom_runtime.contracts.journal import Record, Row, RowKind, kind_of
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.storage.protocol import Pending, Storage

SESSIONS = ("s-0001", "s-0002", inbox_key("echo"))
LIMIT = 3


@dataclass
class Letter:
    """One accepted mail, as the model knows it."""

    id: str
    seq: int
    body: Body
    priority: Priority
    lowered: bool


@dataclass
class Box:
    """One session, as the model knows it."""

    version: int = 0
    cursor: int = 0
    limit: int | None = LIMIT
    closed: bool = False
    turns: int = 0
    mail: list[Letter] = field(default_factory=list)

    def unread(self) -> int:
        return sum(
            isinstance(each.body, (UserMessage, AgentMessage)) for each in self.mail[self.cursor :]
        )


def _ticking() -> Callable[[], datetime]:
    moments = [datetime(2026, 11, 30, tzinfo=UTC)]

    def now() -> datetime:
        moments.append(moments[-1] + timedelta(seconds=1))
        return moments[-1]

    return now


bodies = st.sampled_from(
    [
        UserMessage("hello"),
        AgentMessage("hi\x00", expects_reply=True),
        Control(Pause()),
        ToolCallFinished("call_0001", "slow", "completed", {"n": 1}),
    ]
)
given_ids = st.none() | st.sampled_from(["job-1", "job-2", "m-0002", "m-0004", "m-0007", "m-00002"])
sessions = st.sampled_from(SESSIONS)


class StorageMachine(RuleBasedStateMachine):
    """Any store; a subclass says which, and how it is opened again."""

    sent = Bundle("sent")

    def make(self) -> Storage:
        raise NotImplementedError

    def make_again(self) -> Storage:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.now = _ticking()
        self.store = self.make()
        self.boxes: dict[str, Box] = {}
        self.journal: list[tuple[str, RowKind]] = []
        self.ids: set[str] = set()
        self.listen()

    def listen(self) -> None:
        self.heard_after = self.store.head()
        self.heard: list[int] = []
        self.store.bells(lambda rows: self.heard.extend(row.n for row in rows))

    # ── what the model expects ──

    def expected(self, mail: Outgoing) -> type[PostroomError] | Letter | None:
        """Return the refusal, the first letter of a duplicate, or None for new mail (M-16)."""
        box = self.boxes.get(mail.session)
        if box is None or box.closed:
            return UnknownRecipient
        for letter in box.mail:
            if letter.id == mail.id:
                return letter
        if mail.id in self.ids and mail.id.startswith("m-") and mail.id != "m-00002":
            return ConfigError
        if mail.max_hops is not None and mail.hops > mail.max_hops:
            return TooManyHops
        counts = isinstance(mail.body, (UserMessage, AgentMessage))
        if counts and box.limit is not None and box.unread() >= box.limit:
            return MailboxFull
        return None

    def next_id(self) -> str:
        number = 1 + sum(len(box.mail) for box in self.boxes.values())
        while mail_id(number) in self.ids:
            number += 1
        return mail_id(number)

    def add(self, mail: Outgoing) -> Letter:
        box = self.boxes[mail.session]
        urgent = isinstance(mail.body, Control)
        letter = Letter(
            id=mail.id or self.next_id(),
            seq=len(box.mail) + 1,
            body=mail.body,
            priority=Priority.INTERRUPT if urgent else mail.priority,
            lowered=mail.lowered,
        )
        box.mail.append(letter)
        self.ids.add(letter.id)
        kind = RowKind.ENTRY if mail.session == SESSIONS[2] else RowKind.MAIL
        self.journal.append((mail.session, kind))
        return letter

    def check(self, mail: Outgoing, outcome: Pending[Receipt]) -> None:
        """Check one outcome of ``accept`` and take it over into the model."""
        expected = self.expected(mail)
        if isinstance(expected, type):
            with pytest.raises(expected):
                outcome.result(10)
            return
        letter = expected or self.add(mail)
        assert outcome.result(10) == _receipt(mail, letter, duplicate=expected is not None)

    # ── what may happen ──

    @rule(session=sessions, limit=st.sampled_from([LIMIT, None]))
    def open_session(self, session: str, limit: int | None) -> None:
        record = SessionRecord(
            id=session, name=f"name of {session}", agent="echo", version=1, max_unread=limit
        )
        outcome = self.store.commit(session, epoch=1, version=0, rows=[record])
        if session in self.boxes:
            with pytest.raises(StaleRecord):
                outcome.result(10)
            return
        assert outcome.result(10).version == 1
        self.boxes[session] = Box(version=1, limit=limit)
        self.journal.append((session, RowKind.SESSION))

    @rule(
        target=sent,
        session=sessions,
        body=bodies,
        id=given_ids,
        hops=st.integers(0, 2),
        priority=st.sampled_from(Priority),
        lowered=st.booleans(),
    )
    def send(
        self, session: str, body: Body, id: str | None, hops: int, priority: Priority, lowered: bool
    ) -> Any:
        mail = Outgoing(
            session=session,
            sender=FromSession("s-0002", "echo"),
            body=body,
            id=id,
            hops=hops,
            max_hops=1,
            priority=priority,
            lowered=lowered,
            note="told",
        )
        (outcome,) = self.store.accept([mail])
        self.check(mail, outcome)
        return mail if self.boxes.get(session) else multiple()

    @rule(batch=st.lists(st.tuples(sessions, bodies, given_ids), min_size=2, max_size=5))
    def send_several(self, batch: list[tuple[str, Body, str | None]]) -> None:
        mail = [
            Outgoing(session=session, sender=FromUser(), body=body, id=id)
            for session, body, id in batch
        ]
        for each, outcome in zip(mail, self.store.accept(mail), strict=True):
            self.check(each, outcome)

    @rule(mail=sent, data=st.data())
    def resend_with_another_body(self, mail: Outgoing, data: st.DataObject) -> None:
        letters = self.boxes[mail.session].mail
        if not letters:
            return
        letter = data.draw(st.sampled_from(letters))
        again = Outgoing(
            session=mail.session, sender=FromUser(), body=UserMessage("changed"), id=letter.id
        )
        (outcome,) = self.store.accept([again])
        self.check(again, outcome)

    @precondition(lambda self: self.boxes)
    @rule(
        data=st.data(),
        read=st.integers(0, 3),
        letters=st.lists(st.tuples(sessions, bodies, given_ids), max_size=3),
        close=st.sampled_from([False, False, False, True]),
        stale=st.sampled_from([0, 0, 0, -1, 1]),
    )
    def commit(
        self,
        data: st.DataObject,
        read: int,
        letters: list[tuple[str, Body, str | None]],
        close: bool,
        stale: int,
    ) -> None:
        session = data.draw(st.sampled_from(sorted(self.boxes)))
        box = self.boxes[session]
        cursor = min(box.cursor + read, len(box.mail))
        version = box.version + stale
        record = SessionRecord(
            id=session,
            name=f"name of {session}",
            agent="echo",
            version=version + 1,
            cursor=cursor,
            turns=box.turns + 1,
            max_unread=box.limit,
            status=SessionStatus.CLOSED if close or box.closed else SessionStatus.IDLE,
        )
        rows: list[Record] = [
            Turn(index=box.turns + 1, role=Role.USER, text="read"),
            record,
            Event(kind=EventKind.SESSION_UPDATED, seq=0, session=session, at=self.now()),
        ]
        mail = [
            Outgoing(session=to, sender=FromSession(session), body=body, id=id)
            for to, body, id in letters
        ]

        outcome = self.store.commit(
            session, epoch=1, version=version, cursor=cursor, rows=rows, mail=mail
        )

        if stale:
            with pytest.raises(StaleRecord) as caught:
                outcome.result(10)
            assert (caught.value.expected, caught.value.found) == (version, box.version)
            return
        undo = self.remember()
        self.journal += [(session, kind_of(session, each)) for each in rows]
        box.version, box.turns = version + 1, box.turns + 1
        box.closed = record.status is SessionStatus.CLOSED
        self.finish(outcome, mail, undo, version + 1, lambda: setattr(box, "cursor", cursor))

    @precondition(lambda self: self.boxes)
    @rule(data=st.data())
    def end_a_call(self, data: st.DataObject) -> None:
        """A call's end and its mail are one (M-62b), and the session's version stays."""
        session = data.draw(st.sampled_from(sorted(self.boxes)))
        call = Call(
            id="call_0001", session=session, tool="slow", arguments={}, state=CallState.COMPLETED
        )
        mail = Outgoing(
            session=session,
            sender=FromToolCall("call_0001"),
            body=ToolCallFinished("call_0001", "slow", "completed"),
        )
        outcome = self.store.commit(session, epoch=1, version=None, rows=[call], mail=[mail])
        undo = self.remember()
        self.journal.append((session, RowKind.CALL))
        self.finish(outcome, [mail], undo, self.boxes[session].version, lambda: None)

    def remember(self) -> Callable[[], None]:
        journal, ids = list(self.journal), set(self.ids)
        kept = {
            session: (box.version, box.turns, box.closed, list(box.mail))
            for session, box in self.boxes.items()
        }

        def undo() -> None:
            self.journal, self.ids = journal, ids
            for session, (version, turns, closed, mail) in kept.items():
                box = self.boxes[session]
                box.version, box.turns, box.closed, box.mail = version, turns, closed, mail

        return undo

    def finish(
        self,
        outcome: Pending[Any],
        mail: Sequence[Outgoing],
        undo: Callable[[], None],
        version: int,
        done: Callable[[], None],
    ) -> None:
        receipts = []
        for each in mail:
            expected = self.expected(each)
            if isinstance(expected, type):
                with pytest.raises(expected):
                    outcome.result(10)
                undo()
                return
            letter = expected or self.add(each)
            receipts.append(_receipt(each, letter, duplicate=expected is not None))
        committed = outcome.result(10)
        assert committed.version == version
        assert list(committed.receipts) == receipts
        done()

    @precondition(lambda self: self.boxes)
    @rule(data=st.data(), upto=st.integers(0, 9))
    def trim(self, data: st.DataObject, upto: int) -> None:
        self.store.trim({data.draw(st.sampled_from(sorted(self.boxes))): upto})

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.make_again()
        self.listen()

    # ── what always holds ──

    @invariant()
    def mail_is_what_was_accepted(self) -> None:
        fetched = self.store.fetch(dict.fromkeys(self.boxes, 0) | {"s-9999": 0})
        assert fetched.pop("s-9999") == []
        for session, mail in fetched.items():
            box = self.boxes[session]
            assert [(e.id, e.seq, e.body, e.priority, e.lowered) for e in mail] == [
                (e.id, e.seq, e.body, e.priority, e.lowered) for e in box.mail
            ]
            assert self.store.fetch({session: box.cursor})[session] == mail[box.cursor :]

    @invariant()
    def the_journal_has_every_row_in_order_and_no_gap(self) -> None:
        rows = self.store.rows()
        assert [row.n for row in rows] == [*range(1, len(self.journal) + 1)]
        assert [(row.session, kind_of(row.session, row.record)) for row in rows] == self.journal
        assert self.store.head() == len(self.journal)
        assert all(row.record.seq == row.n for row in rows if isinstance(row.record, Event))
        for kind in RowKind:
            assert self.store.count(kind) == sum(each[1] is kind for each in self.journal)

    @invariant()
    def sessions_are_as_last_committed(self) -> None:
        assert {
            record.id: (record.version, record.cursor, record.status is SessionStatus.CLOSED)
            for record in self.store.records().values()
        } == {id: (box.version, box.cursor, box.closed) for id, box in self.boxes.items()}

    @invariant()
    def listeners_heard_every_row_once_and_in_order(self) -> None:
        assert self.heard == [*range(self.heard_after + 1, len(self.journal) + 1)]

    @invariant()
    def mail_is_found_by_its_id(self) -> None:
        for session, box in self.boxes.items():
            for letter in box.mail[:1] + box.mail[-1:]:
                found = self.store.find(session, letter.id)
                assert found is not None
                assert (found.session, found.seq) == (session, letter.seq)
                anywhere = self.store.find_mail(letter.id)
                assert anywhere is not None
                assert anywhere.id == letter.id
        assert self.store.find("s-0001", "never") is None
        assert self.store.find_mail("never") is None

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()


def _receipt(mail: Outgoing, letter: Letter, *, duplicate: bool) -> Receipt:
    return Receipt(
        id=letter.id,
        seq=letter.seq,
        session=mail.session,
        duplicate=duplicate,
        priority=letter.priority,
        lowered=letter.lowered,
        note=mail.note,
    )


class InMemory(StorageMachine):
    def make(self) -> Storage:
        return MemoryStorage(now=self.now)

    def make_again(self) -> Storage:
        return MemoryStorage(now=self.now, rows=self.store.rows())


class OnDisk(StorageMachine):
    window = 200_000

    def make(self) -> Storage:
        self.folder = tempfile.TemporaryDirectory()
        return self.make_again()

    def make_again(self) -> Storage:
        path = Path(self.folder.name, "room.duckdb")
        return DuckDBStorage(path, now=self.now, window=self.window)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            (found,) = self.store.sql("SELECT count(*) FROM mail").fetchall()
            assert found == (sum(kind is RowKind.MAIL for _, kind in self.journal),)
            super().teardown()
            self.folder.cleanup()


class OnDiskWithAShortMemory(OnDisk):
    """Receipts of three mails: almost every resend asks the journal (M-19)."""

    window = 3


_SLOW = settings(
    max_examples=max(5, settings().max_examples // 8),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

TestMemory = InMemory.TestCase
TestDisk = OnDisk.TestCase
TestDisk.settings = _SLOW
TestDiskWithAShortMemory = OnDiskWithAShortMemory.TestCase
TestDiskWithAShortMemory.settings = _SLOW


def test_rows_are_rows() -> None:
    """The model counts what the store keeps: a guard against a law that checks nothing."""
    store = MemoryStorage()
    record = SessionRecord(id="s-0001", name="ann", agent="echo", version=1)
    store.commit("s-0001", epoch=1, version=0, rows=[record]).result()

    (row,) = store.rows()

    assert isinstance(row, Row)
    assert row.record is record
