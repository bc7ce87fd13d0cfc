"""What is left of an inbox view where no widget runs: its cards as HTML, or as plain text.

The HTML is semantic first and reads with no style at all, as on GitHub; JupyterLab keeps only
inline styles of notebooks it does not trust.
"""

import json
from html import escape
from textwrap import indent
from typing import Final

from postroom_widgets.inbox_link import command
from postroom_widgets.inbox_model import APPROVAL, OPEN, about
from postroom_widgets.inbox_state import InboxState
from postroom_widgets.view_rows import Row
from postroom_widgets.wording import LAST_ROWS, arguments, clock, plural

WAITING: Final = "Waiting for you"
LOOK: Final = "To look at"
NOTHING: Final = "Nothing waits for you."
LANDS: Final = "Approvals, failures and budget stops of your agents land here."

_EDGES: Final = {"now": "#e07b00", "bad": "#d32f2f", "sys": "#888888"}
_SHOWN_RESOLVED: Final = 20


def _parts(state: InboxState) -> tuple[list[Row], list[Row], list[Row]]:
    """Return what waits for an answer, what is to be looked at and what is done, newest first."""
    rows = state.ordered()[::-1]
    waiting = [r for r in rows if r["state"] == OPEN]
    return (
        [row for row in waiting if row["face"] == APPROVAL][:LAST_ROWS],
        [row for row in waiting if row["face"] != APPROVAL][:LAST_ROWS],
        [row for row in rows if row["state"] != OPEN][:_SHOWN_RESOLVED],
    )


def _title(head: Row) -> str:
    return f"Inbox of {head['agent']}" if head.get("agent") else "Inbox"


def _facts(head: Row) -> list[str]:
    asks, news = head.get("asks", 0), head.get("news", 0)
    told = [f"{asks} waiting for you" if asks else "", f"{news} new" if news else ""]
    return [part for part in told if part]


def _earlier(state: InboxState, shown: int) -> int:
    done = sum(row["state"] != OPEN for row in state.ordered())
    return int(state.head.get("earlier", 0)) + done - shown


def _how(row: Row) -> str:
    return f"%approve {row['approval']}  or  %deny {row['approval']} REASON"


def _path(row: Row) -> str:
    return " › ".join(name for _, name in row.get("path", ()))


# ── Text ──


def inbox_text(state: InboxState) -> str:
    """Return the cards as plain text: what waits, what is to be looked at, and what was resolved."""
    asked, look, done = _parts(state)
    lines = [" · ".join([_title(state.head), *_facts(state.head)])]
    for words, rows in ((WAITING, asked), (LOOK, look)):
        if rows:
            lines += [f"-- {words}", *map(_text, rows)]
    if not asked and not look:
        lines += [NOTHING, *([] if done else [LANDS])]
    if done:
        earlier = _earlier(state, len(done))
        more = f" ({plural(earlier, 'earlier one', 'earlier ones')})" if earlier else ""
        lines.append(f"-- Resolved{more}")
        for row in done:
            parts = (clock(_when(row)), row.get("id"), about(row), row["outcome"])
            lines.append("  ".join(filter(None, parts)))
    return "\n".join(lines)


def _when(row: Row) -> str:
    return str(row.get("ended") or row["at"])


def _text(row: Row) -> str:
    new = "  new" if row.get("fresh") else ""
    head = "  ".join(filter(None, (clock(row["at"]), row.get("id")))) + new
    if row["face"] != APPROVAL:
        below = [_path(row), row.get("why", "") + _rest(row), row.get("how", "")]
        return f"{head}  {row['title']}" + _below(below)
    why = f": {row['why']}" if row.get("why") else ""
    what = f"{row.get('tool', '')}({arguments(row)})"
    return f"{head}  {row['title']} {row.get('tool', '')}{why}" + _below(
        [_path(row), what, _expires(row), _how(row)]
    )


def _below(lines: list[str]) -> str:
    return "".join(f"\n{indent(line, '    ')}" for line in lines if line)


def _rest(row: Row) -> str:
    return f"\n… {plural(row['more'], 'more character')}" if row.get("more") else ""


