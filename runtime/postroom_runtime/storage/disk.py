"""One DuckDB file: opened under its lock, appended to, read, reopened when it broke, closed."""

import contextlib
import os
import re
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from postroom_runtime.contracts.errors import ConfigError, RoomLocked, StoreFailed
from postroom_runtime.storage import schema
from postroom_runtime.storage.locking import FileLock


class Disk:
    """A room's file, held by this process until ``close``.

    Writing is for one thread; ``reading`` gives every caller a cursor of its own.

    Args:
        path: The file; made when it does not exist, in a folder that does.

    Raises:
        ConfigError: The path cannot be a file.
        RoomLocked: Another room, in this process or another, has it open.
        StoreFailed: It cannot be opened, written or understood.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = _checked(path)
        self._connection: Any = None
        self._lock = FileLock(self.path)
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        import duckdb

        try:
            self._connection = duckdb.connect(self.path)
            version = schema.version_of(self._connection, self.path)
            if 0 < version < schema.SCHEMA_VERSION:
                self._migrate(version)
            schema.configure(self._connection)
            schema.create(self._connection)
            self._probe()
        except duckdb.Error as failed:
            raise opening_failed(self.path, failed) from None

    def _migrate(self, version: int) -> None:
        import duckdb

        # Closed while it is copied: the copy must be whole, and must not cost DuckDB its own lock.
        self._connection.execute("CHECKPOINT")
        self._connection.close()
        shutil.copy2(self.path, f"{self.path}.v{version}")
        self._connection = duckdb.connect(self.path)
        schema.migrate(self._connection, version)

    def _probe(self) -> None:
        """Write something now: a folder that lets no log be made would refuse the first mail."""
        self._connection.execute("DELETE FROM meta WHERE k = 'opened by'")
        opener = f"process {os.getpid()} on {socket.gethostname()}"
        self._connection.execute("INSERT INTO meta VALUES ('opened by', ?)", [opener])

    def append(self, entries: Sequence[schema.Entry]) -> None:
        """Append ``entries``, all or none, and return when they are safe on disk.

        Raises:
            StoreFailed: None of them is there.
        """
        import duckdb

        before = entries[0].n - 1
        try:
            if self._connection is None:
                self._reopen(before)
            schema.append(self._connection, entries)
        except duckdb.FatalException as failed:
            # The instance is dead, and whether its last words were written only the file can tell.
            if not self._survived(entries[-1].n):
                raise StoreFailed(*_refused(self.path, failed)) from None
        except duckdb.Error as failed:
            raise StoreFailed(*_refused(self.path, failed)) from None

    def _survived(self, last: int) -> bool:
        self._drop()
        try:
            self._reopen(None)
        except StoreFailed:
            return False  # the next group tries again, and clears away what it finds beyond its own
        (found,) = self._connection.execute("SELECT max(n) FROM journal").fetchone()
        return bool(found == last)  # a group is one statement: all of it is there, or nothing

    def _reopen(self, head: int | None) -> None:
        """Open the file again in the place of a dead instance; drop rows nobody was promised."""
        try:
            self._connect()
            if head is not None:
                self._connection.execute("DELETE FROM journal WHERE n > ?", [head])
        except StoreFailed:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):  # a dead instance may refuse even to be closed
                self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Any]:
        """Give a cursor for some reading.

        Raises:
            StoreFailed: The room is closed, or the file cannot be read.
        """
        import duckdb

        connection = self._connection
        if connection is None:
            raise StoreFailed(
                f"{self.path} cannot be read", "it is not open", "Open the room again."
            )
        try:
            cursor = connection.cursor()
            try:
                yield cursor
            finally:
                cursor.close()
        except duckdb.Error as failed:
            raise StoreFailed(f"{self.path} cannot be read", first_line(failed)) from None

    def size(self) -> int:
        """Return the bytes on disk, the write-ahead log included."""
        return sum(
            os.path.getsize(each)
            for each in (self.path, f"{self.path}.wal")
            if os.path.exists(each)
        )

    def close(self) -> None:
        """Give up the file, then its lock. Closing twice is harmless."""
        self._drop()
        self._lock.release()

    def abandon(self) -> None:
        """Let go of everything in a forked child, touching nothing that the parent still uses."""
        import ctypes

        if self._connection is not None:
            # Its destructor would write to the parent's file; one reference too many prevents that.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            self._connection = None
        self._lock.abandon()


def _checked(path: str | os.PathLike[str]) -> str:
    place = Path(path).expanduser()
    if str(place) in (":memory:", "", "."):
        raise ConfigError(f"{str(path)!r} is no file for a room: give a path.", value=path)
    if place.is_dir():
        raise ConfigError(
            f"{place} is a folder, and a room is a file: give a path such as "
            f"{place / 'lab.mail.duckdb'}.",
            value=path,
        )
    if not place.parent.is_dir():
        raise ConfigError(
            f"{place} cannot be made: there is no folder {place.parent}. Make it first, or choose "
            "another path.",
            value=path,
        )
    return os.path.realpath(place)


def opening_failed(path: str, failed: Exception) -> RoomLocked | StoreFailed:
    """Return what to tell of a file that DuckDB does not open."""
    text = first_line(failed)
    if "Could not set lock" in text:
        holder = re.search(r"PID (\d+)", str(failed))
        return RoomLocked(path, int(holder[1]) if holder else None, socket.gethostname())
    what = f"{path} cannot be opened"
    if "WAL" in text and ("orrupt" in text or "replay" in text):
        return StoreFailed(
            what,
            f"its write-ahead log is damaged ({text})",
            "postroom_runtime.storage.repair.repair(path) keeps a copy of everything and cuts the "
            "log where the damage begins.",
        )
    if "not a valid DuckDB" in text:
        return StoreFailed(
            what, "it is no DuckDB file", "Choose another path; it was left as it was."
        )
    if re.search(r"[Pp]ermission denied|Read-only file system|Cannot open file", text):
        return StoreFailed(
            what, text, "Choose a file and a folder that you may write to, or :memory:."
        )
    return StoreFailed(what, text)


def _refused(path: str, failed: Exception) -> tuple[str, str, str]:
    return (
        f"{path} refused to be written",
        first_line(failed),
        "Nothing of it is stored. Free some space, or mend what it names, and send again.",
    )


def first_line(failed: Exception) -> str:
    """Return what DuckDB says, in one line and without the full stop."""
    return str(failed).strip().split("\n")[0].rstrip(".")
