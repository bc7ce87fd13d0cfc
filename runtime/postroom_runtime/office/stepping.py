"""Step mode in words: what a letter would do if it were let through now, and what a step did.

Pure: it is told how the reader stands, and looks at nothing.
"""

import html
import json
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import (
    CancelCalls,
    ContinuationResult,
    Control,
    Envelope,
    FromUser,
    Pause,
    Priority,
    Release,
    Resume,
    StopRun,
    ToolCallFinished,
    WatchedEvent,
)
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.contracts.session_record import SessionRecord
from postroom_runtime.stepper.reasons import why_it_waits
from postroom_runtime.stepper.receive_points import (
    WakeKindOf,
    interrupts,
    is_human,
    renders,
    starts_run,
)
from postroom_runtime.stepper.spending import Cap

HELD = "held: %step lets it through"
"""What a receipt says of a letter that waits for a step."""

_WORDS = 60
"""Characters of a letter that are shown."""


class Standing(StrEnum):
    """What a session does, as far as a step is concerned."""

    REST = "rest"
    """No run is under way or due, no call runs."""
    MAIL = "mail"
    """Its run waits for mail alone: for a result that is held, or in the tool ``wait``."""
    CALLS = "calls"
    """Calls run; the model is not asked before one of them ends, or mail comes."""
    WORKS = "works"
    """Its model thinks, or is about to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How the session stands whose letter it is."""

    record: SessionRecord
    standing: Standing
    running: bool
    """Whether a run is under way."""
    placeholders: Container[CallId]
    unread: Sequence[Envelope]
    """What was let through and is not read yet."""
    attached: tuple[CallId, ...] = ()
    """The calls that its turn waits for, but for those that wait for mail."""
    listening: tuple[CallId, ...] = ()
    """Its calls that wait for mail: ``wait`` and the like."""
    defined: bool = True
    """Whether its agent is defined in this kernel."""
    wake_on: Collection[str] = ()
    kind_of: WakeKindOf
    """What another session is to it, in the words of ``wake_on``."""
    resume_on_any_mail: bool = False
    interrupt_completions: bool = False
    max_autonomous_rounds: int = 0
    cap: Cap | None = None
    """The spending cap that it has reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A letter that is held, or was until now, and what letting it through does."""

    mail: Envelope
    sender: str
    """Who wrote it, as people call them."""
    reader: str
    """The name of the session it is for."""
    effect: str
    """What it does, in words."""

    @property
    def facts(self) -> str:
        """Its hops and its priority, where there is anything to say."""
        hops = self.mail.hops
        told = [f"{hops} hop{'s' * (hops != 1)}"] if hops else []
        if self.mail.lowered:
            told.append("interrupt lowered to normal")
        elif self.mail.priority is Priority.INTERRUPT:
            told.append("interrupt")
        return ", ".join(told)

    @property
    def words(self) -> str:
        """The first words of it, on one line."""
        match self.mail.body:
            case ToolCallFinished(tool=tool, state=state, response=response):
                return f"{tool} {state}: {_first(_as_text(response))}"
            case ContinuationResult(tool=tool, response=response):
                return f"{tool}: {_first(_as_text(response))}"
            case WatchedEvent(event=event, data=data):
                return f"watched {event} {_first(_as_text(data))}".rstrip()
            case Control(message=message):
                return message.tag.replace("_", " ")
            case _:
                return _first(self.mail.text)

    def __str__(self) -> str:
        """Return two lines: the letter, and what it does."""
        facts = f" ({self.facts})" if self.facts else ""
        letter = f"{_first(self.mail.id)}  {self.sender} → {self.reader}{facts}"
        return f"{letter}  {self.words}\n      {self.effect}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step let through, and what the next one would. Shows itself as a table or as text."""

    let_through: Preview | None
    """None: nothing was held, or the step only looked."""
    next: Preview | None
    """The letter that the next step lets through; None when none is held."""
    held: int
    """How many letters are held in the room."""
    working: tuple[str, ...] = ()
    """Names of the sessions that had not come to rest."""
    of: str = ""
    """The session the step was for; '' for the whole room."""

    @property
    def mail(self) -> Envelope | None:
        """The letter that was let through."""
        return self.let_through.mail if self.let_through else None

    @property
    def effect(self) -> str:
        """What it does, in words; '' when there was none."""
        return self.let_through.effect if self.let_through else ""

    @property
    def note(self) -> str:
        """What else there is to say: what is left, and who still works."""
        told = []
        if self.next is None:
            told.append(f"nothing waits for {self.of}" if self.of else "nothing waits")
        others = self.held - (self.next is not None)
        if others:
            told.append(f"{others} more letter{'s' * (others != 1)} held")
        if self.working:
            told.append(f"still working: {', '.join(self.working)}")
        return "; ".join(told)

    def __str__(self) -> str:
        """Return the letters, each with what it does, and the rest below."""
        shown = [str(self.let_through)] if self.let_through else []
        shown += [f"next: {self.next}"] if self.next else []
        return "\n".join([*shown, self.note] if self.note else shown)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [("let through", self.let_through), ("next", self.next)]
        body = "\n".join(_row(word, letter) for word, letter in rows if letter is not None)
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        if not body:
            return note
        head = "".join(_cell(name, "th") for name in ("", "mail", "", "", "text", "what it does"))
        return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>{note}"


