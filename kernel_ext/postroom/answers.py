"""Find the answer to a mail in a transcript. Pure."""

from collections.abc import Sequence

from postroom_runtime.contracts.turn import EndReason, Role, Turn

_ANSWERS = (EndReason.ANSWER, EndReason.BUDGET)


def answer_to(turns: Sequence[Turn], seq: int) -> Turn | None:
    """Return the turn that ended the run in which a mail was read, if it ended with an answer.

    Args:
        turns: The whole transcript.
        seq: Of the mail.

    Returns:
        None when the mail is unread, the run goes on, or it ended another way.
    """
    read = False
    for turn in turns:
        if turn.role is Role.USER:
            read = read or any(envelope.seq == seq for envelope in turn.mail)
        elif read and turn.end_reason is not None:
            return turn if turn.end_reason in _ANSWERS else None
    return None
