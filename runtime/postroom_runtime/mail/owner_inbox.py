"""The owner's read-only feed, one per agent: what a person should look at (I-3, I-13, I-19).

An owner inbox is a mailbox with a policy: the runtime alone writes to it, the owner alone reads it,
nothing bounds it and nobody consumes it. No session lives there, so no entry ever starts a run.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.entries import RESOLVED
from postroom_runtime.contracts.envelope import (
    Envelope,
    FromSystem,
    Notification,
    Outgoing,
    Receipt,
)
from postroom_runtime.contracts.errors import ConfigError, PostroomError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import OWNER_INBOX, SessionId, inbox_key, is_inbox_key
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.storage.protocol import Pending, Storage

SOURCE: Final[Mapping[str, Json]] = {
    "kind": "inbox",
    "platform": "inbox",
    "type": "system",
    "interactive": False,
}
"""Where an owner inbox says it comes from, in its record's options (I-5)."""


class OwnerInbox:
    """The only writer of owner inboxes. Entries are mail that nobody consumes and nothing bounds.

    Safe to use from any thread.

    Args:
        storage: The room's store.
        now: The room's clock.
    """

    def __init__(self, storage: Storage, now: Callable[[], datetime]) -> None:
        self._storage, self._now = storage, now
        self._records = {id: r for id, r in storage.records().items() if is_inbox_key(id)}
        self._lock = threading.Lock()

    # ── which there are ──

    def ensure(self, agent: str) -> None:
        """Create the inbox of ``agent`` unless it is there; twice is harmless (I-4).

        An agent is defined in a kernel and stored nowhere: this row is all that a file knows of it,
        so the inbox is as old as its agent (I-17).
        """
        key = inbox_key(agent)
        with self._lock:
            if key in self._records:
                return
            record = self._records[key] = SessionRecord(
                id=key,
                name=OWNER_INBOX,
                agent=agent,
                status=SessionStatus.IDLE,
                version=1,
                options={"source": dict(SOURCE)},
                max_unread=None,
                hidden=True,
                created_at=self._now(),
            )
            self._storage.commit(
                key, epoch=self._storage.claim(key, "runtime"), version=0, rows=(record,)
            )

    def back_fill(self) -> None:
        """Create the inboxes that an older file does not have; twice adds nothing (I-18)."""
        for record in self._storage.records().values():
            if not is_inbox_key(record.id):
                self.ensure(record.agent)

    def exists(self, agent: str) -> bool:
        """Tell whether ``agent`` has an inbox."""
        return inbox_key(agent) in self._records

    def agents(self) -> list[str]:
        """Return the agents that have an inbox, the oldest first."""
        return [record.agent for record in tuple(self._records.values())]

    # ── writing ──

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
        facts = {**(metadata or {}), **({} if actions is None else {"actions": list(actions)})}
        return self.post(self.letter(agent, content, type=type, metadata=facts, id=id))

    def letter(
        self,
        agent: str,
        content: str,
        *,
        type: str,
        metadata: Mapping[str, Json],
        id: str | None = None,
    ) -> Outgoing:
        """Return an entry that is to be stored with what it tells of, in one transaction.

        Raises:
            ConfigError: The content is no text.
        """
        if not isinstance(content, str):
            raise ConfigError(f"a notification is text, not {content!r}.", value=content)
        self.ensure(agent)
        return Outgoing(
            session=inbox_key(agent),
            sender=FromSystem("runtime"),
            body=Notification(content, type, dict(metadata)),
            id=id,
        )

    def post(self, letter: Outgoing) -> Pending[Receipt]:
        """Store an entry by itself."""
        return self._storage.accept((letter,))[0]

    def resolved(self, approval: Approval) -> Outgoing:
        """Return the entry that marks the card of ``approval`` as done, for all who show it (I-28)."""
        words = f"{approval.id} {approval.state}"
        words += f" by {approval.answered_by}" if approval.answered_by else ""
        return self.letter(
            approval.agent,
            words,
            type=RESOLVED,
            metadata={
                "approval": approval.id,
                "session": approval.session,
                "tool": approval.tool,
                "decision": str(approval.state),
                "resolved_by": approval.answered_by,
            },
            id=f"resolved-{approval.id}",
        )

    # ── reading ──

    def entries(self, agent: str, after: int = 0) -> list[Envelope]:
        """Return the entries of ``agent``'s inbox with ``seq`` above ``after``, oldest first."""
        key = inbox_key(agent)
        return self._storage.fetch({key: after})[key] if key in self._records else []

    def seen(self, agent: str, viewer: str) -> int:
        """Return the ``seq`` up to which ``viewer`` has looked at the inbox; 0 at first."""
        record = self._records.get(inbox_key(agent))
        return int(_seen(record).get(viewer, 0)) if record is not None else 0

    def mark(self, agent: str, viewer: str, seq: int) -> None:
        """Store that ``viewer`` has looked at the inbox up to ``seq``; it never goes back (I-37).

        A reader is a cursor: no entry is touched. Blocks for the commit (milliseconds).

        Raises:
            StoreFailed: Nothing is stored, and nothing has changed.
        """
        key = inbox_key(agent)
        with self._lock:
            record = self._records[key]
            if seq <= int(_seen(record).get(viewer, 0)):
                return
            options = {**record.options, "seen": {**_seen(record), viewer: seq}}
            marked = replace(record, version=record.version + 1, options=options)
            self._records[key] = marked
            pending = self._storage.commit(
                key,
                epoch=self._storage.claim(key, "runtime"),
                version=record.version,
                rows=(marked,),
            )
        try:
            pending.result()
        except PostroomError:
            self._read_again((key,))
            raise

    def _read_again(self, keys: Iterable[SessionId]) -> None:
        stored = self._storage.records()
        with self._lock:
            self._records.update({key: stored[key] for key in keys if key in stored})


def _seen(record: SessionRecord) -> Mapping[str, Json]:
    seen: Mapping[str, Json] = record.options.get("seen") or {}
    return seen
