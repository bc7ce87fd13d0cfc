"""The verbs of a room that find its sessions: open ones, closed ones, and what is stored of all."""

from abc import ABC, abstractmethod
from typing import Literal, overload

from postroom_runtime.contracts.errors import InboxReadOnly, UnknownRecipient
from postroom_runtime.contracts.ids import SessionId, is_inbox_key, names_inbox
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.mail.router import Router
from postroom_runtime.office.session import Session
from postroom_runtime.storage.protocol import Storage


class SessionVerbs(ABC):
    """How a room finds its sessions; :class:`Room` is the rest."""

    router: Router
    storage: Storage
    _sessions: dict[SessionId, Session]

    def session(self, key: str, *, closed: bool = False) -> Session:
        """Return the open session called ``key``: its name, its id, or a unique prefix of one.

        Args:
            key: Whom.
            closed: Where no open one goes by that, a closed one too, by its id or its last name:
                to be read, and for nothing else.

        Raises:
            UnknownRecipient: None, or several with that prefix; names near matches.
            InboxReadOnly: An owner inbox is no session: nobody writes to it or orders it about.
        """
        if names_inbox(key):
            raise InboxReadOnly(key)
        if (member := self.router.lookup(key)) is not None and not member.closed:
            return self._sessions[member.id]
        found = [
            s for s in self.sessions(hidden=True) if key and (s.name.startswith(key) or s.id == key)
        ]
        if len(found) == 1:
            return found[0]
        if closed and (gone := self._closed(key)) is not None:
            return gone
        names = [s.name for s in found] or [s.name for s in self.sessions()]
        raise UnknownRecipient(key, names, closed=member is not None)

    def _closed(self, key: str) -> Session | None:
        records = [r for r in self.people().values() if r.status is SessionStatus.CLOSED]
        record = next((r for r in reversed(records) if key in (r.id, r.name)), None)
        if record is None:
            return None
        known = self._sessions.get(record.id)
        return known if known is not None else self._read_only(record)

    @abstractmethod
    def _read_only(self, record: SessionRecord) -> Session:
        """Return a session that this kernel never had open."""

    @overload
    def sessions(self, *, hidden: bool = False, inbox: Literal[False] = False) -> list[Session]: ...

    @overload
    def sessions(
        self, *, hidden: bool = False, inbox: Literal[True]
    ) -> list[Session | SessionRecord]: ...

    def sessions(
        self, *, hidden: bool = False, inbox: bool = False
    ) -> list[Session] | list[Session | SessionRecord]:
        """Return the open sessions, oldest first.

        Args:
            hidden: Those spawned hidden too.
            inbox: The owner inboxes too, as their stored records.
        """
        found = [
            session
            for session in self._sessions.values()
            if not session.closed and (hidden or not session.record.hidden)
        ]
        if not inbox:
            return found
        boxes = [r for r in self.storage.records().values() if is_inbox_key(r.id)]
        both: list[Session | SessionRecord] = [*found, *boxes]
        return both

    def people(self) -> dict[SessionId, SessionRecord]:
        """Return the record of every session ever spawned, closed ones too, by id."""
        records = self.storage.records()
        return {id: record for id, record in records.items() if not is_inbox_key(id)}
