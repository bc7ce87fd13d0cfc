"""What happens in one schedule: drawn from a seed, before anything runs."""

from dataclasses import dataclass
from random import Random
from typing import Any

TOOLS = ("stay", "now", "one", "three", "any", "ask")
"""Attached to its end, 0, 1 or 3 seconds, by strategy, and only with the owner's word."""

ACTS = (
    *("send",) * 4,
    *("interrupt",) * 3,
    *("answer",) * 5,
    *("cancel",) * 2,
    *("pause",) * 2,
    *("resume",) * 3,
    *("stop",) * 2,
    "drain",
    "close",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One model turn: how long it takes, and what it calls; what it says when it calls nothing."""

    seconds: float
    calls: tuple[tuple[str, dict[str, Any]], ...]
    says: str = "said"


@dataclass(frozen=True, slots=True)
class Act:
    """One deed of the owner."""

    at: float
    kind: str
    session: int
    luck: int


@dataclass(frozen=True, slots=True)
class Death:
    """How a kernel ends: at which effect, and whether that is stored."""

    effect: int
    stored: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """One schedule."""

    seed: int
    steps: tuple[tuple[Step, ...], ...]
    """By session, in the order its model takes them."""
    knobs: tuple[dict[str, Any], ...]
    acts: tuple[Act, ...]
    deaths: tuple[Death, ...]
    lag: int
    """Ticks that the store may take for anything."""


def draw(seed: int) -> Plan:
    """Return the schedule of ``seed``."""
    random = Random(seed)
    sessions = random.choice((1, 1, 1, 2, 2, 3))
    acts: list[Act] = []
    for _ in range(random.randrange(2, 9)):
        # Often in one breath with another deed: orders that meet are where it gets difficult.
        together = bool(acts) and random.random() < 0.4
        act = Act(
            at=acts[-1].at if together else random.randrange(0, 28) / 4,
            kind=random.choice(ACTS),
            session=acts[-1].session if together else random.randrange(sessions),
            luck=random.randrange(1 << 30),
        )
        acts.append(act)
    return Plan(
        seed=seed,
        steps=tuple(_steps(random, sessions) for _ in range(sessions)),
        knobs=tuple(_knobs(random) for _ in range(sessions)),
        acts=tuple(sorted(acts, key=lambda act: act.at)),
        deaths=tuple(
            Death(random.randrange(2, 40), random.random() < 0.5)
            for _ in range(random.choice((0, 0, 1, 1, 2)))
        ),
        lag=random.choice((0, 0, 1, 2, 4)),
    )


def _steps(random: Random, sessions: int) -> tuple[Step, ...]:
    left = random.randrange(2, 6)
    steps: list[Step] = []
    while left > 0:
        many = min(left, random.choice((1, 1, 2, 3)))
        left -= many
        calls = tuple(_call(random, sessions) for _ in range(many))
        steps.append(Step(_pick(random, 0, 0, 0.25, 1, 2), calls))
        if random.random() < 0.3:
            says = random.choice(("said", "said", "said", "", "raise"))
            steps.append(Step(_pick(random, 0, 0.25, 1), (), says))
    return tuple(steps)


def _pick(random: Random, *seconds: float) -> float:
    return random.choice(seconds)


def _call(random: Random, sessions: int) -> tuple[str, dict[str, Any]]:
    chance = random.random()
    if chance < 0.7:
        seconds = _pick(random, 0, 0, 0.25, 0.5, 1, 1, 2, 3, 4)
        return random.choice(TOOLS), {"seconds": seconds, "fails": random.random() < 0.08}
    timeout = _pick(random, 0, 1, 2, 5)
    if chance < 0.8:
        return "wait", {
            "for": random.choice(("mail", "any-call", "ID")),
            "timeout_seconds": timeout,
        }
    if chance < 0.9:
        return "get-tool-call-status", {
            "tool_call_id": "ID",
            "wait_for_completion": random.random() < 0.5,
            "timeout_seconds": timeout,
        }
    if chance < 0.94:
        return "cancel-tool-call", {"tool_call_id": "ID"}
    if chance < 0.96:
        return "list-running-tool-calls", {}
    return "send-message", {"to": f"s{random.randrange(sessions)}", "text": "LETTER"}


def _knobs(random: Random) -> dict[str, Any]:
    knobs: dict[str, Any] = {
        "max_concurrency": random.choice((1, 2, 4, 4)),
        "async_yield_strategy": random.choice(("yieldWhenAllDone", "yieldOnAnyProgress")),
        "interrupt_completions": random.random() < 0.4,
        "pause_cancels_calls": random.random() < 0.2,
        "resume_on_any_mail": random.random() < 0.2,
        "max_iterations": random.choice((3, 30, 30, 30)),
    }
    if random.random() < 0.2:
        knobs["wake_on"] = ["user"]
    knobs["policy"] = random.choice(("plain", "plain", "plain", "hasty"))
    return knobs
