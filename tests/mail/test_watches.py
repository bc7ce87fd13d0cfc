"""What a watch forwards, what it keeps to itself, and how it is told (M-125…M-128); no loop needed."""

import json
from typing import Any

import pytest

from contracts.envelopes import AT
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.event import LIVE_ONLY, Event, EventKind
from postroom_runtime.mail.watched import (
    TOLD,
    WATCHABLE,
    check_events,
    check_tool,
    check_ttl,
    hops_of,
    told_of,
    wanted,
)


def event(kind: str, **data: Any) -> Event:
    return Event(kind=kind, seq=7, session="s-0002", at=AT, data=data)


def call(tool: str = "deploy_prod", **more: Any) -> dict[str, Any]:
    return {"id": "call_0001", "tool": tool, "arguments": {"to": "x"}, "state": "running", **more}


def mail(kind: str = "agent_message", **more: Any) -> dict[str, Any]:
    sender = {"kind": "session", "session": "s-0003"}
    return {"id": "m-0001", "sender": sender, "body": {"kind": kind, **more}}


# ── Which ──


def test_m126_no_events_means_all_that_may_be_watched_and_never_deltas_or_progress() -> None:
    """M-126, D9."""
    assert check_events(None) == WATCHABLE
    assert not LIVE_ONLY & set(WATCHABLE)
    assert {str(kind) for kind in WATCHABLE} == {
        "run.started",
        "run.stopped",
        "session.updated",
        "tool.started",
        "tool.completed",
        "calls.deferred",
        "session.failed",
        "mail.accepted",
    }


def test_events_come_as_a_list_or_as_words_between_commas_each_once() -> None:
    assert check_events("tool.completed,run.stopped") == ("run.stopped", "tool.completed")
    assert check_events(["run.stopped", "run.stopped"]) == ("run.stopped",)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (["run.stoped"], "no event 'run.stoped'. Did you mean 'run.stopped'"),
        (["tool.finished"], "There are: run.started"),
        (["text.delta"], "event 'text.delta' is never forwarded. There are: run.started"),
        (["approval_requested"], "is never forwarded"),
        ([], "events=[] forwards nothing"),
        (",", "forwards nothing"),
        ([3], "no event 3."),
    ],
)
def test_m126_an_unknown_event_is_refused_with_what_there_is(events: Any, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_events(events)
    assert said in str(refused.value)


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), True, "60", None, 1e9])
def test_a_time_that_is_none_is_refused(ttl: Any) -> None:
    with pytest.raises(ConfigError, match="at most 2592000"):
        check_ttl(ttl)


@pytest.mark.parametrize("tool", ["", " ", 3])
def test_a_glob_that_matches_nothing_is_refused(tool: Any) -> None:
    with pytest.raises(ConfigError, match=r"deploy_\*"):
        check_tool(tool)


@pytest.mark.parametrize(
    ("tool", "yes"), [(None, True), ("deploy_*", True), ("*", True), ("deploy", False)]
)
def test_m126_a_glob_narrows_tool_events_alone(tool: str | None, yes: bool) -> None:
    """M-126."""
    assert wanted(event("tool.started", call=call()), WATCHABLE, tool) is yes
    assert wanted(event("tool.completed", call=call()), WATCHABLE, tool) is yes
    assert wanted(event("run.stopped", reason="answer"), WATCHABLE, tool)
    assert wanted(event("calls.deferred", call=call()), WATCHABLE, tool)


def test_of_updates_only_new_turns_are_forwarded() -> None:
    assert wanted(event("session.updated", turn={"index": 1}), WATCHABLE, None)
    assert not wanted(event("session.updated", session={"status": "idle"}), WATCHABLE, None)


def test_m125_mail_that_a_watch_put_there_is_not_forwarded() -> None:
    assert wanted(event("mail.accepted", mail=mail()), WATCHABLE, None)
    assert not wanted(event("mail.accepted", mail=mail("watched_event")), WATCHABLE, None)


@pytest.mark.parametrize("kind", [*sorted(LIVE_ONLY), EventKind.INBOX, EventKind.NOTIFICATION])
def test_d9_nothing_else_is_forwarded(kind: EventKind) -> None:
    assert not wanted(event(kind, text="hel"), WATCHABLE, None)


# ── What is told ──


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("run.started", {"turn": 1}, {"turn": 1}),
        (
            "run.stopped",
            {"reason": "answer", "rounds": 2, "turn": 4},
            {"reason": "answer", "rounds": 2, "text": "all done"},
        ),
        (
            "session.updated",
            {"turn": {"index": 2, "role": "model", "text": "hm", "calls": [call()]}},
            {"turn": 2, "role": "model", "text": "hm", "calls": ["deploy_prod"]},
        ),
        (
            "tool.started",
            {"call": call()},
            {"call": "call_0001", "tool": "deploy_prod", "arguments": {"to": "x"}},
        ),
        (
            "tool.completed",
            {"call": call(state="failed", result="no route")},
            {"call": "call_0001", "tool": "deploy_prod", "state": "failed", "result": "no route"},
        ),
        (
            "calls.deferred",
            {"call": call(state="deferred", reason="ask", token="secret")},
            {
                "call": "call_0001",
                "tool": "deploy_prod",
                "arguments": {"to": "x"},
                "reason": "ask",
            },
        ),
        ("session.failed", {"error": "broke", "traceback": "a\nb"}, {"error": "broke"}),
        (
            "mail.accepted",
            {"mail": mail(text="hi")},
            {"mail": "m-0001", "from": "session s-0003", "kind": "agent_message", "text": "hi"},
        ),
    ],
)
def test_m125_each_event_is_told_in_a_few_facts(
    kind: str, data: dict[str, Any], told: dict[str, Any]
) -> None:
    """M-125: with the name of the session first; never a traceback, never a token."""
    assert told_of(event(kind, **data), "ann", "all done") == {"name": "ann", **told}


@pytest.mark.parametrize(
    "happened",
    [
        event("run.stopped", reason="answer"),
        event("session.updated", turn={"index": 1, "role": "model", "text": "x" * 9999}),
        event("tool.started", call=call(arguments={"text": "x" * 9999})),
        event("tool.completed", call=call(result="x" * 9999)),
        event("tool.completed", call=call(result=["x" * 9999])),
        event("calls.deferred", call=call(reason="x" * 9999)),
        event("session.failed", error="x" * 9999),
        event("mail.accepted", mail=mail(text="x" * 9999)),
    ],
)
def test_long_texts_are_cut_and_say_how_long_they_are(happened: Event) -> None:
    told = json.dumps(told_of(happened, "ann", "x" * 9999))
    assert len(told) < TOLD + 250
    assert "characters)" in told


# ── Hops ──


def test_m108_an_event_travels_as_far_as_a_letter_of_the_watched_session() -> None:
    """M-108: and mail that just came counts by what it brings along."""
    assert hops_of(event("run.stopped", reason="answer"), 3) == 3
    assert hops_of(event("mail.accepted", mail={**mail(), "hops": 5}), 3) == 5
    assert hops_of(event("mail.accepted", mail=mail()), 3) == 3
