"""Whose word a run is the answer to; pure (I-15)."""

from collections.abc import Callable, Sequence

from postroom_runtime.contracts.envelope import Envelope, FromUser, UserMessage
from postroom_runtime.contracts.turn import Role, Turn


def owner_driven(turns: Sequence[Turn], wakes: Callable[[Envelope], bool]) -> bool:
    """Tell whether a run was started by its owner and has heard no other person since.

    Whatever is not certain counts as no: a run that began without mail (a resumed one), one in whose
    first turn anything else stands that could have started it, one that has read a word of another
    person, of a timer, or of anybody else who writes as people do.

    Args:
        turns: Those of the run, from its first.
        wakes: Tells whether mail of that kind starts runs of the session.
    """
    if not turns or turns[0].role is not Role.USER:
        return False
    first = turns[0].mail
    if not any(_of_owner(mail) for mail in first):
        return False
    if any(wakes(mail) and not _of_owner(mail) for mail in first):
        return False
    said = (mail for turn in turns for mail in turn.mail if isinstance(mail.body, UserMessage))
    return all(_of_owner(mail) for mail in said)


def _of_owner(mail: Envelope) -> bool:
    return (
        isinstance(mail.sender, FromUser)
        and mail.sender.owner is None
        and isinstance(mail.body, UserMessage)
    )
