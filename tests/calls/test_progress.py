"""How far a call has come: reported from anywhere inside it, looked at on demand, never mail (M-2)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from calls.bench import Bench
from postroom_runtime.calls.context import progress
from postroom_runtime.contracts.call import Call, CallState, Progress
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.testing import run_virtual


def run(function: Callable[..., Any]) -> tuple[Call, Bench]:
    async def main() -> tuple[Call, Bench]:
        bench = Bench()
        call = await bench.run(function)
        return call, bench

    return asyncio.run(main())


def test_a_report_stands_on_its_call_and_is_told_to_the_listeners() -> None:
    async def work() -> None:
        progress(1, 4, "reading")
        progress(2.5, text="writing")
        progress(3)
        await asyncio.sleep(0)

    call, bench = run(work)

    assert call.progress == (
        Progress(done=1, total=4, text="reading"),
        Progress(done=2.5, total=None, text="writing"),
        Progress(done=3, total=None, text=""),
    )
    assert bench.desk.told == [(call.id, "reading"), (call.id, "writing"), (call.id, "")]


def test_the_last_fifty_are_kept_and_none_is_mail_or_stored() -> None:
    async def work() -> None:
        for number in range(1, 61):
            progress(number, 60)
        await asyncio.sleep(0)

    call, bench = run(work)

    assert [each.done for each in call.progress] == list(range(11, 61))
    assert len(bench.mail()) == 1  # its end
    assert bench.stored()[call.id] == [CallState.RUNNING, CallState.COMPLETED]


def test_a_tool_in_a_thread_reports_and_so_does_a_thread_of_its_own() -> None:
    def work() -> str:
        from contextvars import copy_context

        progress(1, text="in the thread of the call")
        context = copy_context()
        mine = threading.Thread(target=lambda: context.run(progress, 2, None, "in one of its own"))
        mine.start()
        mine.join()
        return "done"

    call, _ = run(work)

    assert [each.text for each in call.progress] == [
        "in the thread of the call",
        "in one of its own",
    ]


def test_calls_at_the_same_time_report_each_for_itself() -> None:
    async def main() -> list[list[str]]:
        bench = Bench()

        def work(name: str) -> None:
            for number in range(20):
                progress(number, 20, f"{name}{number}")

        tool = bench.tool(work)
        ids = await bench.open(*[bench.request(tool, name=name) for name in "abcd"])
        return [[each.text for each in call.progress] for call in await bench.ended(*ids)]

    assert asyncio.run(main()) == [[f"{name}{n}" for n in range(20)] for name in "abcd"]


def test_outside_a_call_nothing_hears_it() -> None:
    progress(1, 2, "tried by hand")

    thread = threading.Thread(target=progress, args=(1,))
    thread.start()
    thread.join()


def test_a_report_that_comes_after_the_end_is_dropped() -> None:
    async def main() -> tuple[Call, list[tuple[str, str]]]:
        bench, go, reported = Bench(), threading.Event(), threading.Event()
        begun = threading.Event()

        def work() -> None:
            begun.set()
            assert go.wait(30)
            progress(1, text="late")
            reported.set()

        id = await bench.call(bench.tool(work))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        await bench.executor.cancel(id)
        go.set()
        while not reported.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        return bench.get(id), bench.desk.told

    call, told = asyncio.run(main())
    assert (call.progress, told) == ((), [])


def test_a_thread_that_outlives_its_room_may_still_report() -> None:
    """M-73: nobody hears it, and it goes on."""
    go, ended, failed = threading.Event(), threading.Event(), list[BaseException]()

    def work() -> None:
        assert go.wait(30)
        try:
            progress(1)
        except BaseException as error:
            failed.append(error)
        ended.set()

    async def main() -> None:
        bench = Bench()
        id = await bench.call(bench.tool(work))
        await asyncio.sleep(0.05)
        await bench.executor.cancel(id)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    go.set()
    assert ended.wait(30)
    assert failed == []


@pytest.mark.parametrize(
    ("done", "total", "words"),
    [
        ("half", None, "done='half' is no number"),
        (True, None, "done=True is no number"),
        (1, "2", "total='2' is no number"),
        (None, 3, "done=None is no number"),
    ],
)
def test_a_report_that_is_no_number_is_told_to_the_tool(done: Any, total: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        progress(done, total)


def test_a_report_while_the_end_is_being_stored_is_kept() -> None:
    async def main() -> Call:
        bench = Bench()

        async def work() -> str:
            await asyncio.sleep(1)
            return "done"

        id = await bench.call(bench.tool(work))
        bench.storage.seconds = 2
        await asyncio.sleep(2)
        bench.table.report(id, Progress(done=9, text="at the end"))
        await bench.ended(id)
        return bench.get(id)

    call = run_virtual(main())
    assert (call.state, [each.text for each in call.progress]) == (
        CallState.COMPLETED,
        ["at the end"],
    )
