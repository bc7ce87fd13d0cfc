"""What is left of a view where only text is shown: its transcript."""

from textwrap import indent

from postroom_widgets.view_rows import Row
from postroom_widgets.view_state import ViewState
from postroom_widgets.wording import (
    LAST_ROWS,
    arguments,
    call_note,
    call_state,
    clock,
    end_words,
    facts,
    flags,
    mark_words,
    plural,
    receipt,
    span,
    status_words,
    turn_facts,
)


def static_text(state: ViewState) -> str:
    """Return the last 50 rows of a view as plain text.

    Mail is ``10:03:02  you → rev  interrupt  m-7f3a`` with its text indented below, a model's turn
    ``-- turn 4``, a call ``* deploy_status(target="staging") failed 2.0 s``.
    """
    rows = state.ordered()
    head = state.head
    lines = [" · ".join([head["name"], status_words(head), *facts(head)])]
    if len(rows) > LAST_ROWS:
        lines.append(f"({plural(len(rows) - LAST_ROWS, 'earlier entry', 'earlier entries')})")
    if not rows:
        lines.append("No mail yet.")
    lines += [_row(row, head["name"]) for row in rows[-LAST_ROWS:]]
    return "\n".join(lines)


def _row(row: Row, name: str) -> str:
    match row["kind"]:
        case "mail":
            return _mail(row, name)
        case "turn":
            parts = [f"-- turn {row['index']}", turn_facts(row)]
            return _with("  ".join(filter(None, parts)), row.get("text"), row.get("more"))
        case "call":
            took = span(row.get("seconds"))
            line = f"* {row.get('tool', '')}({arguments(row)}) {call_state(row)} {took}".rstrip()
            return _with(line, call_note(row))
        case "mark":
            return "== " + " · ".join(filter(None, mark_words(row)))
        case "end":
            return "== " + " · ".join(filter(None, end_words(row)))
        case _:
            return _with("== The run failed", row.get("text"))


def _mail(mail: Row, name: str) -> str:
    line = f"{clock(mail['at'])}  {mail['name']} → {name}"
    if mail.get("control"):
        return f"{line}  {mail['text']}  {mail['id']}"
    line = "  ".join([line, *flags(mail), mail["id"]])
    text = _with(line, mail.get("text"), mail.get("more"))
    return _with(text, f"({receipt(mail)})" if receipt(mail) else "")


def _with(line: str, text: str | None, more: int | None = 0) -> str:
    if not text:
        return line
    rest = f"\n… {plural(more, 'more character')}" if more else ""
    return f"{line}\n{indent(text + rest, '    ')}"
