"""The lock on a room's file: one process at a time, and it says which (M-29).

DuckDB has a lock of its own, but any ``open(path).read()`` in this process, a backup say, gives it
away without a word; what a second process then writes is overwritten. ``flock`` on a file beside it
cannot be lost that way.
"""

import json
import os
import socket
from contextlib import suppress

from postroom_runtime.contracts.errors import RoomLocked, StoreFailed

try:
    import fcntl
except ImportError:  # Windows: there DuckDB's own lock is mandatory and cannot be given away
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """Holds ``path + ".lock"`` from its making until ``release``.

    Raises:
        RoomLocked: Somebody holds it, maybe this very process.
        StoreFailed: The lock file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}.lock"
        self._file: int | None = _taken(path, self._path)
        mine = {"pid": os.getpid(), "host": socket.gethostname()}
        os.ftruncate(self._file, 0)
        os.write(self._file, json.dumps(mine).encode())

    def release(self) -> None:
        """Give the lock up and leave no lock file behind. Releasing twice is harmless."""
        if self._file is not None:
            # Gone before it is free: whoever opens the name meanwhile makes a file of its own, and
            # whoever waits on this one sees that it has no name any more.
            with suppress(OSError):
                os.unlink(self._path)
            self.abandon()

    def abandon(self) -> None:
        """Close the file without touching the lock of the process that this one was forked from."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _taken(path: str, lock_path: str) -> int:
    while True:
        try:
            file = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as failed:
            raise StoreFailed(
                f"{path} cannot be opened",
                f"its lock {lock_path} cannot be written: {failed.strerror}",
                "Choose a folder you may write to, or :memory:.",
            ) from None
        if fcntl is None:
            return file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, host = _holder(file)
            os.close(file)
            raise RoomLocked(path, pid, host) from None
        if _still_named(file, lock_path):
            return file
        os.close(file)  # released and unlinked between our open and our lock


def _holder(file: int) -> tuple[int | None, str | None]:
    try:
        holder = json.loads(os.pread(file, 1000, 0))
        return int(holder["pid"]), str(holder["host"])
    except (ValueError, KeyError, TypeError):
        return None, None  # it has only just opened and not yet said who it is


def _still_named(file: int, lock_path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(lock_path))
    except FileNotFoundError:
        return False
