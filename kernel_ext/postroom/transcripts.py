"""The transcript of a session as text and as HTML. Pure."""

import html
from collections.abc import Iterable, Sequence
from typing import Any, Final

from postroom.display import arguments_text
from postroom.grid_html import UNTYPESET, cut
from postroom.grid_text import printable
from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.turn import EndReason, Role, Turn
from postroom_widgets.wording import end_words, plural

TURNS: Final = 100
"""Turns that are shown when nobody asks for a number; the list has all of them."""

HTML_LINES: Final = 40
"""Lines of one turn in sight in a notebook; the rest unfolds."""
HTML_LETTERS: Final = 4_000
"""Characters of one turn in sight."""
_SLACK: Final = 1.25
"""How much more is shown as it is: a fold that hides next to nothing is in the way."""
LETTERS: Final = 40_000
"""Characters of one turn that are shown at all; a saved notebook must not carry all of a long one."""


class Transcript(list[Turn]):
    """Turns, as a list to work with and as a text to read.

    Args:
        turns: In order.
        of: Name of the session.
        last: How many are shown at most, the latest; None for ``TURNS``.
    """

    def __init__(self, turns: Iterable[Turn], *, of: str, last: int | None = None) -> None:
        super().__init__(turns)
        self._of, self._last = of, TURNS if last is None else last

    def __repr__(self) -> str:
        return transcript_text(self, of=self._of, last=self._last)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        page = transcript_html(self, of=self._of, last=self._last)
        return {"text/plain": repr(self), "text/html": page}


def transcript_text(turns: Sequence[Turn], *, of: str, last: int = TURNS) -> str:
    """Return a transcript as plain text, turn by turn, exactly what the model read and said."""
    told = [
        f"── {title} ──\n{cut(_body(turn), LETTERS)}".rstrip()
        for title, turn in _shown(turns, of, last)
    ]
    blocks = [f"({_earlier(turns, of, last)})", *told] if len(turns) > last else told
    return "\n\n".join(blocks) or f"{of} has no turns yet."


def transcript_html(turns: Sequence[Turn], *, of: str, last: int = TURNS) -> str:
    """Return a transcript as HTML that reads without any style sheet; of long turns a part unfolds."""
    if not turns:
        return f"<p>{html.escape(of)} has no turns yet.</p>"
    blocks = [
        f'<p style="margin:0.8em 0 0.2em"><strong>{html.escape(title)}</strong></p>\n{_pre(turn)}'
        for title, turn in _shown(turns, of, last)
    ]
    if len(turns) > last:
        blocks.insert(0, f"<p><small>{html.escape(_earlier(turns, of, last))}</small></p>")
    page = "\n".join(blocks)
    return f'<div class="{UNTYPESET}">{page}</div>'


def _shown(turns: Sequence[Turn], of: str, last: int) -> list[tuple[str, Turn]]:
    """Return the latest turns with what stands above each: whose words, and why a run turned."""
    start = max(0, len(turns) - last)
    before = [turns[start - 1] if start else None, *turns[start:]]
    return [(_title(turn, one, of), turn) for one, turn in zip(before, turns[start:], strict=False)]


def _earlier(turns: Sequence[Turn], of: str, last: int) -> str:
    left = plural(len(turns) - last, "earlier turn is", "earlier turns are")
    return f"{left} not shown: %transcript {of} --last={len(turns)}"


def _pre(turn: Turn) -> str:
    body = cut(_body(turn), LETTERS)
    lines = body.split("\n")
    at = len(body)
    if len(lines) > HTML_LINES * _SLACK:
        at = len("\n".join(lines[:HTML_LINES]))
    if at > HTML_LETTERS * _SLACK:
        at = HTML_LETTERS
    if at == len(body):
        return _block(body)
    more = plural(len(body) - at, "more character")
    rest = _block(body[at:].removeprefix("\n"))
    fold = f"<details><summary><small>{more}</small></summary>{rest}</details>"
    return _block(body[:at].rstrip()) + fold


def _block(text: str) -> str:
    style = "margin:0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere"
    return f'<pre dir="auto" style="{style}">{html.escape(text)}</pre>'


def _title(turn: Turn, last: Turn | None, of: str) -> str:
    who = "to" if turn.role is Role.USER else "by"
    end = f", {_end(turn.end_reason)}" if turn.end_reason else ""
    return f"turn {turn.index}, {who} {of}{_inbox(turn, last)}{end}"


def _end(reason: EndReason) -> str:
    head, rest = end_words({"reason": reason})
    head = head[0].lower() + head[1:]
    return f"{head}: {rest}" if rest else head


def _inbox(turn: Turn, last: Turn | None) -> str:
    """Return the mark of a turn that brought mail into a run under way (A-18)."""
    under_way = turn.results or (last and last.role is Role.MODEL and last.end_reason is None)
    if not turn.mail or not under_way:
        return ""
    count = len(turn.mail)
    return f", INBOX: {count} mail{'s' if count > 1 else ''} read on its way"


def _body(turn: Turn) -> str:
    parts = [f"{result.call} {result.tool} → {result.content}" for result in turn.results]
    parts += [turn.text] if turn.text else []
    parts += [_request(call) for call in turn.calls]
    return printable("\n".join(parts))


def _request(call: ToolRequest) -> str:
    if call.malformed:
        return f"* {call.tool}: {call.malformed}"
    return f"* {call.id} {call.tool}({arguments_text(call.arguments)})"
