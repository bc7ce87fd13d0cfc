"""The link between a room and its switchboards: one feed per room, any number of readers."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.office.sequence_growing import Changes
from postroom_widgets.board_rows import bar_row, line_key, line_row, mark_row, now_row, run_row
from postroom_widgets.hub import Hub
from postroom_widgets.reader import Message
from postroom_widgets.view_rows import Row, lean
from postroom_widgets.view_state import RowTable, changed_after

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room

AGAIN: Final = "%watch --all"
"""Shows a switchboard anew."""

_WORKING: Final = ("running", "waiting")
_GONE: Final = {
    "status": str(SessionStatus.CLOSED),
    "needs": None,
    "unread": 0,
    "calls": 0,
    "asks": 0,
}


class BoardState(RowTable):
    """Everything a switchboard shows: the rows of :mod:`board_rows`, and a head above them."""

    def __init__(self) -> None:
        super().__init__({}, 0)
        self.head: Row = {}
        """``name``, ``sessions`` (open ones), ``running``, ``unread``, ``calls``, ``asks``,
        ``tokens``, ``cost``, ``stepping``, ``held``, ``next`` (the letter a step lets through) and
        ``at`` (when the last thing happened)."""

    def ordered(self) -> list[Row]:
        """Return the rows in order of their places."""
        return sorted(self.rows.values(), key=lambda row: row["o"])

    def since(self, version: int) -> list[Row]:
        """Return the rows changed after ``version``, in order of their change."""
        return changed_after(self.rows, version)

    def lines(self) -> list[Row]:
        """Return the rows of sessions, oldest first."""
        return [row for row in self.ordered() if row["kind"] == "line"]

    def marks(self) -> list[Row]:
        """Return the rows of what happened, in order."""
        return [row for row in self.ordered() if row["kind"] == "mark"]


class BoardFeed(Hub):
    """A room's diagram and its sessions, folded once and pushed to all its switchboards."""

    room: "Room"
    orders = ("pause", "resume", "stop", "step", "stepping")
    broken = f"This view broke; the kernel's log says why. Run {AGAIN} again."
    ended = f"The room was closed, so this view is over. Open it, then run {AGAIN}."

    def __init__(self, room: "Room") -> None:
        self.room = room
        self.state: BoardState = BoardState()
        self._live = room.live_diagram()
        self._order_of: dict[SessionId, int] = {}
        self._working: set[SessionId] = set()
        self._touched: set[SessionId] = set()
        super().__init__(f"room {room.name}")

    # ── What is watched ──

    def catch_up(self) -> BoardState:
        """Fold what is stored up to now, without waiting for the loop; return the state."""
        if not self.room.closed:
            self._live.catch_up()
        return self.fold()

    def fold(self) -> BoardState:
        """Fold what was heard, and how the sessions stand now; return the state."""
        reader = self._live.heard()
        changes = reader.take_changes()
        self._lay(changes)
        if not self.room.closed:
            # A session takes over what it stored only after it was told of: it is looked at twice.
            touched = self._sessions_in(changes)
            self._look(touched | self._touched | self._working)
            self._touched = touched
        self._head()
        return self.state

    def _lay(self, changes: Changes) -> None:
        reader, put = self._live.reader, self.state.put
        for line in sorted((reader.lines[id] for id in changes.lines), key=lambda line: line.born):
            at = self._order_of.setdefault(line.id, len(self._order_of))
            put(line_key(line.id), line_row(line, at))
        for at in sorted(changes.marks):
            row = mark_row(reader.marks[at], at)
            put(row["key"], row)
        for call in sorted(changes.bars):
            row = bar_row(reader.bars[call])
            put(row["key"], row)
        for at in sorted(changes.runs):
            row = run_row(reader.runs[at], at)
            put(row["key"], row)

    def _sessions_in(self, changes: Changes) -> set[SessionId]:
        reader = self._live.reader
        marks = [reader.marks[at] for at in changes.marks]
        return {
            *changes.lines,
            *(mark.source for mark in marks),
            *(mark.target for mark in marks),
            *(reader.bars[call].session for call in changes.bars),
            *(reader.runs[at].session for at in changes.runs),
        }

    def _look(self, ids: Iterable[SessionId]) -> None:
        sessions = {session.id: session for session in self.room.sessions(hidden=True)}
        for id in sorted(set(ids) & set(self._order_of)):
            row = self.state.put(line_key(id), now_row(sessions[id]) if id in sessions else _GONE)
            works = row.get("status") in _WORKING or row.get("calls", 0) > 0
            (self._working.add if works else self._working.discard)(id)

    def _head(self) -> None:
        rows = [self.state.get(line_key(id)) for id in self._order_of]
        lines = [row for row in rows if row.get("status") != "closed"]
        reader = self._live.reader
        last = reader.marks[-1].at.isoformat() if reader.marks else None
        self.state.head = lean(
            {
                "name": self.room.name,
                "sessions": len(lines),
                "running": sum(row.get("status") in _WORKING for row in lines),
                "unread": sum(row.get("unread", 0) for row in lines),
                "calls": sum(row.get("calls", 0) for row in lines),
                "asks": sum(row.get("asks", 0) for row in lines),
                "tokens": sum(row.get("tokens", 0) for row in rows),
                "cost": sum(row.get("cost") or 0 for row in rows),
                "at": last,
                **self._stepping(),
            }
        )

    def _stepping(self) -> Row:
        if self.room.closed or not self.room.stepping:
            return {}
        found = self.room.step(look=True)
        held: Row = {"stepping": True, "held": found.held}
        if found.next is not None:
            letter = found.next
            held["next"] = {
                "id": letter.mail.id,
                "to": letter.mail.session,
                "words": f"{letter.sender} → {letter.reader}: {letter.words}",
                "effect": letter.effect,
            }
        return held

    async def listen(self) -> None:
        """Hear what is stored in the room, until the task ends."""
        stop = self._live.listen(lambda: self.room.hop(self.soon))
        try:
            self.soon()
            await asyncio.get_running_loop().create_future()
        finally:
            stop()

    @property
    def busy(self) -> bool:
        """Whether a session works, or may just have begun or ended to."""
        return bool(self._working or self._touched)

    # ── Buttons ──

    def do(self, op: str, message: Message) -> Message | None:
        """Do what a button says: of one session, or of all."""
        self.soon()
        match op:
            case "step":
                done = self.room.step(str(message.get("session") or "") or None)
                passed = done.let_through
                return {"words": str(passed or "Nothing waits."), "mail": passed and passed.mail.id}
            case "stepping":
                self.room.step_mode(bool(message.get("on")))
            case _:
                self._steer(op, str(message.get("session") or ""))
        return None

    def _steer(self, op: str, wanted: str) -> None:
        chosen = [self.room.session(wanted)] if wanted else self.room.sessions(hidden=True)
        for session in chosen:
            paused = session.status is SessionStatus.PAUSED
            match op:
                case "pause" if not paused:
                    session.pause()
                case "resume" if paused or wanted:
                    session.resume()
                case "stop":
                    session.stop()


_feeds: "WeakValueDictionary[int, BoardFeed]" = WeakValueDictionary()


def board_of(room: "Room") -> BoardFeed:
    """Return the feed of ``room``, the same for all its switchboards."""
    feed = _feeds.get(id(room))
    if feed is None:
        feed = _feeds[id(room)] = BoardFeed(room)
    return feed
