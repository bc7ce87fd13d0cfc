"""Events to any number of readers: stored first, then live, no gap and no repeat (api.md, events)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.envelopes import AT
from postroom_runtime.contracts.event import LIVE_ONLY, Event, EventKind
from postroom_runtime.signals.events import Broadcast
from postroom_runtime.testing import run_virtual


def stored(seq: int, session: str = "s-0001") -> Event:
    return Event(kind=EventKind.RUN_STARTED, seq=seq, session=session, at=AT)


def delta(seq: int, text: str = "") -> Event:
    return Event(kind=EventKind.TEXT_DELTA, seq=seq, session="s-0001", at=AT, data={"text": text})


class Desk:
    """A journal of events and the broadcast that tells of them, as a room has them."""

    def __init__(self, stored_before: int = 0) -> None:
        self.journal = [stored(seq) for seq in range(1, stored_before + 1)]
        self.broadcast = Broadcast()
        self.told, self.reads = stored_before, 0

    def store(self) -> Event:
        """Store the next event, told later."""
        event = stored(len(self.journal) + 1)
        self.journal.append(event)
        return event

    def tell(self) -> None:
        """Tell what is stored and was not told yet: rows wait for the loop."""
        for event in self.journal[self.told :]:
            self.told = event.seq
            self.broadcast.publish(event)

    def happen(self, count: int = 1) -> None:
        """Store and tell the next events."""
        for _ in range(count):
            self.store()
        self.tell()

    def say(self, text: str = "") -> None:
        """Tell something that is never stored."""
        self.broadcast.publish(delta(self.told, text))

    def since(self, seq: int) -> list[Event]:
        self.reads += 1
        return [event for event in self.journal if event.seq > seq]

    def stream(self, since: int = 0, session: str | None = None) -> AsyncGenerator[Event, None]:
        stream = self.broadcast.stream(lambda: self.since(since), session, since)
        return cast("AsyncGenerator[Event, None]", stream)


async def take(stream: AsyncIterator[Event], count: int) -> list[int]:
    return [(await anext(stream)).seq for _ in range(count)]


# ── Hearing ──


def test_everybody_hears_every_event_of_the_session_they_listen_to() -> None:
    broadcast, all_heard, one_heard = Broadcast(), list[int](), list[int]()
    broadcast.subscribe(lambda event: all_heard.append(event.seq))
    broadcast.subscribe(lambda event: one_heard.append(event.seq), "s-0002")

    broadcast.publish(stored(1, "s-0001"))
    broadcast.publish(stored(2, "s-0002"))

    assert (all_heard, one_heard) == ([1, 2], [2])


def test_who_unsubscribes_hears_no_more_and_may_do_so_twice() -> None:
    broadcast, heard = Broadcast(), list[int]()
    stop = broadcast.subscribe(lambda event: heard.append(event.seq))
    broadcast.publish(stored(1))

    stop()
    stop()
    broadcast.publish(stored(2))

    assert heard == [1]


def test_it_knows_whether_anybody_listens() -> None:
    broadcast = Broadcast()
    assert not broadcast.heard

    stop, other = (broadcast.subscribe(lambda event: None) for _ in range(2))
    stop()
    assert broadcast.heard
    other()
    assert not broadcast.heard


def test_who_unsubscribes_while_hearing_keeps_nobody_from_hearing() -> None:
    broadcast, heard = Broadcast(), list[str]()

    def hear_once(event: Event) -> None:
        heard.append("once")
        stop()

    stop = broadcast.subscribe(hear_once)
    broadcast.subscribe(lambda event: heard.append("always"))

    broadcast.publish(stored(1))
    broadcast.publish(stored(2))

    assert heard == ["once", "always", "always"]


# ── Streaming ──


def test_a_stream_gives_what_is_stored_then_what_happens() -> None:
    async def main() -> list[int]:
        desk = Desk(stored_before=3)
        async with aclosing(desk.stream()) as events:
            seen = await take(events, 3)
            desk.happen(2)
            return seen + await take(events, 2)

    assert run_virtual(main()) == [1, 2, 3, 4, 5]


def test_a_stream_goes_on_after_the_last_event_already_seen() -> None:
    async def main() -> list[int]:
        desk = Desk(stored_before=5)
        async with aclosing(desk.stream(since=3)) as events:
            seen = await take(events, 2)
            desk.happen()
            return seen + await take(events, 1)

    assert run_virtual(main()) == [4, 5, 6]


def test_a_stream_waits_for_what_has_not_happened_yet() -> None:
    async def main() -> tuple[int, float]:
        desk = Desk()
        asyncio.get_running_loop().call_later(7, desk.happen)
        async with aclosing(desk.stream()) as events:
            (seq,) = await take(events, 1)
        return seq, asyncio.get_running_loop().time()

    assert run_virtual(main()) == (1, 7.0)


def test_what_happens_while_the_stored_events_are_read_comes_after_them_once() -> None:
    async def main() -> list[int]:
        desk = Desk(stored_before=2)
        async with aclosing(desk.stream()) as events:
            seen = await take(events, 1)
            desk.happen(2)
            return seen + await take(events, 3)

    assert run_virtual(main()) == [1, 2, 3, 4]


def test_an_event_stored_before_the_reading_and_told_after_it_comes_once() -> None:
    async def main() -> list[int]:
        desk = Desk(stored_before=1)
        desk.store()
        async with aclosing(desk.stream()) as events:
            seen = await take(events, 2)
            desk.tell()
            desk.happen()
            return seen + await take(events, 1)

    assert run_virtual(main()) == [1, 2, 3]


def test_the_journal_is_read_once_per_stream() -> None:
    async def main() -> int:
        desk = Desk(stored_before=2)
        async with aclosing(desk.stream()) as events:
            await take(events, 2)
            desk.happen(3)
            await take(events, 3)
        return desk.reads

    assert run_virtual(main()) == 1


def test_live_only_events_come_between_the_stored_ones_they_were_said_between() -> None:
    async def main() -> list[str]:
        desk = Desk(stored_before=1)
        told: list[str] = []
        async with aclosing(desk.stream()) as events:
            await anext(events)
            desk.say("Hel")
            desk.say("lo")
            desk.happen()
            desk.say("!")
            for _ in range(4):
                event = await anext(events)
                told.append(event.data.get("text") or f"#{event.seq}")
        return told

    assert run_virtual(main()) == ["Hel", "lo", "#2", "!"]


def test_what_is_said_while_a_reader_is_still_at_the_stored_events_is_not_lost() -> None:
    async def main() -> list[str]:
        desk = Desk(stored_before=3)
        told: list[str] = []
        async with aclosing(desk.stream()) as events:
            await anext(events)
            desk.say("Hello")
            for _ in range(3):
                event = await anext(events)
                told.append(event.data.get("text") or f"#{event.seq}")
        return told

    assert run_virtual(main()) == ["#2", "#3", "Hello"]


def test_what_is_said_before_a_row_that_was_read_is_told_comes_after_that_row() -> None:
    async def main() -> list[tuple[str, int]]:
        desk = Desk(stored_before=1)
        desk.store()
        async with aclosing(desk.stream()) as events:
            await take(events, 2)
            desk.say("Hello")
            desk.tell()
            desk.happen()
            return [(event.kind, event.seq) for event in [await anext(events) for _ in range(2)]]

    assert run_virtual(main()) == [("text.delta", 2), ("run.started", 3)]


def test_a_stream_of_one_session_tells_nothing_of_another() -> None:
    async def main() -> list[int]:
        desk = Desk()
        async with aclosing(desk.stream(session="s-0002")) as events:
            taking = asyncio.create_task(take(events, 1))
            await asyncio.sleep(1)
            desk.broadcast.publish(stored(1, "s-0001"))
            desk.broadcast.publish(stored(2, "s-0002"))
            return await taking

    assert run_virtual(main()) == [2]


def test_a_slow_reader_holds_nobody_and_misses_nothing() -> None:
    async def main() -> tuple[list[int], list[int]]:
        desk = Desk()
        async with (
            aclosing(desk.stream()) as slow,
            aclosing(desk.stream()) as quick,
        ):
            starting = [asyncio.create_task(take(each, 1)) for each in (slow, quick)]
            await asyncio.sleep(1)
            desk.happen(500)  # returns at once, however many readers are behind
            await asyncio.wait(starting)
            fast = await take(quick, 499)
            return fast, await take(slow, 499)

    assert run_virtual(main()) == (list(range(2, 501)), list(range(2, 501)))


@pytest.mark.parametrize("taken", [1, 3])
def test_a_stream_that_is_closed_listens_no_more(taken: int) -> None:
    async def main() -> bool:
        desk = Desk(stored_before=2)
        async with aclosing(desk.stream()) as events:
            desk.happen()
            await take(events, taken)
            assert desk.broadcast.heard
        return desk.broadcast.heard

    assert not run_virtual(main())


def test_a_reader_that_is_cancelled_while_it_waits_listens_no_more() -> None:
    async def main() -> bool:
        desk = Desk()

        async def read() -> None:
            async for _ in desk.stream():
                pass

        reading = asyncio.create_task(read())
        await asyncio.sleep(1)
        reading.cancel()
        await asyncio.wait([reading])
        return desk.broadcast.heard

    assert not run_virtual(main())


# ── However stored and live ones interleave ──

STEPS = st.lists(st.sampled_from(["store", "tell", "say", "read", "pause"]), max_size=40)


@given(before=st.integers(0, 4), since=st.integers(0, 4), steps=STEPS)
def test_a_reader_gets_each_stored_event_once_in_order_and_all_that_is_said(
    before: int, since: int, steps: list[str]
) -> None:
    """Stored and told are two moments: a row waits for the loop, but whoever reads finds it."""
    since = min(since, before)

    async def main() -> tuple[list[Event], list[str]]:
        desk, seen, said = Desk(stored_before=before), list[Event](), list[str]()
        events = desk.stream(since)
        reading: asyncio.Task[None] | None = None

        async def read_one() -> None:
            seen.append(await anext(events))

        for number, step in enumerate(steps):
            if step == "store":
                desk.store()
            elif step == "tell":
                desk.tell()
            elif step == "say":
                if desk.broadcast.heard:
                    said.append(str(number))
                desk.say(str(number))
            elif step == "read" and (reading is None or reading.done()):
                reading = asyncio.create_task(read_one())
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(1)
        end = desk.store()
        desk.tell()
        if reading is not None:
            await reading
        while not seen or seen[-1] != end:
            await read_one()
        await events.aclose()
        return seen, said

    seen, said = run_virtual(main())

    numbers = [event.seq for event in seen if event.kind not in LIVE_ONLY]
    assert numbers == list(range(since + 1, numbers[-1] + 1))
    assert [event.data["text"] for event in seen if event.kind in LIVE_ONLY] == said
    # Going on after any of them neither skips nor repeats a stored one.
    assert all(one.seq <= other.seq for one, other in pairwise(seen))
