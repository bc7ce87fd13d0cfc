"""A bell and who waits on it: no wake-up is lost, nothing is cancelled in order to wait (M-25)."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.testing import run_virtual


class Post:
    """A growing list of letters, and a bell rung after each change of it."""

    def __init__(self) -> None:
        self.bell, self.letters, self.looks = Bell(), list[str](), 0

    def put(self, *letters: str) -> None:
        self.letters.extend(letters)
        self.bell.ring()

    def look(self, wanted: str) -> str | None:
        self.looks += 1
        return wanted if wanted in self.letters else None

    async def wait(self, wanted: str, timeout: float | None = None) -> str | None:
        return await wait_until(lambda: self.look(wanted), self.bell, timeout)


def now() -> float:
    return asyncio.get_running_loop().time()


# ── Looking ──


def test_what_is_there_already_is_found_at_once_without_listening() -> None:
    async def main() -> tuple[str | None, float]:
        post = Post()
        post.put("hello")
        return await post.wait("hello"), now()

    assert run_virtual(main()) == ("hello", 0.0)


def test_it_looks_again_at_each_ring_and_only_then() -> None:
    async def main() -> int:
        post = Post()
        waiting = asyncio.create_task(post.wait("c"))
        for letter in "abc":
            await asyncio.sleep(1)
            post.put(letter)
        assert await waiting == "c"
        return post.looks

    assert run_virtual(main()) == 4  # once before listening, once per ring


def test_a_look_that_finds_something_falsy_has_found_it() -> None:
    async def main() -> int | None:
        return await wait_until(lambda: 0, Bell())

    assert run_virtual(main()) == 0


def test_every_waiter_is_woken_by_the_same_ring() -> None:
    async def main() -> list[str | None]:
        post = Post()
        waiting = [asyncio.create_task(post.wait("x")) for _ in range(3)]
        await asyncio.sleep(1)
        post.put("x")
        return [await each for each in waiting]

    assert run_virtual(main()) == ["x"] * 3


def test_a_look_may_try_several_things_and_the_first_wins() -> None:
    """M-25: alternatives are one look, left first; both together are no race (M-38)."""

    async def main() -> str | None:
        post = Post()
        found = asyncio.create_task(
            wait_until(lambda: post.look("mail") or post.look("call"), post.bell, 10)
        )
        await asyncio.sleep(1)
        post.put("call", "mail")
        return await found

    assert run_virtual(main()) == "mail"


# ── No wake-up is lost ──


def test_a_change_between_the_ring_and_the_waking_is_seen() -> None:
    """M-25: the waiter was woken but has not looked when the state changes once more."""

    async def main() -> str | None:
        post = Post()
        waiting = asyncio.create_task(post.wait("second"))
        await asyncio.sleep(1)
        post.put("first")  # wakes it
        post.put("second")  # nobody listens now
        return await waiting

    assert run_virtual(main()) == "second"


def test_a_ring_that_nobody_heard_is_not_remembered_and_not_missed() -> None:
    """M-25: what it told of is in the state."""

    async def main() -> tuple[str | None, int]:
        post = Post()
        post.put("early")
        found = await post.wait("early")
        return found, post.looks

    assert run_virtual(main()) == ("early", 1)


def test_a_waiter_that_listens_again_during_the_ring_of_another_is_not_forgotten() -> None:
    async def main() -> list[str | None]:
        post = Post()
        second = asyncio.create_task(post.wait("b"))
        first = asyncio.create_task(post.wait("a"))
        await asyncio.sleep(0)
        post.put("a")  # both wake, the second listens again
        await first
        post.put("b")
        return [await second]

    assert run_virtual(main()) == ["b"]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 5), max_size=3)), max_size=12),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=6),
)
def test_no_wake_up_is_lost_however_changes_and_waiters_interleave(
    changes: list[tuple[int, list[int]]], waiters: list[tuple[int, int]]
) -> None:
    """M-25: a waiter finds its letter at the moment both are there; waiting for nothing deadlocks."""

    async def main() -> list[tuple[float, float]]:
        post, put_at = Post(), dict[str, float]()

        async def change() -> None:
            for delay, letters in changes:
                await asyncio.sleep(delay)
                for letter in letters:
                    put_at.setdefault(str(letter), now())
                post.put(*map(str, letters))

        async def wait(delay: int, letter: int) -> tuple[float, float]:
            await asyncio.sleep(delay)
            came = now()
            assert await post.wait(str(letter)) == str(letter)
            return now(), max(came, put_at[str(letter)])

        async with asyncio.TaskGroup() as group:
            told = {letter for _, letters in changes for letter in letters}
            found = [group.create_task(wait(*each)) for each in waiters if each[1] in told]
            group.create_task(change())
        return [each.result() for each in found]

    for found_at, there_at in run_virtual(main()):
        assert found_at == there_at


# ── Time-outs ──


@pytest.mark.parametrize("seconds", [0.5, 30, 300])
def test_a_wait_that_nothing_answers_ends_exactly_at_its_time(seconds: float) -> None:
    """M-66."""

    async def main() -> tuple[str | None, float]:
        found = await Post().wait("never", seconds)
        return found, now()

    assert run_virtual(main()) == (None, seconds)


def test_rings_that_bring_nothing_do_not_put_the_time_off() -> None:
    async def main() -> float:
        post = Post()

        async def chatter() -> None:
            while True:
                await asyncio.sleep(3)
                post.put("noise")

        noise = asyncio.create_task(chatter())
        assert await post.wait("never", 10) is None
        noise.cancel()
        return now()

    assert run_virtual(main()) == 10.0


def test_a_change_that_nobody_rang_for_is_found_by_the_last_look() -> None:
    async def main() -> tuple[str | None, float]:
        post = Post()
        asyncio.get_running_loop().call_later(1, post.letters.append, "silent")
        return await post.wait("silent", 5), now()

    assert run_virtual(main()) == ("silent", 5.0)


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_time_of_zero_looks_once_and_waits_for_nothing(timeout: float) -> None:
    async def main() -> tuple[str | None, int, float]:
        post = Post()
        return await post.wait("never", timeout), post.looks, now()

    assert run_virtual(main()) == (None, 1, 0.0)


def test_a_time_of_zero_finds_what_is_there() -> None:
    async def main() -> str | None:
        post = Post()
        post.put("hello")
        return await post.wait("hello", 0)

    assert run_virtual(main()) == "hello"


def test_without_a_time_it_waits_as_long_as_it_takes() -> None:
    async def main() -> tuple[str | None, float]:
        post = Post()
        asyncio.get_running_loop().call_later(1e6, post.put, "late")
        return await post.wait("late"), now()

    assert run_virtual(main()) == ("late", 1e6)


# ── Cancelled ──


class CountingBell(Bell):
    """Counts who listens."""

    __slots__ = ("listening",)

    def __init__(self) -> None:
        super().__init__()
        self.listening = 0

    def listen(self) -> "asyncio.Future[None]":
        self.listening += 1
        return super().listen()

    def forget(self, listener: "asyncio.Future[None]") -> None:
        self.listening -= 1
        super().forget(listener)


def test_a_forgotten_listener_hears_no_ring() -> None:
    async def main() -> list[bool]:
        bell = Bell()
        forgotten, kept = bell.listen(), bell.listen()
        bell.forget(forgotten)
        bell.forget(forgotten)  # twice is harmless
        bell.ring()
        return [forgotten.done(), kept.done()]

    assert run_virtual(main()) == [False, True]


def test_a_cancelled_waiter_is_forgotten_and_the_others_are_woken() -> None:
    """M-41: cancelling a waiter loses nothing, it only peeked."""

    async def main() -> tuple[int, int]:
        bell, letters = CountingBell(), list[str]()
        cancelled, other = (
            asyncio.create_task(wait_until(lambda: letters or None, bell)) for _ in range(2)
        )
        await asyncio.sleep(1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        listening = bell.listening
        letters.append("x")
        bell.ring()
        assert await other == ["x"]
        return listening, bell.listening

    assert run_virtual(main()) == (1, 0)


def test_a_waiter_whose_time_is_up_is_forgotten() -> None:
    async def main() -> int:
        bell = CountingBell()
        await wait_until(lambda: None, bell, 5)
        return bell.listening

    assert run_virtual(main()) == 0


def test_a_waiter_cancelled_while_it_is_being_woken_is_cancelled() -> None:
    async def main() -> bool:
        post = Post()
        waiting = asyncio.create_task(post.wait("x"))
        await asyncio.sleep(1)
        post.put("x")
        waiting.cancel()
        await asyncio.wait([waiting])
        return waiting.cancelled()

    assert run_virtual(main())


def test_a_ring_passes_over_a_waiter_that_was_just_cancelled() -> None:
    async def main() -> str | None:
        post = Post()
        cancelled, other = (asyncio.create_task(post.wait("x")) for _ in range(2))
        await asyncio.sleep(1)
        cancelled.cancel()
        post.put("x")  # before the cancelled one could stop listening
        await asyncio.wait([cancelled])
        assert cancelled.cancelled()
        return await other

    assert run_virtual(main()) == "x"


def test_a_look_that_fails_fails_the_wait_and_nobody_listens_any_more() -> None:
    async def main() -> int:
        bell, broken = CountingBell(), list[str]()

        def look() -> None:
            if broken:
                raise LookupError(broken[0])

        waiting = asyncio.create_task(wait_until(look, bell))
        await asyncio.sleep(1)
        broken.append("the state cannot be read")
        bell.ring()
        with pytest.raises(LookupError, match="cannot be read"):
            await waiting
        return bell.listening

    assert run_virtual(main()) == 0


def test_a_test_that_waits_for_nothing_fails_instead_of_hanging() -> None:
    with pytest.raises(RuntimeError, match="deadlock"):
        run_virtual(Post().wait("never"))
