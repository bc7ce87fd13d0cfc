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
from postroom_runtime.contracts.errors import UnknownRecipient
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
