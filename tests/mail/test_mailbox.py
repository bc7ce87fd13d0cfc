"""A mailbox numbers and never consumes; a reader is a cursor (M-15, M-18, M-20, M-25, M-31…M-33)."""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from contracts.envelopes import clock, record
from postroom_runtime.contracts.envelope import (
    Control,
    Envelope,
    FromSystem,
    FromToolCall,
    FromUser,
    Outgoing,
    Pause,
    Priority,
    ToolCallFinished,
    UserMessage,
)
from postroom_runtime.contracts.errors import MailboxFull
from postroom_runtime.mail.mailbox import Mailbox
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import run_virtual


class CountingStorage(MemoryStorage):
    """Remembers how much was read at each look."""

    def __init__(self) -> None:
        super().__init__(now=clock)
        self.read: list[int] = []

    def fetch(self, after: Mapping[str, int]) -> dict[str, list[Envelope]]:
        found = super().fetch(after)
        self.read.append(sum(map(len, found.values())))
        return found


class Letterbox:
    """A mailbox whose bell is rung by the store, as a room has it."""

    def __init__(self, max_unread: int | None = 256) -> None:
        self.storage, self.bell = CountingStorage(), Bell()
        first = record(max_unread=max_unread)
        self.storage.commit("s-0001", epoch=1, version=0, rows=(first,)).result()
        self.storage.bells(lambda rows: self.bell.ring())
        self.mailbox = Mailbox("s-0001", self.storage, self.bell)

    def put(self, *texts: str, priority: Priority = Priority.NORMAL) -> None:
        for text in texts:
            self.mailbox.send(
                Outgoing(
                    session="s-0001",
                    sender=FromUser(),
                    body=UserMessage(text),
                    priority=priority,
                )
            ).result()

    def end_call(self, call: str) -> None:
        self.mailbox.send(
            Outgoing(
                session="s-0001",
                sender=FromToolCall(call),
                body=ToolCallFinished(call, "run_tests", "completed", "ok"),
            )
        ).result()


def texts(mail: list[Envelope]) -> list[str]:
    return [envelope.text for envelope in mail]


def says(*wanted: str) -> Callable[[Envelope], bool]:
    return lambda envelope: envelope.text in wanted


def urgent(envelope: Envelope) -> bool:
    return envelope.priority is Priority.INTERRUPT


# ── Reading ──


def test_reading_consumes_nothing() -> None:
    """M-20: reading twice gives the same, and moves no cursor."""
    box = Letterbox()
    box.put("a", "b", "c")

    assert box.mailbox.unread(0) == box.mailbox.unread(0)
    assert texts(box.mailbox.unread(0)) == ["a", "b", "c"]
    assert box.storage.records()["s-0001"].cursor == 0


def test_a_reader_is_a_cursor() -> None:
    """M-15, M-18: unread is what has a greater number; the first mail has 1."""
    box = Letterbox()
    box.put("a", "b", "c")

    assert [envelope.seq for envelope in box.mailbox.unread(0)] == [1, 2, 3]
    assert texts(box.mailbox.unread(2)) == ["c"]
    assert box.mailbox.unread(3) == []
    assert box.mailbox.unread(99) == []


def test_a_filtered_reading_leaves_out_what_does_not_match() -> None:
    """M-25, M-38."""
    box = Letterbox()
    box.put("a")
    box.put("b", priority=Priority.INTERRUPT)

    assert texts(box.mailbox.unread(0, urgent)) == ["b"]
    assert texts(box.mailbox.unread(0)) == ["a", "b"]


def test_trimming_above_the_committed_cursor_forgets_nothing() -> None:
    """M-33."""
    box = Letterbox()
    box.put("a", "b")

    box.mailbox.trim(2)

    assert texts(box.mailbox.unread(0)) == ["a", "b"]


def test_a_full_mailbox_still_takes_controls_and_call_ends() -> None:
    """M-31, M-32: and those do not count towards the bound."""
    box = Letterbox(max_unread=2)
    box.end_call("call_0001")
    box.put("a", "b")

    with pytest.raises(MailboxFull):
        box.put("c")
    box.end_call("call_0002")
    box.mailbox.send(
        Outgoing(session="s-0001", sender=FromSystem("x"), body=Control(Pause()))
    ).result()

    assert [envelope.seq for envelope in box.mailbox.unread(0)] == [1, 2, 3, 4, 5]


def test_an_order_is_urgent_whatever_its_sender_thought() -> None:
    """M-82."""
    box = Letterbox()

    box.mailbox.send(Outgoing(session="s-0001", sender=FromUser(), body=Control(Pause()))).result()

    assert box.mailbox.unread(0, urgent)


