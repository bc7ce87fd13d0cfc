"""The sequence diagram of a room that goes on: it reads each row once, when it is stored."""

from collections import deque
from collections.abc import Callable, Sequence

from postroom_runtime.contracts.journal import Row
from postroom_runtime.office.sequence_reading import KINDS, DiagramReader
from postroom_runtime.storage.protocol import Storage


class LiveDiagram:
    """A diagram that grows with its room.

    Args:
        storage: The room's store.
    """

    def __init__(self, storage: Storage) -> None:
        self.reader = DiagramReader()
        self._storage = storage
        self._new = deque[Row]()
        self._read = 0
        self._listening = False

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Take rows over as they are stored; return how to stop that.

        Args:
            heard: Called for each group of rows, in whatever thread stored it; it only hands on.
        """

        def hear(rows: Sequence[Row]) -> None:
            self._new.extend(rows)
            heard()

        stop_bells = self._storage.bells(hear)
        self._stored()  # what came before the bells
        self._listening = True

        def stop() -> None:
            self._listening = False
            stop_bells()

        return stop

    def catch_up(self) -> DiagramReader:
        """Return the reader with everything in it that is stored by now."""
        if not self._listening:
            self._stored()
        return self.heard()

    def heard(self) -> DiagramReader:
        """Return the reader with everything in it that was heard; asks the store nothing."""
        while self._new:
            self._take(self._new.popleft())
        return self.reader

    def _stored(self) -> None:
        for row in self._storage.rows(kinds=KINDS, after=self._read):
            self._take(row)

    def _take(self, row: Row) -> None:
        if row.n > self._read:  # heard, and read from the store as well
            self._read = row.n
            self.reader.read(row)
