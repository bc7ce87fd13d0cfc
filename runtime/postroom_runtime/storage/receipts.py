"""Which ids a room has accepted: the memory behind "sending it again changes nothing" (M-19)."""

import re
from collections import OrderedDict

from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.ids import MailId, SessionId, mail_id

_COUNTED = re.compile(r"m-([0-9a-f]{4,})")


def counted_number(id: MailId) -> int | None:
    """Return the number that ``id`` would have if the room had counted it out, else None."""
    match = _COUNTED.fullmatch(id)
    if match is None:
        return None
    number = int(match[1], 16)
    return number if mail_id(number) == id else None


class Receipts:
    """The first receipt of every recent id, by id, and among those of one id by session.

    Almost every id is in one mailbox only; such an id costs one entry and no second dict.
    """

    __slots__ = ("_of", "complete")

    def __init__(self) -> None:
        self._of: OrderedDict[MailId, Receipt | dict[SessionId, Receipt]] = OrderedDict()
        self.complete = True
        """Whether an id that is not here was never accepted."""

    def __len__(self) -> int:
        return len(self._of)

    def find(self, session: SessionId, id: MailId) -> Receipt | None:
        """Return the receipt of ``id`` in the mailbox of ``session``."""
        held = self._of.get(id)
        if held is None:
            return None
        if isinstance(held, dict):
            return held.get(session)
        return held if held.session == session else None

    def first(self, id: MailId) -> Receipt | None:
        """Return the receipt of ``id`` in the mailbox that accepted it first."""
        held = self._of.get(id)
        return next(iter(held.values()), None) if isinstance(held, dict) else held

    def add(self, receipt: Receipt) -> None:
        """Keep ``receipt`` as the newest."""
        id = receipt.id
        held = self._of.get(id)
        if held is None:
            self._of[id] = receipt
            return
        if not isinstance(held, dict):
            held = self._of[id] = {held.session: held}
        held[receipt.session] = receipt
        self._of.move_to_end(id)

    def drop(self, session: SessionId, id: MailId) -> None:
        """Take back what ``add`` kept."""
        held = self._of.get(id)
        if isinstance(held, dict) and len(held) > 1:
            del held[session]
        else:
            del self._of[id]

    def shrink(self, size: int) -> None:
        """Forget the oldest ids beyond ``size``."""
        while len(self._of) > size:
            self._of.popitem(last=False)
            self.complete = False