def _row(word: str, letter: Preview) -> str:
    cells = (
        word,
        _first(letter.mail.id),
        f"{letter.sender} → {letter.reader}",
        letter.facts,
        letter.words,
        letter.effect,
    )
    return f"<tr>{''.join(_cell(cell, 'td') for cell in cells)}</tr>"


def _cell(text: str, tag: str) -> str:
    style = "text-align:left;vertical-align:top;overflow-wrap:break-word;max-width:40em"
    return f'<{tag} style="{style}">{html.escape(text)}</{tag}>'


def _first(text: str) -> str:
    """Return the first words of ``text`` on one line, with nothing that moves a cursor."""
    words = " ".join(text[: 4 * _WORDS].split())
    if len(words) > _WORDS or len(text) > 4 * _WORDS:
        words = f"{words[: _WORDS - 1].rstrip()}…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in words
    )


def _as_text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# ── what it does ──


def preview(mail: Envelope, reader: Reader, names: Mapping[str, str]) -> Preview:
    """Return what letting ``mail`` through would do now.

    Args:
        mail: Held in the mailbox of ``reader``.
        reader: How its session stands.
        names: Names of sessions by id.
    """
    return Preview(
        mail=mail,
        sender=_sender(mail, names),
        reader=reader.record.name,
        effect=_effect(mail, reader),
    )


def _sender(mail: Envelope, names: Mapping[str, str]) -> str:
    if isinstance(mail.sender, FromUser):
        return mail.sender.owner or "you"
    return names.get(mail.sender.id or "", mail.sender.id or str(mail.sender.kind))


def _effect(mail: Envelope, reader: Reader) -> str:
    name = reader.record.name
    if isinstance(mail.body, Control):
        return _order(mail.body)
    if not renders(mail, reader.placeholders):
        return "says nothing to the model"
    if not reader.defined:
        return (
            f"only waits: agent {reader.record.agent} is not defined in this kernel: run its cell"
        )
    if reader.running:
        return _in_run(mail, reader)
    if reader.cap is None and _starts(reader, reader.unread):
        return f"is read with what was let through before, in a run of {name} that is due"
    if why := _why_it_waits(mail, reader):
        return f"only {why}"
    if reader.record.rounds_since_human >= reader.max_autonomous_rounds and not is_human(mail):
        limit = reader.max_autonomous_rounds
        return f"is not read: {name} is capped after {limit} rounds without a word of yours"
    return f"starts a run of {name}"


def _starts(reader: Reader, unread: Sequence[Envelope]) -> bool:
    return starts_run(
        reader.record,
        unread,
        reader.placeholders,
        reader.wake_on,
        reader.kind_of,
        reader.resume_on_any_mail,
    )


def _why_it_waits(mail: Envelope, reader: Reader) -> str:
    return why_it_waits(
        reader.record,
        mail,
        reader.placeholders,
        reader.wake_on,
        reader.kind_of,
        reader.resume_on_any_mail,
        reader.cap,
    )


def _in_run(mail: Envelope, reader: Reader) -> str:
    later = "the next turn of the run under way"
    if interrupts(mail, reader.placeholders):
        if reader.attached:
            calls = ", ".join(reader.attached)
            goes = "it goes on" if len(reader.attached) == 1 else "they go on"
            return f"breaks off the wait on {calls} (detached, {goes}); is read in {later}"
        if reader.standing is Standing.WORKS and reader.interrupt_completions:
            return "breaks off what the model is saying: it is asked again, with this"
    if reader.attached:
        calls, ended = ", ".join(reader.attached), "has" if len(reader.attached) == 1 else "have"
        return f"is read in {later}, once {calls} {ended} ended"
    if reader.listening:
        return f"ends the wait of {', '.join(reader.listening)}; is read in {later}"
    return f"is read in {later}"


def _order(body: Control) -> str:
    match body.message:
        case StopRun():
            return "orders a stop"
        case Pause():
            return "orders a pause"
        case Resume():
            return "lets it run again"
        case CancelCalls(ids=ids):
            return f"cancels {', '.join(ids)}"
        case Release(decision=decision):
            return f"tells that an approval was {decision}"
        case other:
            return f"says nothing to the model ({other.tag.replace('_', ' ')})"


# ── how a session stands ──


def standing(
    *,
    idle: bool,
    running: bool,
    lingering: bool,
    attending: bool,
    news: bool,
    open_calls: Sequence[Call],
    listens: Container[CallId],
) -> Standing:
    """Return what a session does, as far as a step is concerned.

    Args:
        idle: No run is under way or due, and no call runs.
        running: A run is under way.
        lingering: Its run has said what it had to say, and waits for what runs in the background.
        attending: Its last turn is one that calls, whose results are not stored.
        news: Mail was let through that the run has not read.
        open_calls: Its calls that have not ended.
        listens: Those of them that wait for mail.
    """
    if idle:
        return Standing.REST
    if not running:
        return Standing.CALLS if open_calls and not news else Standing.WORKS
    if news or not (lingering or (attending and open_calls)):
        return Standing.WORKS
    return Standing.MAIL if all(call.id in listens for call in open_calls) else Standing.CALLS
