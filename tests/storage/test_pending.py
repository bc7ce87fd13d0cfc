import asyncio
import threading
from typing import Any

import pytest

from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.storage.pending import Waiting, Wakes, wake


def _waiting() -> "Waiting[str]":
    return Waiting(threading.Condition(threading.Lock()))


def _settle(*pendings: "Waiting[str]", value: str = "done") -> Wakes:
    wakes: Wakes = {}
    for each in pendings:
        with each._settled:
            each.settle(value, wakes)
            each._settled.notify_all()
    return wakes


def test_a_thread_blocks_until_it_is_settled() -> None:
    pending = _waiting()
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(pending.result(20)))
    thread.start()

    _settle(pending)
    thread.join()

    assert got == ["done"]
    assert pending.result() == "done"


def test_a_thread_that_waits_in_vain_is_told() -> None:
    with pytest.raises(TimeoutError, match=r"within 0\.01 s"):
        _waiting().result(0.01)


def test_tasks_wait_and_a_cancelled_one_undoes_nothing() -> None:
    async def main() -> list[str]:
        pending = _waiting()

        async def waiter() -> str:
            return await pending

        first, second = (asyncio.get_running_loop().create_task(waiter()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        wake(_settle(pending))
        with pytest.raises(asyncio.CancelledError):
            await first
        return [await second, await pending]

    assert asyncio.run(main()) == ["done", "done"]


def test_every_waiter_gets_the_error_without_the_frames_of_the_others() -> None:
    pending, error = _waiting(), StoreFailed("nothing", "disk full")
    with pending._settled:
        pending.fail(error, {})
    depths = []

    for _ in range(3):
        with pytest.raises(StoreFailed) as caught:
            pending.result()
        depths.append(len(caught.traceback))

    assert len(set(depths)) == 1


def test_a_group_is_told_to_each_loop_in_one_message() -> None:
    told: list[int] = []

    class Loop:
        def call_soon_threadsafe(self, ring: Any, futures: Any) -> None:
            told.append(len(futures))

    async def main() -> None:
        pendings = [_waiting() for _ in range(5)]
        loop: Any = Loop()
        for each in pendings:
            each._waiters = [(loop, asyncio.get_running_loop().create_future())] * 2
        wakes: Wakes = {}
        for each in pendings:
            each.settle("done", wakes)
        wake(wakes)

    asyncio.run(main())

    assert told == [10]


def test_a_loop_that_was_closed_meanwhile_is_let_be() -> None:
    loop, pending = asyncio.new_event_loop(), _waiting()
    pending._waiters = [(loop, loop.create_future())]
    loop.close()

    wake(_settle(pending))

    assert pending.result() == "done"
