"""What runs calls: where, how many at a time, and what becomes of each (M-56, M-62b, M-73, M-134)."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from calls.bench import Bench
from postroom_runtime.calls.context import CallContext, current_call
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.errors import StoreFailed, UnknownRecipient
from postroom_runtime.testing import run_virtual


def now() -> float:
    return asyncio.get_running_loop().time()


def outcome(call: Call) -> tuple[CallState, Any]:
    return call.state, call.result


def run(function: Callable[..., Any], **arguments: Any) -> tuple[CallState, Any]:
    """Call a function as a tool, on a real loop with real threads, and say what became of it."""

    async def main() -> tuple[CallState, Any]:
        return outcome(await Bench().run(function, **arguments))

    return asyncio.run(main())


# ── Where a tool runs ──


def test_a_plain_function_runs_in_a_thread_of_its_own_and_leaves_the_loop_free() -> None:
    """M-56."""

    async def main() -> tuple[bool, CallState]:
        bench, go, threads = Bench(), threading.Event(), list[int]()

        def wait_for_the_loop() -> None:
            threads.append(threading.get_ident())
            assert go.wait(30)

        id = await bench.call(bench.tool(wait_for_the_loop))
        while not threads:
            await asyncio.sleep(0.001)
        go.set()  # only a loop that is free gets here
        (call,) = await bench.ended(id)
        return threads[0] != threading.get_ident(), call.state

    assert asyncio.run(main()) == (True, CallState.COMPLETED)


def test_a_coroutine_function_runs_on_the_loop() -> None:
    async def main() -> tuple[Any, int]:
        async def where() -> int:
            await asyncio.sleep(1)
            return threading.get_ident()

        return (await Bench().run(where)).result, threading.get_ident()

    found, here = run_virtual(main())
    assert found == here


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_tool_knows_which_call_it_is(kind: str) -> None:
    async def main() -> tuple[Any, str]:
        seen: list[CallContext] = []

        def in_thread() -> None:
            seen.append(current_call())

        async def on_loop() -> None:
            seen.append(current_call())

        call = await Bench().run(in_thread if kind == "thread" else on_loop)
        return seen[0], call.id

    context, id = asyncio.run(main())
    assert (context.session, context.call) == ("s-0001", id)


def test_outside_a_call_there_is_none() -> None:
    with pytest.raises(LookupError):
        current_call()


def test_calls_run_in_a_copy_each_of_the_context_of_the_room() -> None:
    word: ContextVar[str] = ContextVar("word", default="none")

    async def main() -> tuple[list[str], str]:
        context, seen = copy_context(), list[str]()
        context.run(word.set, "the room")
        bench = Bench(context=context)

        async def change() -> None:
            seen.append(word.get())
            word.set("mine")

        name = bench.tool(change)
        await bench.ended(await bench.call(name), await bench.call(name))
        return seen, context.run(word.get)

    assert run_virtual(main()) == (["the room", "the room"], "the room")


# ── What becomes of it ──


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        ("text", "text"),
        (None, "done"),
        ("", ""),
        ({"passed": 42}, {"passed": 42}),
        ([1, "b"], [1, "b"]),
        (0, 0),
        (False, False),
        ({3}, [3]),
    ],
)
def test_what_a_tool_returns_is_the_result_as_json(returned: Any, result: Any) -> None:
    def answer() -> Any:
        return returned

    assert run(answer) == (CallState.COMPLETED, result)


@pytest.mark.parametrize("kind", ["thread", "loop"])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such suite"), "ValueError: no such suite"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (asyncio.CancelledError(), "CancelledError: the tool's own task was cancelled"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (UnknownRecipient("bob", ["ann"]), str(UnknownRecipient("bob", ["ann"]))),
    ],
)
def test_whatever_a_tool_raises_is_a_result(kind: str, error: BaseException, told: str) -> None:
    """exit() in a tool must end neither the loop nor the kernel; our own errors speak for themselves."""

    def fail() -> None:
        raise error

    async def fail_on_loop() -> None:
        raise error

    assert run(fail if kind == "thread" else fail_on_loop) == (CallState.FAILED, told)


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_tool_that_runs_dry_is_a_failure_like_any_other(kind: str) -> None:
    """StopIteration means something to coroutines: raised as it is, it would never arrive."""

    def dry() -> Any:
        return next(iter(()))

    async def dry_on_loop() -> Any:
        return next(iter(()))

    state, told = run(dry if kind == "thread" else dry_on_loop)

    assert state is CallState.FAILED
    assert "StopIteration" in told


def test_a_result_that_has_no_json_is_a_failure_that_says_so() -> None:
    def answer() -> Any:
        return object()

    assert run(answer) == (
        CallState.FAILED,
        "TypeError: the tool returned object, which is neither text nor JSON",
    )


def test_arguments_that_do_not_fit_are_told_and_the_tool_does_not_run() -> None:
    called: list[int] = []

    def count(n: int) -> None:
        called.append(n)

    state, told = run(count, n="many")

    assert (state, called) == (CallState.FAILED, [])
    assert told.startswith("count was not called: n: Input should be a valid integer")


def test_a_call_of_an_unknown_tool_is_told_which_there_are() -> None:
    async def main() -> list[Any]:
        bench = Bench()
        (none,) = await bench.ended(await bench.call("deploy"))
        bench.tool(len_of, name="write")
        bench.tool(len_of, name="read")
        (some,) = await bench.ended(await bench.call("deploy"))
        return [outcome(none), outcome(some)]

    assert run_virtual(main()) == [
        (CallState.FAILED, "there is no tool 'deploy'; yours: none."),
        (CallState.FAILED, "there is no tool 'deploy'; yours: read, write."),
    ]


def len_of(text: str) -> int:
    return len(text)


def test_a_call_whose_arguments_could_not_be_read_is_told_why() -> None:
    async def main() -> tuple[CallState, Any]:
        bench = Bench()
        request = bench.request(bench.tool(len_of), malformed="no JSON: {'text': ")
        (call,) = await bench.ended(*await bench.open(request))
        return outcome(call)

    assert run_virtual(main()) == (
        CallState.FAILED,
        "len_of was not called: no JSON: {'text': ",
    )


def test_every_call_ends_with_one_mail_in_the_order_of_the_ends() -> None:
    """M-62b."""

    async def main() -> list[tuple[str, str]]:
        bench = Bench()

        async def sleep(seconds: float) -> None:
            await asyncio.sleep(seconds)

        name = bench.tool(sleep)
        ids = await bench.open(*(bench.request(name, seconds=n) for n in (3, 1, 2)))
        await bench.ended(*ids)
        return bench.finished()

    assert run_virtual(main()) == [
        ("call_0002", "completed"),
        ("call_0003", "completed"),
        ("call_0001", "completed"),
    ]


# ── How many at a time ──


def test_no_more_calls_run_at_a_time_than_allowed_and_the_others_wait_their_turn() -> None:
    async def main() -> tuple[int, list[str], list[CallState], float]:
        bench, running, most, order = Bench(max_concurrency=2), 0, 0, list[str]()

        async def work() -> None:
            nonlocal running, most
            order.append(current_call().call)
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1

        name = bench.tool(work)
        ids = await bench.open(*(bench.request(name) for _ in range(5)))
        await asyncio.sleep(0.5)
        states = [bench.state(id) for id in ids]
        await bench.ended(*ids)
        assert order == ids
        return most, order, states, now()

    most, _, states, at = run_virtual(main())

    assert most == 2
    assert states == [CallState.RUNNING] * 2 + [CallState.PENDING] * 3
    assert at == pytest.approx(3.0, abs=0.02)


def test_a_call_that_waits_is_stored_as_pending_then_running_then_ended() -> None:
    async def main() -> list[list[CallState]]:
        bench = Bench(max_concurrency=1)

        async def work() -> None:
            await asyncio.sleep(1)

        name = bench.tool(work)
        ids = await bench.open(bench.request(name), bench.request(name))
        await bench.ended(*ids)
        return [list(bench.stored()[id]) for id in ids]

    assert run_virtual(main()) == [
        [CallState.RUNNING, CallState.COMPLETED],
        [CallState.PENDING, CallState.RUNNING, CallState.COMPLETED],
    ]


def test_it_tells_how_many_could_start_at_once() -> None:
    async def main() -> list[int]:
        bench = Bench(max_concurrency=2)

        async def work() -> None:
            await asyncio.sleep(1)

        name, free = bench.tool(work), [bench.executor.free()]
        ids = await bench.open(*(bench.request(name) for _ in range(3)))
        free.append(bench.executor.free())
        await bench.ended(*ids)
        await asyncio.sleep(1)
        return [*free, bench.executor.free()]

    assert run_virtual(main()) == [2, 0, 2]


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
