"""A sequence diagram as Mermaid text: for Markdown, GitHub and slides. Pure."""

from collections.abc import Iterator
from typing import Final

from postroom_runtime.office.sequence import OWNER, Bar, Diagram, Mark, MarkKind
from postroom_runtime.office.sequence_words import (
    EMPTY,
    label_of,
    left_out,
    one_line,
    shown_names,
)

LABEL: Final = 120
"""Characters of a label; a Mermaid label is never wrapped by itself."""

_PLAIN: Final = frozenset(" .,!?()'-_/+*@=→…")
"""What no grammar of Mermaid gives a meaning inside a text. Everything else becomes an entity."""

_ARROWS: Final = {
    MarkKind.REPLY: "-->>",
    MarkKind.ANSWER: "-->>",
    MarkKind.CONTROL: "-->>",
    MarkKind.SPAWN: "-->",
    MarkKind.RESULT: "-->>",
    MarkKind.REFUSED: "-x",
    MarkKind.WATCHED: "-->>",
}

_WORDS: Final = {MarkKind.INTERRUPT: "interrupt: ", MarkKind.SPAWN: "", MarkKind.ANSWER: "answer: "}


def to_mermaid(diagram: Diagram) -> str:
    """Return a ``sequenceDiagram``; every text in it is escaped, every participant numbered."""
    lines = ["sequenceDiagram"]
    if not diagram.lifelines:
        return "\n".join([*lines, "  participant p0 as you", f"  Note over p0: {escaped(EMPTY)}"])
    aliases = {line.id: f"p{at}" for at, line in enumerate(diagram.lifelines)}
    names = shown_names(diagram)
    for line in diagram.lifelines:
        kind = "actor" if line.id == OWNER else "participant"
        agent = one_line(line.agent)
        of = f" ({agent})" if agent and agent != line.name else ""
        lines.append(f"  {kind} {aliases[line.id]} as {escaped(names[line.id] + of)}")
    if diagram.left_out:
        ends = dict.fromkeys((aliases[diagram.lifelines[0].id], aliases[diagram.lifelines[-1].id]))
        lines.append(f"  Note over {','.join(ends)}: {escaped(left_out(diagram))}")
    lines += (f"  {line}" for line in _body(diagram, aliases))
    return "\n".join(lines)


def _body(diagram: Diagram, aliases: dict[str, str]) -> Iterator[str]:
    bars = {bar.call: bar for bar in diagram.bars}
    open_bars: dict[str, Bar] = {}
    for mark in diagram.marks:
        yield from _ended(open_bars, mark.n, aliases)
        at = aliases[mark.source]
        match mark.kind:
            case MarkKind.CALL:
                yield f"{at}->>{at}: {_label(mark, mark.text)}"
                if mark.id in bars:
                    open_bars[mark.id] = bars[mark.id]
                    yield f"activate {at}"
            case MarkKind.CLOSE | MarkKind.FAILED:
                yield f"Note over {at}: {_label(mark, mark.label)}"
            case _:
                yield _arrow(mark, aliases)
    yield from _ended(open_bars, None, aliases)


def _ended(open_bars: dict[str, Bar], n: int | None, aliases: dict[str, str]) -> Iterator[str]:
    """Close the bars that ended before row ``n``, and say so where it was no plain success."""
    for bar in sorted(open_bars.values(), key=lambda bar: (bar.ended or 0, bar.call)):
        if n is not None and (bar.ended is None or bar.ended >= n):
            continue
        del open_bars[bar.call]
        at = aliases[bar.session]
        yield f"deactivate {at}"
        if bar.returned is None and bar.state not in ("", "completed", "running"):
            state = bar.state.replace("_", " ")
            yield f"Note over {at}: {escaped(f'{bar.tool} {state}')}"


def _arrow(mark: Mark, aliases: dict[str, str]) -> str:
    arrow = "-)" if mark.unread else _ARROWS.get(mark.kind, "->>")
    label = _WORDS.get(mark.kind, "") + label_of(mark)
    return f"{aliases[mark.source]}{arrow}{aliases[mark.target]}: {_label(mark, label)}"


def _label(mark: Mark, text: str) -> str:
    line = one_line(text) or label_of(mark)
    return escaped(line if len(line) <= LABEL else line[: LABEL - 1].rstrip() + "…")


def escaped(text: str) -> str:
    """Return ``text`` so that Mermaid shows it as it is, whatever stands in it."""
    kept = "".join(
        char if char.isalnum() or char in _PLAIN else f"#{ord(char)};" for char in one_line(text)
    )
    # The word by itself ends a block in Mermaid.
    return f"#{ord(kept[0])};{kept[1:]}" if kept.lower() == "end" else kept
