"""What is left of a switchboard where no widget runs: its sessions, and the mail as a table.

It reads with no style at all, every state is a word, and nothing is drawn. Whatever somebody wrote
is escaped.
"""

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Final

from postroom_runtime.contracts.spending import money
from postroom_widgets.view_rows import Row
from postroom_widgets.wording import LAST_ROWS, clock, count, plural

if TYPE_CHECKING:
    from postroom_widgets.board_link import BoardState

TITLE: Final = "Switchboard"
NO_SESSIONS: Final = "No sessions yet."
NO_MAIL: Final = "No mail yet."
_START: Final = "%spawn echo --as ann Hello"
_SAID: Final = 160
"""Characters of a text in the table; the room file has all of it."""


def line_words(line: Row) -> str:
    """Return what a session is doing, with what it needs."""
    if line.get("needs"):
        return str(line["needs"])
    status = str(line.get("status", ""))
    return "needs you" if status in ("idle", "waiting") and line.get("asks") else status


_INDENT: Final = "\N{NO-BREAK SPACE}" * 4
"""A space that HTML does not fold away."""


def dot_of(line: Row) -> str:
    """Return which sign stands before the word: ``running``, ``idle``, ``waiting`` and so on.

    ``tree.js`` has the same rule.
    """
    status = str(line.get("status", ""))
    if status == "waiting":
        return "waiting" if line.get("asks") or not line.get("calls") else "running"
    if status == "idle" and line.get("asks"):
        return "waiting"
    if status == "capped":
        return "paused"
    if status == "closed" or (status == "idle" and line.get("end") == "stopped"):
        return "stopped"
    return status


def kind_words(mark: Row) -> str:
    """Return what kind of thing happened: ``interrupt, m-0003, 2 hops, not read yet``."""
    told = [] if mark["what"] in ("mail", "spawn", "close", "failed") else [mark["what"]]
    told += [mark["id"]] if mark.get("id") and mark["what"] not in ("spawn", "close") else []
    told += [f"re {mark['re']}"] if mark.get("re") else []
    told += ["expects reply"] if mark.get("expects") else []
    told += ["lowered to normal"] if mark.get("lowered") else []
    told += [plural(mark["hops"], "hop")] if mark.get("hops") else []
    told += ["not read yet"] if mark.get("unread") else []
    return ", ".join(told)


def names_of(lines: list[Row]) -> dict[str, str]:
    """Return what to call each lifeline: its name, with its id where several have the name."""
    names = [line["name"] for line in lines]
    shown = {
        line["id"]: f"{line['name']} ({line['id']})"
        if names.count(line["name"]) > 1
        else line["name"]
        for line in lines
    }
    return {"": "you", **shown}


def who_words(mark: Row, names: Mapping[str, str]) -> str:
    """Return ``lead → rev``, or one name where it concerns one only."""
    source = names.get(mark.get("from", ""), "?")
    target = names.get(mark.get("to", ""), "?")
    return source if source == target else f"{source} → {target}"


def facts(head: Row) -> list[str]:
    """Return the numbers of the head: sessions, running, unread, tokens, money."""
    told = [plural(head.get("sessions", 0), "session")]
    told += [f"{head['running']} running"] if head.get("running") else []
    told += [f"{head['unread']} unread"] if head.get("unread") else []
    told += [f"{head['asks']} waiting for you"] if head.get("asks") else []
    told += [f"{count(head['tokens'])} tokens"] if head.get("tokens") else []
    told += [money(head["cost"])] if head.get("cost") else []
    told += [f"step mode, {head.get('held', 0)} held"] if head.get("stepping") else []
    return told


def tree(lines: list[Row]) -> list[tuple[int, Row]]:
    """Return the sessions as a tree, depth first: how deep each lies, and its row."""
    known = {line["id"] for line in lines}
    below: dict[str, list[Row]] = {}
    for line in lines:
        parent = line.get("parent") or ""
        below.setdefault(parent if parent in known else "", []).append(line)
    found: list[tuple[int, Row]] = []
    left = [(0, line) for line in reversed(below.get("", []))]
    while left:
        depth, line = left.pop()
        found.append((depth, line))
        left += [(depth + 1, child) for child in reversed(below.get(line["id"], []))]
    return found


