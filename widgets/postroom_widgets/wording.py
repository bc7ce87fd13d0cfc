"""The words of a view's states, shared by what is saved as HTML and as text.

The live view has the same words in ``static/rows.js``; a test holds the two together.
"""

import json
from datetime import datetime
from typing import Final

from postroom_runtime.contracts.spending import money
from postroom_widgets.view_rows import Row

LAST_ROWS: Final = 50

CALL_STATES: Final = {
    "pending": "pending",
    "running": "running",
    "deferred": "waiting for you",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "timed out",
    "orphaned": "orphaned",
    "denied": "denied",
}

WITHDRAWN: Final = "withdrawn before it was read"
"""Said under mail that was taken back."""

ASK: Final = "Runs only if you approve."
"""Said under a call that waits for its owner."""

END_REASONS: Final = {
    "answer": "final answer",
    "budget": "budget of rounds",
    "no_reply": "nothing to say",
    "stopped": "stopped by you",
    "paused": "paused",
    "failed": "failed",
    "closed": "session closed",
    "capped": "cap reached",
    "interrupted": "the kernel ended",
}

CAPS: Final = {
    "max_autonomous_rounds": "budget of rounds without a word from you",
    "max_requests": "budget of requests",
    "max_tokens": "budget of tokens",
    "max_cost": "budget of money",
    "room.max_requests": "budget of requests of the room",
    "room.max_tokens": "budget of tokens of the room",
    "room.max_cost": "budget of money of the room",
}
"""Why a run was capped, by the knob that did it."""

MARKS: Final = {
    "final_answer": "Rounds used up: a last answer, without tools",
    "continuation": "Asked to go on",
}

KEPT: Final = (
    "Nothing was lost: what was stored is kept, unread mail too. "
    "Send mail or run %resume {name} to go on."
)
"""Said under a failure."""


def clock(iso: str | None) -> str:
    """Return the time of day of an ISO time, in this machine's zone; '' for none."""
    return datetime.fromisoformat(iso).astimezone().strftime("%H:%M:%S") if iso else ""


def minute(iso: str) -> str:
    """Return the day and minute of an ISO time, in this machine's zone."""
    return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M")


def span(seconds: float | None) -> str:
    """Return a duration as people write it: ``0.8 s``, ``12 s``, ``1 m 52 s``, ``2 h 5 m``."""
    if not seconds or seconds < 0.05:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} m {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"


def count(n: int) -> str:
    """Return a number of tokens: ``318``, ``2.1k``, ``1.3M``."""
    if n < 1000:
        return str(n)
    return f"{n / 1000:.1f}k" if n < 999_950 else f"{n / 1e6:.1f}M"


def plural(n: int, one: str, many: str = "") -> str:
    """Return ``1 round`` or ``3 rounds``."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def status_words(head: Row) -> str:
    """Return what a session is doing: ``running · turn 4`` or ``idle · stopped``."""
    status, turn = str(head["status"]), head.get("turn")
    if head.get("needs"):
        return str(head["needs"])
    if status == "running" and turn:
        return f"running · turn {turn}"
    if status == "waiting" and head.get("calls"):
        return f"waiting · {plural(head['calls'], 'call')}"
    if status in ("waiting", "idle") and head.get("asks"):
        n = head["asks"]
        return f"{status} · {plural(n, 'call waits', 'calls wait')} for you"
    if status == "idle" and head.get("end") == "stopped":
        return "idle · stopped"
    if status == "failed" and turn:
        return f"failed · in turn {turn}"
    if status == "paused":
        return "paused · mail is kept"
    if status == "capped":
        return "capped · mail from you goes on"
    return status


def facts(head: Row) -> list[str]:
    """Return the rest of a view's head: agent and model, unread, running calls, tokens, money."""
    # A script is often called as its agent is: once is enough.
    told = [" · ".join(dict.fromkeys(filter(None, (str(head["agent"]), head.get("model")))))]
    if head.get("unread"):
        told.append(f"{head['unread']} unread")
    if head.get("calls"):
        told.append(plural(head["calls"], "call") + " running")
    if head.get("asks"):
        told.append(f"{head['asks']} waiting for you")
    if head.get("tokens"):
        told.append(f"{count(head['tokens'])} tokens")
    if head.get("cost"):
        told.append(money(head["cost"]))
    return told


def flags(mail: Row) -> list[str]:
    """Return what a mail's first line says after the sender."""
    told = []
    if mail.get("of"):
        told.append(str(mail["of"]))
    if mail.get("interrupt"):
        told.append("interrupt")
    if mail.get("re"):
        told.append(f"re {mail['re']}")
    if mail.get("result"):
        turn = mail.get("turn_of_call")
        state = str(mail["result"])
        if state == "completed":
            told.append(f"result of the call in turn {turn}" if turn else "result")
        else:
            told.append(CALL_STATES.get(state, state) + (f" call of turn {turn}" if turn else ""))
    if mail.get("hops"):
        told.append(plural(mail["hops"], "hop"))
    if mail.get("expects"):
        told.append("expects reply")
    return told


def receipt(mail: Row) -> str:
    """Return how far a mail got: ``delivered in turn 3 — answered in turn 4``."""
    state = mail.get("state")
    if mail.get("control") or state == "read":
        return ""
    if state == "queued":
        return "queued, not delivered yet"
    if state == "withdrawn":
        return WITHDRAWN
    steps = [f"delivered in turn {mail['turn']}"] if mail.get("turn") else []
    if state == "answered":
        by = f" by {mail['by']}" if mail.get("by") else ""
        steps.append(f"answered in turn {mail['answered']}{by}")
    return " — ".join(steps)


def arguments(call: Row, limit: int = 160) -> str:
    """Return a call's arguments on one line: ``suite="fast", workers=4``."""
    pairs = call.get("args", {}).items()
    line = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in pairs)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def call_state(call: Row) -> str:
    """Return where a call stands, in words."""
    state = str(call["state"])
    if call.get("sent"):
        return "sent"
    if state == "completed" and call.get("mail"):
        return "completed by mail"
    return CALL_STATES.get(state, state)


