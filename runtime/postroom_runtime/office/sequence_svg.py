"""A sequence diagram as one SVG that needs nothing else. Pure.

Every text in it is escaped; nothing has an id, so any number of them fit on one page.
"""

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from postroom_runtime.office.sequence import Diagram, Mark, MarkKind, Tone
from postroom_runtime.office.sequence_layout import (
    GUTTER,
    PAD,
    ROW,
    Column,
    Layout,
    Placed,
    Strip,
    lay_out,
)
from postroom_runtime.office.sequence_style import STYLE
from postroom_runtime.office.sequence_words import (
    EMPTY,
    about,
    facts_of,
    fit,
    label_of,
    left_out,
    lines_of,
    one_line,
    shown_names,
    title_of,
    told,
    width_of,
)

TOLD: Final = 600
"""Characters of a text that its tooltip shows."""

_HEAD, _SLANTED_HEAD, _KEY_LINE = 44, 84, 22


def to_svg(diagram: Diagram) -> str:
    """Return the diagram as an SVG document without a prolog: for a page, or a file."""
    if not diagram.marks:
        return _document(f'<text class="ink3 tm" x="{PAD}" y="30">{EMPTY}</text>', 260, 48, EMPTY)
    layout, names = lay_out(diagram), shown_names(diagram)
    head = _SLANTED_HEAD if layout.margin else _HEAD
    keys, key_height = _key(diagram, layout.width)
    bottom = head + layout.height
    parts = [
        *_heads(layout, names, head),
        f'<g transform="translate(0 {head})">',
        *_ground(diagram, layout),
        *_times(layout),
        *(_strip(strip, layout, names) for strip in layout.strips),
        *(_mark(each, layout, names) for each in layout.placed),
        "</g>",
        f'<path class="rule" d="M0 {_n(bottom)}H{_n(layout.width)}"/>',
        f'<g transform="translate(0 {_n(bottom)})">{keys}</g>',
    ]
    return _document("".join(parts), layout.width, bottom + key_height, about(diagram))


def _document(body: str, width: float, height: float, label: str) -> str:
    w, h = _n(width), _n(height)
    ground = (
        f'<rect class="bg" x=".5" y=".5" width="{_n(width - 1)}" height="{_n(height - 1)}" rx="6"/>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pr-seq" width="{w}" height="{h}" '
        f'viewBox="0 0 {w} {h}" role="img" aria-label={quoteattr(label)}>'
        f"<style>{escape(STYLE)}</style>{ground}{body}</svg>"
    )


# ── Heads, lifelines, times ──


def _heads(layout: Layout, names: dict[str, str], head: int) -> Iterator[str]:
    step = layout.columns[1].x - layout.columns[0].x if len(layout.columns) > 1 else 160
    for column in layout.columns:
        line, x = column.line, column.x
        name, title = names[line.id], _title(title_of(line, names))
        if layout.margin:
            turn = f"translate({x + 3} {head - 8}) rotate(-48)"
            cut = escape(fit(name, 92, bold=True) or name[:1])
            yield f'<g>{title}<text class="hn" transform="{turn}">{cut}</text></g>'
            continue
        room = min(step - 8, 2 * (x - 6))
        cut = escape(fit(name, room, 12, bold=True) or name[:1])
        agent = escape(fit(one_line(line.agent), room))
        y = 18 if agent else 26
        yield f'<g>{title}<text class="hn" x="{x}" y="{y}" text-anchor="middle">{cut}</text>'
        if agent:
            yield f'<text class="ag" x="{x}" y="33" text-anchor="middle">{agent}</text>'
        yield "</g>"
    yield f'<path class="rule" d="M0 {head}H{_n(layout.width)}"/>'


def _ground(diagram: Diagram, layout: Layout) -> Iterator[str]:
    for column in layout.columns:
        yield _lifeline(column, layout.height)
    for y, seconds in layout.silences:
        yield f'<path class="gap" d="M{GUTTER - 6} {_n(y)}H{_n(layout.right)}"/>'
        yield _time(y, _span(seconds))
    for x, y1, y2 in layout.runs:
        yield (
            f'<rect class="act" x="{x - 2}" y="{_n(y1)}" width="4" height="{_n(y2 - y1)}" rx="1"/>'
        )
    if note := left_out(diagram):
        yield f'<text class="key halo" x="{GUTTER}" y="{ROW - 4}">{escape(note)}</text>'


