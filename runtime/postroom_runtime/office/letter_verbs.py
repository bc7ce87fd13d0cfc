"""The verbs of a room that tell how far letters between its sessions have got."""

from collections.abc import Callable, Collection, Sequence

from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Row, RowKind
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.storage.protocol import Storage


class LetterVerbs:
    """What a room knows of a letter beyond the mailbox it lies in."""

    storage: Storage

    def turns_reading(
        self, reader: SessionId, letters: Collection[int], after: int = 0
    ) -> dict[int, int]:
        """Return in which of its turns a session read its mail; one look into the journal (M-47).

        Args:
            reader: The session that was written to.
            letters: ``seq`` of its mail.
            after: A number of the journal that all of it came after; what is older is not looked at.

        Returns:
            The index of the turn by ``seq``. Mail that is in no turn has none: it is unread, or it
            said nothing to the model.

        Raises:
            StoreFailed: The room is closed, or its file cannot be read.
        """
        wanted = set(letters)
        found: dict[int, int] = {}
        for row in self.storage.rows(reader, (RowKind.TURN,), after) if wanted else ():
            turn = row.record
            if isinstance(turn, Turn):
                # A turn that was amended is stored again: where it was read first counts.
                for mail in turn.mail:
                    if mail.seq in wanted:
                        found.setdefault(mail.seq, turn.index)
        return found

    def hear_sessions(self, heard: Callable[[SessionId], None]) -> Callable[[], None]:
        """Call ``heard`` with each session whose record is stored; return how to stop that.

        Args:
            heard: Called in whatever thread stored it, under the store's lock: it only hands on.
        """

        def hear(rows: Sequence[Row]) -> None:
            for row in rows:
                if isinstance(row.record, SessionRecord):
                    heard(row.session)

        return self.storage.bells(hear)
