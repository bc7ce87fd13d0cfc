"""The writer of a room on disk: groups, failures, waiting. What it writes is in test_stores."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from postroom_runtime.contracts.envelope import FromSession, ToolCallFinished
from postroom_runtime.contracts.errors import ConfigError, StoreFailed
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.storage import schema, writer
from postroom_runtime.storage.disk import Disk
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from postroom_runtime.storage.schema import Entry
from storage.stores import SECONDS, clock, commit, mail, open_sessions, record, send

NOT_JSON = ToolCallFinished("c", "t", "completed", {1, 2})


class Gate:
    """A disk that writes when it is let, and fails when it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[list[int]] = []
        self.fail_with: Exception | None = None
        self._open = threading.Event()
        self._open.set()
        self._at_the_gate = threading.Semaphore(0)
        append = Disk.append

        def gated(disk: Disk, entries: Sequence[Entry]) -> None:
            self._at_the_gate.release()
            assert self._open.wait(SECONDS)
            self.groups.append([each.n for each in entries])
            if self.fail_with is not None:
                error, self.fail_with = self.fail_with, None
                raise error
            append(disk, entries)

        monkeypatch.setattr(Disk, "append", gated)

    def shut(self) -> None:
        self._open.clear()

    def wait_for_a_group(self) -> None:
        assert self._at_the_gate.acquire(timeout=SECONDS)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room.duckdb"


@pytest.fixture
def room(gate: Gate, path: Path) -> Iterator[DuckDBStorage]:
    store = DuckDBStorage(path, clock())
    open_sessions(store, "s-0001", "s-0002")
    gate.groups.clear()
    while gate._at_the_gate.acquire(blocking=False):
        pass
    yield store
    gate.open()
    store.close()


def test_everything_that_arrives_during_a_group_is_the_next_one(
    room: DuckDBStorage, gate: Gate
) -> None:
    gate.shut()
    first = room.accept([mail()])
    gate.wait_for_a_group()

    rest = [*room.accept([mail(), mail("s-0002")]), commit(room, 1, mail=[mail("s-0002")])]

    assert not any(each.done() for each in [*first, *rest])
    assert room.fetch({"s-0001": 0}) == {"s-0001": []}
    gate.open()
    for each in [*first, *rest]:
        each.result(SECONDS)
    assert gate.groups == [[3], [4, 5, 6, 7]]


def test_mail_is_seen_by_nobody_before_it_is_on_disk_M28(room: DuckDBStorage, gate: Gate) -> None:
    heard: list[int] = []
    room.bells(lambda rows: heard.extend(row.n for row in rows))
    gate.shut()
    (outcome,) = room.accept([mail(id="job")])
    gate.wait_for_a_group()

    assert (heard, room.head(), room.find("s-0001", "job"), room.find_mail("job")) == (
        [],
        2,
        None,
        None,
    )
    gate.open()
    outcome.result(SECONDS)
    assert (heard, room.head()) == ([3], 3)