def _lifeline(column: Column, height: float) -> str:
    end = height if column.bottom is None else column.bottom
    line = f'<path class="lf" d="M{column.x} {_n(column.top)}V{_n(end)}"/>'
    if column.top:
        line = f'<path class="lf pre" d="M{column.x} 0V{_n(column.top)}"/>' + line
    return line


def _times(layout: Layout) -> Iterator[str]:
    last = ""
    for each in layout.placed:
        clock = each.mark.at.astimezone().strftime("%H:%M:%S")
        if clock != last:
            yield _time(each.y, clock)
        last = clock


def _time(y: float, text: str) -> str:
    return f'<text class="tm" x="{GUTTER - 14}" y="{_n(y + 4)}" text-anchor="end">{text}</text>'


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} m"


# ── Calls ──


def _strip(strip: Strip, layout: Layout, names: dict[str, str]) -> str:
    bar = strip.bar
    bad = bar.state not in ("completed", "running", "pending", "deferred")
    turned = strip.y2 if strip.turned is None else strip.turned
    x, y1 = _n(strip.x), _n(strip.y1)
    solid = f'x="{x}" y="{y1}" width="5" height="{_n(max(4, turned - strip.y1))}" rx="1.5"'
    parts = [f'<rect class="tool solid" {solid}/>']
    if strip.turned is not None:
        parts.append(
            f'<rect class="tool det" x="{_n(strip.x + 0.5)}" y="{_n(turned)}" width="4" '
            f'height="{_n(max(3, strip.y2 - turned))}" rx="1"/>'
        )
    if bad and not strip.open:
        parts.append(
            f'<rect class="bad solid" x="{_n(strip.x - 1)}" y="{_n(strip.y2 - 5)}" width="7" '
            'height="6" rx="1.5"/>'
        )
    state = bar.state.replace("_", " ")
    said = f"{names[bar.session]}: {bar.tool}, {bar.call}, {state}"
    return f"<g>{_title(said)}{''.join(parts)}</g>"


# ── Marks ──


def _mark(each: Placed, layout: Layout, names: dict[str, str]) -> str:
    mark = each.mark
    facts = ", ".join([*facts_of(mark), f"row {mark.n}"])
    words = lines_of(mark.text or mark.label, TOLD)
    hit = (
        f'<rect class="hit" x="{GUTTER - 8}" y="{_n(each.y - ROW / 2)}" '
        f'width="{_n(layout.width - GUTTER)}" height="{ROW}" rx="3"/>'
    )
    title = _title(f"{told(mark, names)} ({facts})\n{words}")
    return f"<g>{title}{hit}{_drawing(each)}{_label(each, layout, names)}</g>"


def _drawing(each: Placed) -> str:
    mark, y, x1, x2 = each.mark, each.y, each.x1, each.x2
    tone = str(mark.tone)
    match mark.kind:
        case MarkKind.CALL:
            return ""
        case MarkKind.CLOSE:
            return f'<path class="ar sys" d="{_cross(x1, y)}"/>'
        case MarkKind.FAILED:
            turn = f"rotate(45 {_n(x1)} {_n(y)})"
            return (
                f'<rect class="{tone} solid" x="{_n(x1 - 4)}" y="{_n(y - 4)}" width="8" '
                f'height="8" transform="{turn}"/>'
            )
        case MarkKind.REFUSED:
            if mark.source == mark.target:
                return (
                    f'<path class="ar bad ref" d="M{_n(x1 + 3)} {_n(y)}h10"/>'
                    f'<path class="ar bad" d="{_cross(x1 + 16, y)}"/>'
                )
            d = 1 if x2 > x1 else -1
            end = x2 - d * 13
            return (
                f'<path class="ar bad ref" d="M{_n(x1 + d * 3)} {_n(y)}H{_n(end - d * 5)}"/>'
                f'<path class="ar bad" d="{_cross(end, y)}"/>'
            )
        case _ if mark.source == mark.target:
            return _from_outside(each) if mark.kind is not MarkKind.RESULT else _hook(each)
        case _:
            return _arrow(each)


