"""A session's mailbox: number, never consume; a reader is a cursor (M-15, M-20)."""

from collections.abc import Callable, Sequence

from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.inbox import Drain
from postroom_runtime.signals.bell import Bell, wait_until
from postroom_runtime.storage.protocol import Pending, Storage

Match = Callable[[Envelope], bool]

_DELEGATE = "subagent"
"""What hosts of the Inbox protocol call the runs that a run of theirs starts (A-45)."""


class Mailbox:
    """One session's queue. It holds no lock and no mail: the store decides and keeps.

    Args:
        session: Whose mailbox; its record must have been committed before.
        storage: The room's store.
        bell: Rung after each change of the session.
        shown: What of unread mail is for a model to read; None: all of it.
    """

    __slots__ = ("_bell", "_shown", "_storage", "session")

    def __init__(
        self,
        session: SessionId,
        storage: Storage,
        bell: Bell,
        shown: Callable[[Sequence[Envelope]], Sequence[Envelope]] | None = None,
    ) -> None:
        self.session, self._storage, self._bell, self._shown = session, storage, bell, shown

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

    def reader(self, agent: str | None = None) -> Drain:
        """Return a drain with a cursor of its own, for a run of another framework (A-2, A-31).

        So a mailbox is a ``pr.Inbox``: ``aimu.Agent(…, inbox=s.mailbox)``. The drain gives the texts
        of what came since it was called last, oldest first, without a sender (A-21). It never moves
        the session's own cursor, and may be called from any thread.

        Args:
            agent: What the run is called. ``subagent`` and ``subagent-…`` are runs that another run
                started: they read what comes from now on, all others what the session has not read.
        """
        cursor = self._storage.records()[self.session].cursor
        if agent is not None and (agent == _DELEGATE or agent.startswith(f"{_DELEGATE}-")):
            # Or each of them would read again all that was said before it was there.
            cursor = max([cursor, *(envelope.seq for envelope in self.unread(cursor))])

        def drain() -> list[str]:
            nonlocal cursor
            fresh = self.unread(cursor)
            if fresh:
                cursor = fresh[-1].seq
            shown = fresh if self._shown is None else self._shown(fresh)
            return [envelope.text for envelope in shown if envelope.text.strip()]

        return drain

    def trim(self, cursor: int) -> None:
        """Forget mail at or below ``cursor`` in memory; the journal and the ids stay (M-33)."""
        self._storage.trim({self.session: cursor})
