"""How published rows reach the loop: bells, then events, in commit order (M-15, M-28, I-20)."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import Context, ContextVar, copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.envelopes import AT, clock, from_user, record
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import FromUser, Outgoing, UserMessage
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.journal import Row
from postroom_runtime.mail.delivery import Delivery
from postroom_runtime.signals.bell import wait_until
from postroom_runtime.storage.memory_storage import MemoryStorage


def row(n: int, session: str = "s-0001") -> Row:
    return Row(n, session, AT, from_user(f"letter {n}", n, session=session))


def in_thread(delivery: Delivery, *rows: Row) -> None:
    """Let another thread publish ``rows``, and wait until it has."""
    thread = threading.Thread(target=delivery.hear, args=(rows,))
    thread.start()
    thread.join()


async def attached(context: Context | None = None) -> Delivery:
    delivery = Delivery()
    delivery.attach(asyncio.get_running_loop(), context)
    return delivery


async def tick() -> None:
    """Let everything that is due run, and what that makes due."""
    for _ in range(3):
        await asyncio.sleep(0)


# ── Order ──


def test_rows_of_a_thread_and_of_the_loop_are_told_in_commit_order() -> None:
    async def main() -> list[int]:
        delivery, told = await attached(), list[int]()
        delivery.broadcast.subscribe(lambda event: told.append(event.seq))
        in_thread(delivery, row(1), row(2))
        delivery.hear((row(3),))  # on the loop, while the thread's rows still wait
        in_thread(delivery, row(4))
        delivery.hear((row(5),))
        await tick()
        assert delivery.last == 5
        return told

    assert asyncio.run(main()) == [1, 2, 3, 4, 5]


@given(
    st.lists(st.sampled_from(["loop", "thread", "tick", "listen", "leave"]), max_size=25),
)
def test_whoever_publishes_and_whoever_listens_the_order_is_the_stores(steps: list[str]) -> None:
    """A listener hears each row published while it listens, in order; the last is always counted."""

    async def main() -> None:
        delivery, n = await attached(), 0
        told: list[int] = []
        due: list[int] = []
        stop = None
        for step in [*steps, "tick"]:
            if step in ("loop", "thread"):
                n += 1
                due.append(n)
                if step == "loop":
                    delivery.hear((row(n),))
                else:
                    in_thread(delivery, row(n))
            elif step == "listen" and stop is None:
                await tick()
                told.clear()
                due.clear()
                stop = delivery.broadcast.subscribe(lambda event: told.append(event.seq))
            elif step == "leave" and stop is not None:
                await tick()
                stop()
                stop = None
            elif step == "tick":
                await tick()
                if stop is not None:
                    assert told == due
                assert delivery.last == n

    asyncio.run(main())


def test_everything_that_waits_goes_in_one_hop() -> None:
    async def main() -> int:
        hops = 0
        loop = asyncio.get_running_loop()
        call_soon = loop.call_soon_threadsafe

        def count(*args: object, **kwargs: object) -> asyncio.Handle:
            nonlocal hops
            hops += 1
            return call_soon(*args, **kwargs)  # type: ignore[arg-type]

        loop.call_soon_threadsafe = count  # type: ignore[method-assign]
        delivery = await attached()
        for n in range(1, 101):
            in_thread(delivery, row(n))
        await tick()
        assert delivery.last == 100
        return hops

    assert asyncio.run(main()) == 1


# ── Before there is a loop, and after ──


def test_nothing_is_lost_before_a_loop_is_attached() -> None:
    delivery, told = Delivery(), list[int]()
    delivery.broadcast.subscribe(lambda event: told.append(event.seq))
    delivery.hear((row(1),))
    in_thread(delivery, row(2))
    assert told == []

    async def main() -> None:
        delivery.hear((row(3),))  # on a loop that is not its own yet
        delivery.attach(asyncio.get_running_loop(), None)
        delivery.hear((row(4),))
        await tick()

    asyncio.run(main())

    assert told == [1, 2, 3, 4]
    assert delivery.last == 4


def test_a_loop_may_be_attached_before_it_runs() -> None:
    delivery, told = Delivery(), list[int]()
    delivery.broadcast.subscribe(lambda event: told.append(event.seq))
    delivery.hear((row(1),))

    with asyncio.Runner() as runner:
        delivery.attach(runner.get_loop(), None)
        in_thread(delivery, row(2))
        assert told == []
        runner.run(tick())

    assert told == [1, 2]


def test_what_a_closed_loop_was_not_told_the_next_one_is() -> None:
    """A script may run one loop after the other; the last rows of the first hop no more."""
    delivery, told = Delivery(), list[int]()
    delivery.broadcast.subscribe(lambda event: told.append(event.seq))

    async def first() -> None:
        delivery.attach(asyncio.get_running_loop(), None)

    async def second() -> None:
        delivery.attach(asyncio.get_running_loop(), None)
        await tick()
        in_thread(delivery, row(4))
        await tick()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(first())
    in_thread(delivery, row(1))  # its hop is due when the loop is closed
    loop.close()
    in_thread(delivery, row(2))
    delivery.hear((row(3),))
    asyncio.run(second())

    assert told == [1, 2, 3, 4]


def test_a_row_published_when_the_loop_is_closed_troubles_nobody_and_waits_for_the_next() -> None:
    delivery, told = Delivery(), list[int]()
    delivery.broadcast.subscribe(lambda event: told.append(event.seq))

    async def live() -> None:
        delivery.attach(asyncio.get_running_loop(), None)
        await tick()

    asyncio.run(live())
    delivery.hear((row(1),))
    delivery.hear((row(2),))
    asyncio.run(live())

    assert told == [1, 2]


def test_a_row_published_while_the_loop_is_being_attached_is_told() -> None:
    """The publishing thread saw no loop yet, the attaching one no row yet."""
    delivery, told = Delivery(), list[int]()
    delivery.broadcast.subscribe(lambda event: told.append(event.seq))

    with asyncio.Runner() as runner:

        class Overtaken(list[Row]):
            """Rows that a loop is attached in front of while they are being taken."""

            def __iter__(self) -> Iterator[Row]:
                delivery.attach(runner.get_loop(), None)
                return super().__iter__()

        delivery.hear(Overtaken([row(1)]))
        runner.run(tick())

    assert told == [1]


# ── Bells ──


def test_the_bell_of_a_session_rings_for_its_rows_and_that_of_the_room_for_all() -> None:
    async def main() -> list[bool]:
        delivery = await attached()
        ann = delivery.bell("s-0001").listen()
        bob = delivery.bell("s-0002").listen()
        room = delivery.room_bell.listen()
        in_thread(delivery, row(1, "s-0001"))
        await tick()
        return [each.done() for each in (ann, bob, room)]

    assert asyncio.run(main()) == [True, False, True]


def test_a_session_has_one_bell() -> None:
    delivery = Delivery()

    assert delivery.bell("s-0001") is delivery.bell("s-0001")
    assert delivery.bell("s-0001") is not delivery.bell("s-0002")


@pytest.mark.parametrize("heard", [False, True])
def test_on_the_loop_the_bells_ring_at_once(heard: bool) -> None:
    """M-28: who waits runs in the same tick that the store decided."""

    async def main() -> list[bool]:
        delivery = await attached()
        if heard:
            delivery.broadcast.subscribe(lambda event: None)
        waiting = [delivery.bell("s-0001").listen(), delivery.room_bell.listen()]
        delivery.hear((row(1),))
        return [each.done() for each in waiting]

    assert asyncio.run(main()) == [True, True]


def test_who_waits_for_a_threads_mail_is_woken() -> None:
    """M-15: accepted in the caller's thread, told to the loop."""

    async def main() -> int:
        delivery, storage = await attached(), MemoryStorage(now=clock)
        storage.bells(delivery.hear)
        storage.commit("s-0001", epoch=1, version=0, rows=(record(),)).result()
        letter = Outgoing(session="s-0001", sender=FromUser(), body=UserMessage("hi"))
        sending = threading.Timer(0.01, storage.accept, args=((letter,),))
        sending.start()
        found = await wait_until(
            lambda: storage.fetch({"s-0001": 0})["s-0001"] or None, delivery.bell("s-0001"), 30
        )
        sending.join()
        return len(found or ())

    assert asyncio.run(main()) == 1


