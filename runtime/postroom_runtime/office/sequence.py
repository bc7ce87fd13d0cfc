"""What happened between the sessions of a room, as one ordered list: the core of its pictures.

Pure: journal rows in, a frozen :class:`Diagram` out. The same rows give the same diagram, and a
renderer needs nothing else.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import CallId, SessionId

OWNER: Final = ""
"""The id of the owner's lifeline; no session has it."""

OWNER_NAME: Final = "you"

LAST: Final = 200
"""Marks a picture shows unless asked for more: what one can still read."""


class MarkKind(StrEnum):
    """What a mark in a sequence diagram stands for; the words ``kinds=`` takes."""

    MAIL = "mail"
    """A letter, of the owner or of a session."""
    REPLY = "reply"
    """A letter that answers another."""
    INTERRUPT = "interrupt"
    """A letter that breaks off what its reader waits for, or asked to and was lowered."""
    ANSWER = "answer"
    """How a run ended that read a word of the owner: the owner reads it, nobody was sent it."""
    CONTROL = "control"
    """Pause, resume, stop, cancel."""
    SPAWN = "spawn"
    CLOSE = "close"
    CALL = "call"
    """A tool call; its bar goes from start to end."""
    RESULT = "result"
    """The result of a detached call, come back as mail."""
    REFUSED = "refused"
    """A letter a session wrote that was not accepted."""
    APPROVAL = "approval"
    """A question to the owner, and what became of it."""
    WATCHED = "watched"
    """Something a watched session did, told to its watcher."""
    TIMER = "timer"
    SYSTEM = "system"
    """Other mail of the runtime."""
    FAILED = "failed"
    """A run that failed, or was capped."""


class Tone(StrEnum):
    """What a mark's colour says: who speaks, or what wants the owner."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    NOW = "now"
    BAD = "bad"
    OK = "ok"
    SYS = "sys"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifeline:
    """The owner, or one session."""

    id: SessionId
    name: str
    agent: str = ""
    parent: SessionId | None = None
    born: int = 0
    """Number of the row that made it; 0 for the owner."""
    closed: int | None = None
    """Number of the row that closed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing that happened. ``source`` and ``target`` are ids of lifelines, perhaps the same."""

    n: int
    """Number of its journal row: the commit order of the room."""
    at: datetime
    kind: MarkKind
    source: SessionId
    target: SessionId
    label: str
    """What stands on the arrow, on one line, uncut."""
    text: str = ""
    """All of it: what was said, why it was refused."""
    id: str = ""
    """Of the mail, the call or the approval."""
    tone: Tone = Tone.SYS
    unread: bool = False
    flags: tuple[str, ...] = ()
    """What else is to be told: ``re m-0003``, ``lowered``, ``expects reply``."""
    re: str = ""
    """The mail it answers."""
    hops: int = 0
    turn: int = 0
    """The turn of its reader that it was read into; 0: none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One tool call in time, in numbers of rows; None: not yet, or never."""

    call: CallId
    session: SessionId
    tool: str
    begun: int
    detached: int | None = None
    ended: int | None = None
    state: str = ""
    returned: int | None = None
    """The row of the mail its result came back in, once detached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a session, in numbers of rows."""

    session: SessionId
    begun: int
    ended: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Who took part, in order of first appearance, the owner first; and what happened, in order."""

    lifelines: tuple[Lifeline, ...] = ()
    marks: tuple[Mark, ...] = ()
    bars: tuple[Bar, ...] = ()
    runs: tuple[Run, ...] = ()
    left_out: int = 0
    """How many earlier marks ``last`` has cut off."""

    def line(self, id: SessionId) -> Lifeline | None:
        """Return the lifeline with that id."""
        return next((line for line in self.lifelines if line.id == id), None)


def select(
    whole: Diagram,
    *,
    sessions: Collection[SessionId] | None = None,
    kinds: Collection[MarkKind] | None = None,
    last: int | None = LAST,
    since: int = 0,
) -> Diagram:
    """Return the part of a diagram that is asked for; lifelines nothing shown touches go.

    Args:
        whole: All of a room.
        sessions: Ids of lifelines; a mark is shown that starts or ends at one.
        kinds: What to show.
        last: How many marks at most, the latest ones; None for all.
        since: Only marks of rows after this one.
    """
    shown = [
        mark
        for mark in whole.marks
        if mark.n > since
        and (kinds is None or mark.kind in kinds)
        and (sessions is None or mark.source in sessions or mark.target in sessions)
    ]
    over = 0 if last is None else max(0, len(shown) - last)
    shown = shown[over:]
    touched = {mark.source for mark in shown} | {mark.target for mark in shown}
    first = shown[0].n if shown else None

    def lives(begun: int, ended: int | None) -> bool:
        return first is not None and (begun >= first or ended is None or ended >= first)

    calls = kinds is None or MarkKind.CALL in kinds
    return replace(
        whole,
        lifelines=tuple(line for line in whole.lifelines if line.id in touched),
        marks=tuple(shown),
        bars=tuple(
            bar
            for bar in whole.bars
            if calls
            and bar.session in touched
            and (sessions is None or bar.session in sessions)
            and lives(bar.begun, _last_of(bar))
        ),
        runs=tuple(r for r in whole.runs if r.session in touched and lives(r.begun, r.ended)),
        left_out=over,
    )


def _last_of(bar: Bar) -> int | None:
    return bar.ended if bar.returned is None else max(bar.returned, bar.ended or 0)


def named(whole: Diagram, wanted: object) -> set[SessionId]:
    """Return the ids of the lifelines that ``sessions=`` means: names, ids or sessions.

    A name that several sessions had, one after the other, means them all. ``you`` is the owner,
    unless a session is called so.

    Raises:
        ConfigError: None goes by one of them; tells near matches.
    """
    found: set[SessionId] = set()
    for each in _each(wanted):
        key = getattr(each, "id", each)
        ids = {line.id for line in whole.lifelines if line.id and key in (line.id, line.name)}
        if not ids and key == OWNER_NAME:
            ids = {OWNER}
        if not ids:
            known = [line.name for line in whole.lifelines if line.id]
            raise ConfigError(
                f"sessions={each!r}: no session of this room goes by that. "
                f"{_meant(key, known) or 'Give names, ids or sessions, as %sessions lists them.'}",
                value=each,
            )
        found |= ids
    return found


def known_kinds(wanted: object) -> set[MarkKind]:
    """Return what ``kinds=`` means.

    Raises:
        ConfigError: One is no :class:`MarkKind`; tells near matches and all there are.
    """
    words = [str(kind) for kind in MarkKind]
    found: set[MarkKind] = set()
    for each in _each(wanted):
        if each not in words:
            raise ConfigError(
                f"kinds={each!r} is nothing a sequence diagram shows. "
                f"{' '.join(filter(None, [_meant(each, words), 'There is: ' + ', '.join(words)]))}.",
                value=each,
            )
        found.add(MarkKind(str(each)))
    return found


def whole_number(name: str, value: object, least: int) -> int:
    """Return ``value`` if it is a whole number, ``least`` or more.

    Raises:
        ConfigError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(
            f"{name}={value!r} will not do: give a whole number, {least} or more, or None.",
            value=value,
        )
    return value


def _each(wanted: object) -> list[object]:
    if isinstance(wanted, Iterable) and not isinstance(wanted, str):
        return list(wanted)
    return [wanted]


def _meant(word: object, known: list[str]) -> str:
    near = get_close_matches(word, known, n=3, cutoff=0.5) if isinstance(word, str) else []
    return f"Did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?" if near else ""
