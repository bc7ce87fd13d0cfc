"""What is left of a view where no widget runs: on GitHub, in an export, in a notebook not trusted.

It reads with no style at all: every state is a word, and nothing is drawn. The few inline styles
are such as JupyterLab's sanitizer lets through. Whatever somebody wrote is escaped.
"""

import json
from html import escape
from typing import Final

from postroom_widgets.prose import prose_parts
from postroom_widgets.view_rows import Row
from postroom_widgets.view_state import ViewState
from postroom_widgets.wording import (
    KEPT,
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

_EDGE: Final = {"user": "#1976d2", "agent": "#9c4fd6", "tool": "#0097a7", "sys": "#888888"}
_NOW, _BAD, _LINE = "#e07b00", "#d32f2f", "#88888866"


def static_html(state: ViewState) -> str:
    """Return the last 50 rows of a view as HTML that needs no style and no script."""
    rows, head = state.ordered(), state.head
    name = head["name"]
    parts = [_head(head)]
    earlier = len(rows) - LAST_ROWS
    if earlier > 0:
        words = f"{plural(earlier, 'earlier entry is', 'earlier entries are')} in the room file"
        parts.append(_p(_small(words)))
    if not rows:
        parts.append(_p(f"No mail yet. {_small('Write with ' + _code(f'%send {name} …'))}"))
    parts += [_row(row, name) for row in rows[-LAST_ROWS:]]
    at = f"Saved {clock(head.get('at'))} without" if head.get("at") else "Saved without"
    parts.append(_p(_small(f"{at} a kernel. Run {_code(f'%watch {name}')} to see it live.")))
    # The class names keep MathJax from reading "$5 and $6" as a formula.
    return f'<div class="postroom-static mathjax_ignore tex2jax_ignore">{"".join(parts)}</div>'


def _head(head: Row) -> str:
    about = escape(" · ".join([status_words(head), *facts(head)]))
    style = f"margin: 4px 0 8px 0; padding: 0 0 6px 0; border-bottom: 1px solid {_LINE}"
    name = f"<strong>{escape(head['name'])}</strong>"
    return f'<h4 style="{style}">{name} <small>{about}</small></h4>'


def _row(row: Row, name: str) -> str:
    match row["kind"]:
        case "mail":
            return _mail(row)
        case "turn":
            about = " · ".join(filter(None, [clock(row.get("at")), turn_facts(row)]))
            line = f"<strong>Turn {row['index']}</strong> {_small(escape(about))}"
            return _p(line, "margin: 12px 0 2px 0") + _prose(row)
        case "call":
            return _call(row)
        case "mark":
            head, rest = mark_words(row)
            line = f"<strong>{escape(head)}</strong> {_small(escape(rest))}"
            return _p(line, "margin: 12px 0 4px 0")
        case "end":
            head, rest = end_words(row)
            return _p(_small(f"<strong>{escape(head)}</strong> · {escape(rest)}".rstrip(" ·")))
        case _:
            return _failure(row, name)


def _mail(mail: Row) -> str:
    color = _NOW if mail.get("interrupt") else _EDGE.get(str(mail.get("tone")), _EDGE["sys"])
    said = [f"<strong>{escape(mail['name'])}</strong>", *(escape(flag) for flag in flags(mail))]
    if mail.get("control"):
        said.append(escape(mail["text"]))
    line = f"{' · '.join(said)} {_small(_code(mail['id']) + ' ' + clock(mail['at']))}"
    text = "" if mail.get("control") else _pre(mail) if mail.get("mono") else _prose(mail)
    fate = _p(_small(escape(receipt(mail)))) if receipt(mail) else ""
    style = f"border-left: 3px solid {color}; margin: 6px 0 6px 0; padding: 2px 0 2px 10px"
    return f'<blockquote style="{style}">{_p(line)}{text}{fate}</blockquote>'


def _call(call: Row) -> str:
    took = " · ".join(filter(None, [call_state(call), span(call.get("seconds"))]))
    what = _code(f"{call.get('tool', '')}({arguments(call)})")
    note = call_note(call)
    args = json.dumps(call.get("args", {}), indent=2, ensure_ascii=False)
    body = _p(_small(f"arguments · {escape(call['id'])}")) + f"<pre>{escape(args)}</pre>"
    for part in ("result", "error"):
        if call.get(part):
            body += _p(_small(part)) + _pre({"text": call[part], "more": call.get("more", 0)})
    line = f"<summary>{what} {_small(escape(took))}</summary>"
    return f'<details style="margin: 2px 0 2px 0">{line}{body}</details>' + (
        _p(_small(escape(note)), "margin: 0 0 4px 16px") if note else ""
    )


def _failure(row: Row, name: str) -> str:
    style = f"border-left: 3px solid {_BAD}; margin: 6px 0 6px 0; padding: 2px 0 2px 10px"
    traceback = str(row.get("traceback", "")).strip()
    fold = ""
    if traceback:
        summary = _small(f"Traceback, {plural(len(traceback.splitlines()), 'line')}")
        fold = f"<details><summary>{summary}</summary><pre>{escape(traceback)}</pre></details>"
    return (
        f'<blockquote style="{style}">{_p("<strong>The run failed</strong>")}'
        f"{_prose(row)}{_p(_small(escape(KEPT.format(name=name))))}{fold}</blockquote>"
    )


def _p(html: str, style: str = "margin: 2px 0 2px 0") -> str:
    return f'<p style="{style}">{html}</p>'


def _small(html: str) -> str:
    return f"<small>{html}</small>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def _prose(row: Row) -> str:
    parts = prose_parts(str(row.get("text", "")))
    html = "".join(
        f"<pre>{escape(part.text)}</pre>"
        if part.code
        else _p(escape(part.text).replace("\n", "<br>"))
        for part in parts
        if part.code or part.text
    )
    return html + (_p(_rest(row).removeprefix("<br>")) if html and row.get("more") else "")


def _pre(row: Row) -> str:
    return f"<pre>{escape(str(row.get('text', '')))}{_rest(row)}</pre>"


def _rest(row: Row) -> str:
    more = row.get("more", 0)
    return "<br>" + _small(f"… {plural(more, 'more character')}") if more else ""
