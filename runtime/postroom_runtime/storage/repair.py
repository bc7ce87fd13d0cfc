"""Open a room whose write-ahead log is damaged, by cutting the log where the damage begins."""

import os
import re
import shutil
from dataclasses import dataclass
from typing import Any

from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.storage.disk import first_line
from postroom_runtime.storage.locking import FileLock


@dataclass(frozen=True, slots=True)
class Repaired:
    """What ``repair`` did to a room."""

    path: str
    rows: int
    """Rows the room holds now, from the first one on, without a gap."""
    cut: int
    """Bytes of the log that were cut off; 0 when it was whole."""
    copies: tuple[str, ...]
    """Where the files lie as they were before."""

    def __str__(self) -> str:
        """Return in one line what was kept and what was cut."""
        if not self.cut:
            return f"{self.path} is whole: {self.rows} rows, nothing was changed."
        kept = " and ".join(self.copies)
        return (
            f"{self.path} opens again with {self.rows} rows; the last {self.cut} bytes of its log "
            f"were damaged and are cut off. As it was, it lies in {kept}."
        )


def repair(path: str | os.PathLike[str]) -> Repaired:
    """Make a room with a damaged log open again, keeping everything before the damage.

    The files are copied first; nothing of the copies is ever touched again.

    Raises:
        RoomLocked: Somebody has the room open.
        StoreFailed: There is no such file, or the damage is not in the log; nothing was changed.
    """
    import duckdb

    file = os.path.realpath(os.path.expanduser(path))
    if not os.path.isfile(file):
        raise StoreFailed(f"{file} cannot be repaired", "there is no such file")
    log = f"{file}.wal"
    whole = kept = os.path.getsize(log) if os.path.exists(log) else 0
    copies: tuple[str, ...] = ()
    lock = FileLock(file)
    try:
        while True:
            try:
                connection = duckdb.connect(file)
                break
            except duckdb.Error as failed:
                place = re.search(r"entry at byte position (\d+)", str(failed))
                if place is None or int(place[1]) >= kept:
                    raise StoreFailed(
                        f"{file} cannot be repaired",
                        f"the damage is not in its log: {first_line(failed)}",
                        "Go back to a copy of the file.",
                    ) from None
            copies = copies or (_copied(file), _copied(log))
            kept = int(place[1])
            os.truncate(log, kept)
        try:
            rows = _rows(connection, file)
        finally:
            connection.close()
    finally:
        lock.release()
    return Repaired(file, rows, whole - kept, copies)


def _copied(file: str) -> str:
    number = 1
    while os.path.exists(copy := f"{file}.damaged-{number}"):
        number += 1
    shutil.copy2(file, copy)
    return copy


def _rows(connection: Any, file: str) -> int:
    count, last = connection.execute("SELECT count(*), coalesce(max(n), 0) FROM journal").fetchone()
    if count != last:
        raise StoreFailed(
            f"{file} cannot be repaired",
            f"its journal has {count} rows and the last is number {last}: some in between are lost",
            "Go back to a copy of the file.",
        )
    return int(count)
