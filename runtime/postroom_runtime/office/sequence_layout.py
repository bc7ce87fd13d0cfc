"""Where everything of a sequence diagram stands, in pixels. Pure: a diagram in, geometry out.

One row per mark, in commit order; what happens between marks (a run's start, a call's end) lies
between their rows. Few lifelines stand wide apart, with the labels on the arrows; many stand close
together, with the labels in a column at the right, as in a commit graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.office.sequence import Bar, Diagram, Lifeline, Mark, MarkKind
from postroom_runtime.office.sequence_words import label_of, shown_names, width_of

ROW: Final = 24
GUTTER: Final = 72
"""Where the times stand."""
PAD: Final = 16
TOP: Final = 14
LANE: Final = 7
SILENCE: Final = 20.0
"""Seconds without a mark that are worth a line."""
_GAP: Final = 20
_WIDEST, _CLOSEST = 224, 104
_AIMED: Final = 900
"""A picture is not made wider than this only for its labels."""
_MARGIN_COLUMNS: Final = (26, 56)
_MARGIN_LABELS: Final = 400
_ASIDE: Final = {MarkKind.RESULT: 24, MarkKind.REFUSED: 28, MarkKind.CALL: 8, MarkKind.FAILED: 14}
"""How far from its line a label stands that belongs to one lifeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A lifeline in its place. ``top`` and ``bottom`` are where it is born and closed."""

    line: Lifeline
    x: int
    top: float
    bottom: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A mark in its row."""

    mark: Mark
    y: float
    x1: float
    x2: float
    label_x: float
    room: float
    anchor: str
    birth: bool = False
    """Its arrow ends at a lifeline that begins here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """A call's bar: attached from ``y1`` to ``turned``, detached from there to ``y2``."""

    bar: Bar
    x: float
    y1: float
    turned: float | None
    y2: float
    open: bool
    lane: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A whole picture; ``width`` and ``height`` are those of its body, without head and key."""

    columns: tuple[Column, ...]
    placed: tuple[Placed, ...]
    strips: tuple[Strip, ...]
    runs: tuple[tuple[int, float, float], ...]
    """Column's x, top and bottom of each."""
    silences: tuple[tuple[float, float], ...]
    """y and seconds of each."""
    margin: bool
    right: float
    """Where the columns end."""
    width: float
    height: float


@dataclass(slots=True)
class _Clock:
    """Turns numbers of rows into heights: a mark's own row, or the place between two."""

    numbers: list[int] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    bottom: float = 0

    def after(self, n: int) -> float:
        """Return the height just below the last mark at or before row ``n``."""
        low, high = 0, len(self.numbers)
        while low < high:
            middle = (low + high) // 2
            if self.numbers[middle] <= n:
                low = middle + 1
            else:
                high = middle
        return self.heights[low - 1] + 10 if low else 4


def lay_out(diagram: Diagram) -> Layout:
    """Return the geometry of ``diagram``."""
    margin = GUTTER + len(diagram.lifelines) * _CLOSEST > _AIMED
    xs = _columns(diagram, margin=margin)
    step = _step(diagram, margin=margin)
    right = (max(xs.values()) if xs else GUTTER) + step / 2
    clock, ys, born, silences = _rows(diagram)
    strips = _strips(diagram, xs, ys, clock)
    placed = tuple(_place(diagram, xs, ys, born, strips, step, margin=margin))
    width = _width(placed, strips, right, margin=margin)
    columns = tuple(
        Column(
            line=line,
            x=xs[line.id],
            top=_top(diagram, line, ys, born),
            bottom=_bottom(diagram, line, ys),
        )
        for line in diagram.lifelines
    )
    runs = tuple(
        (xs[run.session], clock.after(run.begun) - 4, _end(clock, run.ended) - 4)
        for run in diagram.runs
        if run.session in xs
    )
    return Layout(
        columns=columns,
        placed=placed,
        strips=tuple(strips.values()),
        runs=tuple((x, y1, max(y2, y1 + 6)) for x, y1, y2 in runs),
        silences=tuple(silences),
        margin=margin,
        right=right,
        width=width,
        height=clock.bottom,
    )


