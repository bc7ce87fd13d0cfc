"""Why mail waits, in the words of a receipt: pure, and of one mind with ``starts_run``."""

from collections.abc import Container

from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.stepper.receive_points import (
    WakeKindOf,
    renders,
    resumes,
    starts_run,
    wake_word,
)
from postroom_runtime.stepper.spending import Cap


def not_woken(name: str, word: str) -> str:
    """Return that ``word`` is none of those on which the session ``name`` wakes."""
    return f"waits: wake_on of {name} has no {word!r}"


def why_it_waits(
    record: SessionRecord,
    mail: Envelope,
    placeholders: Container[CallId],
    wake_on: Container[str],
    kind_of: WakeKindOf,
    resume_on_any_mail: bool = False,
    cap: Cap | None = None,
) -> str:
    """Return why ``mail`` starts no run, and what would; '' when it does, or says nothing.

    Args:
        record: The recipient, at rest.
        mail: What was just accepted.
        placeholders: Calls whose tool message was a placeholder.
        wake_on: Whose mail wakes it.
        kind_of: Gives the word of ``wake_on`` for another session.
        resume_on_any_mail: Whether mail that would wake it also un-pauses it.
        cap: The spending cap it has reached: then no mail is read, whoever wrote it.
    """
    if not renders(mail, placeholders) and not (resumes(mail) and cap):
        return ""
    name = record.name
    if cap is not None:
        return f"waits: {cap.words(name, record.agent)}"
    if starts_run(record, [mail], placeholders, wake_on, kind_of, resume_on_any_mail):
        return ""
    match record.status:
        case SessionStatus.CLOSED:
            return ""
        case SessionStatus.PAUSED if not resume_on_any_mail:
            return f"waits: {name} is paused; %resume {name} lets it go on"
        case SessionStatus.READY:
            return f"waits: {name} is stored; it runs when its owner writes to it (%resume {name})"
        case SessionStatus.CAPPED:
            return f"waits: {name} is capped; a word from its owner lets it go on"
    if record.end_reason is EndReason.STOPPED:
        return f"waits: {name} was stopped; a word from its owner lets it go on (%resume {name})"
    if (word := wake_word(mail, kind_of)) not in wake_on:
        return not_woken(name, word)
    return f"waits: {name} is {record.status} until newer mail or %resume {name}"
