"""The storage port: the one way everything above reads and writes a room's journal.

It is shaped so that a store whose database decides (and not this process) fits behind it too.
Methods are callable from any thread. Writing methods return a ``Pending`` at once, never block for
a commit, and decide in the order they were called. What was not acknowledged is not stored.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from postroom_runtime.contracts.envelope import Envelope, Outgoing, Receipt
from postroom_runtime.contracts.ids import MailId, SessionId
from postroom_runtime.contracts.journal import Record, Row, RowKind
from postroom_runtime.contracts.session_record import SessionRecord

T_co = TypeVar("T_co", covariant=True)


class Pending(Protocol, Generic[T_co]):
    """An outcome that is settled once, by the store; any number of threads and tasks may wait."""

    def done(self) -> bool:
        """Tell whether it is settled."""
        ...

    def result(self, timeout: float | None = None) -> T_co:
        """Block this thread until it is settled; return the outcome or raise its error.

        Raises:
            TimeoutError: Not settled within ``timeout`` seconds.
        """
        ...

    def __await__(self) -> Generator[Any, None, T_co]:
        """Wait on the running loop; a cancelled waiter undoes nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit's outcome: the session's new version and a receipt per mail, in order."""

    version: int
    receipts: tuple[Receipt, ...]


Listener = Callable[[Sequence[Row]], None]
"""Told of each published group of rows, in commit order, under the store's lock and in whatever
thread published: it must only hand them on (ring, queue) and never call the store."""


class Storage(Protocol):
    """A room's journal, and who may write what to it."""

    def accept(self, batch: Sequence[Outgoing]) -> list[Pending[Receipt]]:
        """Accept mail, each one by itself: number it, store it, publish it (M-18, M-19).

        The checks come in this order: an id accepted before gives the first receipt as duplicate;
        then the hops; then the bound. Each pending gives a receipt, or raises ``UnknownRecipient``
        (no session record was ever committed under that id, or it is closed), ``TooManyHops``,
        ``MailboxFull`` or ``StoreFailed``. ``Receipt.recipient_status`` and ``name`` are left to the
        caller.
        """
        ...

    def commit(
        self,
        session: SessionId,
        *,
        epoch: int,
        version: int | None,
        cursor: int | None = None,
        rows: Sequence[Record] = (),
        mail: Sequence[Outgoing] = (),
    ) -> Pending[Committed]:
        """Store records and outgoing mail of one session in one transaction (M-22, M-62b).

        Args:
            session: Whose commit it is. Its first commit has ``version=0`` and a SessionRecord; that
                creates its mailbox, bounded by the record's ``max_unread``.
            epoch: From ``claim``; a newer claim elsewhere makes the commit stale.
            version: The stored version this one replaces (compare and store): ``rows`` then hold a
                SessionRecord with ``version + 1``. None writes rows without touching the session
                record, as the end of a call does.
            cursor: The session's new cursor, never smaller; None leaves it. Mail at or below it no
                longer counts towards the bound.
            rows: Records in the order they shall stand in the journal. An ``Event`` with ``seq`` 0
                is given the number of its row.
            mail: Sent in the same transaction, after ``rows``. A refused one refuses the commit; a
                duplicate stores nothing new and gives its first receipt.

        Raises (from the pending):
            StaleRecord: The stored version or the epoch is another.
            MailRefused: As in ``accept``.
            StoreFailed: Nothing of it is stored.
        """
        ...

    def fetch(self, after: Mapping[SessionId, int]) -> dict[SessionId, list[Envelope]]:
        """Return the published mail of each session with ``seq`` above the given one, ascending.

        From memory where it is unread, from the journal where it was trimmed; consumes nothing.
        """
        ...

    def trim(self, upto: Mapping[SessionId, int]) -> None:
        """Forget mail at or below ``seq`` in memory, never above the committed cursor (M-33).

        The journal and the ids stay.
        """
        ...

    def claim(self, session: SessionId, owner: str) -> int:
        """Take a session for ``owner`` and return its epoch; a one-process room always says yes."""
        ...

    def renew(self, session: SessionId, epoch: int) -> bool:
        """Tell whether ``epoch`` still holds the session, and keep it."""
        ...

    def release(self, session: SessionId, epoch: int) -> None:
        """Give a session back."""
        ...

    def bells(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with every group published from now on; return how to stop that."""
        ...

    # ── reading the journal ──

    def head(self) -> int:
        """Return the number of the last published row; 0 for an empty room."""
        ...

    def records(self) -> dict[SessionId, SessionRecord]:
        """Return the latest published record of every session ever stored, closed ones too."""
        ...

    def rows(
        self,
        session: SessionId | None = None,
        kinds: Sequence[RowKind] | None = None,
        after: int = 0,
    ) -> list[Row]:
        """Return published rows with ``n > after`` in commit order, of one session or of all."""
        ...

    def find(self, session: SessionId, id: MailId) -> Envelope | None:
        """Return the mail accepted in ``session`` under ``id``, trimmed or not, else None."""
        ...

    def find_mail(self, id: MailId) -> Envelope | None:
        """Return the first mail of the room accepted under ``id``, in whatever mailbox."""
        ...

    def count(self, kind: RowKind) -> int:
        """Return how many rows of ``kind`` were ever published."""
        ...

    def sql(self, query: str) -> Any:
        """Run one SELECT or EXPLAIN over the views and return a DuckDB relation over a copy.

        Raises:
            ConfigError: Not exactly one SELECT or EXPLAIN, or the query is wrong; names the fault.
        """
        ...

    def describe(self) -> Mapping[str, object]:
        """Return ``path`` (or ``:memory:``), ``bytes`` on disk and ``rows``, for the status line."""
        ...

    def close(self) -> None:
        """Write what is pending, then give up the file and its lock. Closing twice is harmless."""
        ...
