"""Calls ended before their time, and on a disk that refuses (M-62b, M-68, M-73, M-77, M-84, M-85, M-134)."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from calls.bench import Bench
from postroom_runtime.calls.context import current_call
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.testing import run_virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def outcome(call: Call) -> tuple[CallState, Any]:
    return call.state, call.result


async def clocked() -> float:
    return now()


def len_of(text: str) -> int:
    return len(text)


# ── Cancelled ──


def test_a_cancelled_call_ends_at_once_and_its_tool_is_told() -> None:
    """M-84."""

    async def main() -> tuple[bool, Call, list[str], float, list[tuple[str, str]]]:
        bench, told = Bench(), list[str]()

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                told.append("cancelled")
                raise

        id = await bench.call(bench.tool(work))
        await asyncio.sleep(1)
        ended = await bench.executor.cancel(id)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return ended, bench.get(id), told, now(), bench.finished()

    ended, call, told, at, finished = run_virtual(main())

    assert (ended, told, at) == (True, ["cancelled"], 1.0)
    assert outcome(call) == (
        CallState.CANCELLED,
        "cancelled: the call was ended before its result",
    )
    assert finished == [("call_0001", "cancelled")]


def test_the_late_result_of_a_cancelled_thread_is_discarded() -> None:
    """M-73, M-77: a thread cannot be stopped; what it returns posts nothing."""

    async def main() -> tuple[CallState, list[tuple[str, str]]]:
        bench, begun, go, done = Bench(), threading.Event(), threading.Event(), threading.Event()

        def work() -> str:
            begun.set()
            assert go.wait(30)
            done.set()
            return "late"

        id = await bench.call(bench.tool(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        assert await bench.executor.cancel(id)
        go.set()
        while not done.is_set() or bench.executor.free() < 4:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        return bench.state(id), bench.finished()

    assert asyncio.run(main()) == (CallState.CANCELLED, [("call_0001", "cancelled")])


def test_a_cancelled_thread_gives_its_place_to_the_next_call_though_it_runs_on() -> None:
    """M-73, M-77."""

    async def main() -> tuple[CallState, bool]:
        bench, begun, go = Bench(max_concurrency=1), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            assert go.wait(30)

        first, second = await bench.open(
            bench.request(bench.tool(work)), bench.request(bench.tool(len_of), text="four")
        )
        while not begun.is_set():
            await asyncio.sleep(0.001)
        await bench.executor.cancel(first)
        try:
            async with asyncio.timeout(10):
                (call,) = await bench.ended(second)
            return call.state, go.is_set()
        finally:
            go.set()

    assert asyncio.run(main()) == (CallState.COMPLETED, False)


def test_a_tool_that_will_not_be_cancelled_is_not_heard_any_more() -> None:
    """M-73."""

    async def main() -> tuple[Any, list[tuple[str, str]], float]:
        bench = Bench()

        async def stubborn() -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(5)
            return "still here"

        id = await bench.call(bench.tool(stubborn))
        await asyncio.sleep(1)
        await bench.executor.cancel(id)
        await asyncio.sleep(10)
        return bench.get(id).result, bench.finished(), bench.executor.free()

    result, finished, free = run_virtual(main())

    assert str(result).startswith("cancelled")
    assert finished == [("call_0001", "cancelled")]
    assert free == 4


def test_a_call_that_is_cancelled_and_goes_on_is_told_as_such_until_it_really_ends() -> None:
    """M-73: its state is final; what ignores it is known by the side."""

    async def main() -> list[tuple[float, list[str], int, bool]]:
        bench, seen = Bench(max_concurrency=1), list[tuple[float, list[str], int, bool]]()

        async def stubborn() -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(20)
            return "still here"

        id = await bench.call(bench.tool(stubborn))
        await asyncio.sleep(1)
        await bench.executor.cancel(id)
        for seconds in (0, 4, 2, 15):
            await asyncio.sleep(seconds)
            going = [call.id for call in bench.executor.lingering()]
            seen.append((now(), going, bench.executor.free(), bench.executor.busy))
        return seen

    assert run_virtual(main()) == [
        (1, ["call_0001"], 0, True),
        (5, ["call_0001"], 0, True),  # it may be tidying up
        (7, ["call_0001"], 1, False),  # after five seconds nobody waits for it
        (22, [], 1, False),
    ]


def test_a_tool_that_heeds_its_cancellation_is_not_told_as_going_on() -> None:
    """M-73: the other side."""

    async def main() -> tuple[list[Call], list[Call]]:
        bench = Bench()

        async def work() -> None:
            await asyncio.sleep(60)

        id = await bench.call(bench.tool(work))
        (done,) = await bench.ended(await bench.call(bench.tool(len_of, name="len"), text="four"))
        await bench.executor.cancel(id)
        await bench.executor.settle(id)
        assert not bench.executor.lingers(done)
        return bench.executor.lingering(), [bench.get(id)]

    lingering, (call,) = run_virtual(main())
    assert (lingering, call.state) == ([], CallState.CANCELLED)


def test_the_place_of_a_deaf_tool_goes_to_the_next_call_after_a_while() -> None:
    """M-73: one that never ends would hold it for ever."""

    async def main() -> tuple[CallState, float, list[str]]:
        bench, go = Bench(max_concurrency=1), asyncio.Event()

        async def deaf() -> None:
            while not go.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await go.wait()

        first, second = await bench.open(
            bench.request(bench.tool(deaf)), bench.request(bench.tool(clocked))
        )
        await asyncio.sleep(1)
        await bench.executor.cancel(first)
        (call,) = await bench.ended(second)
        going = [each.id for each in bench.executor.lingering()]
        go.set()
        return call.state, call.result, going

    state, at, going = run_virtual(main())
    assert (state, going) == (CallState.COMPLETED, ["call_0001"])
    assert at == pytest.approx(6)


def test_a_tool_that_ignores_its_time_limit_is_timed_out_and_told_as_going_on() -> None:
    """M-73, M-118: what it returns late is discarded, and the next try does not wait for ever."""

    async def main() -> tuple[list[Any], list[str], list[str], list[tuple[str, str]]]:
        bench = Bench()
        bench.desk.limit = 10

        async def stubborn() -> str:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(30)
            return "late"

        id = await bench.call(bench.tool(stubborn))
        (call,) = await bench.ended(id)
        told = [call.state, call.result, pytest.approx(now()) == 15]
        going = [each.id for each in bench.executor.lingering()]
        await asyncio.sleep(60)
        assert bench.get(id) == call
        return told, going, [each.id for each in bench.executor.lingering()], bench.finished()

    told, going, later, finished = run_virtual(main())
    assert told == [CallState.TIMED_OUT, "timed out after 10s", True]
    assert (going, later) == (["call_0001"], [])
    assert finished == [("call_0001", "timed_out")]


@pytest.mark.parametrize("how", ["cancelled", "timed_out"])
def test_a_thread_that_goes_on_says_so_in_the_result_and_is_told_until_it_ends(how: str) -> None:
    """M-73, M-77: Python threads cannot be stopped."""

    async def main() -> tuple[CallState, str, list[str], list[str], list[tuple[str, str]]]:
        bench, begun, go = Bench(), threading.Event(), threading.Event()
        bench.desk.limit = 0.05 if how == "timed_out" else None

        def work() -> str:
            begun.set()
            assert go.wait(30)
            return "late"

        id = await bench.call(bench.tool(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        if how == "cancelled":
            await bench.executor.cancel(id)
        (call,) = await bench.ended(id)
        going = [each.id for each in bench.executor.lingering()]
        go.set()
        while bench.executor.lingering():
            await asyncio.sleep(0.001)
        after = [each.id for each in bench.executor.lingering()]
        assert bench.get(id) == call
        return call.state, str(call.result), going, after, bench.finished()

    state, result, going, after, finished = asyncio.run(main())
    assert state == how
    assert result.endswith(
        "; its thread cannot be stopped and goes on, what it returns is discarded"
    )
    assert (going, after, finished) == (["call_0001"], [], [("call_0001", how)])


def test_a_tool_that_exits_within_its_time_limit_ends_itself_and_not_the_loop() -> None:
    """M-118: its limit runs it in a task of its own, out of which an exit must not go astray."""

    async def main() -> tuple[CallState, Any]:
        bench = Bench()
        bench.desk.limit = 10

        async def leave() -> None:
            raise SystemExit(3)

        return outcome(await bench.run(leave))

    assert run_virtual(main()) == (CallState.FAILED, "SystemExit: 3")


def test_a_call_with_a_time_limit_is_cancelled_with_what_runs_in_it() -> None:
    """M-84, M-118: and may tidy up."""

    async def main() -> list[tuple[str, float]]:
        bench, told = Bench(), list[tuple[str, float]]()
        bench.desk.limit = 100

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                told.append(("told", now()))
                await asyncio.sleep(2)
                told.append(("tidied up", now()))

        id = await bench.call(bench.tool(work))
        await asyncio.sleep(1)
        await bench.executor.cancel(id)
        await asyncio.sleep(1)
        assert bench.executor.busy
        await asyncio.sleep(5)
        assert not bench.executor.busy
        return told

    assert run_virtual(main()) == [("told", 1), ("tidied up", 3)]


def test_cancelling_twice_or_what_is_not_there_does_nothing() -> None:
    """M-68: the second is a no-op."""

    async def main() -> list[bool]:
        bench = Bench()

        async def work() -> None:
            await asyncio.sleep(60)

        id = await bench.call(bench.tool(work))
        (done,) = await bench.ended(await bench.call(bench.tool(len_of, name="len"), text=5))
        cancels = [
            await bench.executor.cancel(id),
            await bench.executor.cancel(id),
            await bench.executor.cancel(done.id),
            await bench.executor.cancel("call_9999"),
        ]
        assert len(bench.finished()) == 2
        return cancels

    assert run_virtual(main()) == [True, False, False, False]


def test_a_second_cancelling_does_not_cut_short_what_a_tool_tidies_up() -> None:
    """M-68."""

    async def main() -> list[str]:
        bench, told = Bench(), list[str]()

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(5)
                told.append("tidied up")

        id = await bench.call(bench.tool(work))
        await asyncio.sleep(1)
        await bench.executor.cancel(id)
        await asyncio.sleep(1)
        await bench.executor.cancel(id)
        await asyncio.sleep(10)
        return told

    assert run_virtual(main()) == ["tidied up"]


def test_a_call_may_be_ended_as_timed_out() -> None:
    async def main() -> tuple[CallState, Any]:
        bench = Bench()

        async def work() -> None:
            await asyncio.sleep(60)

        id = await bench.call(bench.tool(work))
        await bench.executor.cancel(id, CallState.TIMED_OUT)
        return outcome(bench.get(id))

    assert run_virtual(main()) == (
        CallState.TIMED_OUT,
        "timed_out: the call was ended before its result",
    )


@pytest.mark.parametrize("seconds", [0.0, 2.0], ids=["memory", "disk"])
def test_a_call_cancelled_before_its_turn_never_runs(seconds: float) -> None:
    """M-73: also when its turn comes while its end is being stored."""

    async def main() -> tuple[list[str], list[CallState]]:
        bench, ran = Bench(max_concurrency=1), list[str]()

        async def work() -> None:
            ran.append(current_call().call)
            await asyncio.sleep(1)

        name = bench.tool(work)
        first, second = await bench.open(bench.request(name), bench.request(name))
        await asyncio.sleep(0.5)
        bench.storage.seconds = seconds
        await bench.executor.cancel(second)
        await bench.ended(first)
        await asyncio.sleep(10)
        return ran, list(bench.stored()[second])

    assert run_virtual(main()) == (
        ["call_0001"],
        [CallState.PENDING, CallState.CANCELLED],
    )


def test_a_call_that_ends_by_itself_while_it_is_cancelled_ends_once_and_the_table_knows() -> None:
    """M-73, M-62b: its end is being stored when the order to cancel comes."""

    async def main() -> tuple[bool, CallState, list[tuple[str, str]]]:
        bench = Bench()

        async def quick() -> str:
            return "done in time"

        bench.storage.seconds = 1.0
        id = await bench.call(bench.tool(quick))
        await asyncio.sleep(0.5)
        cancelled = await bench.executor.cancel(id)
        return cancelled, bench.state(id), bench.finished()

    assert run_virtual(main()) == (
        False,
        CallState.COMPLETED,
        [("call_0001", "completed")],
    )


def test_a_result_that_comes_while_the_cancelling_is_stored_is_discarded() -> None:
    """M-73: the other way round."""

    async def main() -> tuple[bool, Any, list[tuple[str, str]]]:
        bench = Bench()

        async def work() -> str:
            await asyncio.sleep(1)
            return "late"

        id = await bench.call(bench.tool(work))
        await asyncio.sleep(0.5)
        bench.storage.seconds = 2.0
        cancelled = await bench.executor.cancel(id)
        await asyncio.sleep(10)
        return cancelled, bench.get(id).result, bench.finished()

    cancelled, result, finished = run_virtual(main())

    assert cancelled
    assert str(result).startswith("cancelled")
    assert finished == [("call_0001", "cancelled")]


def test_every_call_may_be_cancelled_at_once_the_waiting_ones_too() -> None:
    """M-85, M-134."""

    async def main() -> tuple[list[str], list[tuple[str, str]], int]:
        bench, ran = Bench(max_concurrency=2), list[str]()

        async def work() -> None:
            ran.append(current_call().call)
            await asyncio.sleep(60)

        name = bench.tool(work)
        await bench.open(*(bench.request(name) for _ in range(4)))
        await asyncio.sleep(1)
        await bench.executor.cancel_all()
        await asyncio.sleep(1)
        return ran, bench.finished(), len(bench.table.open_calls())

    ran, finished, open_calls = run_virtual(main())

    assert ran == ["call_0001", "call_0002"]
    assert finished == [(f"call_000{n}", "cancelled") for n in range(1, 5)]
    assert open_calls == 0


def test_abandoning_stores_nothing() -> None:
    """M-71: the room closes; recovery tells what became of them."""

    async def main() -> tuple[CallState, int, int, list[BaseException | None]]:
        bench = Bench()

        async def work() -> None:
            await asyncio.sleep(60)

        id = await bench.call(bench.tool(work))
        await asyncio.sleep(1)
        head = bench.storage.head()
        bench.executor.abandon()
        await asyncio.sleep(1)
        return bench.state(id), bench.storage.head() - head, bench.executor.free(), bench.failures

    assert run_virtual(main()) == (CallState.RUNNING, 0, 4, [])


# ── When the disk refuses ──


async def ends_on_a_full_disk(failures: int) -> tuple[Bench, str, list[str]]:
    bench, ran = Bench(), list[str]()

    async def work() -> str:
        ran.append("ran")
        await asyncio.sleep(1)
        return "precious"

    id = await bench.call(bench.tool(work))
    bench.storage.failures, bench.storage.tries = failures, 0
    return bench, id, ran


@pytest.mark.parametrize(("failures", "at"), [(1, 1.1), (2, 1.6), (3, 3.6), (4, 8.6)])
def test_a_result_that_the_disk_refuses_is_kept_and_tried_again(failures: int, at: float) -> None:
    """M-62b: a result is never dropped; meanwhile the call runs for everyone."""

    async def main() -> tuple[list[Any], list[Any], list[str], list[tuple[str, str]]]:
        bench, id, ran = await ends_on_a_full_disk(failures)
        await asyncio.sleep(at - 0.05)
        before = [bench.state(id), len(bench.mail())]
        await asyncio.sleep(0.1)
        after = [bench.state(id), bench.get(id).result, bench.executor.failure]
        return before, after, ran, bench.finished()

    assert run_virtual(main()) == (
        [CallState.RUNNING, 0],
        [CallState.COMPLETED, "precious", None],
        ["ran"],
        [("call_0001", "completed")],
    )


def test_a_result_that_cannot_be_stored_at_all_surfaces_as_the_failure_of_the_executor() -> None:
    """M-62b: the step that waits for it raises this; the call is as open as it was."""

    async def main() -> tuple[int, list[BaseException | None], CallState, float, int]:
        bench, id, _ = await ends_on_a_full_disk(99)
        await bench.ended(id)
        assert isinstance(bench.executor.failure, StoreFailed)
        return bench.storage.tries, bench.failures, bench.state(id), now(), len(bench.mail())

    tries, failures, state, at, mails = run_virtual(main())

    assert tries == 5
    assert [type(failure) for failure in failures] == [StoreFailed]
    assert (state, mails) == (CallState.RUNNING, 0)
    assert at == pytest.approx(1 + 0.1 + 0.5 + 2 + 5, abs=0.02)


def test_a_start_that_the_disk_refuses_is_tried_again_too() -> None:
    async def main() -> tuple[list[CallState], BaseException | None]:
        bench = Bench(max_concurrency=1)

        async def work() -> None:
            await asyncio.sleep(1)

        name = bench.tool(work)
        first, second = await bench.open(bench.request(name), bench.request(name))
        await bench.ended(first)
        bench.storage.failures = 2
        await bench.ended(second)
        return list(bench.stored()[second]), bench.executor.failure

    states, failure = run_virtual(main())

    assert states == [CallState.PENDING, CallState.RUNNING, CallState.COMPLETED]
    assert failure is None


def test_a_cancelling_that_the_disk_refuses_is_tried_again_and_wins_or_loses_as_a_whole() -> None:
    """M-73: between two tries the tool may end by itself; that result is as good."""

    async def main() -> tuple[bool, Any, list[tuple[str, str]]]:
        bench = Bench()

        async def work() -> str:
            await asyncio.sleep(1)
            return "in time"

        id = await bench.call(bench.tool(work))
        await asyncio.sleep(0.95)
        bench.storage.failures = 1
        cancelled = await bench.executor.cancel(id)
        await asyncio.sleep(1)
        return cancelled, bench.get(id).result, bench.finished()

    assert run_virtual(main()) == (False, "in time", [("call_0001", "completed")])
