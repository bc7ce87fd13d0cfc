"""A room under traffic, in a process that is killed: what ``test_crash`` runs.

Reads lines ``ROOM ACKNOWLEDGED`` and for each starts a process that opens the room and sends and
commits until it is killed. Before that it has written every acknowledgement, one a line, to the file
ACKNOWLEDGED, and a byte for each to the pipe whose number is the first argument. Prints the number
of each process when it is started, and ``ended`` when it is gone.
"""

import os
import sys
import threading
from collections.abc import Callable

import duckdb  # noqa: F401 - loaded once, here, and not in every life
import numpy as np  # noqa: F401

from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import AgentMessage, FromSession, ToolCallFinished
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from storage.stores import mail, open_sessions, record

READER, WRITER, OTHER = "s-0001", "s-0002", "s-0003"
SECONDS = 60.0

Told = Callable[[str], None]


def send(store: DuckDBStorage, told: Told, life: str, lane: int) -> None:
    """Send mail to two sessions, some of it with ids of its own."""
    for turn in range(10_000):
        batch = [
            mail(READER, "x" * (turn % 50), id=f"{life}-{lane}-{turn}"),
            mail(OTHER, "y", id=f"{life}-{lane}-{turn}"),
            mail(READER, "counted"),
        ]
        for outcome in store.accept(batch):
            receipt = outcome.result(SECONDS)
            told(f"mail {receipt.session} {receipt.id} {receipt.seq}")


def read_and_answer(store: DuckDBStorage, told: Told) -> None:
    """Consume a session's mail and answer, in one commit: turn, record, and mail to another."""
    latest = store.records()[READER]
    version, cursor = latest.version, latest.cursor
    while True:
        unread = store.fetch({READER: cursor})[READER][:20]
        cursor += len(unread)
        index = version
        done = store.commit(
            READER,
            epoch=1,
            version=version,
            cursor=cursor,
            rows=[
                Turn(index=index, role=Role.USER, text="read"),
                record(READER, version + 1, cursor=cursor, turns=index, max_unread=None),
            ],
            mail=[
                mail(WRITER, AgentMessage("done"), sender=FromSession(READER), id=f"after-{index}")
            ],
        ).result(SECONDS)
        version = done.version
        store.trim({READER: cursor})
        told(f"commit {READER} {version} {cursor}")


def end_calls(store: DuckDBStorage, told: Told, life: str) -> None:
    """End calls: the final state and its mail in one commit."""
    for number in range(10_000):
        call = f"{life}-call-{number}"
        store.commit(
            WRITER,
            epoch=1,
            version=None,
            rows=[Call(id=call, session=WRITER, tool="t", arguments={}, state=CallState.COMPLETED)],
            mail=[mail(WRITER, ToolCallFinished(call, "t", "completed"))],
        ).result(SECONDS)
        told(f"call {call}")


def live(room: str, acknowledged: str, pipe: int) -> None:
    """Be one process in a room, until killed."""
    store = DuckDBStorage(room)
    if not store.records():
        open_sessions(store, READER, WRITER, OTHER, max_unread=None)
    life = f"life-{store.head()}"
    log = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def told(line: str) -> None:
        os.write(log, f"{line}\n".encode())
        os.write(pipe, b".")

    lanes: list[Callable[[], None]] = [
        lambda: send(store, told, life, 1),
        lambda: send(store, told, life, 2),
        lambda: read_and_answer(store, told),
        lambda: end_calls(store, told, life),
    ]
    threads = [threading.Thread(target=lane) for lane in lanes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def main() -> None:
    """Start one life after the other, as asked."""
    pipe = int(sys.argv[1])
    for line in sys.stdin:
        room, acknowledged = line.split()
        process = os.fork()  # nothing is open here yet, and no thread runs
        if process == 0:
            live(room, acknowledged, pipe)
            os._exit(0)
        print(process, flush=True)
        os.waitpid(process, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