def test_a_change_without_a_row_rings_too() -> None:
    async def main() -> list[bool]:
        delivery = await attached()
        waiting = [delivery.bell("s-0001").listen(), delivery.room_bell.listen()]
        delivery.ring("s-0001")
        delivery.ring("s-0009")  # nobody waits there
        return [each.done() for each in waiting]

    assert asyncio.run(main()) == [True, True]


# ── Events ──


def test_who_hears_of_a_row_may_call_the_store() -> None:
    """The store publishes under its lock: nobody may be called back while it is held."""

    async def main() -> list[int]:
        delivery, storage = await attached(), MemoryStorage(now=clock)
        storage.bells(delivery.hear)
        heads: list[int] = []
        letter = Outgoing(session="s-0001", sender=FromUser(), body=UserMessage("again"))

        def hear(event: Event) -> None:
            heads.append(len(storage.rows()))
            if len(heads) < 3:
                storage.accept((letter,))

        delivery.broadcast.subscribe(hear)
        storage.commit("s-0001", epoch=1, version=0, rows=(record(),)).result()
        await tick()
        return heads

    assert asyncio.run(main()) == [1, 2, 3]


def test_a_row_that_tells_nothing_still_rings_and_counts() -> None:
    async def main() -> tuple[bool, list[int], int]:
        delivery, told = await attached(), list[int]()
        delivery.broadcast.subscribe(lambda event: told.append(event.seq))
        waiting = delivery.bell("s-0001").listen()
        pending = Call(
            id="call_0001", session="s-0001", tool="t", arguments={}, state=CallState.PENDING
        )
        in_thread(delivery, Row(1, "s-0001", AT, pending))
        await tick()
        return waiting.done(), told, delivery.last

    assert asyncio.run(main()) == (True, [], 1)


