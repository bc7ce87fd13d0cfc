"""The owner's read-only feed, one per agent: what a person should look at (I-3, I-13, I-19)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from postroom_runtime.contracts.envelope import (
    Envelope,
    FromSystem,
    Notification,
    Outgoing,
    Receipt,
)
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import OWNER_INBOX, inbox_key
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.storage.protocol import Pending, Storage


class OwnerInbox:
    """The only writer of owner inboxes. Entries are mail that nobody consumes and nothing bounds.

    Args:
        storage: The room's store.
        now: The room's clock.
    """

    def __init__(self, storage: Storage, now: Callable[[], datetime]) -> None:
        self._storage, self._now = storage, now
        self._known = {key for key in storage.records() if key.startswith(f"{OWNER_INBOX}@")}

    def ensure(self, agent: str) -> None:
        """Create the inbox of ``agent`` unless it is there; twice is harmless (I-4)."""
        key = inbox_key(agent)
        if key in self._known:
            return
        self._known.add(key)
        record = SessionRecord(
            id=key,
            name=OWNER_INBOX,
            agent=agent,
            status=SessionStatus.IDLE,
            version=1,
            max_unread=None,
            hidden=True,
            created_at=self._now(),
        )
        self._storage.commit(
            key, epoch=self._storage.claim(key, "runtime"), version=0, rows=(record,)
        )

    def exists(self, agent: str) -> bool:
        """Tell whether ``agent`` has an inbox."""
        return inbox_key(agent) in self._known

    def write(
        self,
        agent: str,
        content: str,
        *,
        type: str = "notification",
        metadata: Mapping[str, Json] | None = None,
        actions: Sequence[Json] | None = None,
        id: str | None = None,
    ) -> Pending[Receipt]:
        """Write one entry (I-19); an ``id`` makes it idempotent.

        Args:
            agent: Whose inbox.
            content: What happened, in words.
            type: What a card is drawn from: ``notification``, ``failed``, ``budget``, ``hops`` …
            metadata: JSON facts about it.
            actions: What the owner may do; put into the metadata only when given.
            id: Free text; the same id writes once.
        """
        if not isinstance(content, str):
            raise ConfigError(f"a notification is text, not {content!r}.", value=content)
        self.ensure(agent)
        facts = {**(metadata or {}), **({} if actions is None else {"actions": list(actions)})}
        entry = Notification(content, type, facts)
        outgoing = Outgoing(
            session=inbox_key(agent), sender=FromSystem("runtime"), body=entry, id=id
        )
        return self._storage.accept((outgoing,))[0]

    def entries(self, agent: str) -> list[Envelope]:
        """Return the entries of ``agent``'s inbox, oldest first; empty when there are none."""
        key = inbox_key(agent)
        return self._storage.fetch({key: 0})[key] if key in self._known else []
