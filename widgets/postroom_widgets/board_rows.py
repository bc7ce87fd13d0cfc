"""What a room looks like in the switchboard: pure functions from its diagram to rows.

A row has ``key``, ``v`` and ``o`` as those of a session's view, and ``kind``: line (a session), mark
(what happened), bar (a call in time) or run. Marks, bars and runs lie by their journal row, sessions
after all of them, so that whoever gets the last rows gets every session. Sessions go by their ids,
the owner by ''. Fields that are empty, zero or false are left out.
"""

from typing import TYPE_CHECKING, Final

from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.office.sequence import Bar, Lifeline, Mark, Run
from postroom_runtime.office.sequence_words import one_line
from postroom_widgets.view_rows import Row, clipped, lean

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session

MAX_LABEL: Final = 240
"""Characters on an arrow; no screen shows more."""
MAX_SAID: Final = 4_000
"""Characters of one text in the pane below the diagram; the session's own view has more."""

_BARS, _RUNS, _LINES = 2**40, 2**41, 2**50


def line_key(line: str) -> str:
    """Return the key of a session's row."""
    return f"l:{line}"


def mark_row(mark: Mark, at: int) -> Row:
    """Return the row of the mark at place ``at``."""
    text, more = clipped(mark.text, MAX_SAID)
    label = one_line(mark.label)[:MAX_LABEL]
    return {
        "key": f"e:{at}",
        "kind": "mark",
        "o": [mark.n, at],
        "n": mark.n,
        "at": mark.at.isoformat(),
        "what": str(mark.kind),
        "from": mark.source,
        "to": mark.target,
        "tone": str(mark.tone),
        "label": label,
        "text": "" if text == label else text,
        "more": more,
        "id": mark.id,
        "unread": mark.unread,
        "re": mark.re,
        "hops": mark.hops,
        "turn": mark.turn,
        "expects": "expects reply" in mark.flags,
        "lowered": "interrupt lowered to normal" in mark.flags,
    }


def bar_row(bar: Bar) -> Row:
    """Return the row of a call in time."""
    return {
        "key": f"b:{bar.call}",
        "kind": "bar",
        "o": [bar.begun, _BARS],
        "call": bar.call,
        "session": bar.session,
        "tool": bar.tool,
        "begun": bar.begun,
        "detached": bar.detached,
        "ended": bar.ended,
        "state": bar.state,
        "returned": bar.returned,
    }


def run_row(run: Run, at: int) -> Row:
    """Return the row of the run at place ``at``."""
    return {
        "key": f"r:{at}",
        "kind": "run",
        "o": [run.begun, _RUNS + at],
        "session": run.session,
        "begun": run.begun,
        "ended": run.ended,
    }


def line_row(line: Lifeline, at: int) -> Row:
    """Return the row of a session, as far as the journal tells it."""
    return {
        "key": line_key(line.id),
        "kind": "line",
        "o": [_LINES, at],
        "id": line.id,
        "name": one_line(line.name) or line.id,
        "agent": line.agent,
        "parent": line.parent,
        "born": line.born,
        "closed": line.closed,
        **({"status": str(SessionStatus.CLOSED)} if line.closed else {}),
    }


def now_row(session: "Session") -> Row:
    """Return what the row of an open session says besides: how it stands now."""
    status, words = str(session.status), session.status_words()
    table, usage = session.life.table, session.usage
    return {
        "status": status,
        "needs": words if words != status else None,
        "unread": session.unread,
        "calls": len(table.open_calls()),
        "asks": len(table.deferred()),
        "tokens": usage.input_tokens + usage.output_tokens,
        "cost": usage.cost,
        "requests": usage.requests,
        "end": str(session.end_reason or ""),
        "hidden": session.record.hidden,
    }


def short(row: Row, limit: int) -> Row:
    """Return a row with its text cut to ``limit`` characters."""
    text, more = clipped(str(row.get("text", "")), limit)
    return lean({**row, "text": text, "more": row.get("more", 0) + more})
