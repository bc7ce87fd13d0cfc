"""A seed decides the order: the same one the same order, in whatever process; asyncio's promises hold."""

import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from postroom_runtime.testing import SeededLoop, journal, run_seeded, virtual_now
from walks.plans import draw
from walks.walking import walked

TESTS = Path(__file__).parents[1]


def _heard(heard: list[int], n: int, future: "asyncio.Future[None]") -> None:
    heard.append(n)


async def order(count: int = 6) -> str:
    """The order in which tasks that are ready together run."""
    ran: list[str] = []

    async def one(name: str) -> None:
        await asyncio.sleep(0)
        ran.append(name)

    async with asyncio.TaskGroup() as group:
        for n in range(count):
            group.create_task(one(str(n)))
    return "".join(ran)


def test_the_same_seed_gives_the_same_order_and_others_give_others() -> None:
    orders = [run_seeded(order(), seed) for seed in range(20)]
    assert orders == [run_seeded(order(), seed) for seed in range(20)]
    assert len(set(orders)) > 15
    assert {"".join(sorted(each)) for each in orders} == {"012345"}


def test_timers_due_at_one_moment_fire_in_any_order_and_others_in_theirs() -> None:
    async def main() -> tuple[str, list[float]]:
        loop, fired, at = asyncio.get_running_loop(), list[str](), list[float]()
        for name in "abcd":
            loop.call_at(5, fired.append, name)
        for when in (3, 1, 2):
            loop.call_at(when, at.append, when)
        await asyncio.sleep(6)
        return "".join(fired), at

    seen = [run_seeded(main(), seed) for seed in range(20)]
    assert len({fired for fired, _ in seen}) > 5
    assert {"".join(sorted(fired)) for fired, _ in seen} == {"abcd"}
    assert all(at == [1, 2, 3] for _, at in seen)


def test_a_task_goes_on_in_its_own_order_and_so_do_callbacks_given_by_hand() -> None:
    async def main() -> tuple[list[int], list[int]]:
        loop, steps, by_hand = asyncio.get_running_loop(), list[int](), list[int]()

        async def step() -> None:
            for n in range(5):
                steps.append(n)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(step())
            for n in range(5):
                loop.call_soon(by_hand.append, n)
                group.create_task(asyncio.sleep(0))
        return steps, by_hand

    for seed in range(20):
        assert run_seeded(main(), seed) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])


def test_callbacks_of_one_future_keep_their_order() -> None:
    async def main() -> list[int]:
        loop, heard = asyncio.get_running_loop(), list[int]()
        future = loop.create_future()
        for n in range(5):
            future.add_done_callback(partial(_heard, heard, n))
        future.set_result(None)
        await asyncio.sleep(0)
        return heard

    for seed in range(20):
        assert run_seeded(main(), seed) == [0, 1, 2, 3, 4]


def test_a_timer_that_is_cancelled_in_the_tick_it_is_due_never_fires() -> None:
    async def main() -> list[str]:
        loop, fired = asyncio.get_running_loop(), list[str]()
        late = loop.call_at(1, fired.append, "late")

        def first() -> None:
            late.cancel()
            fired.append("first")

        loop.call_at(1, first)
        await asyncio.sleep(2)
        return fired

    assert {tuple(run_seeded(main(), seed)) for seed in range(20)} == {
        ("first",),
        ("late", "first"),
    }


def test_a_loop_that_can_only_hang_says_so() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="deadlock"):
        run_seeded(main(), 1)


def test_the_moment_in_a_room_is_that_of_the_virtual_clock() -> None:
    async def main() -> float:
        began = virtual_now()
        await asyncio.sleep(90)
        return (virtual_now() - began).total_seconds()

    assert run_seeded(main(), 1) == 90
    assert virtual_now() == virtual_now()
    SeededLoop(1).close()


PROGRAM = """
import hashlib, sys
from postroom_runtime.testing import journal
from walks.plans import draw
from walks.walking import walked
rows = [line for seed in range(12) for line in journal(walked(draw(seed)).rows)]
print(hashlib.sha256("\\n".join(rows).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_journal_times_included_in_two_processes() -> None:
    def told(hash_seed: str) -> str:
        path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        said = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        return said.stdout

    assert told("1") == told("2") != ""


def test_another_order_is_another_journal() -> None:
    plan = draw(3)
    first, again = (journal(walked(plan).rows) for _ in range(2))
    assert first == again
    assert len({tuple(journal(walked(draw(seed)).rows)) for seed in range(5)}) == 5
