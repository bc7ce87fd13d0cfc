"""The verbs of a room about its owner inboxes: tell the owner something, and read what was told."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, cast

from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.mail.channels import Channels
from postroom_runtime.mail.owner_inbox import OwnerInbox
from postroom_runtime.office.discussing import discuss
from postroom_runtime.office.feed import OWNER, Feed
from postroom_runtime.office.pushing import Pushing
from postroom_runtime.office.roster import Roster
from postroom_runtime.office.verbs import RoomVerbs

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


class InboxVerbs(RoomVerbs):
    """What a room does with owner inboxes; :class:`Room` is the rest."""

    roster: Roster
    owner_inbox: OwnerInbox
    pushing: Pushing

    @property
    def channels(self) -> Channels:
        """Second ways to the owner, by the names that agents' ``notifications`` use (I-21)."""
        return self.pushing.channels

    def notify(
        self,
        agent: str,
        content: str,
        *,
        metadata: Mapping[str, Json] | None = None,
        actions: Sequence[Json] | None = None,
    ) -> Receipt:
        """Write an entry in the owner inbox of ``agent`` (I-19).

        It is stored, then told to those who listen, then pushed to the agent's channels. One call
        is one entry: nothing is batched and nothing refused (I-35).

        Args:
            agent: Its slug.
            content: What happened, in words.
            metadata: JSON facts about it.
            actions: What the owner may do about it; an empty list is written too, None is not.

        Raises:
            ConfigError: No such agent, or the content is no text.
        """
        self.check_open()
        if self.roster.get(agent) is None and not self.owner_inbox.exists(agent):
            self.roster.named(agent)
        return self.owner_inbox.write(agent, content, metadata=metadata, actions=actions).result()

    def inbox(self, agent: str | None = None) -> Feed:
        """Return the owner inbox of ``agent``, or those of all agents as one feed.

        Raises:
            ConfigError: No such agent; names a near match.
        """
        return self.feed(agent, OWNER)

    def feed(self, agent: str | None, viewer: str) -> Feed:
        """Return the same as ``viewer`` sees it: with that viewer's own cursor."""
        room = cast("Room", self)
        if agent is None:
            return Feed(room, self.owner_inbox.agents, viewer=viewer)
        if not self.owner_inbox.exists(agent):
            owners = self.owner_inbox.agents()
            near = get_close_matches(str(agent), owners, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(owners)}."
            raise ConfigError(f"no agent {agent!r} has an inbox. {hint}", value=agent)
        return Feed(room, lambda: (agent,), agent, viewer)

    def discuss(self, entry: Envelope | str, *, name: str | None = None) -> "Session":
        """Start a session of the agent an entry is about, with the entry as its first message (I-40).

        Nothing of an owner inbox reaches an agent by itself; this does, because its owner says so.
        The same entry again is the same session, as long as that is open.

        Args:
            entry: One of :meth:`inbox`, or its id.
            name: What to call the session; default ``AGENT-about-N``.

        Raises:
            ConfigError: It is no entry of an owner inbox, or its agent is not defined here.
        """
        self.check_open()
        return discuss(cast("Room", self), entry, name)
