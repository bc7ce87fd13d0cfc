"""What storage costs, against the least that could do the job."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.frame import Round, figure
from postroom_runtime.contracts.envelope import AgentMessage, FromSession, Outgoing
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.journal import Row
from postroom_runtime.storage.duckdb_storage import DuckDBStorage, _entries
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.storage.protocol import Storage
from storage.stores import open_sessions, record

HERE, THERE = "s-0001", "s-0002"


def letter(to: str, sender: str, text: str = "hello") -> Outgoing:
    """Mail from one session to another."""
    return Outgoing(session=to, sender=FromSession(sender, "echo"), body=AgentMessage(text))


# ── a mail round trip in memory, against a queue ──


class Mailbox:
    """The least that a reader of mail is: it knows of the last mail, and sleeps until there is more."""

    def __init__(self, store: Storage, session: str) -> None:
        self._store, self._session = store, session
        self._loop = asyncio.get_running_loop()
        self.waiter: asyncio.Future[None] | None = None
        self.head = self._cursor = 0

    async def receive(self) -> None:
        """Wait for mail and read it."""
        if self.head == self._cursor:
            self.waiter = self._loop.create_future()
            await self.waiter
        self._cursor = self._store.fetch({self._session: self._cursor})[self._session][-1].seq


async def _mail_round_trips(count: int) -> float:
    store = MemoryStorage()
    open_sessions(store, HERE, THERE, max_unread=None)
    boxes = {session: Mailbox(store, session) for session in (HERE, THERE)}

    def listener(rows: Sequence[Row]) -> None:
        for row in rows:
            box = boxes[row.session]
            box.head = row.record.seq  # type: ignore[union-attr]  # rows here are mail
            if box.waiter is not None:
                box.waiter.set_result(None)
                box.waiter = None

    store.bells(listener)
    ping, pong = [letter(THERE, HERE)], [letter(HERE, THERE)]

    async def answer() -> None:
        for _ in range(count):
            await boxes[THERE].receive()
            store.accept(pong)

    async with asyncio.TaskGroup() as group:
        group.create_task(answer())
        start = time.thread_time()
        for _ in range(count):
            store.accept(ping)
            await boxes[HERE].receive()
        return time.thread_time() - start


async def _queue_round_trips(count: int) -> float:
    there: asyncio.Queue[Outgoing] = asyncio.Queue()
    back: asyncio.Queue[Outgoing] = asyncio.Queue()

    async def answer() -> None:
        for _ in range(count):
            await back.put(await there.get())

    ping = letter(THERE, HERE)
    async with asyncio.TaskGroup() as group:
        group.create_task(answer())
        start = time.thread_time()
        for _ in range(count):
            await there.put(ping)
            await back.get()
        return time.thread_time() - start


@figure("mail round trip in memory / asyncio.Queue", at_most=2.0, rounds=75)
def round_trip() -> Iterator[tuple[Round, Round]]:
    """Two bare mailboxes: accept, wake the other's task, fetch, and back."""
    yield (
        lambda: asyncio.run(_mail_round_trips(1000)),
        lambda: asyncio.run(_queue_round_trips(1000)),
    )


# ── a long history must not be felt ──


def _send_and_read(store: Storage, count: int) -> float:
    mail = [letter(HERE, THERE)]
    cursor = store.accept(mail)[0].result(60).seq
    start = time.perf_counter()
    for _ in range(count):
        store.accept(mail)[0].result(60)
        cursor = store.fetch({HERE: cursor})[HERE][-1].seq
    return time.perf_counter() - start


def _with_history(store: Storage, mails: int) -> Storage:
    open_sessions(store, HERE, THERE, max_unread=None)
    for start in range(0, mails, 1000):
        store.accept([letter(HERE, THERE)] * min(1000, mails - start))[-1].result(60)
    read = record(HERE, 2, cursor=mails, max_unread=None)
    store.commit(HERE, epoch=1, version=1, cursor=mails, rows=[read]).result(60)
    store.trim({HERE: mails})
    return store


@figure("accept and receive in memory, 100,000 mails of history / 10", at_most=1.2)
def history_in_memory() -> Iterator[tuple[Round, Round]]:
    """The same work in a room with a long past and in a new one."""
    old = _with_history(MemoryStorage(), 100_000)
    yield (
        lambda: _send_and_read(old, 500),
        lambda: _send_and_read(_with_history(MemoryStorage(), 10), 500),
    )


