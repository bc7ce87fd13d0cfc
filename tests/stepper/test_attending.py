"""How long a step stays with a call, and what takes it away (M-38, M-57…M-61, M-75, M-81, M-82)."""

import asyncio
from typing import Any

import pytest

from postroom_runtime.calls.executor import Work
from postroom_runtime.calls.policy import AppliedPolicy, Defer, RunAsync, RunSync, read_policy
from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.envelope import Pause, StopRun
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.stepper.attending import attach_limit, attend
from postroom_runtime.stepper.folding import Detached
from postroom_runtime.stepper.step import Stopped, numbered, store_calling_turn
from postroom_runtime.testing import run_virtual
from stepper.host import FakeHost, ask

ALL_DONE, ANY, TIMEOUT = (
    "yieldWhenAllDone",
    "yieldOnAnyProgress",
    {"tag": "yieldOnTimeout", "milliseconds": 500},
)


@pytest.mark.parametrize(
    ("disposition", "strategy", "seconds"),
    [
        (RunSync(), ALL_DONE, None),
        (RunSync(), TIMEOUT, None),
        (Defer(), TIMEOUT, None),
        (RunAsync(), ALL_DONE, None),
        (RunAsync(), ANY, None),
        (RunAsync(), TIMEOUT, 0.5),
        (RunAsync(attach_seconds=10), ALL_DONE, 10),
        (RunAsync(attach_seconds=10), TIMEOUT, 10),
        (RunAsync(attach_seconds=0), TIMEOUT, 0),
        (RunAsync(attach_seconds=0), ALL_DONE, 0),
    ],
)
def test_how_long_a_step_stays_with_a_call(
    disposition: Any, strategy: Any, seconds: float | None
) -> None:
    """M-57, M-58, M-59, M-60: a time of the call's own comes before the agent's strategy."""
    request = ToolRequest(tool="t", arguments={}, id="call_0001")
    work = Work(request, None, (), AppliedPolicy(disposition, ()))

    assert attach_limit(work, strategy) == seconds


# ── Attending ──


async def one(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"after {seconds:g} s"


async def two(seconds: float) -> str:
    return await one(seconds)


async def wait(seconds: float) -> str:
    return await one(seconds)


async def attended(
    host: FakeHost, *calls: tuple[str, float], policy: Any = None
) -> tuple[Detached, float]:
    """Let a model turn make these calls and attend it; return why calls detached, and when it was over."""
    host.desk.rules = read_policy(policy)
    requests = numbered(host, [ask(tool, seconds=seconds) for tool, seconds in calls])
    turn = Turn(index=host.state.next_index, role=Role.MODEL, text="", calls=requests)
    works = await store_calling_turn(host, turn, host.tools())
    detached = await attend(host, works)
    return detached, asyncio.get_running_loop().time()


def attach(**seconds: float) -> dict[str, Any]:
    return {
        "rules": [
            {"tool": tool, "disposition": {"tag": "runAsync", "attachSeconds": each}}
            for tool, each in seconds.items()
        ]
    }


def after(seconds: float, function: Any, *arguments: Any) -> None:
    asyncio.get_running_loop().call_later(seconds, function, *arguments)


def test_each_call_detaches_at_its_own_time_and_the_others_are_waited_for() -> None:
    """M-61."""

    async def main() -> tuple[Detached, float]:
        host = FakeHost(None, one, two, wait)
        calls = [("one", 30.0), ("two", 30.0), ("wait", 8.0)]
        return await attended(host, *calls, policy=attach(one=2, two=5))

    detached, when = run_virtual(main())

    assert detached.why == {
        "call_0001": "still running after 2s",
        "call_0002": "still running after 5s",
    }
    assert (detached.always, when) == (set(), 8)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.7, 1.1, 2.3, 1234.7])
def test_a_call_detaches_in_time_whenever_its_turn_began(seconds: float) -> None:
    """M-61: sums of seconds are not exact, and what they lack is no time to wait for."""

    async def main() -> Detached:
        host = FakeHost(None, one)
        await asyncio.sleep(seconds)
        return (await attended(host, ("one", 30.0), policy=attach(one=0.2)))[0]

    assert run_virtual(main()).why == {"call_0001": "still running after 0.2s"}


