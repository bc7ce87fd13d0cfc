"""A store in which the kernel dies: at the effect that was chosen, before or after it is stored."""

import asyncio

import pytest

from contracts.envelopes import record
from postroom_runtime.contracts.envelope import Envelope, FromUser, Outgoing, UserMessage
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import CrashingStorage, KernelDied, journal, run_seeded


def letter(text: str, id: str | None = None) -> Outgoing:
    return Outgoing(session="s-0001", sender=FromUser(), body=UserMessage(text), id=id)


def began(storage: CrashingStorage) -> CrashingStorage:
    """Store a session: the first effect."""
    first = record(version=1)
    storage.commit("s-0001", epoch=1, version=0, cursor=0, rows=(first,)).result()
    return storage


def texts(storage: MemoryStorage) -> list[str]:
    return [row.record.text for row in storage.rows() if isinstance(row.record, Envelope)]


@pytest.mark.parametrize(("stored", "kept"), [(False, ["one"]), (True, ["one", "two"])])
def test_the_kernel_dies_just_before_or_just_after_the_chosen_effect(
    stored: bool, kept: list[str]
) -> None:
    storage = began(CrashingStorage(dies_at=3, stored=stored))
    storage.accept([letter("one")])[0].result()
    with pytest.raises(KernelDied):
        storage.accept([letter("two")])[0].result()
    assert storage.dead
    with pytest.raises(KernelDied):
        storage.accept([letter("three")])[0].result()
    assert texts(storage) == kept
    assert texts(MemoryStorage(rows=storage.rows())) == kept


def test_whoever_awaits_a_dead_kernel_waits_for_ever_and_its_death_is_told() -> None:
    async def main() -> None:
        storage = began(CrashingStorage(dies_at=2))

        async def send() -> None:
            await storage.accept([letter("one")])[0]

        sending = asyncio.get_running_loop().create_task(send())
        await storage.died.wait()
        await asyncio.sleep(1000)
        assert not sending.done()
        sending.cancel()

    run_seeded(main(), 1)


def test_readers_know_of_an_effect_before_its_author_does() -> None:
    async def main() -> None:
        storage = began(CrashingStorage(lag=lambda: 3))
        heard: list[int] = []
        storage.bells(lambda rows: heard.extend(row.n for row in rows))
        (pending,) = storage.accept([letter("one")])
        assert (pending.done(), storage.fetch({"s-0001": 0})["s-0001"], heard) == (False, [], [])
        while not heard:
            await asyncio.sleep(0)
        assert not pending.done()
        assert [e.text for e in storage.fetch({"s-0001": 0})["s-0001"]] == ["one"]
        receipt = await pending
        assert (receipt.seq, pending.done()) == (1, True)

    run_seeded(main(), 1)


def test_what_was_decided_is_stored_in_order_and_at_once_for_who_blocks() -> None:
    async def main() -> None:
        storage = began(CrashingStorage(lag=lambda: 50))
        one, again, two = (
            storage.accept([letter(text, id)])[0]
            for text, id in (("one", "k-1"), ("one", "k-1"), ("two", None))
        )
        assert two.result().seq == 2
        assert texts(storage) == ["one", "two"]
        assert (await one).id == (await again).id == "k-1"
        assert (await again).duplicate
        assert [row.n for row in storage.rows()] == [1, 2, 3]

    run_seeded(main(), 1)


def test_decided_and_not_yet_stored_is_lost_with_the_kernel() -> None:
    async def main() -> list[str]:
        storage = began(CrashingStorage(dies_at=3, lag=lambda: 2))
        for text in ("one", "two", "three"):
            storage.accept([letter(text)])
        await storage.died.wait()
        return texts(storage)

    assert run_seeded(main(), 1) == ["one"]


def test_a_life_goes_on_from_the_rows_of_the_last() -> None:
    before = began(CrashingStorage())
    before.accept([letter("one")])[0].result()
    after = CrashingStorage(rows=before.rows())
    assert after.accept([letter("two")])[0].result().seq == 2
    assert journal(after.rows())[:2] == journal(before.rows())
