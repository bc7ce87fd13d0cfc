"""The view model folds a session's events into the rows a view shows."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.contracts.event import Event, EventKind
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import MAX_TEXT, Row
from postroom_widgets.view_state import ViewState, opened
from widgets.story import PEOPLE, Story, detached, reply, request, review

START = opened("s-0002", name="rev", agent="reviewer", model="scripted")


def shown(story: Story | list[Event], state: ViewState = START) -> ViewState:
    return fold(state, story.events if isinstance(story, Story) else story, PEOPLE)


def keys(state: ViewState) -> list[str]:
    return [row["key"] for row in state.ordered()]


def row(state: ViewState, key: str) -> Row:
    return state.rows[key]


def part(state: ViewState, key: str, *names: str) -> dict[str, Any]:
    return {name: state.rows[key].get(name) for name in names}


# ── Mail ──


def test_mail_of_the_owner_is_queued_then_delivered_then_answered() -> None:
    story = Story()
    story.mail("hello")
    assert part(shown(story), "m:1", "state", "tone", "name", "id") == {
        "state": "queued",
        "tone": "user",
        "name": "you",
        "id": "m-0001",
    }

    story.run().heard()
    assert part(shown(story), "m:1", "state", "turn") == {"state": "delivered", "turn": 1}

    story.said("done", end_reason="answer")
    state = shown(story)
    assert part(state, "m:1", "state", "turn", "answered") == {
        "state": "answered",
        "turn": 1,
        "answered": 2,
    }
    assert keys(state) == ["m:1", "t:2"]


def test_a_run_that_ended_with_an_answer_answers_all_the_mail_of_people_it_read() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    story.mail("two", interrupt=True)
    story.heard(detached("call_0001", "slow")).said("both").stopped()

    state = shown(story)
    assert [row(state, k).get("answered") for k in ("m:1", "m:2")] == [4, 4]


def test_mail_that_a_failed_run_read_is_answered_by_the_run_that_answers() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    story.event(EventKind.SESSION_FAILED, error="ModelError: 529", traceback="")
    story.stopped("failed", status="failed")
    assert row(shown(story), "m:1")["state"] == "delivered"

    story.mail("again")
    story.run().heard().said("here").stopped()
    assert row(shown(story), "m:1")["answered"] == 3


def test_a_stopped_run_answers_nothing() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().stopped("stopped")

    assert row(shown(story), "m:1")["state"] == "delivered"


def test_mail_of_another_session_says_who_it_is_and_is_answered_by_a_letter_to_it() -> None:
    story = Story()
    story.letter("shall I?", expects_reply=True, hops=2)
    story.run().heard()
    story.said(
        "", request("call_0001", "send-message", to="coder", text="yes", in_reply_to="m-0001")
    )
    story.started("call_0001", "send-message")
    story.finished("call_0001", "send-message", {"id": "m-0009", "session": "s-0003", "seq": 4})

    state = shown(story)
    names = ("tone", "name", "of", "hops", "expects", "state", "answered")
    assert part(state, "m:1", *names) == {
        "tone": "agent",
        "name": "coder",
        "of": "child",
        "hops": 2,
        "expects": True,
        "state": "answered",
        "answered": 2,
    }
    assert row(state, "c:call_0001")["sent"] == {
        "mail": "m-0009",
        "to": "s-0003",
        "name": "coder",
        "seq": 4,
    }


def test_the_parent_is_called_parent_and_a_stranger_nothing() -> None:
    story = Story()
    story.letter("go", sender="s-0001")
    story.mail("psst", sender={"kind": "session", "session": "s-0099", "agent": "x"})

    state = shown(story)
    assert part(state, "m:1", "name", "of") == {"name": "lead", "of": "parent"}
    assert part(state, "m:2", "name", "of") == {"name": "s-0099", "of": None}


def test_a_receipt_as_text_says_the_same_as_a_receipt_as_json() -> None:
    story = Story()
    story.mail("go")
    story.run().heard().said("", request("call_0001", "send-message", to="coder", text="hi"))
    story.started("call_0001", "send-message")
    story.finished("call_0001", "send-message", '{"id": "m-0009", "session": "s-0003"}')

    assert row(shown(story), "c:call_0001")["sent"]["name"] == "coder"


def test_a_refused_letter_is_a_failed_call_that_says_why() -> None:
    story = Story()
    story.mail("go")
    story.run().heard().said("", request("call_0001", "send-message", to="x", text="hi"))
    story.started("call_0001", "send-message")
    story.finished("call_0001", "send-message", "no session 'x'.", "failed")

    names = ("state", "error", "sent")
    assert part(shown(story), "c:call_0001", *names) == {
        "state": "failed",
        "error": "no session 'x'.",
        "sent": None,
    }


def test_unread_mail_stands_last_whatever_the_run_still_says() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    story.letter("two")
    story.said("words", request("call_0001", "slow")).started("call_0001", "slow")

    state = shown(story)
    assert keys(state) == ["m:1", "t:2", "c:call_0001", "m:2"]
    assert state.head["unread"] == 1


def test_mail_read_in_the_middle_of_a_run_is_marked_and_moves_to_the_turn_that_read_it() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    story.letter("two")
    story.heard(reply("call_0001", "slow", "ok"))

    state = shown(story)
    assert keys(state) == ["m:1", "t:2", "c:call_0001", "x:3", "m:2", "t:4"]
    assert part(state, "x:3", "mark", "count", "turn") == {"mark": "inbox", "count": 1, "turn": 3}


def test_an_interrupt_is_marked_with_what_it_detached() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    story.mail("stop that", interrupt=True)
    story.heard(detached("call_0001", "slow", "interrupted"))

    state = shown(story)
    assert part(state, "x:3", "mark", "by", "id", "detached") == {
        "mark": "interrupt",
        "by": "you",
        "id": "m-0002",
        "detached": 1,
    }
    assert row(state, "c:call_0001")["hold"] == "interrupted"


def test_controls_are_shown_as_orders_and_never_count_as_unread() -> None:
    story = Story()
    story.control("stop_run")

    state = shown(story)
    assert part(state, "m:1", "control", "text", "state") == {
        "control": "stop_run",
        "text": "stop",
        "state": "read",
    }
    assert state.head["unread"] == 0


def test_mail_consumed_without_a_word_to_the_model_is_read_and_not_unread() -> None:
    story = Story()
    story.mail(body={"kind": "watched_event", "session": "s-0003", "event": "run.stopped"})
    story.record("idle", cursor=1)

    state = shown(story)
    assert part(state, "m:1", "state", "text") == {"state": "read", "text": "coder run.stopped"}
    assert state.head["unread"] == 0


def test_mail_of_a_kind_or_sender_of_the_future_is_shown_for_what_it_is() -> None:
    story = Story()
    story.mail(sender={"kind": "robot"}, body={"kind": "hologram", "frames": 3})

    assert part(shown(story), "m:1", "name", "tone", "text") == {
        "name": "system",
        "tone": "sys",
        "text": "mail of a kind this version does not know: hologram",
    }


def test_it_does_not_matter_whether_delivery_or_its_turn_is_told_first() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    swapped = list(story.events)
    inbox, turn = (
        next(i for i, e in enumerate(swapped) if e.kind == k)
        for k in (EventKind.INBOX, EventKind.SESSION_UPDATED)
    )
    first, second = swapped[inbox], swapped[turn]
    swapped[inbox] = replace(second, seq=first.seq)
    swapped[turn] = replace(first, seq=second.seq)

    assert keys(shown(swapped)) == keys(shown(story)) == ["m:1", "t:2"]


# ── Turns ──


def test_a_turn_streams_in_place_and_keeps_its_place_when_it_is_stored() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().delta("Hel", "lo")
    streaming = shown(story)
    assert part(streaming, "t:2", "live", "text") == {"live": True, "text": "Hello"}

    story.tick(12).said("Hello.")
    state = shown(story)
    assert part(state, "t:2", "live", "text", "seconds", "in", "out") == {
        "live": None,
        "text": "Hello.",
        "seconds": 12.0,
        "in": 2100,
        "out": 318,
    }
    assert row(state, "t:2")["o"] == row(streaming, "t:2")["o"]


def test_words_that_are_void_go() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().delta("never mind")
    story.event(EventKind.TEXT_DISCARDED, live=True)
    assert "text" not in row(shown(story), "t:2")

    story.delta("anew")
    assert row(shown(story), "t:2")["text"] == "anew"


def test_a_turn_that_was_never_stored_is_taken_away_when_the_run_stops() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().delta("half a")
    before = shown(story)
    story.stopped("stopped")
    state = shown(story)

    assert "t:2" not in keys(state)
    assert [r["key"] for r in state.since(before.version) if r["kind"] == "gone"] == ["t:2"]


def test_a_kernel_that_ended_in_a_run_leaves_no_turn_streaming() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().record("ready", cursor=1)

    assert keys(shown(story)) == ["m:1"]


def test_live_words_older_than_the_stored_turn_are_passed_over() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    late = Event(
        kind=EventKind.TEXT_DELTA,
        seq=story.seq,
        session="s-0002",
        at=story.now,
        data={"text": "late"},
    )
    story.said("stored").stopped()

    assert shown([*story.events, late]) == shown(story)


@pytest.mark.parametrize("why", ["final_answer", "continuation"])
def test_a_turn_nobody_wrote_says_who_composed_it(why: str) -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("").heard(provenance=why)

    assert row(shown(story), "x:3")["mark"] == why


# ── Calls ──


def test_a_call_is_pending_then_running_then_completed_with_its_time() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "run_tests", suite="fast"))
    assert part(shown(story), "c:call_0001", "state", "args", "turn") == {
        "state": "pending",
        "args": {"suite": "fast"},
        "turn": 2,
    }

    story.started("call_0001", "run_tests")
    assert shown(story).head["calls"] == 1
    story.event(EventKind.TOOL_PROGRESS, live=True, call="call_0001", done=1, total=4, text="x")
    assert row(shown(story), "c:call_0001")["progress"] == {"done": 1, "total": 4, "text": "x"}

    story.tick(3).finished("call_0001", "run_tests", {"passed": 3})
    state = shown(story)
    assert part(state, "c:call_0001", "state", "seconds", "result", "progress", "args") == {
        "state": "completed",
        "seconds": 3.0,
        "result": '{\n  "passed": 3\n}',
        "progress": None,
        "args": {"suite": "fast"},
    }
    assert state.head["calls"] == 0


def test_the_mail_of_an_attached_call_is_silent_and_never_unread() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "run_tests")).started(
        "call_0001", "run_tests"
    )
    story.finished("call_0001", "run_tests", "ok")
    assert shown(story).head["unread"] == 0
    story.heard(reply("call_0001", "run_tests", "ok"), mail=[])

    assert keys(shown(story)) == ["m:1", "t:2", "c:call_0001", "t:4"]


def test_the_result_of_a_detached_call_comes_by_mail_that_names_its_turn() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    story.heard(detached("call_0001", "slow")).said("later").stopped()
    story.finished("call_0001", "slow", "231 passed")

    state = shown(story)
    assert part(state, "c:call_0001", "hold", "mail", "state") == {
        "hold": "still running after 10s",
        "mail": "m-0002",
        "state": "completed",
    }
    names = ("tone", "name", "of", "text", "mono", "turn_of_call", "state")
    assert part(state, "m:2", *names) == {
        "tone": "tool",
        "name": "slow",
        "of": "call_0001",
        "text": "231 passed",
        "mono": True,
        "turn_of_call": 2,
        "state": "queued",
    }


def test_a_call_that_ended_just_before_it_was_detached_comes_by_mail_all_the_same() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    story.finished("call_0001", "slow", "ok")
    story.heard(detached("call_0001", "slow"), mail=[])

    assert part(shown(story), "c:call_0001", "mail") == {"mail": "m-0002"}
    assert row(shown(story), "m:2")["text"] == "ok"


def test_mail_that_a_turn_has_read_is_shown_even_if_it_was_thought_to_be_silent() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    finished = story.finished("call_0001", "slow", "ok")
    story.heard(mail=[finished])

    assert part(shown(story), "m:2", "state", "turn") == {"state": "delivered", "turn": 3}


def test_a_call_that_could_not_be_read_fails_and_says_why() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    story.said("", {**request("call_0001", "run_tests"), "malformed": "not JSON: {suite"})

    assert part(shown(story), "c:call_0001", "state", "error") == {
        "state": "failed",
        "error": "not JSON: {suite",
    }


def test_a_call_answered_only_in_the_turn_takes_its_state_from_there() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "slow")).started("call_0001", "slow")
    story.heard(reply("call_0001", "slow", "cancelled: the run was stopped", "cancelled"))

    state = shown(story)
    assert row(state, "c:call_0001")["state"] == "cancelled"
    assert state.head["calls"] == 0


def test_a_deferred_call_waits_for_a_person_and_does_not_run() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().said("", request("call_0001", "deploy"))
    story.event(
        EventKind.CALLS_DEFERRED, call={"id": "call_0001", "tool": "deploy", "state": "deferred"}
    )

    state = shown(story)
    assert row(state, "c:call_0001")["state"] == "deferred"
    assert state.head["calls"] == 0


# ── Runs and the head ──


def test_a_run_ends_with_its_reason_rounds_and_time() -> None:
    story = Story()
    story.mail("one")
    story.run().heard().tick(48).said("done").stopped("budget", rounds=3)

    end = shown(story).ordered()[-1]
    assert {k: end[k] for k in ("kind", "reason", "rounds", "seconds")} == {
        "kind": "end",
        "reason": "budget",
        "rounds": 3,
        "seconds": 48.0,
    }


def test_a_failure_keeps_its_line_and_its_traceback() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    story.event(EventKind.SESSION_FAILED, error="ModelError: 529", traceback="Traceback\n  x")

    fail = shown(story).ordered()[-1]
    assert (fail["kind"], fail["text"], fail["traceback"]) == (
        "fail",
        "ModelError: 529",
        "Traceback\n  x",
    )


def test_the_head_follows_the_record() -> None:
    state = shown(review())
    names = ("name", "agent", "status", "turn", "unread", "calls", "parent")
    assert {name: state.head[name] for name in names} == {
        "name": "rev",
        "agent": "reviewer",
        "status": "running",
        "turn": 12,
        "unread": 2,
        "calls": 1,
        "parent": "lead",
    }


def test_events_this_version_does_not_know_are_passed_over() -> None:
    odd = Event(kind="teleported", seq=1, session="s-0002", at=Story().now, data={"x": 1})

    assert shown([odd]).rows == {}


def test_texts_are_cut_where_a_notebook_would_choke() -> None:
    story = Story()
    story.mail("x" * (MAX_TEXT + 7))

    assert part(shown(story), "m:1", "more") == {"more": 7}
    assert len(row(shown(story), "m:1")["text"]) == MAX_TEXT


# ── Laws ──


@given(st.lists(st.integers(0, 200), max_size=12))
def test_it_does_not_matter_how_the_events_are_cut_into_batches(cuts: list[int]) -> None:
    events = review().events
    whole = shown(events)
    edges = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    state = START
    for a, b in pairwise(edges):
        state = shown(events[a:b], state)

    assert state == whole


@given(st.integers(0, 200), st.integers(0, 200))
def test_stored_events_that_come_twice_change_nothing(start: int, end: int) -> None:
    stored = [event for event in review().events if event.kind != EventKind.TEXT_DELTA]
    whole = shown(stored)

    assert shown(stored[start:end], whole) == whole


@given(st.integers(0, 200))
def test_rows_since_a_change_bring_any_earlier_state_up_to_date(cut: int) -> None:
    events = review().events
    early, late = shown(events[:cut]), shown(events)
    brought = dict(early.rows) | {r["key"]: r for r in late.since(early.version)}

    assert brought == late.rows
    changes = [r["v"] for r in late.since(early.version)]
    assert changes == sorted(set(changes))


def test_folding_leaves_the_state_before_as_it_was() -> None:
    events = review().events
    early = shown(events[:20])
    copy = {key: dict(r) for key, r in early.rows.items()}
    shown(events[20:], early)

    assert early.rows == copy
