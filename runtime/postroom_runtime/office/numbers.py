"""Numbers of what lives in memory but signs stored mail: they go on where the last kernel stopped."""

import threading

from postroom_runtime.storage.protocol import Storage

_SIGNED = """
select distinct sender from mail
where sender_kind = 'system' and (sender like 'watch:w-%' or sender like 'timer:t-%')
"""


class Signatures:
    """Counts out watches and timers. A number under which mail is stored is never used again.

    The store is asked once, when the first number is needed, and never for a room that was empty.

    Args:
        storage: The room's store.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage, self._empty = storage, storage.head() == 0
        self._last: dict[str, int] | None = None
        self._counting = threading.Lock()

    def next(self, kind: str) -> int:
        """Return the next number of a ``watch`` or a ``timer``. From any thread."""
        with self._counting:
            if self._last is None:
                self._last = {} if self._empty else self._stored()
            self._last[kind] = number = self._last.get(kind, 0) + 1
            return number

    def _stored(self) -> dict[str, int]:
        last: dict[str, int] = {}
        for (sender,) in self._storage.sql(_SIGNED).fetchall():
            kind, _, id = str(sender).partition(":")
            number = id.partition("-")[2]
            if number.isdecimal():
                last[kind] = max(last.get(kind, 0), int(number))
        return last
