"""What is told of tool calls and of what waits for the owner."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postroom.call_tables import answer_words, call_grid, inbox_grid, policy_words
from postroom.grid_text import plain
from postroom.reports import RoomStatus
from postroom_runtime.calls.policy import apply, read_policy
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState, Progress
from postroom_runtime.contracts.envelope import Envelope, FromSystem, Notification, Priority

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = {
    "default": {"tag": "runAsync", "attachSeconds": 10},
    "rules": [{"tool": "deploy", "disposition": {"tag": "defer"}}],
    "wrappers": [
        {
            "decorators": [
                {"tag": "before", "hook": {"command": ["python", "gate.py"]}},
                {"tag": "after", "hook": {"tool": "audit"}},
                {"tag": "truncate", "maxBytes": 65536},
                {"tag": "retries", "count": 2, "backoffMs": 500},
                {"tag": "timeout", "seconds": 0.5},
                {"tag": "cache"},
                {"tag": "label", "label": "slow"},
            ]
        }
    ],
}


def call(**more: Any) -> Call:
    fields = {
        "id": "call_0001",
        "session": "s-0001",
        "tool": "run",
        "arguments": {"suite": "fast", "n": 2},
        "state": CallState.RUNNING,
        "started_at": NOW,
    }
    return Call(**{**fields, **more})


def approval(**more: Any) -> Approval:
    fields = {
        "id": "ap-0001",
        "token": "t-0001",
        "session": "s-0001",
        "agent": "rev",
        "call": "call_0001",
        "tool": "run",
        "arguments": {"suite": "fast", "n": 2},
    }
    return Approval(**{**fields, **more})


def row(call: Call, *approvals: Approval) -> tuple[str, ...]:
    (found,) = call_grid(
        [call], names={"s-0001": "ann"}, approvals=approvals, now=NOW + timedelta(seconds=12)
    ).rows
    return tuple(map(str, found))


def test_a_running_call_shows_how_long_and_its_last_report() -> None:
    """M-2."""
    running = call(progress=(Progress(done=1, total=10), Progress(done=3, total=10, text="tests")))

    assert row(running) == (
        "call_0001",
        "ann",
        'run(suite="fast", n=2)',
        "running",
        "12 s",
        "3/10 tests",
    )


def test_a_report_without_numbers_is_its_words() -> None:
    assert row(call(progress=(Progress(done=0, text="retry 1 of 2"),)))[5] == "retry 1 of 2"


def test_an_ended_call_shows_what_it_took_and_what_came_of_it() -> None:
    ended = call(
        state=CallState.TIMED_OUT, ended_at=NOW + timedelta(seconds=2), result="timed out after 2s"
    )

    assert row(ended)[3:] == ("timed out", "2.0 s", "timed out after 2s")


def test_a_call_that_was_ended_and_goes_on_says_so() -> None:
    """M-73."""
    ended = call(state=CallState.CANCELLED, ended_at=NOW + timedelta(seconds=2), result="cancelled")
    grid = call_grid([ended], names={}, approvals=[], now=NOW, lingering={"call_0001"})

    assert grid.rows[0][3:] == (
        "cancelled, still running",
        "2.0 s",
        "cancelled\nit ignores the cancellation so far; what it returns is discarded",
    )
    assert row(ended)[3:] == ("cancelled", "2.0 s", "cancelled")


def test_m116_a_call_shows_what_wrapped_it_outermost_first() -> None:
    policy = read_policy(POLICY)
    words = policy_words(apply(policy, "run", {}).to_json())

    assert words == (
        "runAsync 10 s · before python gate.py · after audit · truncate 65536 · retries 2"
        " · timeout 0.5 s · cache · label slow"
    )
    assert policy_words(apply(policy, "deploy", {}).to_json()).startswith("defer · before")
    assert row(call(policy=apply(policy, "run", {}).to_json()))[2].splitlines()[1] == words


def test_a_plain_call_has_nothing_around_it_to_show() -> None:
    assert policy_words(apply(read_policy(None), "run", {}).to_json()) == ""
    assert policy_words(None) == ""


def test_a_call_that_waits_for_its_owner_says_how_to_answer() -> None:
    waiting = call(state=CallState.DEFERRED, reason="touches production")

    assert row(waiting, approval())[3:] == (
        "waiting for you",
        "",
        "touches production\n%approve ap-0001  or  %deny ap-0001 REASON",
    )


def test_a_denied_call_is_not_just_failed() -> None:
    denied = call(state=CallState.FAILED, result="Tool 'run' was not approved: no")

    assert row(denied, approval(state=ApprovalState.DENIED))[3] == "denied"
    assert row(denied, approval(state=ApprovalState.EXPIRED))[3] == "expired"
    assert row(denied)[3] == "failed"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "%approve ap-0001  or  %deny ap-0001 REASON"),
        (
            {"state": ApprovalState.APPROVED, "answered_by": "%approve"},
            "ap-0001 approved by %approve",
        ),
        (
            {"state": ApprovalState.APPROVED, "answered_by": "view", "decision": {"n": 1}},
            "ap-0001 approved by view, arguments edited",
        ),
        (
            {"state": ApprovalState.DENIED, "answered_by": "%deny", "decision": "not today"},
            "ap-0001 denied by %deny: not today",
        ),
        ({"state": ApprovalState.CANCELLED}, "ap-0001 cancelled"),
        (
            {"state": ApprovalState.EXPIRED, "decision": "nobody answered within 24 h"},
            "ap-0001 expired: nobody answered within 24 h",
        ),
    ],
)
def test_an_approval_says_how_to_answer_it_or_how_it_was_answered(
    fields: dict[str, Any], words: str
) -> None:
    assert answer_words(approval(**fields)) == words


def test_an_inbox_is_a_table_of_what_to_look_at() -> None:
    def entry(seq: int, agent: str, content: str, type: str, **facts: Any) -> Envelope:
        return Envelope(
            id=f"m-{seq:04x}",
            seq=seq,
            session=f"inbox@{agent}",
            sender=FromSystem("runtime"),
            priority=Priority.NORMAL,
            hops=0,
            accepted_at=NOW,
            body=Notification(content, type, facts),
        )

    entries = [
        entry(1, "rev", "rev failed: no disk", "failed"),
        entry(2, "ops", "ops wants to run run", "approval", approval="ap-0001"),
    ]
    grid = inbox_grid(entries, approvals=[approval()])

    assert plain(grid).splitlines() == [
        "id      agent  kind      text",
        "m-0001  rev    failed    rev failed: no disk",
        "m-0002  ops    approval  ops wants to run run",
        '                         run(suite="fast", n=2)',
        "                         %approve ap-0001  or  %deny ap-0001 REASON",
    ]
    assert inbox_grid([], approvals=[], of="rev").empty == "Nothing in the inbox of rev."


def test_the_status_of_a_room_names_what_waits_for_the_owner() -> None:
    status = RoomStatus(
        path=":memory:",
        size=None,
        sessions={},
        unread=0,
        calls=0,
        approvals=tuple(f"ap-{n:04d}" for n in range(1, 8)),
        agents=(),
        kernel="",
    )

    assert (
        "approvals 7 waiting for you: ap-0001, ap-0002, ap-0003, ap-0004, ap-0005 and 2 more "
        "(%inbox, %approve ID, %deny ID)"
    ) in repr(status)
