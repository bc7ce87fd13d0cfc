"""What a view of one session shows at one moment, and how its rows are numbered.

Each change has a number, and a row carries the number of its last one (``v``). Whoever has all
changes up to ``n`` is brought up to date by the rows with ``v > n``: there is no log to keep.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_widgets.view_rows import Row, lean

UNREAD: Final = 2**50
"""First number of the place of unread mail: after everything that was read."""

OPEN_CALL: Final = ("pending", "running")


@dataclass(frozen=True, slots=True)
class Run:
    """The run that is going on, as far as rows depend on it."""

    first_turn: int = 0
    at: str = ""
    mail: tuple[str, ...] = ()
    """Keys of the people's mail that was read and not answered."""


@dataclass(frozen=True, slots=True)
class ViewState:
    """Everything a view of one session shows. Rows are never changed in place, only replaced."""

    session: SessionId
    head: Row
    """``name``, ``id``, ``agent``, ``model``, ``status``, ``turn``, ``unread``, ``calls``,
    ``asks`` (calls that wait for a person), ``tokens``, ``cost`` (in US dollars, as far as it is known), ``end`` (why the last run ended), ``parent``, ``at`` (the last
    event's time) and ``needs`` (what it is short of to run)."""
    rows: dict[str, Row] = field(default_factory=dict)
    """By key, the least recently changed first."""
    version: int = 0
    """The number of the last change."""
    seq: int = 0
    """``seq`` of the last stored event in it."""
    slot: int = 0
    """Place of the exchange that is going on: ``seq`` of the event that stored its user turn."""
    slot_calls: int = 0
    """Calls placed in that exchange so far."""
    asked_at: str = ""
    """When the model was asked."""
    live: str = ""
    """Key of the turn that streams; '' when none does."""
    run: Run = field(default_factory=Run)
    queued: Mapping[int, str] = field(default_factory=dict)
    """Keys of unread mail by ``seq``."""
    mail: Mapping[str, str] = field(default_factory=dict)
    """Keys of mail by its id."""
    open_calls: frozenset[str] = frozenset()
    """Keys of calls that have not ended and do not wait for a person."""
    asking: frozenset[str] = frozenset()
    """Keys of calls that wait for a person."""
    letters: frozenset[str] = frozenset()
    """Keys of calls that sent a letter which is not known to be read."""
    ended: Mapping[str, Json] = field(default_factory=dict)
    """Mail of calls that ended while attached, by call: their result is in the call's row."""

    def ordered(self) -> list[Row]:
        """Return the rows from top to bottom, those taken away left out."""
        shown = (row for row in self.rows.values() if row["kind"] != "gone")
        return sorted(shown, key=lambda row: row["o"])

    def since(self, version: int) -> list[Row]:
        """Return the rows changed after ``version``, in order of their change."""
        return changed_after(self.rows, version)


def changed_after(rows: dict[str, Row], version: int) -> list[Row]:
    """Return those of ``rows``, which stand in order of change, that changed after ``version``."""
    found: list[Row] = []
    for row in reversed(rows.values()):
        if row["v"] <= version:
            break
        found.append(row)
    found.reverse()
    return found


def opened(session: SessionId, *, name: str, agent: str, model: str = "") -> ViewState:
    """Return the state of a view that has heard of nothing yet."""
    head = {"id": session, "name": name, "agent": agent, "model": model, "status": "ready"}
    return ViewState(session, head)


class RowTable:
    """A working copy of a state's rows that numbers each change."""

    def __init__(self, rows: Mapping[str, Row], version: int) -> None:
        self.rows, self.version = dict(rows), version

    def get(self, key: str) -> Row:
        """Return the row ``key``; an empty one when there is none."""
        return self.rows.get(key, {})

    def put(self, key: str, fields: Mapping[str, Json]) -> Row:
        """Lay ``fields`` over the row ``key``; an empty field goes, and nothing new is no change.

        Returns:
            The row as it stands now.
        """
        old = self.get(key)
        row = lean({**old, **fields, "key": key})
        if row == old:
            return old
        self.version += 1
        row["v"] = self.version
        self.rows.pop(key, None)  # so that the table stays in order of change
        self.rows[key] = row
        return row

    def drop(self, key: str) -> None:
        """Take the row ``key`` away; what is left of it tells the views."""
        place = self.rows.pop(key)["o"]
        self.put(key, {"kind": "gone", "o": place})
