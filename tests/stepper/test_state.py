"""Record and transcript change only by being stored (M-9, M-21, M-22, M-23, M-47)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from calls.bench import Disk
from contracts.envelopes import AT, clock, record
from postroom_runtime.contracts.call import CallState, ToolMessage
from postroom_runtime.contracts.envelope import FromUser, Outgoing, UserMessage
from postroom_runtime.contracts.errors import StaleRecord, StoreFailed
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.journal import RowKind, kind_of
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.stepper.state import SessionState
from postroom_runtime.testing import run_virtual


class Desk:
    """A stored session and its state."""

    def __init__(self) -> None:
        self.storage, self.changes, self.groups = Disk(), 0, list[list[RowKind]]()
        self.storage.commit("s-0001", epoch=1, version=0, rows=(record(),)).result()
        self.state = SessionState(record(), self.storage, 1, clock, self.changed)
        self.storage.bells(
            lambda rows: self.groups.append([kind_of(row.session, row.record) for row in rows])
        )

    def changed(self) -> None:
        self.changes += 1

    def put(self, *texts: str) -> None:
        for text in texts:
            letter = Outgoing(session="s-0001", sender=FromUser(), body=UserMessage(text))
            self.storage.accept((letter,))[0].result()
        self.groups.clear()

    def turn(self, role: Role = Role.USER, text: str = "hi", **more: Any) -> Turn:
        return Turn(index=self.state.next_index, role=role, text=text, **more)

    def stored(self) -> tuple[int, int, int]:
        """Version, cursor and turns of the stored record."""
        found = self.storage.records()["s-0001"]
        return found.version, found.cursor, found.turns


def test_a_turn_its_cursor_and_the_record_are_stored_as_one() -> None:
    """M-22, trap 3: that commit is the acknowledgement of the mail."""

    async def main() -> tuple[list[list[RowKind]], tuple[int, int, int], list[Turn], int]:
        desk = Desk()
        desk.put("hi", "there")
        turn = desk.turn(mail=tuple(desk.state.unread()))
        await desk.state.commit(turn, cursor=2, status=SessionStatus.RUNNING)
        assert desk.state.turns == [turn]
        assert desk.state.record == desk.storage.records()["s-0001"]
        assert desk.state.unread() == []
        return desk.groups, desk.stored(), desk.state.turns, desk.changes

    groups, stored, turns, changes = run_virtual(main())

    assert groups == [[RowKind.TURN, RowKind.SESSION]]
    assert stored == (2, 2, 1)
    assert [mail.text for mail in turns[0].mail] == ["hi", "there"]
    assert changes == 1


def test_nothing_has_changed_until_it_is_stored() -> None:
    """M-22: the store comes before everything that follows from it."""

    async def main() -> list[tuple[int, int, int]]:
        desk = Desk()
        desk.put("hi")
        desk.storage.seconds = 1.0
        storing = asyncio.create_task(desk.state.commit(desk.turn(), cursor=1))
        seen = []
        for _ in range(2):
            await asyncio.sleep(0.6)
            seen.append((desk.state.record.cursor, len(desk.state.turns), desk.changes))
        await storing
        return seen

    assert run_virtual(main()) == [(0, 0, 0), (1, 1, 1)]


def test_a_commit_that_fails_leaves_everything_as_it_was_and_may_be_made_again() -> None:
    """M-23: the mail is still unread, and is read once."""

    async def main() -> tuple[tuple[int, int, int], int, int, tuple[int, int, int], int]:
        desk = Desk()
        desk.put("hi")
        desk.storage.failures = 1
        with pytest.raises(StoreFailed):
            await desk.state.commit(desk.turn(), cursor=1)
        after = desk.stored(), len(desk.state.unread()), desk.state.next_index
        assert (desk.state.turns, desk.changes) == ([], 0)
        await desk.state.commit(desk.turn(), cursor=1)
        return *after, desk.stored(), desk.changes

    assert run_virtual(main()) == ((1, 0, 0), 1, 1, (2, 1, 1), 1)


def test_a_commit_made_while_another_is_being_stored_builds_on_it() -> None:
    async def main() -> tuple[tuple[int, int, int], list[int], SessionStatus]:
        desk = Desk()
        desk.put("hi", "there")
        desk.storage.seconds = 1.0
        async with asyncio.TaskGroup() as group:
            group.create_task(desk.state.commit(desk.turn(), cursor=1))
            await asyncio.sleep(0.1)
            group.create_task(desk.state.commit(desk.turn(), cursor=2, status="paused"))
        return (
            desk.stored(),
            [turn.index for turn in desk.state.turns],
            desk.state.record.status,
        )

    stored, indices, status = run_virtual(main())

    assert stored == (3, 2, 2)
    assert indices == [1, 2]
    assert status == SessionStatus.PAUSED


def test_the_cursor_never_goes_back() -> None:
    """M-24."""

    async def main() -> list[int]:
        desk = Desk()
        desk.put("a", "b")
        cursors = []
        for cursor in (2, 1, None):
            await desk.state.commit(cursor=cursor)
            cursors.append(desk.state.record.cursor)
        return cursors

    assert run_virtual(main()) == [2, 2, 2]


def test_mail_of_a_commit_is_sent_with_it() -> None:
    """M-62b."""

    async def main() -> list[list[RowKind]]:
        desk = Desk()
        letter = Outgoing(session="s-0001", sender=FromUser(), body=UserMessage("to myself"))
        committed = await desk.state.commit(mail=(letter,))
        assert [receipt.seq for receipt in committed.receipts] == [1]
        return desk.groups

    assert run_virtual(main()) == [[RowKind.SESSION, RowKind.MAIL]]


def test_an_event_is_numbered_by_its_row() -> None:
    async def main() -> Event:
        desk = Desk()
        event = desk.state.event(EventKind.RUN_STARTED, turn=1)
        assert (event.seq, event.session, event.at) == (0, "s-0001", AT)
        await desk.state.commit(event)
        (row,) = desk.storage.rows(kinds=(RowKind.EVENT,))
        assert isinstance(row.record, Event)
        assert row.record.seq == row.n
        return row.record

    assert run_virtual(main()).data == {"turn": 1}


def test_a_session_that_somebody_else_stored_is_stale() -> None:
    """M-9, M-29: a second writer is found out, and changes nothing here."""

    async def main() -> tuple[int, int]:
        desk = Desk()
        other = SessionState(record(), desk.storage, 1, clock, lambda: None)
        await other.commit(status=SessionStatus.RUNNING)
        with pytest.raises(StaleRecord):
            await desk.state.commit(desk.turn())
        return desk.state.record.version, len(desk.state.turns)

    assert run_virtual(main()) == (1, 0)


def test_what_cannot_wait_on_the_loop_stores_the_same_way() -> None:
    desk = Desk()
    desk.put("hi")

    desk.state.commit_now(desk.turn(), cursor=1)

    assert desk.stored() == (2, 1, 1)
    assert (len(desk.state.turns), desk.changes) == (1, 1)
    desk.storage.failures = 1
    with pytest.raises(StoreFailed):
        desk.state.commit_now(desk.turn())
    assert desk.state.next_index == 2
    assert len(desk.state.turns) == 1


# ── The transcript ──


def message(call: str, state: CallState) -> ToolMessage:
    return ToolMessage(call=call, tool="t", content="x", state=state)


def test_a_stored_transcript_tells_which_calls_had_placeholders() -> None:
    """M-64: after a restart too."""
    desk = Desk()
    results = [message(f"call_{n:04d}", state) for n, state in enumerate(CallState)]

    desk.state.load([desk.turn(results=tuple(results))])

    assert desk.state.placeholders == {
        each.call for each in results if each.state in ("pending", "running", "deferred")
    }


def test_a_transcript_knows_its_last_turn_and_whether_it_waits_for_an_answer() -> None:
    desk = Desk()
    asked, answered = desk.turn(), replace(desk.turn(Role.MODEL), index=2)
    assert (desk.state.head, desk.state.unanswered) == (None, False)

    desk.state.load([asked])
    assert (desk.state.head, desk.state.unanswered) == (asked, True)
    desk.state.load([asked, answered])
    assert (desk.state.head, desk.state.unanswered) == (answered, False)


def test_unread_is_what_is_above_the_stored_cursor() -> None:
    """M-24."""
    desk = Desk()
    desk.put("a", "b", "c")
    desk.state.commit_now(cursor=2)

    assert [mail.text for mail in desk.state.unread()] == ["c"]
