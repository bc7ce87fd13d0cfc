"""Find the recipient, apply permissions, stamp the sender, deliver (M-89, M-99, M-105…M-110)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    Control,
    FromSession,
    FromUser,
    Outgoing,
    Priority,
    Receipt,
    UserMessage,
    WatchedEvent,
    Withdraw,
)
from postroom_runtime.contracts.errors import (
    ConfigError,
    InboxReadOnly,
    MailRefused,
    NotPermitted,
    UnknownRecipient,
)
from postroom_runtime.contracts.ids import (
    MAX_GIVEN_ID,
    MailId,
    SessionId,
    check_given_id,
    is_inbox_key,
    names_inbox,
)
from postroom_runtime.mail.permissions import Relation, may_interrupt, may_write, relation
from postroom_runtime.storage.protocol import Pending, Storage


class Member(Protocol):
    """What the router knows of a session: who it is, what it may, how it is."""

    @property
    def id(self) -> SessionId:
        """Its id."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def agent(self) -> str:
        """Its agent's slug."""
        ...

    @property
    def parent(self) -> SessionId | None:
        """Its parent's id."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it takes no more mail."""
        ...

    @property
    def mail_scope(self) -> str:
        """Whom it may write to first."""
        ...

    @property
    def interrupt_scope(self) -> str:
        """Whom it may interrupt."""
        ...

    @property
    def max_mail_hops(self) -> int:
        """The most hops a letter of its may have."""
        ...

    @property
    def hops(self) -> int:
        """What its next letter carries."""
        ...

    def has_read(self, other: SessionId) -> bool:
        """Whether it has read mail of ``other``."""
        ...

    def status_words(self) -> str:
        """Its status in words, as a receipt tells it."""
        ...

    def waits(self, seq: int) -> str:
        """Why its mail ``seq``, just accepted, waits; '' when nothing keeps it from being read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What somebody wants to say, before it is addressed and stamped."""

    text: str
    interrupt: bool = False
    in_reply_to: MailId | None = None
    expects_reply: bool = False
    id: MailId | None = None


class Posted:
    """A letter on its way: wait for it in a thread or on a loop, and get the whole receipt."""

    __slots__ = ("_gone", "_member", "_note", "_pending")

    def __init__(
        self,
        pending: Pending[Receipt],
        member: Member,
        note: str = "",
        gone: Callable[[], UnknownRecipient] | None = None,
    ) -> None:
        self._pending, self._member, self._note, self._gone = pending, member, note, gone

    def _whole(self, receipt: Receipt) -> Receipt:
        told = (self._note, receipt.note, self._member.waits(receipt.seq))
        return replace(
            receipt,
            name=self._member.name,
            recipient_status=self._member.status_words(),
            note="; ".join(filter(None, told)),
        )

    def result(self, timeout: float | None = None) -> Receipt:
        """Block until the letter is stored; return its receipt or raise the refusal."""
        try:
            return self._whole(self._pending.result(timeout))
        except UnknownRecipient as refused:
            raise self._told(refused) from None

    def __await__(self) -> Generator[Any, None, Receipt]:
        """Wait on the running loop."""
        try:
            return self._whole((yield from self._pending.__await__()))
        except UnknownRecipient as refused:
            raise self._told(refused) from None

    def _told(self, refused: UnknownRecipient) -> UnknownRecipient:
        # The store knows every mailbox, and not whom this sender may know of.
        return refused if self._gone is None else self._gone()


