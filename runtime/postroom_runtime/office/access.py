"""A room as one person may see it: what they read, and how they write."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.contracts.errors import ConfigError, OwnerOnly, UnknownRecipient
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import OWNER_INBOX, is_inbox_key, names_inbox
from postroom_runtime.contracts.principal import AccessRole, Principal, principal_of
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.mail.router import Letter
from postroom_runtime.office.feed import OWNER, Feed

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session

log = logging.getLogger("postroom")


class Access:
    """What ``room.as_(principal)`` gives: records and texts, never the live sessions themselves.

    For a user or a guest owner inboxes and approvals do not exist: asking for one gets the answer
    that a missing one gets (I-6). An admin reads them, which is logged, and answers nothing (I-8).
    It keeps people apart who share a front end; whoever may run code in the kernel is its owner.

    Args:
        room: The room.
        principal: Who looks.
    """

    def __init__(self, room: "Room", principal: Principal) -> None:
        self._room = room
        self.principal = principal

    def __repr__(self) -> str:
        return f"{self._room!r} as {self.principal.role} {self.principal.name}"

    @property
    def _outside(self) -> bool:
        return self.principal.outside

    # ── reading ──

    def sessions(self, *, hidden: bool = False, inbox: bool = False) -> list[SessionRecord]:
        """Return the open sessions as stored, oldest first.

        Args:
            hidden: Those spawned hidden too; never for a user or a guest.
            inbox: The owner inboxes too; never for a user or a guest (I-6, I-7).
        """
        found = [s.record for s in self._room.sessions(hidden=hidden and not self._outside)]
        if inbox and not self._outside:
            self._logged("lists the owner inboxes")
            found += [r for r in self._room.storage.records().values() if is_inbox_key(r.id)]
        return found

    def mail(self, session: str) -> list[Envelope]:
        """Return the mail of a session, oldest first.

        Raises:
            UnknownRecipient: No such session; an owner inbox is none.
        """
        return self._session(session).mail()

    def transcript(self, session: str) -> list[Turn]:
        """Return the turns of a session, oldest first.

        What its tools got and gave is left out for a user or a guest: it may be the owner's alone.

        Raises:
            UnknownRecipient: As in :meth:`mail`.
        """
        turns = self._session(session).transcript()
        if not self._outside:
            return turns
        return [replace(turn, calls=(), results=(), opaque=None) for turn in turns]

    def inbox(self, agent: str | None = None) -> Feed:
        """Return the owner inbox of an agent, or of all, with this person's own cursor.

        Raises:
            UnknownRecipient: A user or a guest asks: there is no such session.
            ConfigError: No such agent.
        """
        if self._outside:
            raise self._unknown(OWNER_INBOX)
        self._logged(f"reads the inbox of {agent or 'all agents'}")
        owner = self.principal.role is AccessRole.OWNER
        return self._room.feed(agent, OWNER if owner else self.principal.name)

    def approvals(self, state: str | None = "pending") -> list[Approval]:
        """Return the approvals in ``state``; a user or a guest sees none."""
        return [] if self._outside else self._room.approvals(state)

    def _session(self, key: str) -> "Session":
        if names_inbox(key):
            raise self._unknown(key)
        session = self._room.session(key, closed=not self._outside)
        if self._outside and session.record.hidden:
            raise self._unknown(key)
        return session

    def _unknown(self, key: str) -> UnknownRecipient:
        return UnknownRecipient(key, [session.name for session in self._room.sessions()])

    def _logged(self, what: str) -> None:
        if self.principal.role is AccessRole.ADMIN:
            log.warning("admin %s %s", self.principal.name, what)

    # ── writing ──

    def send(
        self,
        to: str,
        text: str,
        *,
        interrupt: bool = False,
        reply_to: str | None = None,
        expects_reply: bool = False,
        id: str | None = None,
    ) -> Receipt:
        """Send mail as this person: of anybody but the owner it carries their name.

        Raises:
            InboxReadOnly: ``to`` is an owner inbox; whoever writes (I-10).
            MailRefused, ConfigError: As in :meth:`Room.send`.
        """
        self._room.check_open()
        letter = Letter(
            text=text,
            interrupt=interrupt,
            in_reply_to=reply_to,
            expects_reply=expects_reply,
            id=id,
        )
        person = None if self.principal.role is AccessRole.OWNER else self.principal.name
        receipt = self._room.router.post(to, letter, person=person).result()
        self._room.hop(self._room.attach)
        return receipt

    def approve(self, id: str, args: Mapping[str, Json] | None = None) -> Approval:
        """Let a waiting call run: the owner may.

        Raises:
            OwnerOnly: An admin tries.
            ConfigError: No such approval; for a user or a guest there is none.
            AlreadyAnswered: Somebody was first.
        """
        self._may_answer(id)
        return self._room.approve(id, args, by=self.principal.name)

    def deny(self, id: str, reason: str = "") -> Approval:
        """Keep a waiting call from running: the owner may.

        Raises:
            OwnerOnly, ConfigError, AlreadyAnswered: As in :meth:`approve`.
        """
        self._may_answer(id)
        return self._room.deny(id, reason, by=self.principal.name)

    def _may_answer(self, id: str) -> None:
        if self._outside:
            raise ConfigError(f"no approval {id!r}; open: none.", value=id)
        if self.principal.role is not AccessRole.OWNER:
            raise OwnerOnly(self.principal.name, str(self.principal.role), f"answer {id}")


class AccessVerbs:
    """How a room is seen by others; :class:`Room` is the rest."""

    def as_(self, who: Principal | str) -> Access:
        """Return the room as ``who`` may see it; the room itself is the owner's.

        Args:
            who: A principal, or the word of a role: owner, user, guest, admin.

        Raises:
            ConfigError: Neither.
        """
        return Access(cast("Room", self), principal_of(who))
