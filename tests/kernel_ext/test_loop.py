"""The loop: quiet, awake and interruptible."""

import asyncio
import contextvars
import io
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.async_helpers import get_asyncio_loop

from postroom.abilities import is_live, kernel_words, load_note
from postroom.answers import answer_to
from postroom.loop import Heartbeat, home_loop, interruptible, on_loop, quiet_context, settle
from postroom_runtime.contracts.turn import EndReason, Role, Turn


def test_the_kernels_loop_is_asked_for_anew() -> None:
    ip = SimpleNamespace(kernel=SimpleNamespace())
    assert home_loop(ip) is None

    loop = object()
    ip.kernel.io_loop = SimpleNamespace(asyncio_loop=loop)
    assert home_loop(ip) is loop


def test_a_terminal_has_ipythons_own_loop() -> None:
    loop = home_loop(SimpleNamespace())

    assert loop is get_asyncio_loop()
    assert loop is not None
    loop.close()


def test_work_is_awaited_on_the_loop_it_belongs_to() -> None:
    home = asyncio.new_event_loop()
    thread = threading.Thread(target=home.run_forever)
    thread.start()

    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def cell() -> None:
        assert await on_loop(home, where()) is home
        assert await on_loop(None, where()) is asyncio.get_running_loop()
        assert await on_loop(asyncio.get_running_loop(), where()) is asyncio.get_running_loop()

    asyncio.run(cell())
    home.call_soon_threadsafe(home.stop)
    thread.join()
    home.close()


def test_what_was_cancelled_ends_before_the_process_does() -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.Event().wait())
    settle(loop)
    assert not task.done()

    task.cancel()
    settle(loop)
    settle(None)
    loop.close()
    settle(loop)

    assert task.cancelled()


def test_sessions_run_with_an_empty_parent_and_the_cell_keeps_its_own() -> None:
    parent: contextvars.ContextVar[dict[str, str]] = contextvars.ContextVar("parent")
    parent.set({"msg_id": "cell"})
    ip = SimpleNamespace(kernel=object(), set_thread_parent=parent.set)

    quiet = quiet_context(ip)

    assert quiet[parent] == {}
    assert parent.get() == {"msg_id": "cell"}


def test_an_older_kernel_is_muted_stream_by_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.StringIO):
        _parent_header: contextvars.ContextVar[dict[str, str]]

    out, err = Stream(), Stream()
    for stream in (out, err):
        stream._parent_header = contextvars.ContextVar("header")
        stream._parent_header.set({"msg_id": "cell"})
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)

    quiet = quiet_context(SimpleNamespace(kernel=object(), display_pub=object()))

    assert quiet[out._parent_header] == {}
    assert quiet[err._parent_header] == {}
    assert out._parent_header.get() == {"msg_id": "cell"}


def test_the_heart_beats_once_at_a_time_and_while_there_is_a_reason() -> None:
    beats: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        enough = asyncio.Event()

        def alive() -> bool:
            beats.append(loop.time())
            if len(beats) == 3:
                enough.set()
            return len(beats) < 3

        heart = Heartbeat(lambda: loop, alive)
        heart.start()
        heart.start()
        await enough.wait()
        heart.start()
        heart.stop()
        heart.stop()

    asyncio.run(main())

    assert len(beats) == 3


def test_a_heart_without_a_loop_does_not_beat() -> None:
    Heartbeat(lambda: None, lambda: True).start()


def test_an_interrupt_in_a_terminal_cancels_the_wait_and_nothing_is_left_behind() -> None:
    before = signal.getsignal(signal.SIGINT)
    told: list[str] = []

    async def cell() -> None:
        asyncio.get_running_loop().call_later(0, signal.raise_signal, signal.SIGINT)
        try:
            with interruptible(SimpleNamespace()):
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("the cell goes on")

    loop = asyncio.new_event_loop()
    loop.run_until_complete(cell())
    loop.close()

    assert told == ["the cell goes on"]
    assert signal.getsignal(signal.SIGINT) is before


def test_in_a_kernel_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)

    async def cell() -> Any:
        with interruptible(SimpleNamespace(kernel=object())):
            return signal.getsignal(signal.SIGINT)

    runner = asyncio.new_event_loop()
    assert runner.run_until_complete(cell()) is before
    runner.close()


@pytest.mark.parametrize(
    ("version", "live"),
    [("7.4.0", True), ("7.10.1", True), ("8.0.0a1", True), ("7.3.9", False), ("6.29.5", False)],
)
def test_an_older_kernel_is_told_from_a_newer_one(version: str, live: bool) -> None:
    assert is_live(version) is live
    assert bool(load_note(version)) is not live
    assert version in kernel_words(version)


def test_a_terminal_is_told_when_its_sessions_move_on() -> None:
    assert "%gui asyncio" in load_note(None)
    assert "%gui asyncio" in kernel_words(None)


def _turn(index: int, role: Role, text: str, *seqs: int, end: EndReason | None = None) -> Turn:
    mail = tuple(SimpleNamespace(seq=seq) for seq in seqs)
    return Turn(index=index, role=role, text=text, mail=mail, end_reason=end)  # type: ignore[arg-type]


def test_the_answer_is_what_ended_the_run_that_read_the_mail() -> None:
    turns = [
        _turn(1, Role.USER, "a", 1),
        _turn(2, Role.MODEL, "one", end=EndReason.ANSWER),
        _turn(3, Role.USER, "b", 2),
        _turn(4, Role.MODEL, "calls a tool"),
        _turn(5, Role.USER, "c", 3),
        _turn(6, Role.MODEL, "two", end=EndReason.ANSWER),
        _turn(7, Role.USER, "d", 4),
        _turn(8, Role.MODEL, "", end=EndReason.STOPPED),
        _turn(9, Role.USER, "e", 5),
    ]

    def text(seq: int) -> str | None:
        turn = answer_to(turns, seq)
        return turn.text if turn else None

    assert [text(seq) for seq in range(1, 7)] == ["one", "two", "two", None, None, None]