class Router:
    """The room's table of mailboxes, and the only way mail between people and sessions takes.

    Args:
        storage: The room's store.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._members: dict[SessionId, Member] = {}
        self._names: dict[str, SessionId] = {}

    def register(self, member: Member) -> Callable[[], None]:
        """Make ``member`` reachable by id and name; return how to take it out again (M-89)."""
        self._members[member.id] = member
        self._names[member.name] = member.id

        def unregister() -> None:
            if self._names.get(member.name) == member.id:
                del self._names[member.name]
            self._members.pop(member.id, None)

        return unregister

    def members(self) -> list[Member]:
        """Return everybody registered, oldest first."""
        return list(self._members.values())

    def lookup(self, to: str) -> Member | None:
        """Return who goes by the id or name ``to``, else None.

        An id is looked for first: letters are answered to the id in their header, and a session
        called like another's id must not get them.
        """
        return self._members.get(to) or self.named(to)

    def named(self, name: str) -> Member | None:
        """Return the session called ``name``, the last one if there were several, else None."""
        return self._members.get(self._names.get(name, ""))

    def reachable(self, sender: Member | None = None) -> list[Member]:
        """Return who takes mail of ``sender``, oldest first; None is the owner, whom all do."""
        found = [member for member in self._members.values() if not member.closed]
        if sender is None:
            return found
        parents = self._parents()
        return [
            member
            for member in found
            if may_write(
                sender.mail_scope,
                relation(sender.id, member.id, parents),
                replying=sender.has_read(member.id),
            )
        ]

    def find(self, to: str, sender: Member | None = None, *, closed: bool = False) -> Member:
        """Return who goes by the name or id ``to``.

        Args:
            to: Name or id.
            sender: Who asks; it is told of nobody whom it may not write to. None is the owner.
            closed: Closed ones too.

        Raises:
            InboxReadOnly: ``to`` is an owner inbox.
            UnknownRecipient: Nobody does; names near matches and who is reachable.
        """
        if not isinstance(to, str):
            raise ConfigError(f"to={to!r} is no address: give a session's name or id.", value=to)
        if names_inbox(to):
            raise InboxReadOnly(to)
        if (member := self.lookup(to)) is not None and (closed or not member.closed):
            return member
        if member is not None and sender is None:
            to = member.name  # what the owner calls it, also where an object stood for it
        raise self._unknown(to, sender, closed=member is not None)

    def _unknown(self, to: str, sender: Member | None, *, closed: bool) -> UnknownRecipient:
        return UnknownRecipient(to, [m.name for m in self.reachable(sender)], closed=closed)

    def post(
        self, to: str, letter: Letter, sender: Member | None = None, *, person: str | None = None
    ) -> Posted:
        """Send ``letter`` to who goes by ``to``.

        Args:
            to: Name or id of the recipient.
            letter: What to say.
            sender: The session that writes, under its own permissions; None is the owner.
            person: Without a sender: who writes instead of the owner, by name.

        Returns:
            The letter on its way; its receipt may say that an interrupt was lowered, or that the
            mail it replies to is unknown.

        Raises:
            ConfigError: The text is no text, or the id cannot be one.
            InboxReadOnly, UnknownRecipient, NotPermitted: At once. TooManyHops and MailboxFull
                come from the store, with the receipt.
        """
        if not isinstance(letter.text, str):
            raise ConfigError(
                f"mail carries text, not {type(letter.text).__name__}: give a str; files by path.",
                value=letter.text,
            )
        if letter.id is not None:
            check_given_id(letter.id)
        member = self.find(to, sender)
        note, reply_to = self._resolve_reply(letter.in_reply_to, sender)
        if sender is None:
            outgoing = Outgoing(
                session=member.id,
                sender=FromUser(person),
                body=_body(UserMessage, letter, reply_to),
                priority=Priority.INTERRUPT if letter.interrupt else Priority.NORMAL,
                id=letter.id,
            )
        else:
            outgoing = self._from_session(sender, member, letter, reply_to)
        gone = partial(self._unknown, to, sender, closed=True)
        return Posted(self._storage.accept((outgoing,))[0], member, note, gone)

    def _from_session(
        self, sender: Member, member: Member, letter: Letter, reply_to: MailId | None
    ) -> Outgoing:
        kin = self.relation(sender.id, member.id)
        if not may_write(sender.mail_scope, kin, replying=sender.has_read(member.id)):
            raise NotPermitted(sender.name, member.name, sender.mail_scope, kin)
        lowered = letter.interrupt and not may_interrupt(sender.interrupt_scope, kin)
        return Outgoing(
            session=member.id,
            sender=FromSession(sender.id, sender.agent),
            body=_body(AgentMessage, letter, reply_to),
            priority=(Priority.INTERRUPT if letter.interrupt and not lowered else Priority.NORMAL),
            hops=sender.hops,
            max_hops=sender.max_mail_hops,
            id=letter.id,
            lowered=lowered,
            note=_lowered(sender, member, kin) if lowered else "",
        )

    def relation(self, sender: SessionId, recipient: SessionId) -> Relation:
        """Return what ``recipient`` is to ``sender``."""
        return relation(sender, recipient, self._parents())

    def _parents(self) -> dict[SessionId, SessionId | None]:
        return {member.id: member.parent for member in self._members.values()}

    def _resolve_reply(
        self, reply_to: MailId | None, sender: Member | None
    ) -> tuple[str, MailId | None]:
        if not reply_to:
            return "", None
        known = (
            self._storage.find_mail(reply_to)
            if sender is None
            else self._storage.find(sender.id, reply_to)
        )
        if known is None:
            return f"no mail {reply_to} to reply to: sent as fresh mail", None
        return "", reply_to

    def withdraw(
        self, mail: MailId, sender: Member | None = None, session: SessionId | None = None
    ) -> Posted:
        """Take back unread mail: its reader's model never sees it, and the log keeps both.

        Args:
            mail: The id of a message.
            sender: The session that takes it back, which must have written it; None is the owner.
            session: In whose mailbox, where several accepted the same id.

        Raises:
            ConfigError: No such mail, or it is no message.
            InboxReadOnly: It is an entry of an owner inbox.
            MailRefused: Somebody else wrote it. AlreadyRead comes from the store, with the receipt.
        """
        find = self._storage.find
        found = self._storage.find_mail(mail) if session is None else find(session, mail)
        if found is not None and is_inbox_key(found.session):
            if sender is None:
                raise InboxReadOnly(found.session)
            found = None  # for whoever is not the owner there is no such thing
        if found is None:
            raise ConfigError(f"there is no mail {mail!r} to withdraw. Ids: %mail NAME", value=mail)
        if not isinstance(found.body, (UserMessage, AgentMessage, WatchedEvent)):
            raise ConfigError(
                f"{mail} is {found.body.kind}: only messages can be withdrawn.", value=mail
            )
        if sender is not None and found.sender.id != sender.id:
            raise MailRefused(
                f"{mail} is not {sender.name}'s to withdraw: only who wrote it, or the owner, may."
            )
        return self.deliver(
            Outgoing(
                session=found.session,
                sender=FromUser() if sender is None else FromSession(sender.id, sender.agent),
                body=Control(Withdraw(mail, found.seq)),
                id=f"withdraw-{mail}"[:MAX_GIVEN_ID],
            )
        )

    def deliver(self, outgoing: Outgoing) -> Posted:
        """Send the runtime's own mail, already stamped, to a registered session."""
        member = self._members[outgoing.session]
        return Posted(self._storage.accept((outgoing,))[0], member)


def _lowered(sender: Member, member: Member, kin: Relation) -> str:
    scope = sender.interrupt_scope
    return (
        f"interrupt lowered: interrupt_scope {scope!r} of {sender.name} "
        f"does not reach {member.name} ({kin})"
    )


def _body(
    kind: type[UserMessage] | type[AgentMessage], letter: Letter, reply_to: str | None
) -> Body:
    return kind(letter.text, reply_to, letter.expects_reply)
