"""How many model turns a run may take (A-24…A-30)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.stepper.budget import EXTENSIONS_SPENT, Budget


def after(limit: int, *rounds: str) -> Budget:
    """A budget after rounds in which a person was heard ("h") or not ("-")."""
    budget = Budget(limit=limit)
    for heard in rounds:
        if heard == "h":
            budget = budget.heard_human()
        budget = budget.took_round()
    return budget


@pytest.mark.parametrize(
    ("limit", "rounds", "spent"),
    [
        (10, 0, False),
        (10, 9, False),
        (10, 10, True),
        (1, 0, False),
        (1, 1, True),
    ],
)
def test_a_run_may_take_as_many_model_turns_as_its_limit(
    limit: int, rounds: int, spent: bool
) -> None:
    """A-24: all model turns count, the first too."""
    assert after(limit, *"-" * rounds).spent is spent


@pytest.mark.parametrize(
    ("heard_in", "last"),
    [(1, 10), (2, 11), (9, 18), (10, 19)],
)
def test_a_person_starts_the_count_anew_from_the_round_the_word_landed_in(
    heard_in: int, last: int
) -> None:
    """A-25: that round is the first of the new stretch."""
    rounds = ["-"] * (heard_in - 1) + ["h"]

    assert not after(10, *rounds, *"-" * (last - heard_in - 1)).spent
    assert after(10, *rounds, *"-" * (last - heard_in)).spent


def test_a_person_who_writes_every_round_gets_as_many_extensions_as_the_limit() -> None:
    """A-26: ten, and then the run ends however much is written."""
    budget, rounds = Budget(limit=10), 0
    while not budget.spent:
        budget = budget.heard_human().took_round()
        rounds += 1
        assert rounds < 100

    assert (budget.extensions, budget.refused, rounds) == (10, True, 19)


def test_the_longest_run_takes_the_limit_times_itself() -> None:
    """A-29: no runaway bill, even if each word comes at the last moment."""
    budget, rounds = Budget(limit=4), 0
    while not budget.spent:
        if budget.rounds and budget.rounds - budget.base == 3:
            budget = budget.heard_human()
        budget = budget.took_round()
        rounds += 1

    assert rounds == 4 * 4
    assert budget.extensions == 4


def test_a_refused_extension_leaves_the_count_as_it_was_and_says_so() -> None:
    """A-27."""
    full = after(2, "h", "h")
    assert (full.extensions, full.refused, full.spent) == (2, False, False)

    refused = full.heard_human()

    assert (refused.extensions, refused.refused) == (2, True)
    assert (refused.rounds, refused.base) == (full.rounds, full.base)


def test_the_warning_says_exactly_what_the_specification_says() -> None:
    """A-27: the two lines of it, with the number of the run's limit."""
    assert EXTENSIONS_SPENT % 10 == (
        "The inbox has extended this run's round budget 10 times; refusing further extensions.\n"
        "A drain returning already-delivered messages instead of the unread slice does this."
    )


def test_a_run_that_is_never_messaged_keeps_its_limit() -> None:
    """A-10."""
    assert after(10, *"-" * 10) == Budget(limit=10, rounds=10)


@given(st.integers(1, 6), st.lists(st.booleans(), max_size=80))
def test_no_run_is_longer_than_its_extensions_allow(limit: int, heard: list[bool]) -> None:
    """A-24, A-25, A-26: against a count that is too simple to be wrong."""
    budget, left, extensions = Budget(limit=limit), limit, 0
    for human in heard:
        if budget.spent:
            break
        if human:
            budget = budget.heard_human()
            if extensions < limit:
                left, extensions = limit, extensions + 1
        budget = budget.took_round()
        left -= 1
        assert budget.spent is (left == 0)

    assert budget.extensions == extensions <= limit
    assert budget.rounds <= limit * limit
