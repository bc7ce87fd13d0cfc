"""The one moment in which an agent may read its own owner inbox: while it works for its owner (I-15)."""

from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.envelope import Envelope, Notification
from postroom_runtime.contracts.ids import OWNER_INBOX, inbox_key
from postroom_runtime.mail.owner_inbox import OwnerInbox
from postroom_runtime.stepper.ownership import owner_driven
from postroom_runtime.stepper.receive_points import wake_word

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life


class OwnInbox:
    """What ``session-read("inbox")`` gives one session.

    Args:
        life: The session's life.
        inbox: The owner inboxes of the room.
    """

    def __init__(self, life: "Life", inbox: OwnerInbox) -> None:
        self._life, self._inbox = life, inbox

    def read(self, key: str, last: int) -> dict[str, Any] | None:
        """Return the last entries of its own agent's inbox as JSON.

        None where ``key`` means something else, and where it may not be read: whoever asks then gets
        the answer that a session which does not exist gives.
        """
        agent = self._life.state.record.agent
        if key not in (OWNER_INBOX, inbox_key(agent)) or not self._may():
            return None
        entries = self._inbox.entries(agent)
        return {
            "id": OWNER_INBOX,
            "agent": agent,
            "entries_in_all": len(entries),
            "entries": [_entry(entry) for entry in entries[max(0, len(entries) - last) :]],
        }

    def _may(self) -> bool:
        life = self._life
        definition = life.defined()
        if not life.running or definition is None:
            return False
        wake_on = frozenset(definition.agent.wake_on)
        return owner_driven(
            [turn for turn in life.state.turns if turn.index >= life.began],
            lambda mail: wake_word(mail, life.kind_of) in wake_on,
        )


def _entry(entry: Envelope) -> dict[str, Any]:
    body = entry.body
    told: dict[str, Any] = {"id": entry.id, "text": entry.text, "at": entry.accepted_at.isoformat()}
    if isinstance(body, Notification):
        told |= {"type": body.type, "metadata": dict(body.metadata)}
    return told