def _step(diagram: Diagram, *, margin: bool) -> float:
    count = max(1, len(diagram.lifelines))
    if margin:
        least, most = _MARGIN_COLUMNS
        return max(least, min(most, (_AIMED - GUTTER - _MARGIN_LABELS) // count))
    names = shown_names(diagram)
    named = max(
        (width_of(names[line.id], 12, bold=True) + 20 for line in diagram.lifelines), default=0
    )
    labels = sorted(
        width_of(label_of(mark)[:60]) + 36 for mark in diagram.marks if mark.source != mark.target
    )
    wanted = max(named, labels[len(labels) * 3 // 4] if labels else 0, _CLOSEST)
    return int(min(wanted, _WIDEST, max(_CLOSEST, (_AIMED - GUTTER) // count)))


def _columns(diagram: Diagram, *, margin: bool) -> dict[SessionId, int]:
    step = _step(diagram, margin=margin)
    first = GUTTER + (step / 2 if margin else min(step / 2, 52))
    return {line.id: round(first + at * step) for at, line in enumerate(diagram.lifelines)}


def _rows(
    diagram: Diagram,
) -> tuple[_Clock, dict[int, float], dict[int, int], list[tuple[float, float]]]:
    """Return the clock, the height of each mark by its place, births by the mark that draws them."""
    clock, ys, silences = _Clock(), dict[int, float](), list[tuple[float, float]]()
    born: dict[int, int] = {}
    y = float(TOP + (ROW if diagram.left_out else 0))
    last = None
    for at, mark in enumerate(diagram.marks):
        following = diagram.marks[at + 1] if at + 1 < len(diagram.marks) else None
        if mark.kind is MarkKind.SPAWN and following is not None and _first(mark, following):
            # A letter that follows at once draws the birth: one row for both.
            born[at + 1] = at
            continue
        if last is not None and (quiet := (mark.at - last).total_seconds()) > SILENCE:
            silences.append((y - ROW / 2 + _GAP / 2, quiet))
            y += _GAP
        last = mark.at
        ys[at] = y + ROW / 2
        clock.numbers.append(mark.n)
        clock.heights.append(ys[at])
        y += ROW
    clock.bottom = y + 14
    return clock, ys, born, silences


def _first(spawn: Mark, letter: Mark) -> bool:
    return (
        letter.kind in (MarkKind.MAIL, MarkKind.INTERRUPT)
        and letter.source == spawn.source
        and letter.target == spawn.target
    )


def _end(clock: _Clock, n: int | None) -> float:
    return clock.bottom if n is None else clock.after(n)


def _top(diagram: Diagram, line: Lifeline, ys: dict[int, float], born: dict[int, int]) -> float:
    drawn = {spawn: letter for letter, spawn in born.items()}
    for at, mark in enumerate(diagram.marks):
        if mark.kind is MarkKind.SPAWN and mark.target == line.id:
            return ys[drawn.get(at, at)]
    return 0


def _bottom(diagram: Diagram, line: Lifeline, ys: dict[int, float]) -> float | None:
    closes = (
        at
        for at, mark in enumerate(diagram.marks)
        if mark.kind is MarkKind.CLOSE and mark.target == line.id
    )
    return next((ys[at] for at in closes), None)


def _strips(
    diagram: Diagram, xs: dict[SessionId, int], ys: dict[int, float], clock: _Clock
) -> dict[CallId, Strip]:
    rows = {mark.n: ys[at] for at, mark in enumerate(diagram.marks) if at in ys}
    lanes: dict[SessionId, list[float]] = {}
    strips: dict[CallId, Strip] = {}
    for bar in sorted(diagram.bars, key=lambda bar: bar.begun):
        if bar.session not in xs:
            continue
        y1 = rows.get(bar.begun, clock.after(bar.begun) + 6) - 6
        if bar.returned is not None and bar.returned in rows:
            y2 = rows[bar.returned]
        else:
            y2 = _end(clock, bar.ended)
        y2 = max(y2, y1 + 12)
        used = lanes.setdefault(bar.session, [])
        lane = next((at for at, free in enumerate(used) if free < y1), len(used))
        used[lane : lane + 1] = [y2]
        turned = None if bar.detached is None else min(max(clock.after(bar.detached), y1 + 6), y2)
        strips[bar.call] = Strip(
            bar=bar,
            x=xs[bar.session] + 4 + lane * LANE,
            y1=y1,
            turned=turned,
            y2=y2,
            open=bar.ended is None,
            lane=lane,
        )
    return strips


def _place(
    diagram: Diagram,
    xs: dict[SessionId, int],
    ys: dict[int, float],
    born: dict[int, int],
    strips: dict[CallId, Strip],
    step: float,
    *,
    margin: bool,
) -> Iterator[Placed]:
    order = sorted(xs.values())
    edge = (order[-1] if order else GUTTER) + (step / 2 if margin else max(step * 0.9, 150))
    returned = {s.bar.returned: s for s in strips.values() if s.bar.returned is not None}
    by_session: dict[SessionId, list[Strip]] = {}
    for strip in strips.values():
        by_session.setdefault(strip.bar.session, []).append(strip)

    def clear(session: SessionId, y: float) -> float:
        """Return how far the bars of a session reach right of its lifeline in a row."""
        reach = [
            s.lane * LANE + 9 for s in by_session.get(session, ()) if s.y1 - 2 <= y <= s.y2 + 2
        ]
        return max(reach, default=0)

    for at, mark in enumerate(diagram.marks):
        if at not in ys:
            continue
        y, x1, x2 = ys[at], float(xs[mark.source]), float(xs[mark.target])
        skip = clear(mark.source, y)
        if mark.kind is MarkKind.RESULT and mark.n in returned:
            x1 = returned[mark.n].x + 5
        anchor = "start"
        if x1 == x2 or mark.source == mark.target:
            label_x = max(x1, x2 + skip) + _ASIDE.get(mark.kind, 10)
            beyond = [x for x in order if x > x2]
            room = (beyond[0] + step - 20 if beyond else edge) - label_x
            room = min(room, edge - label_x)
        elif x2 > x1:
            label_x = x1 + 10 + skip
            room = min(edge, x2 + step - 20) - label_x
        else:
            label_x, anchor = x1 - 10, "end"
            room = label_x - max(GUTTER, x2 - step + 20)
        if margin:
            label_x, anchor, room = edge + 12, "start", _MARGIN_LABELS
        yield Placed(
            mark=mark,
            y=y,
            x1=x1,
            x2=x2,
            label_x=label_x,
            room=room,
            anchor=anchor,
            birth=at in born or mark.kind is MarkKind.SPAWN,
        )


def _width(
    placed: tuple[Placed, ...], strips: dict[CallId, Strip], right: float, *, margin: bool
) -> float:
    ends = [right, *(strip.x + 12 for strip in strips.values())]
    for each in placed:
        if each.anchor == "start":
            used = width_of(label_of(each.mark)[:80]) + (160 if margin else 0)
            ends.append(each.label_x + min(each.room, used))
    return max(260.0, max(ends) + PAD)