def test_the_step_is_free_when_the_last_call_detaches() -> None:
    """M-59."""

    async def main() -> float:
        host = FakeHost(None, one, two)
        return (await attended(host, ("one", 30.0), ("two", 1.0), policy=attach(one=2)))[1]

    assert run_virtual(main()) == 2


def test_no_attach_time_is_no_wait_and_always_a_placeholder() -> None:
    """M-60."""

    async def main() -> tuple[Detached, float]:
        host = FakeHost(None, one)
        return await attended(host, ("one", 0.0), policy=attach(one=0))

    detached, when = run_virtual(main())
    assert (detached.why, detached.always, when) == (
        {"call_0001": "still running after 0s"},
        {"call_0001"},
        0,
    )


def test_the_time_counts_from_the_start_of_the_turn_also_for_one_that_waits_to_run() -> None:
    """M-59: it includes the queue."""

    async def main() -> tuple[Detached, float]:
        host = FakeHost(None, one, max_concurrency=1)
        return await attended(host, ("one", 5.0), ("one", 5.0), policy=attach(one=7))

    detached, when = run_virtual(main())
    assert (detached.why, when) == ({"call_0002": "still running after 7s"}, 7)


@pytest.mark.parametrize(
    ("strategy", "when", "why"),
    [
        (ALL_DONE, 9, {}),
        (ANY, 2, {"call_0002": "a call beside it ended"}),
        (TIMEOUT, 0.5, dict.fromkeys(["call_0001", "call_0002"], "still running after 0.5s")),
    ],
)
def test_the_strategies_of_an_agent(strategy: Any, when: float, why: dict[str, str]) -> None:
    """M-58."""

    async def main() -> tuple[Detached, float]:
        host = FakeHost(None, one, async_yield_strategy=strategy)
        policy = {"default": {"tag": "runAsync"}}
        return await attended(host, ("one", 2.0), ("one", 9.0), policy=policy)

    detached, over = run_virtual(main())
    assert (detached.why, over) == (why, when)


def test_an_interrupt_detaches_every_call_and_a_normal_letter_none() -> None:
    """M-75, M-81."""

    async def main() -> tuple[Detached, float]:
        host = FakeHost(None, one, two)
        after(1, host.letter, "no hurry")
        after(3, host.interrupt, "now")
        return await attended(host, ("one", 30.0), ("two", 40.0), ("one", 2.0))

    detached, when = run_virtual(main())
    assert (detached.why, when) == (
        dict.fromkeys(["call_0001", "call_0002"], "interrupted"),
        3,
    )


def test_a_call_that_waits_is_not_detached_but_waited_for() -> None:
    """Trap 6: the same mail wakes it, and it answers."""

    async def main() -> tuple[Detached, float]:
        host = FakeHost(None, one, wait)
        after(3, host.interrupt, "now")
        return await attended(host, ("one", 30.0), ("wait", 4.0))

    detached, when = run_virtual(main())
    assert (detached.why, when) == ({"call_0001": "interrupted"}, 4)


def test_a_pause_detaches_as_paused_and_before_an_interrupt_behind_it() -> None:
    """M-82."""

    async def main() -> Detached:
        host = FakeHost(None, one)

        def both() -> None:
            host.order(Pause())
            host.interrupt("now")

        after(3, both)
        return (await attended(host, ("one", 30.0)))[0]

    assert run_virtual(main()).why == {"call_0001": "paused"}


def test_a_stop_comes_before_everything_and_ends_every_call() -> None:
    """M-38, M-85."""

    async def main() -> list[str]:
        host = FakeHost(None, one, two)

        def all_() -> None:
            host.interrupt("now")
            host.order(Pause())
            host.order(StopRun())

        after(3, all_)
        with pytest.raises(Stopped):
            await attended(host, ("one", 30.0), ("two", 30.0), policy=attach(two=1))
        return [str(call.state) for call in host.table.all()]

    assert run_virtual(main()) == ["cancelled", "cancelled"]


def test_orders_are_taken_while_calls_are_attended() -> None:
    """M-84."""

    async def main() -> int:
        host = FakeHost(None, one)
        after(1, host.user, "hi")
        before = host.orders
        await attended(host, ("one", 2.0))
        return host.orders - before

    assert run_virtual(main()) >= 2
