"""Spending caps, and why mail waits, as pure decisions (M-93, M-94, trap 8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.envelopes import from_session, from_user, order, record
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Resume
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Usage
from postroom_runtime.stepper.reasons import why_it_waits
from postroom_runtime.stepper.receive_points import starts_run
from postroom_runtime.stepper.spending import Cap, caps_of, reached

WORDS = ("user", "tool", "parent", "child", "peer")


@pytest.mark.parametrize(
    ("requests", "tokens", "caps", "cap"),
    [
        (2, 90, {}, None),
        (2, 90, {"max_requests": 3, "max_tokens": 100, "max_cost": 0.5}, None),
        (3, 0, {"max_requests": 3, "max_tokens": None}, Cap("max_requests", 3, 3)),
        (4, 0, {"max_requests": 3}, Cap("max_requests", 3, 4)),
        (0, 100, {"max_requests": None, "max_tokens": 100}, Cap("max_tokens", 100, 100)),
        (3, 100, {"max_tokens": 100, "max_requests": 3}, Cap("max_requests", 3, 3)),
        (0, 90, {"max_cost": 0.25}, Cap("max_cost", 0.25, 0.25)),
    ],
)
def test_a_cap_is_reached_when_no_more_is_left(
    requests: int, tokens: int, caps: dict[str, float | None], cap: Cap | None
) -> None:
    half = tokens // 2
    usage = Usage(requests=requests, input_tokens=half, output_tokens=tokens - half, cost=0.25)
    assert reached(usage, caps) == cap


def test_what_has_no_known_price_reaches_no_cap_of_money() -> None:
    assert reached(Usage(requests=99, input_tokens=10**9), {"max_cost": 0.01}) is None


def test_an_agent_s_caps_are_its_knobs() -> None:
    agent = Agent("bob", max_requests=3, max_cost=0.5)
    assert caps_of(agent) == {"max_requests": 3, "max_tokens": None, "max_cost": 0.5}


def test_a_cap_is_told_by_what_its_owner_sets() -> None:
    assert Cap("max_tokens", 10, 12).words("bob", "bot") == (
        "bob is capped: max_tokens=10, 12 used; "
        "raise max_tokens of agent bot (%%agent bot), then %resume bob"
    )
    assert Cap("max_tokens", 10, 12, room=True).words("bob", "bot") == (
        "bob is capped: room.max_tokens=10, 12 used; raise room.max_tokens, then %resume bob"
    )
    assert Cap("max_cost", 0.5, 0.5125, room=True).words("bob", "bot") == (
        "bob is capped: room.max_cost=$0.50, $0.51 used; raise room.max_cost, then %resume bob"
    )


@given(
    status=st.sampled_from(SessionStatus),
    end=st.sampled_from([None, *EndReason]),
    waterline=st.integers(0, 9),
    seq=st.integers(1, 9),
    kind=st.sampled_from(WORDS),
    wake_on=st.sets(st.sampled_from(WORDS)),
    resumes=st.booleans(),
)
def test_a_reason_is_given_exactly_where_mail_starts_no_run(
    status: SessionStatus,
    end: EndReason | None,
    waterline: int,
    seq: int,
    kind: str,
    wake_on: set[str],
    resumes: bool,
) -> None:
    """But for a closed session, which takes no mail."""
    at_rest = record(status, end_reason=end, waterline=waterline)
    mail = from_user("hi", seq) if kind == "user" else from_session("hi", seq)
    runs = starts_run(at_rest, [mail], set(), wake_on, lambda _: kind, resumes)
    why = why_it_waits(at_rest, mail, set(), wake_on, lambda _: kind, resumes)
    assert bool(why) is not (runs or status is SessionStatus.CLOSED)
    assert not why or why.startswith("waits: ")


@pytest.mark.parametrize("status", [s for s in SessionStatus if s is not SessionStatus.CLOSED])
def test_a_resume_behind_the_waterline_had_its_chance(status: SessionStatus) -> None:
    """Behind a cap that still holds it would start a run for ever (trap 8)."""
    end = EndReason.STOPPED if status is SessionStatus.IDLE else None
    at_rest = record(status, end_reason=end, waterline=5)
    for seq, runs in ((5, False), (6, True)):
        mail = order(Resume(), seq)
        assert starts_run(at_rest, [mail], set(), ["user"], lambda _: "peer") is runs
