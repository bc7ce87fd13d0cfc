"""The verbs of a room that send mail."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.mail.router import Letter, Posted, Router
from postroom_runtime.office.verbs import RoomVerbs

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session


class MailVerbs(RoomVerbs):
    """What a room does with mail; :class:`Room` is the rest."""

    router: Router

    @abstractmethod
    def noted(self, receipt: Receipt) -> Receipt:
        """Add to a receipt what the room knows of its mail."""

    def send(
        self,
        to: "Session | str",
        text: str,
        *,
        sender: "Session | str | None" = None,
        interrupt: bool = False,
        reply_to: str | None = None,
        expects_reply: bool = False,
        id: str | None = None,
    ) -> Receipt:
        """Send mail, from any thread; may block for the commit (milliseconds).

        Args:
            to: Name or id of the recipient.
            text: What to say.
            sender: Send as this session, under its permissions; None: as the owner.
            interrupt: Ask the reader to break off what it waits for.
            reply_to: The id of the mail this answers.
            expects_reply: A hint to the reader.
            id: An idempotency key.

        Raises:
            MailRefused: Unknown or closed recipient, not permitted, too many hops, full.
            InboxReadOnly: ``to`` is an owner inbox.
        """
        self.check_open()
        posted = self._post(to, text, sender, interrupt, reply_to, expects_reply, id)
        receipt = posted.result()
        self.hop(self.attach)
        return self.noted(receipt)

    async def asend(
        self,
        to: "Session | str",
        text: str,
        *,
        sender: "Session | str | None" = None,
        interrupt: bool = False,
        reply_to: str | None = None,
        expects_reply: bool = False,
        id: str | None = None,
    ) -> Receipt:
        """Do what :meth:`send` does without blocking: for code on the loop."""
        self.check_open()
        self.attach()
        posted = self._post(to, text, sender, interrupt, reply_to, expects_reply, id)
        return self.noted(await posted)

    def _post(
        self,
        to: "Session | str",
        text: str,
        sender: "Session | str | None",
        interrupt: bool,
        reply_to: str | None,
        expects_reply: bool,
        id: str | None,
    ) -> Posted:
        writer = self._one(sender)
        letter = Letter(
            text=text,
            interrupt=interrupt,
            in_reply_to=reply_to,
            expects_reply=expects_reply,
            id=id,
        )
        return self.router.post(to if isinstance(to, str) else to.id, letter, writer)

    def withdraw(
        self,
        mail: str,
        *,
        sender: "Session | str | None" = None,
        session: "Session | str | None" = None,
    ) -> Receipt:
        """Take back a message that its reader has not read; the log keeps it and its withdrawal.

        Args:
            mail: The id of the message.
            sender: Take it back as this session, which must have written it; None: as the owner.
            session: Whose mailbox it is in, where several accepted the same id.

        Returns:
            The receipt of the withdrawal; a second one is a duplicate of the first.

        Raises:
            AlreadyRead: Too late.
            MailRefused: Another session wrote it, or the reader is closed.
            ConfigError: There is no such message.
        """
        self.check_open()
        writer = self._one(sender)
        reader = self._one(session)
        receipt = self.router.withdraw(mail, writer, reader.id if reader else None).result()
        self.hop(self.attach)
        return receipt
