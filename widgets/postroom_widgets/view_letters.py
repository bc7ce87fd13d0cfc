"""How far the letters got that the calls of a view have sent. Pure.

A session's own events tell nothing of the turns of others. The room knows how far each has read,
and its journal in which turn: it is looked into once for a letter, when that letter was read.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_widgets.view_rows import People, Row
from postroom_widgets.view_state import RowTable, ViewState

Look = Callable[[SessionId, Collection[int], int], Mapping[int, int]]
"""Tells in which of its turns, stored after a number of the journal, a session read its mail, by ``seq``."""


def with_letters(state: ViewState, people: People, look: Look) -> ViewState:
    """Return ``state`` with what the room knows of the letters that were not read so far.

    In the row of its call a letter that was read says so, and in which ``turn`` if it is in one; one
    that nobody will read any more is ``left``. Of both there is no more news.
    """
    if not state.letters:
        return state
    read: dict[SessionId, dict[int, str]] = {}
    left: list[str] = []
    for key in state.letters:
        sent = state.rows[key]["sent"]
        record = people.get(sent["to"])
        if record is None:
            continue
        if record.cursor >= sent["seq"]:
            read.setdefault(record.id, {})[sent["seq"]] = key
        elif record.status is SessionStatus.CLOSED:
            left.append(key)
    if not read and not left:
        return state
    table = RowTable(state.rows, state.version)
    for reader, letters in read.items():
        # A letter is younger than the turn that made its call, however long its reader's story is.
        turns = look(reader, letters, min(state.rows[key]["o"][0] for key in letters.values()))
        for seq, key in letters.items():
            turn = {"turn": turns[seq]} if seq in turns else {}
            _tell(table, key, {"read": True, **turn})
    for key in left:
        _tell(table, key, {"left": True})
    known = {*left, *(key for letters in read.values() for key in letters.values())}
    return replace(state, rows=table.rows, version=table.version, letters=state.letters - known)


def _tell(table: RowTable, key: str, news: Row) -> None:
    table.put(key, {"sent": {**table.get(key)["sent"], **news}})


def awaited(state: ViewState) -> frozenset[SessionId]:
    """Return the sessions that have letters of ``state`` to read."""
    return frozenset(state.rows[key]["sent"]["to"] for key in state.letters)
