"""Which ids a room has accepted: the memory behind "sending it again changes nothing" (M-19)."""

import re
from typing import TypeAlias

from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.contracts.ids import MailId, SessionId, mail_id

_COUNTED = re.compile(r"m-([0-9a-f]{4,})")


def counted_number(id: MailId) -> int | None:
    """Return the number that ``id`` would have if the room had counted it out, else None."""
    match = _COUNTED.fullmatch(id)
    if match is None:
        return None
    number = int(match[1], 16)
    return number if mail_id(number) == id else None


Stamp: TypeAlias = Envelope | Receipt
"""What tells how a mail was first accepted: ``id``, ``seq``, ``session``, ``priority``, ``lowered``."""


class Receipts(dict[MailId, "Stamp | dict[SessionId, Stamp]"]):
    """How every known id was first accepted, by id, and among those of one id by session.

    Almost every id is in one mailbox only; such an id costs one entry and no second dict.
    """

    complete = True
    """Whether an id that is not here was never accepted."""

    def find(self, session: SessionId, id: MailId) -> Stamp | None:
        """Return what was accepted under ``id`` in the mailbox of ``session``."""
        held = self.get(id)
        if isinstance(held, dict):
            return held.get(session)
        return held if held is not None and held.session == session else None

    def first(self, id: MailId) -> Stamp | None:
        """Return what was accepted under ``id`` in the mailbox that accepted it first."""
        held = self.get(id)
        return next(iter(held.values()), None) if isinstance(held, dict) else held

    def add(self, stamp: Stamp) -> None:
        """Keep ``stamp``, the first of its id in its mailbox."""
        held = self.setdefault(stamp.id, stamp)
        if held is not stamp:
            if not isinstance(held, dict):
                held = self[stamp.id] = {held.session: held}
            held[stamp.session] = stamp

    def drop(self, session: SessionId, id: MailId) -> None:
        """Forget what ``add`` kept."""
        held = self[id]
        if isinstance(held, dict) and len(held) > 1:
            del held[session]
        else:
            del self[id]
