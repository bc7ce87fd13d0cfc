"""A session's mailbox: number, never consume; a reader is a cursor (M-15, M-20)."""

from collections.abc import Callable, Sequence

from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.storage.protocol import Pending, Storage

Match = Callable[[Envelope], bool]


class Mailbox:
    """One session's queue. It holds no lock and no mail: the store decides and keeps.

    Args:
        session: Whose mailbox; its record must have been committed before.
        storage: The room's store.
        bell: Rung after each change of the session.
    """

    __slots__ = ("_bell", "_storage", "session")

    def __init__(self, session: SessionId, storage: Storage, bell: Bell) -> None:
        self.session, self._storage, self._bell = session, storage, bell

    def send(self, outgoing: Outgoing) -> Pending[Receipt]:
        """Hand mail for this session to the store; callable from any thread (M-15)."""
        return self._storage.accept((outgoing,))[0]

    def unread(self, cursor: int, match: Match | None = None) -> list[Envelope]:
        """Return mail with ``seq`` above ``cursor``, ascending, that ``match`` accepts.

        Reading consumes nothing: asking again gives the same (M-20).
        """
        found = self._storage.fetch({self.session: cursor})[self.session]
        return found if match is None else [envelope for envelope in found if match(envelope)]

    async def receive(
        self, cursor: int, match: Match | None = None, timeout: float | None = None
    ) -> list[Envelope]:
        """Wait until mail above ``cursor`` matches and return what does; empty when time is up.

        Each look reads only what came since the last one, however long the backlog (M-25).

        Args:
            cursor: ``seq`` of the last mail already seen.
            match: Which mail to wait for; None for any.
            timeout: Seconds; None waits for ever.
        """
        seen = cursor

        def look() -> Sequence[Envelope] | None:
            nonlocal seen
            if fresh := self.unread(seen):
                seen = fresh[-1].seq
                if match is not None:
                    fresh = [envelope for envelope in fresh if match(envelope)]
            return fresh or None

        return list(await wait_until(look, self._bell, timeout) or ())

    def trim(self, cursor: int) -> None:
        """Forget mail at or below ``cursor`` in memory; the journal and the ids stay (M-33)."""
        self._storage.trim({self.session: cursor})
