"""Second ways to reach the owner: what is pushed, what a channel is, and which a room has (I-21…I-24).

The owner inbox itself is the first way and has no opt-out. A channel gets a copy, as well as it can.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import OWNER_INBOX, check_name, inbox_agent

PUSH_SECONDS: Final = 10.0
"""How long one push may take on a channel that does not say so itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One entry of an owner inbox on its way to a channel (I-24)."""

    session_id: str
    """``inbox``: what the owner inbox is called everywhere."""
    to: str
    """The channel, as the room and the agent call it."""
    text: str
    actions: Sequence[Json]
    """What the owner may do about it; empty where nothing was given."""
    type: str
    """Of the entry: ``notification``, ``approval``, ``failed`` …"""
    agent: str
    at: datetime
    """When the entry was written, UTC."""
    id: str = ""
    """The entry's id: the same in each try, so that a receiver can drop what it has already."""

    def to_json(self) -> dict[str, Json]:
        """Return it as plain JSON values, without the id."""
        return {
            "session_id": self.session_id,
            "to": self.to,
            "text": self.text,
            "actions": list(self.actions),
            "type": self.type,
            "agent": self.agent,
            "at": self.at.isoformat(),
        }


class Channel(Protocol):
    """Takes pushes. It may raise, hang and be slow: nobody but itself is the worse for it (I-23).

    An attribute ``seconds`` says how long one push may take; without one it is 10 s.
    """

    async def send(self, push: Push) -> None:
        """Deliver one push; runs on the room's loop and must not block it."""
        ...


def push_of(entry: Envelope, channel: str) -> Push:
    """Return what is pushed of an ``entry`` to the channel of that name."""
    body = entry.body if isinstance(entry.body, Notification) else Notification(entry.text)
    return Push(
        session_id=OWNER_INBOX,
        to=channel,
        text=entry.text,
        actions=body.metadata.get("actions") or (),
        type=body.type,
        agent=inbox_agent(entry.session),
        at=entry.accepted_at,
        id=entry.id,
    )


class Channels(MutableMapping[str, Channel]):
    """The channels of a room, by the names that agents use: ``room.channels["ops"] = …``.

    Args:
        changed: Called after each change.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._table: dict[str, Channel] = {}

    def __getitem__(self, name: str) -> Channel:
        return self._table[name]

    def __setitem__(self, name: str, channel: Channel) -> None:
        """Give the room a channel.

        Raises:
            ConfigError: The name will not do, or it is no channel.
        """
        check_name(name, "channel")
        if isinstance(channel, type) or not callable(getattr(channel, "send", None)):
            raise ConfigError(
                f"channels[{name!r}]={channel!r} is no channel: give a pr.Webhook, a "
                "pr.CommandChannel, or an object with `async def send(self, push)`.",
                value=channel,
            )
        self._table[name] = channel
        self._changed()

    def __delitem__(self, name: str) -> None:
        del self._table[name]
        self._changed()

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._table))

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"channels: {', '.join(self._table) or 'none'}"


def targets(notifications: Mapping[str, Any] | None) -> list[str]:
    """Return the channels that an agent's ``notifications`` name, each once (I-34)."""
    return list(dict.fromkeys((notifications or {}).get("channels", ())))