def _arrow(each: Placed) -> str:
    mark, y, tone = each.mark, each.y, str(each.mark.tone)
    d = 1 if each.x2 > each.x1 else -1
    x1, x2 = each.x1 + d * 3, each.x2 - d * (6 if each.birth else 3)
    ring = f'<circle class="ring ar" cx="{_n(each.x2)}" cy="{_n(y)}" r="4"/>' if each.birth else ""
    if mark.kind is MarkKind.SPAWN:
        return f'<path class="ar sys dot" d="M{_n(x1)} {_n(y)}H{_n(x2)}"/>{ring}'
    styles = {MarkKind.WATCHED: " dot", MarkKind.ANSWER: " ret", MarkKind.REPLY: " ret"}
    style = styles.get(mark.kind, "")
    line = f'<path class="ar {_weight(mark)}{style}" d="M{_n(x1)} {_n(y)}H{_n(x2 - d * 7)}"/>'
    return f"{line}{_tip(x2, y, d, tone, unread=mark.unread)}{ring}"


def _weight(mark: Mark) -> str:
    # Only an interrupt is drawn thick; a question to the owner has its colour and not its weight.
    thick = mark.kind is MarkKind.INTERRUPT and mark.tone is Tone.NOW
    return "now" if thick else f"{mark.tone} thin"


def _hook(each: Placed) -> str:
    """From the end of a call's bar back to its own lifeline."""
    y, tone = each.y, str(each.mark.tone)
    right = max(each.x1, each.x2) + 14
    line = f"M{_n(each.x1)} {_n(y - 5)}H{_n(right)}V{_n(y + 5)}H{_n(each.x2 + 10)}"
    return f'<path class="ar {tone} thin" d="{line}"/>' + _tip(
        each.x2 + 3, y + 5, -1, tone, unread=each.mark.unread
    )


def _from_outside(each: Placed) -> str:
    """Mail that no lifeline sends: a timer's, the runtime's."""
    y, tone = each.y, str(each.mark.tone)
    return (
        f'<circle class="{tone} solid" cx="{_n(each.x2 - 20)}" cy="{_n(y)}" r="2.5"/>'
        f'<path class="ar {tone} thin" d="M{_n(each.x2 - 20)} {_n(y)}H{_n(each.x2 - 10)}"/>'
        + _tip(each.x2 - 3, y, 1, tone, unread=each.mark.unread)
    )


def _tip(x: float, y: float, d: int, tone: str, *, unread: bool) -> str:
    shape = f"M{_n(x - d * 8)} {_n(y - 4)}L{_n(x)} {_n(y)}L{_n(x - d * 8)} {_n(y + 4)}z"
    return f'<path class="{tone} hd{" open" if unread else ""}" d="{shape}"/>'


def _cross(x: float, y: float) -> str:
    return f"M{_n(x - 4)} {_n(y - 4)}l8 8m0 -8l-8 8"


def _label(each: Placed, layout: Layout, names: dict[str, str]) -> str:
    mark = each.mark
    loud = mark.kind in (MarkKind.REFUSED, MarkKind.FAILED) or _weight(mark) == "now"
    mono = mark.kind is MarkKind.CALL
    colored = loud or mono or (mark.kind is MarkKind.APPROVAL and mark.tone is not Tone.SYS)
    quiet = mark.kind in (MarkKind.SPAWN, MarkKind.CLOSE, MarkKind.WATCHED, MarkKind.TIMER)
    style = " b" * loud + " mono" * mono
    style += f" {mark.tone}" if colored else " ag" * quiet
    aside = mark.source == mark.target or layout.margin
    y = each.y + 4 if aside else each.y - 5
    words, room, who = label_of(mark), each.room, ""
    x = each.label_x
    if layout.margin and not mono:
        name = fit(told(mark, names), min(room * 0.5, 170))
        wide = width_of(name) + 8
        who = f'<text class="key" x="{_n(x)}" y="{_n(y)}">{escape(name)}</text>'
        x, room = x + wide, room - wide
    cut = escape(fit(words, room, bold=loud, mono=mono))
    anchor = ' text-anchor="end"' if each.anchor == "end" else ""
    return f'{who}<text class="halo{style}" x="{_n(x)}" y="{_n(y)}"{anchor}>{cut}</text>'


