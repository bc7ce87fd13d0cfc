"""Ten thousand schedules of suspended calls, each against the laws that hold whatever happens.

A schedule is one to three sessions whose scripts make calls of every disposition, an owner who writes,
interrupts, pauses, stops, cancels and answers at random moments, a store that takes its time, and
kernels that die at random effects; a seed decides in which order all that is ready happens. Every
call ends once, every result is read once, every mail is in one turn, every request is well formed,
and in the end all is quiet (M-8, M-22, M-24, M-38…M-42, M-54, M-57…M-73, M-75…M-86, M-97, M-114).

To look at a schedule that failed::

    WALKS=1 WALKS_FROM=4711 pytest tests/walks/test_schedules.py -k chunk
"""

import os

import pytest

from postroom_runtime.testing import journal
from walks.laws import broken
from walks.plans import draw
from walks.walking import Walk, walked

CHUNKS = 40

_QUICK = os.environ.get("HYPOTHESIS_PROFILE") == "quick"
SCHEDULES = int(os.environ.get("WALKS", "500" if _QUICK else "10000"))
FIRST = int(os.environ.get("WALKS_FROM", "0"))


def _laws(walk: Walk) -> list[str]:
    return broken(walk.rows, walk.ran, died=walk.died)


def _told(walk: Walk) -> str:
    return "\n".join(
        [
            f"schedule {walk.plan.seed}:",
            *walk.faults,
            "",
            *walk.deeds,
            "",
            *(line[:300] for line in journal(walk.rows) if " inbox@" not in line),
        ]
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_whatever_happens_every_call_ends_once_and_every_result_is_read_once(chunk: int) -> None:
    for seed in range(FIRST + chunk, FIRST + SCHEDULES, CHUNKS):
        walk = walked(draw(seed), _laws)
        if walk.faults:
            pytest.fail(_told(walk), pytrace=False)