@pytest.mark.parametrize("heard", [False, True])
def test_the_last_row_told_is_counted_whether_or_not_anybody_listens(heard: bool) -> None:
    """Live-only events carry it as their number."""

    async def main() -> int:
        delivery = await attached()
        if heard:
            delivery.broadcast.subscribe(lambda event: None)
        delivery.hear((row(1), row(2)))
        in_thread(delivery, row(3))
        await tick()
        return delivery.last

    assert asyncio.run(main()) == 3


def test_a_live_event_is_told_at_once() -> None:
    async def main() -> list[str]:
        delivery, told = await attached(), list[str]()
        event = Event(kind=EventKind.TEXT_DELTA, seq=0, session="s-0001", at=AT)
        delivery.live(event)  # nobody listens
        delivery.broadcast.subscribe(lambda event: told.append(event.kind))
        delivery.live(event)
        return told

    assert asyncio.run(main()) == ["text.delta"]


def test_events_are_told_in_the_context_of_the_room() -> None:
    """What a listener prints must not land in the cell that happened to send."""
    cell: ContextVar[str] = ContextVar("cell", default="none")

    async def main() -> list[str]:
        told: list[str] = []
        context = copy_context()
        context.run(cell.set, "the room")
        delivery = await attached(context)
        delivery.broadcast.subscribe(lambda event: told.append(cell.get()))
        cell.set("a cell")
        in_thread(delivery, row(1))
        await tick()
        delivery.hear((row(2),))
        await tick()
        return told

    assert asyncio.run(main()) == ["the room", "the room"]
