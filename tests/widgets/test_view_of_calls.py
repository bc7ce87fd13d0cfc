"""Calls that outlive their turn in the view model: detached, waiting for a person, cancelled."""

from dataclasses import replace
from typing import Any

import pytest

from postroom_runtime.contracts.event import EventKind
from postroom_widgets.static_html import static_html
from postroom_widgets.static_text import static_text
from postroom_widgets.view_children import with_children
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import Row, decision_words
from postroom_widgets.view_state import ViewState, opened
from postroom_widgets.wording import minute
from widgets.story import PEOPLE, Story, detached, reply, request

START = opened("s-0002", name="rev", agent="reviewer", model="scripted")


def shown(story: Story) -> ViewState:
    return fold(START, story.events, PEOPLE)


def row(story: Story, key: str = "c:call_0001") -> Row:
    return shown(story).rows[key]


def asking() -> Story:
    """Tell of a deployment that waits for its owner."""
    story = Story()
    story.mail("roll back")
    story.run().heard()
    story.said("", request("call_0001", "deploy", target="staging"))
    story.started("call_0001", "deploy", target="staging")
    story.deferred("call_0001", "deploy", reason="touches staging")
    content = '{"status": "deferred", "tool_call_id": "call_0001", "deferred": "touches staging"}'
    return story.heard(reply("call_0001", "deploy", content, "deferred"), mail=[])


def finished(story: Story, state: str, response: str) -> dict[str, Any]:
    """End the waiting call: its record and the mail that carries its result."""
    return story.finished("call_0001", "deploy", response, state, token="t-0001")


def test_a_call_that_waits_for_its_owner_is_counted_apart_and_says_how_to_answer() -> None:
    """M-97."""
    story = asking()
    state = shown(story)

    assert {k: row(story).get(k) for k in ("state", "approval", "reason", "hold")} == {
        "state": "deferred",
        "approval": "ap-0001",
        "reason": "touches staging",
        "hold": "asked you first",
    }
    assert (state.head["calls"], state.head["asks"]) == (0, 1)
    for page in (static_text(state), static_html(state)):
        assert "waiting for you" in page
        assert "touches staging · Runs only if you approve. %approve ap-0001" in page


def test_what_is_shown_for_approval_is_what_would_run_and_then_what_was_let_run() -> None:
    """M-97: a hook may have passed on other arguments, and its owner may edit them."""
    story = asking()
    asked = {"id": "ap-0001", "call": "call_0001", "arguments": {"target": "canary"}}
    story.event(EventKind.APPROVAL_REQUESTED, approval={**asked, "state": "pending"})
    assert row(story)["args"] == {"target": "canary"}

    edited = {**asked, "state": "approved", "decision": {"target": "none"}}
    story.event(EventKind.APPROVAL_RESOLVED, approval=edited)
    assert row(story)["args"] == {"target": "none"}


def test_a_question_that_expires_says_until_when() -> None:
    story = asking()
    asked = {"id": "ap-0001", "call": "call_0001", "state": "pending"}
    until = "2026-03-02T10:30:00+00:00"
    story.event(EventKind.APPROVAL_REQUESTED, approval={**asked, "expires_at": until})

    assert f"%approve ap-0001 · until {minute(until)}" in static_text(shown(story))


def test_an_approved_call_runs_and_its_result_is_mail_that_points_back() -> None:
    story = asking()
    story.decided("call_0001", "approved", by="view")
    assert row(story)["decided"] == "approved in a view"
    story.started("call_0001", "deploy", target="staging")
    assert (row(story)["state"], shown(story).head["asks"]) == ("running", 0)

    mail = finished(story, "completed", "deployed")
    story.heard()
    assert (row(story)["state"], row(story)["mail"]) == ("completed", mail["id"])
    result = row(story, f"m:{mail['seq']}")
    assert (result["result"], result["turn_of_call"], result["text"]) == (
        "completed",
        2,
        "deployed",
    )
    assert "completed by mail" in static_text(shown(story))


def test_a_denied_call_is_denied_in_its_row_and_in_its_mail() -> None:
    story = asking()
    story.decided("call_0001", "denied", by="%deny", decision="not on a Friday")
    mail = finished(story, "failed", "Tool 'deploy' was not approved: not on a Friday")
    story.heard()
    state = shown(story)

    assert row(story)["state"] == "denied"
    assert row(story)["decided"] == "denied by %deny: not on a Friday"
    assert row(story, f"m:{mail['seq']}")["result"] == "denied"
    assert "denied call of turn 2" in static_text(state)


def test_the_mail_that_carries_an_answer_is_no_row() -> None:
    story = asking()
    before = len(shown(story).ordered())
    story.control("release")

    assert len(shown(story).ordered()) == before


@pytest.mark.parametrize(
    ("approval", "words"),
    [
        ({"state": "pending"}, ""),
        ({"state": "cancelled", "answered_by": "stop"}, ""),
        ({"state": "approved", "answered_by": "%approve"}, "approved by %approve"),
        (
            {"state": "approved", "answered_by": "api", "decision": {"n": 1}},
            "approved from Python, arguments edited",
        ),
        ({"state": "denied", "answered_by": "view", "decision": "no"}, "denied in a view: no"),
        ({"state": "completed", "answered_by": "api"}, "result given from Python"),
        ({"state": "expired", "decision": "nobody answered within 24 h"}, "expired"),
    ],
)
def test_a_decision_says_who_made_it(approval: dict[str, Any], words: str) -> None:
    assert decision_words(approval) == words


