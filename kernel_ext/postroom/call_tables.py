"""What is told of tool calls and of what waits for the owner: records in, tables and words out. Pure."""

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

from postroom.display import arguments_text, as_words
from postroom.grids import Column, Grid
from postroom_runtime.calls.strays import NOTE
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.entries import RESOLVED
from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import inbox_agent
from postroom_widgets.wording import CALL_STATES, span

# ── Calls ──


def call_grid(
    calls: Sequence[Call],
    *,
    names: Mapping[str, str],
    approvals: Sequence[Approval],
    now: datetime,
    lingering: Container[str] = (),
    of: str = "",
) -> Grid:
    """Return the listing of tool calls, in the order they were made.

    Args:
        calls: The calls.
        names: Names of sessions by id.
        approvals: All approvals of the room, answered ones too, oldest first.
        now: Until when the calls that run have been running.
        lingering: Ids of those that were ended and still run (M-73).
        of: Name of the one session whose calls they are; '' for those of all.
    """
    asked = {approval.call: approval for approval in approvals}
    rows = tuple(
        (
            call.id,
            names.get(call.session, call.session),
            "\n".join(
                filter(
                    None,
                    [f"{call.tool}({arguments_text(call.arguments)})", policy_words(call.policy)],
                )
            ),
            state_words(call, asked.get(call.id))
            + (", still running" if call.id in lingering else ""),
            elapsed(call, now),
            _outcome(call, asked.get(call.id)) + (f"\n{NOTE}" if call.id in lingering else ""),
        )
        for call in calls
    )
    return Grid(
        (
            Column("id"),
            Column("session"),
            Column("call", text=True),
            Column("state"),
            Column("time", number=True),
            Column("result", text=True),
        ),
        rows,
        empty="No tool calls yet.",
        more=f"calls = %calls {of}".rstrip(),
        latest=True,
    )


_REFUSED = (ApprovalState.DENIED, ApprovalState.EXPIRED)


def state_words(call: Call, approval: Approval | None) -> str:
    """Return where a call stands, as people say it; ``approval`` is its last question, if any."""
    if call.state is CallState.FAILED and approval and approval.state in _REFUSED:
        return str(approval.state)
    return CALL_STATES[call.state]


def elapsed(call: Call, now: datetime) -> str:
    """Return how long a call took, or has been running; '' before it started and while it waits."""
    end = now if call.state is CallState.RUNNING else call.ended_at
    if call.started_at is None or end is None:
        return ""
    return span((end - call.started_at).total_seconds())


def _outcome(call: Call, approval: Approval | None) -> str:
    if call.state is CallState.DEFERRED:
        reason = f"{call.reason}\n" if call.reason else ""
        return f"{reason}{answer_words(approval)}" if approval else call.reason
    if call.state.final:
        return as_words(call.result)
    return progress_words(call)


def progress_words(call: Call) -> str:
    """Return a call's last report: ``5/8 19 commits left``; '' when there was none."""
    if not call.progress:
        return ""
    last = call.progress[-1]
    of = f"/{last.total:g}" if last.total is not None else ""
    done = f"{last.done:g}{of}" if of or last.done else ""
    return f"{done} {last.text}".strip()


def policy_words(policy: Mapping[str, Json] | None) -> str:
    """Return what wrapped a call: ``runAsync 10 s · truncate 65536 · retries 2``, outermost first.

    Args:
        policy: As recorded on the call (M-116).

    Returns:
        '' for a call that was waited for to its end and not wrapped: there is nothing to tell.
    """
    if not policy:
        return ""
    wrapped = [_decorator(decorator) for decorator in policy.get("decorators") or ()]
    disposition = policy.get("disposition") or {}
    how = str(disposition.get("tag", ""))
    if how == "runSync" and not wrapped:
        return ""
    if disposition.get("attachSeconds") is not None:
        how = f"{how} {disposition['attachSeconds']:g} s"
    return " · ".join([how, *wrapped])


def _decorator(decorator: Mapping[str, Json]) -> str:
    tag = str(decorator.get("tag", ""))
    match tag:
        case "timeout":
            return f"timeout {decorator['seconds']:g} s"
        case "retries":
            return f"retries {decorator['count']}"
        case "truncate":
            return f"truncate {decorator['maxBytes']}"
        case "label":
            return f"label {decorator['label']}"
        case "before" | "after":
            return f"{tag} {_hook(decorator.get('hook') or {})}"
        case _:
            return tag


def _hook(hook: Mapping[str, Json]) -> str:
    command = hook.get("command", "")
    program = command if isinstance(command, str) else " ".join(map(str, command))
    return str(hook.get("tool") or program)


# ── What waits for the owner ──


def inbox_grid(entries: Sequence[Envelope], *, approvals: Sequence[Approval], of: str = "") -> Grid:
    """Return the listing of owner inboxes.

    Args:
        entries: In the order they were written.
        approvals: All approvals of the room, answered ones too.
        of: The one agent whose inbox it is; '' for those of all.
    """
    known = {approval.id: approval for approval in approvals}
    rows = tuple(
        (entry.id, inbox_agent(entry.session), _type(entry), _entry(entry, known))
        for entry in entries
        if _type(entry) != RESOLVED  # its card says so
    )
    return Grid(
        (Column("id"), Column("agent"), Column("kind"), Column("text", text=True)),
        rows,
        empty=f"Nothing in the inbox{f' of {of}' if of else ''}.",
        more=f"entries = %inbox{f' {of}' if of else ''}",
        latest=True,
    )


def _type(entry: Envelope) -> str:
    body = entry.body
    return body.type if isinstance(body, Notification) else str(body.kind)


def _entry(entry: Envelope, approvals: Mapping[str, Approval]) -> str:
    body = entry.body
    facts = body.metadata if isinstance(body, Notification) else {}
    approval = approvals.get(str((facts or {}).get("approval", "")))
    if approval is None:
        return entry.text
    what = f"{approval.tool}({arguments_text(approval.arguments)})"
    return f"{entry.text}\n{what}\n{answer_words(approval)}"


def answer_words(approval: Approval) -> str:
    """Return how to answer an approval, or how it was answered: ``ap-0001 approved by %approve``."""
    if approval.state is ApprovalState.PENDING:
        return f"%approve {approval.id}  or  %deny {approval.id} REASON"
    by = f" by {approval.answered_by}" if approval.answered_by else ""
    decision = approval.decision
    why = f": {decision}" if isinstance(decision, str) and decision else ""
    edited = ", arguments edited" if isinstance(decision, Mapping) else ""
    return f"{approval.id} {approval.state}{by}{edited}{why}"
