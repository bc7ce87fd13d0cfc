"""What is in front of the gate while a room steps: one letter at a time, and what needs no step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.envelopes import call_ended, from_session, from_user, order
from postroom_runtime.contracts.envelope import (
    CancelCalls,
    Envelope,
    Pause,
    Release,
    Resume,
    StopRun,
    UnknownControl,
)
from postroom_runtime.stepper.gate import seen

DETACHED = {"call_0002"}


def in_front(*mail: Envelope, gate: int = 0, undecided: tuple[str, ...] = ()) -> list[int]:
    return [e.seq for e in mail[: seen(mail, gate, DETACHED, undecided)]]


def test_letters_wait_behind_the_gate_and_come_up_to_it() -> None:
    letters = [from_user("one", 1), from_session("two", 2), call_ended("call_0002", seq=3)]

    assert in_front(*letters) == []
    assert in_front(*letters, gate=1) == [1]
    assert in_front(*letters, gate=9) == [1, 2, 3]


def test_m53_m54_m64_mail_that_says_nothing_passes_by_itself_up_to_the_next_letter() -> None:
    """M-53, M-54, M-64: blank words, results in their own tool message, unknown orders."""
    silent = [from_user(" ", 1), call_ended("call_0001", seq=2), order(UnknownControl("x", {}), 3)]

    assert in_front(*silent) == [1, 2, 3]
    assert in_front(*silent, from_user("a letter", 4), from_user(" ", 5)) == [1, 2, 3]
    assert in_front(from_user("a letter", 1), *[call_ended("call_0001", seq=2)]) == []


@pytest.mark.parametrize(
    "message", [Pause(), StopRun(), Resume(), CancelCalls(("call_0001",)), Release("t-1", "denied")]
)
def test_an_order_lets_through_what_came_before_it(message: Pause) -> None:
    assert in_front(from_user("one", 1), order(message, 2), from_user("three", 3)) == [1, 2]


def test_the_end_of_a_call_waits_while_its_tool_message_is_not_written() -> None:
    """M-60, M-64: whether it renders hangs on what that message says, so it cannot pass yet."""
    end = call_ended("call_0001", seq=1)

    assert in_front(end, undecided=("call_0001",)) == []
    assert in_front(end, gate=1, undecided=("call_0001",)) == [1]


KINDS = (
    lambda seq: from_user("a letter", seq),
    lambda seq: from_user(" ", seq),
    lambda seq: call_ended("call_0001", seq=seq),
    lambda seq: call_ended("call_0002", seq=seq),
    lambda seq: call_ended("call_0003", seq=seq),
    lambda seq: order(StopRun(), seq),
    lambda seq: order(UnknownControl("x", {}), seq),
)


@given(st.lists(st.sampled_from(range(len(KINDS))), max_size=8), st.integers(0, 9))
def test_what_was_seen_once_is_seen_for_ever(kinds: list[int], gate: int) -> None:
    """More mail, a wider gate and a written tool message never hide what was in front."""
    mail = [KINDS[kind](seq) for seq, kind in enumerate(kinds, 1)]
    undecided = {"call_0003"}

    before = seen(mail, gate, DETACHED, undecided)

    assert seen([*mail, from_user("later", len(mail) + 1)], gate, DETACHED, undecided) >= before
    assert seen(mail, gate + 1, DETACHED, undecided) >= before
    assert seen(mail, gate, DETACHED, ()) >= before
    assert seen(mail, gate, {*DETACHED, "call_0003"}, ()) >= before
    read = before // 2
    assert seen(mail[read:], gate, DETACHED, undecided) + read >= before
