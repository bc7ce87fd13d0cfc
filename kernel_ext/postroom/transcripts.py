"""The transcript of a session as text and as HTML. Pure."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

from postroom.display import arguments_text
from postroom.tables import printable
from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.turn import Role, Turn


class Transcript(list[Turn]):
    """Turns, as a list to work with and as a text to read.

    Args:
        turns: In order.
        of: Name of the session.
    """

    def __init__(self, turns: Iterable[Turn], *, of: str) -> None:
        super().__init__(turns)
        self._of = of

    def __repr__(self) -> str:
        return transcript_text(self, of=self._of)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": transcript_html(self, of=self._of)}


def transcript_text(turns: Sequence[Turn], *, of: str) -> str:
    """Return a transcript as plain text, turn by turn, exactly what the model read and said."""
    blocks = [
        f"── {title} ──\n{_body(turn)}".rstrip()
        for title, turn in zip(_titles(turns, of), turns, strict=True)
    ]
    return "\n\n".join(blocks) or f"{of} has no turns yet."


def transcript_html(turns: Sequence[Turn], *, of: str) -> str:
    """Return a transcript as HTML that reads without any style sheet."""
    if not turns:
        return f"<p>{html.escape(of)} has no turns yet.</p>"
    return "\n".join(
        f'<p style="margin:0.8em 0 0.2em"><strong>'
        f"{html.escape(title)}</strong></p>\n"
        f'<pre style="margin:0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere">{html.escape(_body(turn))}</pre>'
        for title, turn in zip(_titles(turns, of), turns, strict=True)
    )


def _titles(turns: Sequence[Turn], of: str) -> list[str]:
    """Return what stands above each turn: whose words they are, and why a run changed direction."""
    before = [None, *turns]
    return [_title(turn, last, of) for last, turn in zip(before, turns, strict=False)]


def _title(turn: Turn, last: Turn | None, of: str) -> str:
    who = "to" if turn.role is Role.USER else "by"
    end = f", run ended: {turn.end_reason}" if turn.end_reason else ""
    return f"turn {turn.index}, {who} {of}{_inbox(turn, last)}{end}"


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