def test_unread_mail_is_read_without_the_disk_M28(
    room: DuckDBStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(room)
    monkeypatch.setattr(Disk, "reading", lambda disk: pytest.fail("asked the disk"))

    assert [each.seq for each in room.fetch({"s-0001": 0})["s-0001"]] == [1]
    found = room.find_mail("m-0001")
    assert found is not None
    assert found == room.find("s-0001", "m-0001")


def test_mail_just_trimmed_is_still_found_without_the_disk(
    room: DuckDBStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(room)
    commit(room, 1, cursor=1).result(SECONDS)
    room.trim({"s-0001": 1})
    monkeypatch.setattr(Disk, "reading", lambda disk: pytest.fail("asked the disk"))

    assert room.find_mail("m-0001") is not None


def test_a_duplicate_of_mail_in_flight_follows_it(room: DuckDBStorage, gate: Gate) -> None:
    gate.shut()
    first, second = room.accept([mail(id="job"), mail(id="job", body="changed")])
    gate.wait_for_a_group()
    third = commit(room, 1, mail=[mail(id="job")])
    assert not second.done()

    gate.open()

    assert [first.result(SECONDS).duplicate, second.result(SECONDS).duplicate] == [False, True]
    (receipt,) = third.result(SECONDS).receipts
    assert (receipt.seq, receipt.duplicate) == (1, True)


def test_a_duplicate_of_mail_that_fails_fails_too(room: DuckDBStorage, gate: Gate) -> None:
    gate.shut()
    outcomes = room.accept([mail(id="job"), mail(id="job")])
    gate.wait_for_a_group()
    outcomes += room.accept([mail(id="job")])
    gate.fail_with = StoreFailed("nothing", "disk full")

    gate.open()

    for each in outcomes:
        with pytest.raises(StoreFailed, match="disk full"):
            each.result(SECONDS)
    assert send(room, id="job").duplicate is False


def test_a_failed_group_takes_back_everything_promised_after_it(
    room: DuckDBStorage, gate: Gate, path: Path
) -> None:
    send(room, id="kept")
    gate.shut()
    outcomes: list[Any] = [*room.accept([mail(), mail("s-0002", id="m-0009")])]
    gate.wait_for_a_group()
    outcomes += [
        commit(room, 1, cursor=1, mail=[mail("s-0002")]),
        commit(room, 2, cursor=1),
        *room.accept([mail(), mail()]),
        room.commit("s-0003", epoch=1, version=0, rows=[record("s-0003")], mail=[mail("s-0003")]),
    ]
    (repeated,) = room.accept([mail(id="kept")])
    gate.fail_with = StoreFailed("nothing", "disk full")

    gate.open()

    for each in outcomes:
        with pytest.raises(StoreFailed, match="disk full"):
            each.result(SECONDS)
    assert repeated.result(SECONDS).duplicate
    assert room.head() == 3
    assert "s-0003" not in room.records()
    assert send(room).id == "m-0002"
    assert send(room, "s-0002").seq == 1
    assert commit(room, 1, cursor=2).result(SECONDS).version == 2
    assert [row.n for row in room.rows()] == [1, 2, 3, 4, 5, 6]
    room.close()
    again = DuckDBStorage(path)
    assert [row.n for row in again.rows()] == [1, 2, 3, 4, 5, 6]
    again.close()


def test_the_bound_is_as_before_after_a_failed_group_M31(room: DuckDBStorage, gate: Gate) -> None:
    commit(room, 1, fields={"max_unread": 2}).result(SECONDS)
    for _ in range(3):
        gate.fail_with = StoreFailed("nothing", "disk full")
        with pytest.raises(StoreFailed):
            send(room)

    assert [send(room).seq, send(room).seq] == [1, 2]


def test_even_a_fault_of_our_own_fails_the_group_and_not_the_writer(
    room: DuckDBStorage, gate: Gate
) -> None:
    gate.fail_with = ZeroDivisionError("oops")

    with pytest.raises(StoreFailed, match="ZeroDivisionError: oops"):
        send(room)
    assert send(room).seq == 1


@pytest.mark.parametrize("durable", [True, False])
def test_after_a_fatal_fault_the_file_tells_whether_the_group_is_there(
    room: DuckDBStorage, monkeypatch: pytest.MonkeyPatch, durable: bool, path: Path
) -> None:
    send(room)
    append = schema.append

    def dying(connection: Any, entries: Sequence[Entry]) -> None:
        if durable:
            append(connection, entries)
        monkeypatch.setattr(schema, "append", append)
        raise duckdb.FatalException("COMMIT succeeded, or not")

    monkeypatch.setattr(schema, "append", dying)
    if durable:
        assert send(room).seq == 2
    else:
        with pytest.raises(StoreFailed, match="COMMIT succeeded, or not"):
            send(room)
        assert send(room).seq == 2

    assert [each.seq for each in room.fetch({"s-0001": 0})["s-0001"]] == [1, 2]
    assert [row.n for row in room.rows()] == [1, 2, 3, 4]


def test_what_was_refused_is_cleared_away_when_the_file_opens_again_later(
    room: DuckDBStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst case: the group was written, the instance died, and the file would not open."""
    append, connect = schema.append, Disk._connect

    def dying(connection: Any, entries: Sequence[Entry]) -> None:
        append(connection, entries)
        monkeypatch.setattr(schema, "append", append)
        raise duckdb.FatalException("gone")

    def shut(disk: Disk) -> None:
        monkeypatch.setattr(Disk, "_connect", connect)
        raise StoreFailed("no", "still gone")

    monkeypatch.setattr(schema, "append", dying)
    monkeypatch.setattr(Disk, "_connect", shut)
    with pytest.raises(StoreFailed, match="gone"):
        send(room, body="refused")
    with pytest.raises(StoreFailed, match="not open"):
        room.rows()

    assert send(room, body="kept").seq == 1
    assert [each.text for each in room.fetch({"s-0001": 0})["s-0001"]] == ["kept"]
    assert [row.n for row in room.rows()] == [1, 2, 3]


def test_threads_are_held_back_and_a_loop_is_not(
    room: DuckDBStorage, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SOFT_LIMIT", 3)
    monkeypatch.setattr(writer, "HARD_LIMIT", 5)
    gate.shut()
    outcomes = room.accept([mail()])
    gate.wait_for_a_group()
    outcomes += room.accept([mail(), mail(), mail()])
    sent = threading.Event()

    def sender() -> None:
        send(room)
        sent.set()

    thread = threading.Thread(target=sender)
    thread.start()

    async def on_the_loop() -> None:
        for _ in range(2):
            outcomes.extend(room.accept([mail()]))
        (refused,) = room.accept([mail()])
        with pytest.raises(StoreFailed, match="5 units wait"):
            await refused
        with pytest.raises(StoreFailed, match="5 units wait"):
            await commit(room, 1)

    asyncio.run(on_the_loop())
    assert not sent.is_set()
    gate.open()
    thread.join()
    assert sorted(each.result(SECONDS).seq for each in outcomes) == [1, 2, 3, 4, 5, 6]


def test_many_tasks_wait_for_one_group(room: DuckDBStorage) -> None:
    open_sessions(room, "s-0003", max_unread=None)

    async def main() -> list[int]:
        async def one() -> int:
            (outcome,) = room.accept([mail("s-0003", sender=FromSession("s-0001"))])
            return (await outcome).seq

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(200)]
        return [each.result() for each in tasks]

    assert asyncio.run(main()) == [*range(1, 201)]


def test_closing_writes_what_is_queued(room: DuckDBStorage, gate: Gate, path: Path) -> None:
    gate.shut()
    outcomes = room.accept([mail()])
    gate.wait_for_a_group()
    outcomes += room.accept([mail(), mail()])
    closing = threading.Thread(target=room.close)
    closing.start()

    gate.open()
    closing.join()

    assert [each.result(0).seq for each in outcomes] == [1, 2, 3]
    again = DuckDBStorage(path)
    assert len(again.fetch({"s-0001": 0})["s-0001"]) == 3
    again.close()


def test_what_is_no_json_is_refused_alone_and_takes_no_number(room: DuckDBStorage) -> None:
    good, bad, better = room.accept([mail(), mail(body=NOT_JSON), mail()])

    with pytest.raises(ConfigError, match="no JSON value"):
        bad.result(SECONDS)
    assert [good.result(SECONDS).seq, better.result(SECONDS).seq] == [1, 2]
    turn = Turn(index=1, role=Role.MODEL, text="", opaque=object())
    for each in (commit(room, 1, rows=[turn]), commit(room, 1, mail=[mail(body=NOT_JSON)])):
        with pytest.raises(ConfigError, match="no JSON value"):
            each.result(SECONDS)
    assert commit(room, 1).result(SECONDS).version == 2


def test_an_id_out_of_the_window_is_looked_up_in_the_journal_M19(
    path: Path, tmp_path: Path
) -> None:
    store = DuckDBStorage(path, clock(), window=3)
    open_sessions(store, "s-0001", "s-0002", max_unread=None)
    for number in range(10):
        send(store, id=f"job-{number}")
    asked: list[Sequence[str]] = []
    look_up = store._look_up

    def noted(ids: Sequence[str]) -> Any:
        asked.append(ids)
        return look_up(ids)

    store._look_up = noted  # type: ignore[method-assign]

    assert len(store._receipts) == 3
    batch = store.accept([mail(id=f"job-{number}") for number in (0, 1, 9)])
    assert [each.result(SECONDS).seq for each in batch] == [1, 2, 10]
    assert all(each.result(SECONDS).duplicate for each in batch)
    assert asked == [["job-0", "job-1"]]
    assert send(store, "s-0002", id="job-0").duplicate is False
    done = commit(store, 1, mail=[mail(id="job-0"), mail(id="new")]).result(SECONDS)
    assert [each.duplicate for each in done.receipts] == [True, False]
    counted = send(store)
    for _ in range(5):
        send(store)
    with pytest.raises(ConfigError, match="in s-0001"):
        send(store, "s-0002", id=counted.id)
    store.close()


def test_a_given_id_is_not_accepted_twice_by_two_threads_that_both_look_it_up(path: Path) -> None:
    store = DuckDBStorage(path, clock(), window=2)
    open_sessions(store, "s-0001", max_unread=None)
    for _ in range(5):
        send(store)
    both = threading.Barrier(2, timeout=SECONDS)
    look_up = store._look_up

    def together(ids: Sequence[str]) -> Any:
        both.wait()
        return look_up(ids)

    store._look_up = together  # type: ignore[method-assign]
    receipts: list[bool] = []
    threads = [
        threading.Thread(target=lambda: receipts.append(send(store, id="job").duplicate))
        for _ in range(2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(receipts) == [False, True]
    store.close()