def said(mark: Row) -> str:
    """Return the words of a mark, cut to what a table holds."""
    label = str(mark.get("label") or "(no words)")
    return label if len(label) <= _SAID else f"{label[: _SAID - 1].rstrip()}…"


# ── HTML ──


def board_html(state: "BoardState") -> str:
    """Return sessions and the last 50 things that happened as tables."""
    lines, marks, head = state.lines(), state.marks(), state.head
    about = escape(" · ".join(facts(head)))
    title = f"<h4><strong>{TITLE}</strong> {escape(head['name'])} <small>{about}</small></h4>"
    parts = [title, _sessions(lines), _mail(marks, names_of(lines))]
    at = f"Saved {clock(head.get('at'))} without" if head.get("at") else "Saved without"
    parts.append(
        f"<p><small>{at} a kernel. Run <code>%watch --all</code> to see it live.</small></p>"
    )
    # The class names keep MathJax from reading "$5 and $6" as a formula.
    return f'<div class="postroom-static mathjax_ignore tex2jax_ignore">{"".join(parts)}</div>'


def _sessions(lines: list[Row]) -> str:
    if not lines:
        return f"<p>{NO_SESSIONS} <small>Start one with <code>{_START}</code></small></p>"
    columns = ["session", "agent", "status", "unread", "calls", "tokens"]
    priced = any(line.get("cost") for line in lines)
    head = _row([*columns, "cost"] if priced else columns, "th")
    body = "".join(
        _row(
            [
                _INDENT * depth + line["name"],
                line.get("agent", ""),
                line_words(line),
                str(line.get("unread", "")),
                str(line.get("calls", "")),
                count(line["tokens"]) if line.get("tokens") else "",
                *([money(line.get("cost"))] if priced else []),
            ]
        )
        for depth, line in tree(lines)
    )
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _mail(marks: list[Row], names: Mapping[str, str]) -> str:
    if not marks:
        return f"<p>{NO_MAIL}</p>"
    earlier = len(marks) - LAST_ROWS
    note = f"<p><small>{_earlier(earlier)}</small></p>" if earlier > 0 else ""
    head = _row(["time", "from → to", "kind", "text"], "th")
    body = "".join(
        _row([clock(mark["at"]), who_words(mark, names), kind_words(mark), said(mark)])
        for mark in marks[-LAST_ROWS:]
    )
    return f"{note}<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(cells: list[str], tag: str = "td") -> str:
    begin = f'<{tag} style="text-align: left; vertical-align: top">'
    return f"<tr>{''.join(f'{begin}{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _earlier(n: int) -> str:
    return f"{plural(n, 'earlier entry is', 'earlier entries are')} in the room file"


# ── Text ──


def board_text(state: "BoardState") -> str:
    """Return sessions and the last 50 things that happened as plain text."""
    lines, marks, head = state.lines(), state.marks(), state.head
    told = [" · ".join([f"{TITLE} {head['name']}", *facts(head)])]
    if not lines:
        return "\n".join([*told, NO_SESSIONS])
    for depth, line in tree(lines):
        about = [str(line.get("agent", "")), line_words(line)]
        about += [f"{line['unread']} unread"] if line.get("unread") else []
        about += [plural(line["calls"], "call")] if line.get("calls") else []
        about += [money(line["cost"])] if line.get("cost") else []
        told.append(f"{'  ' * (depth + 1)}{line['name']}  {' · '.join(filter(None, about))}")
    if not marks:
        return "\n".join([*told, NO_MAIL])
    if len(marks) > LAST_ROWS:
        told.append(f"({_earlier(len(marks) - LAST_ROWS)})")
    names = names_of(lines)
    told += [_told(mark, names) for mark in marks[-LAST_ROWS:]]
    return "\n".join(told)


def _told(mark: Row, names: Mapping[str, str]) -> str:
    kind = kind_words(mark)
    words = f"{clock(mark['at'])}  {who_words(mark, names)}  {said(mark)}"
    return f"{words}  [{kind}]" if kind else words
