"""Kill a room under traffic, again and again: nothing acknowledged is lost, nothing is doubled."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import Envelope, ToolCallFinished
from postroom_runtime.contracts.journal import Record, Row
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from storage.stores import SECONDS
from storage.stores import mail as letter
from storage.traffic import OTHER, READER, WRITER

ROOMS, LIVES = 10, 5
"""A new room now and then keeps the history, and so the checking, short."""


class Lives:
    """Processes that live in a room until they are killed."""

    def __init__(self) -> None:
        self._bytes, pipe = os.pipe()
        os.set_blocking(self._bytes, False)
        tests = str(Path(__file__).parents[1])
        self._starter = subprocess.Popen(
            [sys.executable, "-W", "error", str(Path(__file__).with_name("traffic.py")), str(pipe)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[pipe],
            env={**os.environ, "PYTHONPATH": tests},
        )
        os.close(pipe)

    def live_and_die(self, room: Path, acknowledged: Path, after: int) -> None:
        """Let a process live in ``room`` and kill it at its ``after``-th acknowledgement."""
        assert self._starter.stdin is not None
        self._starter.stdin.write(f"{room} {acknowledged}\n")
        self._starter.stdin.flush()
        process = int(self._line())
        heard = 0
        os.set_blocking(self._bytes, True)
        while heard < after:
            heard += len(os.read(self._bytes, after - heard))
        os.kill(process, signal.SIGKILL)
        assert self._line() == "ended"
        os.set_blocking(self._bytes, False)
        try:
            while os.read(self._bytes, 100_000):
                pass
        except BlockingIOError:
            pass  # nothing is left of that life

    def _line(self) -> str:
        assert self._starter.stdout is not None
        return self._starter.stdout.readline().strip()

    def end(self) -> None:
        """Let no more be started."""
        self._starter.communicate()
        os.close(self._bytes)


@pytest.fixture
def lives() -> Iterator[Lives]:
    made = Lives()
    yield made
    made.end()


@pytest.mark.timeout(300)
def test_fifty_killed_processes_lose_nothing_and_double_nothing_M18_M22_M23_M62b(
    lives: Lives, tmp_path: Path
) -> None:
    chance = random.Random(20261130)
    for number in range(ROOMS):
        room, acknowledged = tmp_path / f"{number}.duckdb", tmp_path / f"{number}.acknowledged"
        for _ in range(LIVES):
            lives.live_and_die(room, acknowledged, after=chance.randint(1, 120))
            _check(room, acknowledged)


def _check(room: Path, acknowledged: Path) -> None:
    store = DuckDBStorage(room)
    try:
        rows = store.rows()
        assert [row.n for row in rows] == [*range(1, store.head() + 1)]
        mail = [row.record for row in rows if isinstance(row.record, Envelope)]
        _check_the_numbers(mail, [each.record for each in rows])
        _check_the_commits(mail, [each.record for each in rows])
        _check_the_acknowledged(store, mail, rows, acknowledged.read_text().splitlines())
    finally:
        store.close()


def _check_the_numbers(mail: list[Envelope], records: list[Record]) -> None:
    for session in (READER, WRITER, OTHER):
        box = [each for each in mail if each.session == session]
        assert [each.seq for each in box] == [*range(1, len(box) + 1)]
        assert len({each.id for each in box}) == len(box)
    stored = [each for each in records if isinstance(each, SessionRecord) and each.id == READER]
    assert [each.version for each in stored] == [*range(1, len(stored) + 1)]
    assert [each.cursor for each in stored] == sorted(each.cursor for each in stored)


def _check_the_commits(mail: list[Envelope], records: list[Record]) -> None:
    """What is one commit is there as a whole, or not at all."""
    turns = [each.index for each in records if isinstance(each, Turn)]
    versions = [
        each.version for each in records if isinstance(each, SessionRecord) and each.id == READER
    ]
    answers = [each.id for each in mail if each.id.startswith("after-")]
    assert turns == [version - 1 for version in versions[1:]]
    assert answers == [f"after-{index}" for index in turns]
    ended = [each.id for each in records if isinstance(each, Call)]
    told = [each.body.call for each in mail if isinstance(each.body, ToolCallFinished)]
    assert ended == told


def _check_the_acknowledged(
    store: DuckDBStorage, mail: list[Envelope], rows: list[Row], lines: list[str]
) -> None:
    stored = {(each.session, each.id): each.seq for each in mail}
    ended = {row.record.id for row in rows if isinstance(row.record, Call)}
    for line in lines:
        match line.split():
            case ["mail", session, id, seq]:
                assert stored[session, id] == int(seq)
            case ["call", call]:
                assert call in ended
            case ["commit", session, version, cursor]:
                record = store.records()[session]
                assert int(version) <= record.version
                assert int(cursor) <= record.cursor
            case _:
                pytest.fail(f"what is {line!r}?")
    sent = [line.split() for line in lines if line.startswith("mail")][-5:]
    again = store.accept([letter(session, "changed", id=id) for _, session, id, _ in sent])
    for (_, session, _, seq), outcome in zip(sent, again, strict=True):
        receipt = outcome.result(SECONDS)
        assert (receipt.session, receipt.seq, receipt.duplicate) == (session, int(seq), True)
