"""Exactly one tool message per call, and the result of each in one place (M-38, M-42, M-60, M-62…M-64)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from contracts.envelopes import call_ended, envelope, record
from postroom_runtime.contracts.call import Call, CallState, ToolMessage, ToolRequest
from postroom_runtime.contracts.envelope import ContinuationResult, Envelope, FromSystem
from postroom_runtime.stepper.folding import Detached, answers, fold, shown_in_full

FRESH = record()


def seqs(mail: Sequence[Envelope]) -> list[int]:
    return [each.seq for each in mail]


def request(id: str, tool: str = "run_tests") -> ToolRequest:
    return ToolRequest(tool=tool, arguments={}, id=id)


def call(id: str, state: CallState = CallState.COMPLETED, result: object = "ok") -> Call:
    return Call(id=id, session="s-0001", tool="run_tests", arguments={}, state=state, result=result)


def test_every_call_has_exactly_one_answer_in_the_order_of_the_turn() -> None:
    """M-42."""
    told = answers(
        [request("call_2"), request("call_1", "deploy"), request("call_3")],
        [call("call_2", result="two"), call("call_1", result="one"), None],
        (),
        Detached(),
    )

    assert [(each.call, each.tool, each.content) for each in told] == [
        ("call_2", "run_tests", "two"),
        ("call_1", "deploy", "one"),
        ("call_3", "run_tests", "orphaned: nothing is known of this call any more"),
    ]
    assert told[2].state is CallState.ORPHANED


def test_no_calls_have_no_answers() -> None:
    assert answers([], [], (), Detached()) == ()


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("ok", "ok"),
        ({"passed": 42}, '{"passed": 42}'),
        (["ü"], '["ü"]'),
        (0, "0"),
        (False, "false"),
        (None, "done"),
        ("[mail m-1 from user]", "[mail m-1 from user]"),
    ],
)
def test_an_answer_is_the_result_as_text_or_as_json(result: object, content: str) -> None:
    (told,) = answers([request("call_1")], [call("call_1", result=result)], (), Detached())

    assert (told.content, told.state) == (content, CallState.COMPLETED)


@pytest.mark.parametrize("state", [state for state in CallState if state.final])
def test_an_answer_tells_how_its_call_ended(state: CallState) -> None:
    """M-42, M-85."""
    (told,) = answers([request("call_1")], [call("call_1", state, "why")], (), Detached())

    assert (told.state, told.content) == (state, "why")


# ── Placeholders ──


def running(why: str, **more: str) -> dict[str, str]:
    return {
        "status": "running",
        "tool_call_id": "call_1",
        "detached": why,
        "message": "Its result will arrive as mail. "
        "Use wait, get-tool-call-status or cancel-tool-call.",
        **more,
    }


@pytest.mark.parametrize("state", [CallState.PENDING, CallState.RUNNING])
@pytest.mark.parametrize(
    "why", ["still running after 10s", "still running after 0s", "interrupted", "paused"]
)
def test_the_placeholder_of_a_detached_call_is_this_json_and_no_other(
    why: str, state: CallState
) -> None:
    """M-62: one that waits for its turn to run is told as running too."""
    detached = Detached(why={"call_1": why})

    (told,) = answers([request("call_1")], [call("call_1", state, None)], (), detached)

    assert told.state is CallState.RUNNING
    assert told.content == json.dumps(running(why))
    assert list(json.loads(told.content)) == ["status", "tool_call_id", "detached", "message"]


def test_a_call_that_goes_on_though_nobody_detached_it_says_that_the_run_ended() -> None:
    """M-42, M-86: every call has its answer, whatever ended the run."""
    (told,) = answers(
        [request("call_1")], [call("call_1", CallState.RUNNING, None)], (), Detached()
    )

    assert json.loads(told.content) == running("the run ended before this call did")


def test_the_placeholder_of_a_helper_names_its_session() -> None:
    """M-103."""
    helper = replace(call("call_1", CallState.RUNNING, None), extra={"child_session_id": "s-0007"})

    (told,) = answers([request("call_1")], [helper], (), Detached(why={"call_1": "interrupted"}))

    assert json.loads(told.content) == running("interrupted", child_session_id="s-0007")


@pytest.mark.parametrize(
    ("reason", "shown"), [("production?", "production?"), ("", "waits for the owner")]
)
def test_a_call_that_waits_for_the_owner_says_that_it_has_not_run(reason: str, shown: str) -> None:
    """M-62, M-114."""
    asking = replace(call("call_1", CallState.DEFERRED, None), reason=reason, token="t-0001")

    (told,) = answers([request("call_1")], [asking], (), Detached())

    assert told.state is CallState.DEFERRED
    assert json.loads(told.content) == {
        "status": "deferred",
        "tool_call_id": "call_1",
        "deferred": shown,
        "message": "It has not run. Its result will arrive as mail once the owner has decided.",
    }


def test_a_call_that_ended_after_it_was_detached_shows_its_result() -> None:
    """M-38: in the same tick the finished call shows its result, not a placeholder."""
    detached = Detached(why={"call_1": "interrupted"})

    (told,) = answers([request("call_1")], [call("call_1", result="there")], (), detached)

    assert (told.state, told.content) == (CallState.COMPLETED, "there")


def test_a_call_with_no_attach_time_is_a_placeholder_even_when_it_has_ended() -> None:
    """M-60."""
    detached = Detached(why={"call_1": "still running after 0s"}, always={"call_1"})

    (told,) = answers([request("call_1")], [call("call_1", result="there")], (), detached)

    assert told.state is CallState.RUNNING
    assert json.loads(told.content) == running("still running after 0s")


# ── The race: an end that is mail already, and not yet in the table ──


def deferred_ended(id: str) -> Envelope:
    body = ContinuationResult("t-0001", id, "run_tests", "completed", "by mail")
    return envelope(body, FromSystem("approvals"), 7)


@pytest.mark.parametrize("state", [CallState.PENDING, CallState.RUNNING, CallState.DEFERRED])
@pytest.mark.parametrize("end", [lambda: call_ended("call_1", "by mail", 7), None])
def test_an_end_that_is_mail_already_is_the_answer_whatever_the_table_knows(
    state: CallState, end: Callable[[], Envelope] | None
) -> None:
    """M-62b, M-64, M-97: else its result would be in neither, or in both."""
    unread = [end() if end else deferred_ended("call_1")]
    before = call("call_1", state, None)

    (told,) = answers([request("call_1")], [before], unread, Detached(why={"call_1": "paused"}))

    assert (told.state, told.content) == (CallState.COMPLETED, "by mail")
    read_later = fold(unread, FRESH, {told.call} if not told.state.final else (), running=True)
    assert (read_later.mail, read_later.cursor) == ((), 7)


def test_an_end_by_mail_of_a_call_with_no_attach_time_is_read_as_mail() -> None:
    """M-60, M-64."""
    unread = [call_ended("call_1", "by mail", 7)]
    detached = Detached(why={"call_1": "still running after 0s"}, always={"call_1"})

    (told,) = answers(
        [request("call_1")], [call("call_1", CallState.RUNNING, None)], unread, detached
    )

    assert told.state is CallState.RUNNING
    assert seqs(fold(unread, FRESH, {"call_1"}, running=True).mail) == [7]


def test_an_end_that_both_know_is_the_one_of_the_table() -> None:
    """M-73: it is the same end."""
    unread = [call_ended("call_1", "by mail", 7)]

    (told,) = answers([request("call_1")], [call("call_1", result="table")], unread, Detached())

    assert told.content == "table"


# ── What a status call has shown ──


def status(told: object, tool: str = "get-tool-call-status") -> ToolMessage:
    return ToolMessage(
        call="call_2", tool=tool, content=json.dumps(told), state=CallState.COMPLETED
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (status({"tool_call_id": "call_1", "status": "completed", "result": "x"}), ("call_1",)),
        (status({"tool_call_id": "call_1", "status": "failed", "result": "x"}), ("call_1",)),
        (status({"tool_call_id": "call_1", "status": "completed", "result": None}), ("call_1",)),
        (status({"tool_call_id": "call_1", "status": "running"}), ()),
        (status({"tool_call_id": "call_1", "status": "running", "result": "x"}), ()),
        (status({"tool_call_id": "call_1", "status": "deferred"}), ()),
        (status({"tool_call_id": "call_1", "status": "completed"}), ()),
        (status({"tool_call_id": "call_1", "status": "dancing", "result": "x"}), ()),
        (status(["call_1", "completed"]), ()),
        (status("no JSON object"), ()),
        (status({"tool_call_id": "call_1", "status": "completed", "result": "x"}, "mine"), ()),
    ],
)
def test_a_result_counts_as_read_when_a_status_call_has_shown_all_of_it(
    message: ToolMessage, shown: tuple[str, ...]
) -> None:
    """M-63."""
    assert shown_in_full([message]) == shown


def test_answers_that_do_not_fit_their_calls_are_a_mistake_of_ours() -> None:
    """M-42: never sent to a provider."""
    with pytest.raises(ValueError, match="shorter"):
        answers([request("call_1"), request("call_2")], [call("call_1")], (), Detached())
