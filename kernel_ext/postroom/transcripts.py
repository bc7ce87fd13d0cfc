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
    blocks = [f"{_title(turn, of)}\n{_body(turn)}".rstrip() for turn in turns]
    return "\n\n".join(blocks) or f"{of} has no turns yet."


def transcript_html(turns: Sequence[Turn], *, of: str) -> str:
    """Return a transcript as HTML that reads without any style sheet."""
    if not turns:
        return f"<p>{html.escape(of)} has no turns yet.</p>"
    return "\n".join(
        f'<p style="margin:0.8em 0 0.2em"><strong>'
        f"{html.escape(_title(turn, of, line=False))}</strong></p>\n"
        f'<pre style="margin:0;white-space:pre-wrap;overflow-wrap:anywhere">{html.escape(_body(turn))}</pre>'
        for turn in turns
    )


def _title(turn: Turn, of: str, *, line: bool = True) -> str:
    who = "to" if turn.role is Role.USER else "by"
    end = f", run ended: {turn.end_reason}" if turn.end_reason else ""
    title = f"turn {turn.index}, {who} {of}{end}"
    return f"── {title} ──" if line else title


def _body(turn: Turn) -> str:
    parts = [f"{result.call} {result.tool} → {result.content}" for result in turn.results]
    parts += [turn.text] if turn.text else []
    parts += [_request(call) for call in turn.calls]
    return printable("\n".join(parts))


def _request(call: ToolRequest) -> str:
    if call.malformed:
        return f"* {call.tool}: {call.malformed}"
    return f"* {call.id} {call.tool}({arguments_text(call.arguments)})"