def _expires(row: Row) -> str:
    at = str(row.get("expires") or "")
    return f"Expires {at[:10]} {clock(at)}" if at else ""


# ── HTML ──


def inbox_html(state: InboxState) -> str:
    """Return the cards as HTML that needs no style and no script."""
    asked, look, done = _parts(state)
    head = state.head
    told = f" <small>{escape(' · '.join(_facts(head)))}</small>" if _facts(head) else ""
    style = "margin: 4px 0 8px 0; padding: 0 0 6px 0; border-bottom: 1px solid #88888866"
    parts = [f'<h4 style="{style}"><strong>{escape(_title(head))}</strong>{told}</h4>']
    for words, rows in ((WAITING, asked), (LOOK, look)):
        if rows:
            parts.append(_p(f"<strong>{words}</strong> {_small(str(len(rows)))}"))
            parts += map(_card, rows)
    if not asked and not look:
        parts.append(_p(NOTHING) + ("" if done else _p(_small(LANDS))))
    if done:
        parts.append(_resolved(done, _earlier(state, len(done))))
    at = f"Saved {clock(head['at'])} without" if head.get("at") else "Saved without"
    parts.append(
        _p(_small(f"{at} a kernel. Run {_code(command(head.get('agent', '')))} to answer."))
    )
    # The class names keep MathJax from reading "$5 and $6" as a formula.
    return f'<div class="postroom-static mathjax_ignore tex2jax_ignore">{"".join(parts)}</div>'


def _card(row: Row) -> str:
    tool = f" {_code(row['tool'])}" if row["face"] == APPROVAL and row.get("tool") else ""
    new = " · new" if row.get("fresh") else ""
    when = _small(
        f"{_code(row.get('id', ''))} {clock(row['at'])}{new}".removeprefix("<code></code> ")
    )
    parts = [_p(f"<strong>{escape(row['title'])}{tool}</strong> {when}")]
    if row.get("path"):
        parts.append(_p(_small(escape(_path(row)))))
    if row.get("why"):
        more = _small(escape(_rest(row))) if row.get("more") else ""
        parts.append(_p(escape(row["why"]).replace("\n", "<br>") + more))
    if row.get("args"):
        parts.append(_arguments(row["args"]))
    if row.get("traceback"):
        parts.append(_traceback(str(row["traceback"]).strip()))
    if row.get("how"):
        parts.append(_p(_small(escape(row["how"]))))
    if row["face"] == APPROVAL:
        id, expires = row["approval"], _expires(row)
        answers = f"{_code(f'%approve {id}')} or {_code(f'%deny {id} REASON')}"
        parts.append(_p(_small(" · ".join(filter(None, (answers, escape(expires)))))))
    edge = _EDGES.get(row["tone"], _EDGES["sys"])
    style = f"border-left: 3px solid {edge}; margin: 6px 0 6px 0; padding: 2px 0 2px 10px"
    return f'<blockquote style="{style}">{"".join(parts)}</blockquote>'


def _arguments(args: Row) -> str:
    rows = (
        f"<tr><td>{_code(name)}</td><td>{_code(json.dumps(value, ensure_ascii=False))}</td></tr>"
        for name, value in args.items()
    )
    return f"<table>{''.join(rows)}</table>"


def _traceback(text: str) -> str:
    lines = _small(f"Traceback, {plural(len(text.splitlines()), 'line')}")
    return f"<details><summary>{lines}</summary><pre>{escape(text)}</pre></details>"


def _resolved(done: list[Row], earlier: int) -> str:
    rows = (
        f"<tr><td>{_code(row.get('id', ''))}</td><td>{escape(about(row))}</td>"
        f"<td>{escape(row['outcome'])}</td><td>{clock(_when(row))}</td></tr>"
        for row in done
    )
    words = f"{earlier} earlier in the room file" if earlier else ""
    more = f" {_small(words)}" if words else ""
    return _p(f"<strong>Resolved</strong>{more}") + f"<table>{''.join(rows)}</table>"


def _p(html: str) -> str:
    return f'<p style="margin: 2px 0 2px 0">{html}</p>'


def _small(html: str) -> str:
    return f"<small>{html}</small>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
