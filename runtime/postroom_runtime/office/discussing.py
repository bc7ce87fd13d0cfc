"""Talk with an agent about an entry of its owner inbox: the owner's own act, so I-2 holds (I-40)."""

import json
from typing import TYPE_CHECKING

from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import inbox_agent, is_inbox_key

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session

_SLUG = 40
"""Characters of an agent's slug that the name of such a session has."""

_NOT_SAID = ("actions", "type")


def discuss(room: "Room", entry: Envelope | str, name: str | None) -> "Session":
    """See :meth:`Room.discuss`."""
    found = _entry(room, entry)
    agent = inbox_agent(found.session)
    called = name if name is not None else f"{agent[:_SLUG]}-about-{found.seq}"
    return room.spawn(agent, first_words(found), name=called)


def _entry(room: "Room", entry: Envelope | str) -> Envelope:
    if isinstance(entry, Envelope) and is_inbox_key(entry.session):
        return entry
    id = entry.id if isinstance(entry, Envelope) else entry
    known = [each for each in room.inbox().history() if each.id == id]
    if known and not isinstance(entry, Envelope):
        return known[-1]
    raise ConfigError(
        f"{id!r} is no entry of an owner inbox: give one of room.inbox(), or its id (%inbox).",
        value=entry,
    )


def first_words(entry: Envelope) -> str:
    """Return the first message of a session about ``entry``: what it says, and the facts with it."""
    said = f"I would like to talk about this notice of yours:\n\n{entry.text}"
    body = entry.body
    facts = dict(body.metadata or {}) if isinstance(body, Notification) else {}
    told = {key: value for key, value in facts.items() if key not in _NOT_SAID}
    return f"{said}\n\n{json.dumps(told, ensure_ascii=False, indent=2)}" if told else said