@figure("accept and receive on disk, 100,000 mails of history / 10", at_most=1.2)
def history_on_disk() -> Iterator[tuple[Round, Round]]:
    """The same work in a file with a long past and in a new one."""
    with tempfile.TemporaryDirectory() as folder:
        old = _with_history(DuckDBStorage(Path(folder, "old.duckdb")), 100_000)
        new = _with_history(DuckDBStorage(Path(folder, "new.duckdb")), 10)
        yield lambda: _send_and_read(old, 50), lambda: _send_and_read(new, 50)
        old.close()
        new.close()


# ── durable mail, against SQLite ──

SENDERS, EACH = 256, 12


async def _durable_sends(store: Storage) -> float:
    async def sender() -> None:
        for _ in range(EACH):
            await store.accept([letter(HERE, THERE, "x" * 300)])[0]

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(SENDERS):
            group.create_task(sender())
    return time.perf_counter() - start


class SQLiteMail:
    """The table of M-27 in SQLite, durable at every commit."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE session_mail(session_id TEXT, seq INTEGER, id TEXT, payload TEXT, "
            "accepted_at TEXT, PRIMARY KEY (session_id, seq), UNIQUE (session_id, id))"
        )
        self._seq = 0

    def write(self, rows: Sequence[tuple[str, int, str, str, str]]) -> None:
        """Write one group as one transaction."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO session_mail VALUES (?, ?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def write_groups(self, sizes: Sequence[int]) -> float:
        """Write groups of these sizes and nothing else; return the seconds."""
        start = time.perf_counter()
        for size in sizes:
            rows = []
            for _ in range(size):
                self._seq += 1
                mail = {"id": f"m-{self._seq:04x}", "seq": self._seq, "session": HERE}
                mail |= {"sender": {"kind": "session", "session": THERE, "agent": "echo"}}
                mail |= {"body": {"kind": "agent_message", "text": "x" * 300}}
                rows.append((HERE, self._seq, f"m-{self._seq:04x}", json.dumps(mail), "2026-11-30"))
            self.write(rows)
        return time.perf_counter() - start

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class RoomOverSQLite(DuckDBStorage):
    """The same room, but for where its groups go."""

    def __init__(self, path: Path) -> None:
        self.sqlite: SQLiteMail | None = None
        super().__init__(path)

    def _write(self, group: Sequence[Any]) -> StoreFailed | None:
        if self.sqlite is None:
            return super()._write(group)
        lines = _entries(group)
        self.sqlite.write([(x.session, x.seq, x.id, x.payload, x.at.isoformat()) for x in lines])
        return None


@figure("durable mail, 256 senders / the same room over SQLite", at_least=1.0, rounds=25)
def durable_throughput() -> Iterator[tuple[Round, Round]]:
    """The same senders and groups, written by DuckDB and by SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        store = DuckDBStorage(Path(folder, "room.duckdb"))
        other = RoomOverSQLite(Path(folder, "other.duckdb"))
        for each in (store, other):
            open_sessions(each, HERE, THERE, max_unread=None)
        other.sqlite = SQLiteMail(Path(folder, "other.sqlite"))
        yield lambda: asyncio.run(_durable_sends(store)), lambda: asyncio.run(_durable_sends(other))
        store.close()
        other.close()
        other.sqlite.close()


@figure("durable mail, 256 senders / bare SQLite writing such groups", at_least=1.0, rounds=15)
def durable_against_bare_writing() -> Iterator[tuple[Round, Round]]:
    """Everything a sender waits for, against nothing but the writing of groups of 256."""
    with tempfile.TemporaryDirectory() as folder:
        store = DuckDBStorage(Path(folder, "room.duckdb"))
        open_sessions(store, HERE, THERE, max_unread=None)
        sqlite = SQLiteMail(Path(folder, "mail.sqlite"))
        yield (
            lambda: asyncio.run(_durable_sends(store)),
            lambda: sqlite.write_groups([SENDERS] * EACH),
        )
        store.close()
        sqlite.close()


# ── starting ──


def _seconds_to_import(module: str) -> float:
    program = (
        f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    )
    return float(subprocess.check_output([sys.executable, "-c", program], text=True))


@figure("import postroom / import pydantic", at_most=2.0, rounds=15)
def starting() -> Iterator[tuple[Round, Round]]:
    """The first line of every notebook, in a fresh interpreter."""
    yield lambda: _seconds_to_import("postroom"), lambda: _seconds_to_import("pydantic")


@figure("import postroom, in seconds", at_most=0.3, rounds=15)
def starting_in_seconds() -> Iterator[tuple[Round, Round]]:
    """The same as a plain number."""
    yield lambda: _seconds_to_import("postroom"), lambda: 1.0