# ── Waiting ──


def test_receive_returns_at_once_what_is_there() -> None:
    """M-25."""

    async def main() -> tuple[list[str], float]:
        box = Letterbox()
        box.put("a", "b")
        return texts(await box.mailbox.receive(0)), asyncio.get_running_loop().time()

    assert run_virtual(main()) == (["a", "b"], 0.0)


def test_receive_waits_for_mail_that_matches_and_leaves_the_rest_unread() -> None:
    """M-25: mail that does not match wakes nobody and is not skipped over."""

    async def main() -> tuple[list[str], float, list[str]]:
        box, loop = Letterbox(), asyncio.get_running_loop()
        loop.call_later(1, box.put, "noise")
        loop.call_later(2, box.put, "wanted")
        found = texts(await box.mailbox.receive(0, says("wanted")))
        return found, loop.time(), texts(box.mailbox.unread(0))

    assert run_virtual(main()) == (["wanted"], 2.0, ["noise", "wanted"])


def test_receive_gives_all_that_matches_of_what_came_at_once_in_order() -> None:
    async def main() -> list[str]:
        box = Letterbox()
        box.put("noise", "first", "noise", "second", "noise")
        return texts(await box.mailbox.receive(0, says("first", "second")))

    assert run_virtual(main()) == ["first", "second"]


def test_receive_sees_only_mail_after_its_cursor() -> None:
    async def main() -> list[str]:
        box = Letterbox()
        box.put("read", "read")
        asyncio.get_running_loop().call_later(1, box.put, "new")
        return texts(await box.mailbox.receive(2))

    assert run_virtual(main()) == ["new"]


def test_receive_gives_up_exactly_at_its_time_with_nothing() -> None:
    """M-25, M-66."""

    async def main() -> tuple[list[Envelope], float]:
        box, loop = Letterbox(), asyncio.get_running_loop()
        loop.call_later(3, box.put, "noise")
        return await box.mailbox.receive(0, says("wanted"), timeout=30), loop.time()

    assert run_virtual(main()) == ([], 30.0)


def test_receive_with_no_time_looks_once() -> None:
    async def main() -> tuple[list[Envelope], list[int], float]:
        box = Letterbox()
        found = await box.mailbox.receive(0, timeout=0)
        return found, box.storage.read, asyncio.get_running_loop().time()

    assert run_virtual(main()) == ([], [0], 0.0)


def test_each_look_reads_only_what_is_new_however_long_the_backlog() -> None:
    """M-25, M-28."""

    async def main() -> list[int]:
        box = Letterbox()
        box.put(*("noise" for _ in range(100)))
        loop = asyncio.get_running_loop()
        loop.call_later(1, box.put, "noise")
        loop.call_later(2, box.put, "wanted")
        await box.mailbox.receive(0, says("wanted"))
        return box.storage.read

    assert run_virtual(main()) == [100, 1, 1]


def test_a_cancelled_reader_loses_nothing() -> None:
    """M-41: it only peeked."""

    async def main() -> list[str]:
        box = Letterbox()
        waiting = asyncio.create_task(box.mailbox.receive(0))
        await asyncio.sleep(1)
        box.put("a")
        waiting.cancel()
        await asyncio.wait([waiting])
        return texts(await box.mailbox.receive(0))

    assert run_virtual(main()) == ["a"]


def test_two_readers_of_one_mailbox_both_get_the_letter() -> None:
    """M-20."""

    async def main() -> list[list[str]]:
        box = Letterbox()
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(box.mailbox.receive(0)) for _ in range(2)]
            await asyncio.sleep(1)
            box.put("a")
        return [texts(reader.result()) for reader in readers]

    assert run_virtual(main()) == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("first", "woken_by"), [("letter", "mail"), ("call", "call"), ("nothing", None)]
)
def test_mail_a_call_and_a_deadline_are_alternatives_of_one_wait(
    first: str, woken_by: str | None
) -> None:
    """M-25, M-38: what composes is the look, on one bell."""

    async def main() -> tuple[str | None, float]:
        box, loop, ended = Letterbox(), asyncio.get_running_loop(), list[str]()

        def end() -> None:
            ended.append("call_0001")
            box.bell.ring()

        loop.call_later(2 if first == "letter" else 8, box.put, "hi")
        loop.call_later(2 if first == "call" else 9, end)

        def look() -> str | None:
            if box.mailbox.unread(0):
                return "mail"
            return "call" if ended else None

        return await wait_until(look, box.bell, timeout=5), loop.time()

    assert run_virtual(main()) == (woken_by, 2.0 if woken_by else 5.0)
