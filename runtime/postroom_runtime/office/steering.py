"""What steers the runs of a session from outside: which inbox, and how its words become mail.

There is one way in: what an inbox gives at a round boundary is accepted as mail of the owner, like
anything typed at the session, and the round that follows reads it (A-12…A-15, A-23).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.envelope import FromUser, Outgoing, UserMessage
from postroom_runtime.contracts.errors import ConfigError, MailRefused
from postroom_runtime.contracts.helper import INHERITED, Helper
from postroom_runtime.contracts.inbox import INBOX_RULE, Inbox, is_inbox
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.mail.foreign_inbox import ForeignReader, check_reader
from postroom_runtime.stepper.receive_points import halts

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life
    from postroom_runtime.office.room import Room


def check_inbox(inbox: Any) -> None:
    """Refuse what cannot steer a run.

    Raises:
        ConfigError: It is no inbox, and not None.
        TypeError: Its reader takes no positional argument.
    """
    if inbox is not None and not is_inbox(inbox):
        raise ConfigError(f"inbox={inbox!r} will not do: give {INBOX_RULE}.", value=inbox)
    check_reader(inbox)


class Steering:
    """The inbox of each run of one session. Loop-bound.

    Args:
        life: The session's life.
        room: Its room.
    """

    def __init__(self, life: "Life", room: "Room") -> None:
        self._life, self._room = life, room
        self._overrides: dict[int, Inbox | None] = {}
        self._given: Inbox | None = None
        """What it has as a helper."""
        self._above_own = False
        self._label = ""
        self._source: Inbox | None = None
        self._reader: ForeignReader | None = None
        self._kept: Sequence[str] = ()
        """Drained and refused: delivered at a later boundary, of a later run if need be."""
        self._told_full = False

    @property
    def label(self) -> str:
        """What its runs open readers as: its name, or ``subagent-SLUG`` for a helper (A-33, A-45)."""
        return self._label or self._life.state.record.name

    @property
    def source(self) -> Inbox | None:
        """The inbox of the run under way, or of the next; what its helpers inherit (A-42, A-46)."""
        return self._source if self._life.running else self._chosen()

    # ── which ──

    def override(self, seq: int, inbox: Inbox | None) -> None:
        """Give ``inbox`` to the run that reads mail ``seq`` and to no other; None gives none (A-8).

        A run that was paused keeps its own when it goes on.

        Args:
            seq: Of mail in this session's mailbox that was just accepted; call it on the loop.
            inbox: From now on instead of the agent's.

        Raises:
            ConfigError: It is no inbox.
            TypeError: Its reader takes no positional argument.
        """
        check_inbox(inbox)
        self._overrides[seq] = inbox

    def inherit(self, caller: "Steering", helper: Helper | None, label: str = "") -> None:
        """Take over what the caller of a helper gives it; call it before the helper's first run.

        What its :class:`Helper` names counts first, None too; then the helper's own agent; then what
        steers the caller's run (A-44).

        Args:
            caller: Of the session that calls the helper.
            helper: What its agent gives this helper; None is nothing but the message.
            label: What the helper's runs are called; '' leaves its name.
        """
        self._label = label
        given = INHERITED if helper is None else helper.inbox
        self._above_own = given is not INHERITED
        self._given = caller.source if given is INHERITED else given

    def _chosen(self) -> Inbox | None:
        cursor = self._life.state.record.cursor
        if read := [seq for seq in self._overrides if seq <= cursor]:
            return self._overrides[max(read)]
        definition = self._life.defined()
        own: Inbox | None = definition.agent.inbox if definition else None
        return own if own is not None and not self._above_own else self._given

    # ── a run ──

    def begin(self) -> None:
        """Open the run's own reader, once its first mail is read and before its model is asked."""
        self._open(self._chosen())

    def _open(self, source: Inbox | None) -> None:
        self._source = source
        self._reader = None if source is None else ForeignReader(source, self.label)

    async def pump(self) -> None:
        """Accept what the inbox gives now, at a round boundary (A-5).

        Raises:
            StoreFailed: It could not be stored: that is no fault of the inbox (A-41).
        """
        if (chosen := self._chosen()) is not self._source:
            self._open(chosen)  # mail that was read meanwhile brought another
        if any(halts(envelope) for envelope in self._life.state.unread()):
            return  # the run is over: what is not drained the next one gets
        if await self._accept(self._kept) and self._reader is not None:
            await self._accept(self._reader.drain())

    async def _accept(self, texts: Sequence[str]) -> bool:
        """Accept ``texts`` in order; tell whether all were. What is refused is kept."""
        session = self._life.state.id
        for place, text in enumerate(texts):
            mail = Outgoing(session=session, sender=FromUser(), body=UserMessage(text))
            try:
                await self._room.router.deliver(mail)
            except MailRefused as refusal:
                self._kept = texts[place:]
                self._report_full(refusal)
                return False
        self._kept = ()
        return True

    def _report_full(self, refusal: MailRefused) -> None:
        if not self._told_full:
            self._told_full = True
            name, left = self._life.state.record.name, len(self._kept)
            self._life.report(
                "refused",
                f"{left} of the messages from the inbox of {name} did not get in: {refusal} "
                "They are kept, and tried again at its next round.",
                messages=list(self._kept),
            )

    def end(self) -> None:
        """Let the run's reader go; its override too, unless a pause only holds the run."""
        self._source = self._reader = None
        self._told_full = False
        record = self._life.state.record
        if record.end_reason is not EndReason.PAUSED:
            self._overrides = {s: i for s, i in self._overrides.items() if s > record.cursor}
