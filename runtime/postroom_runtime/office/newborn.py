"""A session that is about to be: its record and its first letter are stored as one."""

from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Outgoing
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.office.options import Options
from postroom_runtime.office.session import Session
from postroom_runtime.storage.protocol import Committed, Pending

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room


class Newborn:
    """What whoever makes a session stores, and then admits.

    Args:
        room: Where.
        agent: Of which agent.
        name: What it is called.
        parent: The session it belongs to, or None.
        options: What it was given on top of its agent.
        more: Further fields of its record.
    """

    def __init__(
        self,
        room: "Room",
        agent: Agent,
        name: str,
        parent: Session | None,
        options: Options,
        **more: Any,
    ) -> None:
        self._room, self._options = room, options
        self.record = SessionRecord(
            id=room.new_session_id(),
            name=name,
            agent=agent.slug,
            parent=parent.id if parent else None,
            status=SessionStatus.IDLE,
            version=1,
            options=options.stored(),
            max_unread=agent.mailbox_max_unread,
            created_at=room.now(),
            **more,
        )
        self._epoch = room.storage.claim(self.record.id, "kernel")

    def store(self, *mail: Outgoing) -> Pending[Committed]:
        """Store it, with its first mail, in one transaction."""
        id = self.record.id
        return self._room.storage.commit(
            id, epoch=self._epoch, version=0, cursor=0, rows=(self.record,), mail=mail
        )

    def session(self) -> Session:
        """Return the session that was stored, for the room to admit."""
        session = Session(self._room, self.record, self._epoch)
        session.life.options = self._options
        session.new = True
        return session