# ── The key ──


def _key(diagram: Diagram, width: float) -> tuple[str, float]:
    x, y, parts = float(PAD), float(_KEY_LINE), list[str]()
    for drawing, word in _keys(diagram):
        wide = 28 + width_of(word) + 16
        if x > PAD and x + wide > width - PAD:
            x, y = PAD, y + _KEY_LINE
        parts.append(f'<g transform="translate({_n(x)} {_n(y - 4)})">{drawing}')
        parts.append(f'<text class="key" x="28" y="4">{word}</text></g>')
        x += wide
    return "".join(parts), y + 10


def _keys(diagram: Diagram) -> Iterator[tuple[str, str]]:
    """Yield what each sign means that the diagram shows: a drawing 20 pixels wide, and a word."""

    def arrow(tone: str, style: str = "thin", *, unread: bool = False) -> str:
        line = f'<path class="ar {tone} {style}" d="M0 0H13"/>'
        return line + _tip(20, 0, 1, tone, unread=unread)

    marks, bars = diagram.marks, diagram.bars
    tones = {mark.tone for mark in marks if mark.kind in (MarkKind.MAIL, MarkKind.REPLY)}
    kinds = {mark.kind for mark in marks}
    tones |= {Tone.AGENT} if MarkKind.ANSWER in kinds else set()
    if Tone.USER in tones:
        yield arrow("user"), "your mail"
    if Tone.AGENT in tones:
        yield arrow("agent"), "mail of a session"
    if MarkKind.REPLY in kinds or MarkKind.ANSWER in kinds:
        yield arrow("agent", "ret"), "reply, answer"
    if any(mark.unread for mark in marks):
        yield arrow("agent", unread=True), "not read yet"
    if any(_weight(mark) == "now" for mark in marks):
        yield arrow("now", ""), "interrupt"
    if MarkKind.REFUSED in kinds:
        cross = f'<path class="ar bad" d="{_cross(16, 0)}"/>'
        yield f'<path class="ar bad ref" d="M0 0H10"/>{cross}', "refused"
    if MarkKind.APPROVAL in kinds:
        yield arrow("now", "thin"), "asks you"
    if kinds & {MarkKind.CONTROL, MarkKind.TIMER, MarkKind.SYSTEM}:
        yield arrow("sys"), "order, runtime"
    if MarkKind.WATCHED in kinds:
        yield arrow("sys", "dot"), "watched"
    if MarkKind.SPAWN in kinds:
        yield (
            (
                '<path class="ar sys dot" d="M0 0H11"/><circle class="ring ar" cx="15" cy="0" r="4"/>'
            ),
            "spawn",
        )
    if diagram.runs:
        yield '<rect class="act" x="8" y="-6" width="4" height="12" rx="1"/>', "run"
    if bars:
        solid = '<rect class="tool solid" x="8" y="-6" width="5" height="12" rx="1.5"/>'
        yield solid, "call"
        if any(bar.detached for bar in bars):
            yield '<rect class="tool det" x="8" y="-6" width="4" height="12" rx="1"/>', "detached"
        if any(bar.state in ("failed", "timed_out", "cancelled", "orphaned") for bar in bars):
            end = '<rect class="bad solid" x="7" y="1" width="7" height="6" rx="1.5"/>'
            yield solid + end, "ended badly"


def _title(text: str) -> str:
    return f"<title>{escape(lines_of(text, 2 * TOLD))}</title>"


def _n(value: float) -> str:
    """Return a number of pixels, short."""
    return f"{value:.1f}".removesuffix(".0")
