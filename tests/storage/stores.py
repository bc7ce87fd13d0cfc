"""Stores for tests, with a session or two in them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from postroom_runtime.contracts.envelope import Body, FromUser, Outgoing, Receipt, UserMessage
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.storage.duckdb_storage import DuckDBStorage
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.storage.protocol import Committed, Pending, Storage

SECONDS = 20.0
"""More than any store ever needs; a test that waits that long has failed."""


def clock() -> Callable[[], datetime]:
    """A clock that is a second later each time it is asked."""
    moments = [datetime(2026, 11, 30, 12, tzinfo=UTC)]

    def now() -> datetime:
        moments.append(moments[-1] + timedelta(seconds=1))
        return moments[-1]

    return now


def record(session: str = "s-0001", version: int = 1, **given: Any) -> SessionRecord:
    """A session record, with what matters to the test."""
    return SessionRecord(
        **{"id": session, "name": f"n-{session}", "agent": "echo", "version": version, **given}
    )


def open_sessions(store: Storage, *sessions: str, **given: Any) -> None:
    """Make a mailbox for each of ``sessions``."""
    for session in sessions:
        store.commit(session, epoch=1, version=0, rows=[record(session, **given)]).result(SECONDS)


def mail(session: str = "s-0001", body: Body | str = "hello", **given: Any) -> Outgoing:
    """Mail of the owner, with what matters to the test."""
    return Outgoing(
        session=session,
        body=UserMessage(body) if isinstance(body, str) else body,
        **{"sender": FromUser(), **given},
    )


def send(
    store: Storage, session: str = "s-0001", body: Body | str = "hello", **given: Any
) -> Receipt:
    """Send one mail and return its receipt, or raise its refusal."""
    (outcome,) = store.accept([mail(session, body, **given)])
    return outcome.result(SECONDS)


def commit(
    store: Storage, version: int, session: str = "s-0001", **given: Any
) -> Pending[Committed]:
    """Commit a session's next record, and what else the test gives."""
    cursor = given.get("cursor")
    fields = given.pop("fields", {})
    rows = [record(session, version + 1, **({"cursor": cursor} if cursor else {}), **fields)]
    return store.commit(
        session, epoch=1, version=version, rows=[*given.pop("rows", ()), *rows], **given
    )


def make(kind: str, folder: Path) -> Storage:
    """An empty store, in memory or in a file."""
    return (
        MemoryStorage(clock())
        if kind == "memory"
        else DuckDBStorage(folder / "room.duckdb", clock())
    )


def make_again(kind: str, folder: Path, store: Storage) -> Storage:
    """The same room, opened again."""
    store.close()
    if kind == "memory":
        return MemoryStorage(clock(), rows=store.rows())
    return DuckDBStorage(folder / "room.duckdb", clock())
