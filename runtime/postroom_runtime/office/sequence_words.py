"""The words of a sequence diagram, and how much room they take. Pure."""

import json
import unicodedata
from collections.abc import Mapping
from typing import Final

from postroom_runtime.contracts.extra import Json
from postroom_runtime.office.sequence import OWNER, Diagram, Lifeline, Mark, MarkKind

NO_WORDS: Final = "(no words)"
EMPTY: Final = "No mail yet."

_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""Kinds of characters that draw nothing, break a line, turn the reading or are no XML."""

_JOINERS: Final = "\u200c\u200d"
"""Hidden ones that scripts and emoji need."""

_NARROW: Final = frozenset("iljtfrI.,:;'|!()[]{}`\"- /\\")
_BROAD: Final = frozenset("mwMWQOG@%&—…→")


def one_line(text: str) -> str:
    """Return ``text`` on one line, without characters that draw nothing or are no XML."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join("".join(c if _drawn(c) else " " for c in text).split())


def lines_of(text: str, most: int) -> str:
    """Return at most ``most`` characters of ``text``, line ends kept, without what is no XML."""
    cut = text[:most].replace("\r\n", "\n").rstrip()
    kept = "".join(c if c in "\n\t" or _drawn(c) else "\ufffd" for c in cut)
    over = len(text) - most
    return f"{kept}… ({over} more)" if over > 0 else kept


def _drawn(char: str) -> bool:
    return unicodedata.category(char) not in _HIDDEN or char in _JOINERS


def width_of(text: str, size: float = 11, *, bold: bool = False, mono: bool = False) -> float:
    """Return about how many pixels ``text`` takes, rather too many than too few."""
    if mono:
        wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
        return (len(text) + wide) * size * 0.61
    ems = 0.0
    for char in text:
        if char.isascii():
            if char in _NARROW:
                ems += 0.39
            elif char in _BROAD:
                ems += 0.93
            else:
                ems += 0.73 if char.isupper() else 0.62
        elif unicodedata.combining(char):
            continue
        else:
            ems += 1.05 if unicodedata.east_asian_width(char) in "WF" else 0.72
    return ems * size * (1.08 if bold else 1)


def fit(text: str, room: float, size: float = 11, *, bold: bool = False, mono: bool = False) -> str:
    """Return as much of ``text`` as fits in ``room`` pixels, cut with ``…``; '' if next to nothing."""
    # What can never fit need not be measured: no character is narrower than this.
    text = text[: max(0, int(room / (size * 0.3)) + 2)]
    if width_of(text, size, bold=bold, mono=mono) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        part = text[:middle].rstrip() + "…"
        if width_of(part, size, bold=bold, mono=mono) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…" if low > 1 else ""


def shown_names(diagram: Diagram) -> dict[str, str]:
    """Return what to call each lifeline: its name, with its id where several have the name."""
    names = [one_line(line.name) or line.id for line in diagram.lifelines]
    return {
        line.id: f"{name} ({line.id})" if line.id and names.count(name) > 1 else name
        for line, name in zip(diagram.lifelines, names, strict=True)
    }


def label_of(mark: Mark) -> str:
    """Return what stands on the arrow, uncut."""
    return one_line(mark.label) or NO_WORDS


def told(mark: Mark, names: dict[str, str]) -> str:
    """Return who tells whom: ``lead → rev``, or one name."""
    source, target = names.get(mark.source, "?"), names.get(mark.target, "?")
    return source if mark.source == mark.target else f"{source} → {target}"


def facts_of(mark: Mark) -> list[str]:
    """Return what is to be known of a mark besides its words."""
    plain_words = (MarkKind.MAIL, MarkKind.SPAWN, MarkKind.CLOSE, MarkKind.FAILED)
    facts = [] if mark.kind in plain_words else [str(mark.kind)]
    if mark.id and mark.kind not in (MarkKind.SPAWN, MarkKind.CLOSE):
        facts.append(one_line(mark.id))
    facts += [one_line(flag) for flag in mark.flags]
    return [*facts, "not read yet"] if mark.unread else facts


def left_out(diagram: Diagram) -> str:
    """Return the note of what was cut off, '' for nothing."""
    count = diagram.left_out
    if not count:
        return ""
    return f"{count} earlier {'one' if count == 1 else 'ones'} left out: last=None shows all"


def plain(diagram: Diagram, width: int = 80) -> str:
    """Return the diagram as lines of text, for a terminal and for those who see no picture."""
    if not diagram.marks:
        return EMPTY
    names = shown_names(diagram)
    lines = [f"({left_out(diagram)})"] if diagram.left_out else []
    across = min(28, max(len(told(mark, names)) for mark in diagram.marks))
    for mark in diagram.marks:
        facts = facts_of(mark)
        line = f"{told(mark, names):<{across}}  {label_of(mark)}"
        # What kind it is and its id stand on the line; the rest is for the tooltip of a picture.
        about = f" [{', '.join(facts[:2])}]" if facts else ""
        room = max(width - len(about), across + 16)
        lines.append((line if len(line) <= room else line[: room - 1].rstrip() + "…") + about)
    return "\n".join(lines)


def about(diagram: Diagram) -> str:
    """Return the diagram in one sentence."""
    names = shown_names(diagram)
    who = [names[line.id] for line in diagram.lifelines]
    told_of = f"{', '.join(who[:8])}{f' and {len(who) - 8} more' if len(who) > 8 else ''}"
    count = len(diagram.marks)
    return f"Sequence diagram, {count} {'event' if count == 1 else 'events'}: {told_of}"


def title_of(line: Lifeline, names: dict[str, str]) -> str:
    """Return what a lifeline's head tells when pointed at."""
    if line.id == OWNER:
        return "the owner of the room"
    parent = f", child of {names.get(line.parent, line.parent)}" if line.parent else ""
    return f"{one_line(line.name)}, {line.id}, agent {one_line(line.agent)}{parent}"


def arguments_text(arguments: Mapping[str, Json]) -> str:
    """Return the arguments of a call as they stand between its parentheses."""
    return ", ".join(f"{name}={_json(value)}" for name, value in arguments.items())


def as_words(value: Json) -> str:
    """Return a result as text: a text as it is, the rest as JSON, nothing for None."""
    if value is None or isinstance(value, str):
        return value or ""
    return _json(value)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
