"""A sequence diagram under construction, which tells what has changed in it."""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Any

from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import Row
from postroom_runtime.office.sequence import (
    OWNER,
    OWNER_NAME,
    Bar,
    Diagram,
    Lifeline,
    Mark,
    MarkKind,
    Run,
)


@dataclass(slots=True)
class Changes:
    """What was added or replaced, by the places and ids it has in the diagram."""

    lines: set[SessionId] = field(default_factory=set)
    marks: set[int] = field(default_factory=set)
    bars: set[CallId] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)


class GrowingDiagram:
    """Lifelines, marks, bars and runs, and which of them are new.

    A mark and a run keep their place for ever; they are replaced there when more is known of them.
    """

    def __init__(self) -> None:
        self.lines: dict[SessionId, Lifeline] = {}
        self.marks: list[Mark] = []
        self.bars: dict[CallId, Bar] = {}
        self.runs: list[Run] = []
        self._changes = Changes()
        self._cursors: dict[SessionId, int] = {}
        self._places: dict[SessionId, dict[int, int]] = {}
        """Places of the marks of each session's mail, by ``seq``."""
        self._unread: dict[SessionId, list[int]] = {}
        """``seq`` of each session's mail that was not read, ascending."""

    def diagram(self) -> Diagram:
        """Return it as it is now."""
        owner = Lifeline(id=OWNER, name=OWNER_NAME)
        return Diagram(
            lifelines=(owner, *self.lines.values()),
            marks=tuple(self.marks),
            bars=tuple(self.bars.values()),
            runs=tuple(self.runs),
        )

    def take_changes(self) -> Changes:
        """Return what is new since this was called last."""
        changes, self._changes = self._changes, Changes()
        return changes

    def add(
        self,
        row: Row,
        kind: MarkKind,
        source: SessionId,
        target: SessionId,
        label: str,
        *,
        seq: int = 0,
        **more: Any,
    ) -> None:
        """Add the mark of ``row``; ``seq`` is that of mail in the mailbox of ``target``."""
        unread = seq > self._cursors.get(target, 0)
        mark = Mark(
            n=row.n,
            at=row.at,
            kind=kind,
            source=source,
            target=target,
            label=label,
            unread=unread,
            **more,
        )
        at = len(self.marks)
        self.marks.append(mark)
        self._changes.marks.add(at)
        if seq:
            self._places.setdefault(target, {})[seq] = at
        if unread:
            self._unread.setdefault(target, []).append(seq)

    def read_up_to(self, session: SessionId, cursor: int) -> None:
        """Take in that a session has read its mail up to ``cursor``."""
        self._cursors[session] = cursor
        unread = self._unread.get(session, [])
        read = bisect_right(unread, cursor)
        for seq in unread[:read]:
            self._replace(self._places[session][seq], unread=False)
        del unread[:read]

    def read_in(self, session: SessionId, seq: int, turn: int) -> None:
        """Take in that a session reads its mail ``seq`` in its turn ``turn``."""
        at = self._places.get(session, {}).get(seq)
        if at is not None:
            self._replace(at, turn=turn)

    def put_line(self, line: Lifeline) -> None:
        """Add a lifeline, or replace it."""
        self.lines[line.id] = line
        self._changes.lines.add(line.id)

    def put_bar(self, bar: Bar) -> None:
        """Add the bar of a call, or replace it."""
        self.bars[bar.call] = bar
        self._changes.bars.add(bar.call)

    def put_run(self, at: int, run: Run) -> None:
        """Add a run at the end, or replace the one at ``at``."""
        self.runs[at : at + 1] = [run]
        self._changes.runs.add(at)

    def _replace(self, at: int, **more: Any) -> None:
        self.marks[at] = replace(self.marks[at], **more)
        self._changes.marks.add(at)