def test_an_order_to_cancel_names_the_calls() -> None:
    story = Story()
    story.mail(body={"kind": "control", "message": {"tag": "cancel_calls", "ids": ["call_0003"]}})

    assert row(story, "m:1")["text"] == "cancel call_0003"


# ── Interrupts ──


def test_m75_the_mark_counts_what_the_interrupt_detached_and_stands_above_its_mail() -> None:
    story = Story()
    story.mail("go")
    story.run().heard()
    calls = [request(f"call_000{n}", "nap", n=n) for n in (1, 2, 3)]
    story.said("", *calls)
    for n in (1, 2, 3):
        story.started(f"call_000{n}", "nap")
    story.letter("by the way")
    story.mail("look here", interrupt=True)
    story.heard(
        detached("call_0001", "nap"),
        detached("call_0002", "nap", "interrupted"),
        detached("call_0003", "nap", "interrupted"),
    )

    state = shown(story)
    keys = [r["key"] for r in state.ordered()]
    assert keys[keys.index("m:2") :][:3] == ["m:2", "x:3", "m:3"]
    assert state.rows["x:3"]["detached"] == 2
    assert "== Interrupted by you · m-0003 · 2 attached calls detached, keep running" in (
        static_text(state)
    )


def test_m78_an_amended_user_turn_takes_the_place_of_the_old_one() -> None:
    story = Story()
    first = story.mail("review it")
    story.run().heard()
    story.delta("I beg")
    second = story.mail("only the tests", interrupt=True)
    story.amended(first, second)
    story.event(EventKind.TEXT_DISCARDED, live=True)
    story.delta("Only ")
    state = shown(story)

    keys = [r["key"] for r in state.ordered()]
    assert keys == ["m:1", "x:1", "m:2", "t:2"]
    assert [state.rows[key]["turn"] for key in ("m:1", "m:2")] == [1, 1]
    assert (state.rows["t:2"]["text"], state.live) == ("Only ", "t:2")

    story.said("Only the tests.", end_reason="answer").stopped()
    state = shown(story)
    assert [r["key"] for r in state.ordered()][:4] == keys
    assert [state.rows[key]["answered"] for key in ("m:1", "m:2")] == [2, 2]


def test_reports_without_numbers_are_told_in_words() -> None:
    story = Story()
    story.mail("go")
    story.run().heard().said("", request("call_0001", "nap")).started("call_0001", "nap")
    story.event(
        EventKind.TOOL_PROGRESS,
        live=True,
        call="call_0001",
        done=0,
        total=None,
        text="retry 1 of 2",
    )

    assert row(story)["progress"] == {"text": "retry 1 of 2"}
    assert static_text(shown(story)).endswith("running\n    retry 1 of 2")


def sub_agent() -> Story:
    story = Story()
    story.mail("go")
    story.run().heard()
    story.said("", request("call_0001", "prompt-agent-coder", message="fix it"))
    return story.started("call_0001", "prompt-agent-coder")


def test_a_call_of_a_sub_agent_leads_to_its_session() -> None:
    """M-104: live while it works, to its transcript when it has ended."""
    story = sub_agent()
    content = '{"status": "running", "detached": "still running", "child_session_id": "s-0003"}'
    story.heard(reply("call_0001", "prompt-agent-coder", content, "running"), mail=[])
    assert row(story)["child"] == {"id": "s-0003", "name": "coder"}
    assert "coder child · %watch coder" in static_text(shown(story))

    story.finished("call_0001", "prompt-agent-coder", "done")
    assert "coder child · %transcript s-0003" in static_text(shown(story))


def test_a_call_that_ended_in_its_turn_names_its_child_too() -> None:
    """M-104."""
    story = sub_agent()
    ended = {"id": "call_0001", "tool": "prompt-agent-coder", "state": "completed", "result": "ok"}
    story.event(EventKind.TOOL_COMPLETED, call={**ended, "child_session_id": "s-0003"})
    assert row(story)["child"] == {"id": "s-0003", "name": "coder"}


def test_an_answered_mail_names_the_mail_that_answers_it() -> None:
    story = Story()
    story.letter("Why?", id="m-aaaa")
    story.run().heard()
    story.said("", request("call_0001", "send-message", to="coder", in_reply_to="m-aaaa"))
    story.started("call_0001", "send-message", to="coder", in_reply_to="m-aaaa")
    story.finished("call_0001", "send-message", {"id": "m-bbbb", "session": "s-0003"})

    assert "answered in turn 2 by m-bbbb" in static_text(shown(story))


def test_a_call_that_is_attached_names_its_child_as_soon_as_the_room_has_it() -> None:
    """M-104: the call itself tells of it only when it detaches or ends."""
    state = shown(sub_agent())
    assert "child" not in with_children(state, PEOPLE).rows["c:call_0001"]

    people = {**PEOPLE, "s-0009": replace(PEOPLE["s-0003"], id="s-0009", for_call="call_0001")}
    found = with_children(state, people)
    assert found.rows["c:call_0001"]["child"] == {"id": "s-0009", "name": "coder"}
    assert found.version > state.version
    assert with_children(found, people) is found
