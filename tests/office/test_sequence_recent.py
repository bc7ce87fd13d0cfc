"""The latest mail between sessions: which letters, and how little of the journal is read for them."""

import pytest

from office.busy_room import fill
from office.rooms import in_room
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.models.script import ScriptTurn, script
from postroom_runtime.office import sequence_recent
from postroom_runtime.office.room import Room
from postroom_runtime.office.sequence import OWNER, MarkKind
from postroom_runtime.office.sequence_picture import Sequence
from postroom_runtime.office.sequence_words import shown_names, told


def recent(last: int) -> tuple[Sequence, Sequence]:
    """Return the small picture of a busy room, and the whole one."""

    async def main(room: Room) -> tuple[Sequence, Sequence]:
        await fill(room)
        return room.recent_mail(set(room.people()), last), room.sequence(last=None)

    return in_room(main)


def test_it_shows_the_letters_from_one_session_to_another_and_nothing_else() -> None:
    small, whole = recent(1000)
    letters = (MarkKind.MAIL, MarkKind.REPLY, MarkKind.INTERRUPT)
    expected = [
        mark
        for mark in whole.diagram.marks
        if mark.kind in letters and mark.source not in (OWNER, mark.target)
    ]

    shown = small.diagram.marks
    assert len(shown) > 3
    assert [(m.n, m.source, m.target, m.text, m.unread) for m in shown] == [
        (m.n, m.source, m.target, m.text, m.unread) for m in expected
    ]
    assert not small.diagram.bars
    assert not small.diagram.runs
    touched = {m.source for m in shown} | {m.target for m in shown}
    assert {line.id for line in small.diagram.lifelines} == touched


def test_of_many_letters_it_shows_the_last() -> None:
    few, _ = recent(2)
    many, _ = recent(1000)

    assert [m.n for m in few.diagram.marks] == [m.n for m in many.diagram.marks[-2:]]


def test_only_sessions_that_are_asked_for_are_shown() -> None:
    async def main(room: Room) -> tuple[Sequence, SessionId, Sequence]:
        await fill(room)
        every = room.recent_mail(set(room.people()), 1000)
        gone = every.diagram.marks[0].target
        return every, gone, room.recent_mail(set(room.people()) - {gone}, 1000)

    every, gone, others = in_room(main)

    assert 0 < len(others) < len(every)
    names = shown_names(others.diagram)
    assert all("?" not in told(mark, names) for mark in others.diagram.marks)
    assert gone not in {line.id for line in others.diagram.lifelines}


@script
def quiet(turn: ScriptTurn) -> str:
    return ""


def test_only_the_end_of_a_long_journal_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_recent, "WINDOW", 40)

    async def main(room: Room) -> tuple[list[int], int]:
        await fill(room)
        ann = room.spawn(Agent("quiet", model=quiet), name="zoe")
        for n in range(60):
            ann.send(f"hello {n}")
        await ann.wait()
        asked = list[int]()
        read, head = room.storage.rows, room.storage.head()

        def rows(session: None = None, kinds: tuple[RowKind, ...] = (), after: int = 0) -> object:
            asked.append(head - after)
            return read(session, kinds, after)

        monkeypatch.setattr(room.storage, "rows", rows)
        return asked, len(room.recent_mail(set(room.people()), 5))

    asked, found = in_room(main)

    assert asked == [40]
    assert found == 0


def test_an_empty_room_has_none() -> None:
    async def main(room: Room) -> int:
        return len(room.recent_mail(set(), 12))

    assert in_room(main) == 0