def call_note(call: Row) -> str:
    """Return what a call's second line says; '' when it has none."""
    if sent := call.get("sent"):
        to = f"{sent.get('mail', 'mail')} to {sent.get('name', sent.get('to', ''))}"
        return " · ".join(filter(None, [to, sent_receipt(sent)]))
    told = []
    if call["state"] == "deferred":
        how = f" %approve {call['approval']}" if call.get("approval") else ""
        until = f"until {minute(call['until'])}" if call.get("until") else ""
        return " · ".join(filter(None, [call.get("reason"), f"{ASK}{how}", until]))
    if call.get("error") and call["state"] not in ("cancelled", "denied"):
        told.append(str(call["error"]).strip().partition("\n")[0])
    if call.get("decided"):
        told.append(str(call["decided"]))
    if call.get("hold"):
        result = f" → result in {call['mail']}" if call.get("mail") else ""
        told.append(f"placeholder: {call['hold']}{result}")
    if child := call.get("child"):
        told.append(f"{child['name']} child · {child_command(call)}")
    return " · ".join(filter(None, [*told, progress_words(call.get("progress"))]))


def sent_receipt(sent: Row) -> str:
    """Return how far a letter got that a call sent: ``delivered in its turn 2``."""
    if sent.get("turn"):
        return f"delivered in its turn {sent['turn']}"
    if sent.get("read"):
        return "delivered"
    if sent.get("left"):
        return "closed before it was read"
    return "queued, not delivered yet" if sent.get("seq") else ""


def child_command(call: Row) -> str:
    """Return what shows the session that a call works in: live while it lives, then what it said."""
    child = call["child"]
    running = call["state"] in ("pending", "running", "deferred")
    return f"%watch {child['name']}" if running else f"%transcript {child['id']}"


def progress_words(progress: Row | None) -> str:
    """Return a report of a call: ``5 of 8 · 19 commits left``; '' for none."""
    if not progress:
        return ""
    done, total = progress.get("done", 0), progress.get("total")
    share = f"{done:g} of {total:g}" if total else f"{done:g}" if done else ""
    return " · ".join(part for part in (share, progress.get("text")) if part)


def turn_facts(turn: Row) -> str:
    """Return what a model turn took: ``12 s · 2.1k in · 318 out · $0.017``."""
    if turn.get("live"):
        return streamed_words(turn)
    told = [span(turn.get("seconds"))]
    told += [f"{count(turn[k])} {k}" for k in ("in", "out") if turn.get(k)]
    told.append(money(turn.get("cost")))
    return " · ".join(part for part in told if part)


def streamed_words(turn: Row) -> str:
    """Return how much of a turn is there: ``streaming · 240 characters``.

    How many tokens they are is told when the turn is whole; until then only this is known.
    """
    letters = len(turn.get("text", "")) + turn.get("more", 0)
    if not letters:
        return "asked"
    return f"streaming · {letters:,} character{'' if letters == 1 else 's'}"


def rounds_words(end: Row) -> str:
    """Return how many rounds of how many a run took: ``5 of 13 rounds, extended once``."""
    rounds, allowed, extended = (end.get(k, 0) for k in ("rounds", "allowed", "extended"))
    if not rounds or not allowed:
        return plural(rounds, "round") if rounds else ""
    told = f"{min(rounds, allowed)} of {plural(allowed, 'round')}"
    if extended:
        told += ", extended " + ("once" if extended == 1 else f"{extended} times")
    # The model is asked once more when its rounds are used up.
    return told + (" and a last answer" if rounds > allowed else "")


def end_words(end: Row) -> tuple[str, str]:
    """Return how a run ended: the head of the line, and the rest of it."""
    reason = str(end.get("reason", ""))
    told = [CAPS.get(str(end.get("cap")), END_REASONS.get(reason, reason))]
    told += [rounds_words(end), span(end.get("seconds"))]
    head = (
        "Run failed" if reason == "failed" else "Run paused" if reason == "paused" else "Run ended"
    )
    rest = [part for part in told if part and part not in ("paused", "failed")]
    return head, " · ".join(rest)


def mark_words(mark: Row) -> tuple[str, str]:
    """Return what a mark in the feed says: its head, and the rest."""
    match mark["mark"]:
        case "interrupt":
            n = mark.get("detached", 0)
            kept = f"{plural(n, 'attached call')} detached, keeps running" if n == 1 else ""
            kept = kept or (f"{n} attached calls detached, keep running" if n else "")
            return f"Interrupted by {mark['by']}", " · ".join(filter(None, (mark["id"], kept)))
        case "inbox":
            return "INBOX", f"{plural(mark['count'], 'mail')} read into turn {mark['turn']}"
        case other:
            return MARKS.get(str(other), str(other)), ""
