"""Timers: mail that comes when its time has (M-1, M-94): user-shaped, from the system, never human."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

from postroom_runtime.contracts.envelope import FromSystem, Outgoing, UserMessage
from postroom_runtime.contracts.errors import ConfigError, PostroomError
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.mail.router import Posted, Router

log = logging.getLogger("postroom")

SHORTEST: Final = 0.01
"""Seconds between two letters of one timer, at least."""

LONGEST: Final = 366 * 24 * 3600.0
"""Seconds until a letter, at most."""


@dataclass(slots=True, kw_only=True, eq=False)
class Timer:
    """One timer, as ``room.after`` and ``room.every`` give it. ``cancel`` may come from any thread."""

    id: str
    session: SessionId
    """Whose mailbox it writes to."""
    session_name: str
    text: str
    seconds: float
    """Until its first letter, and between two."""
    times: int | None
    """How many letters in all; None for no end."""
    repeats: bool
    sent: int = 0
    """Letters that were accepted."""
    refused: int = 0
    """Letters that were not, its mailbox being full, say; the timer goes on."""
    why_refused: str = ""
    """The last refusal, in words."""
    due: int = 0
    """Letters whose time has come, accepted or not."""
    active: bool = True
    """Whether there is another letter to come."""
    _over: Callable[["Timer"], None] = field(repr=False)

    def cancel(self) -> bool:
        """End it; tell whether it was still under way. What it has sent stays sent."""
        was = self.active
        self.active = False
        self._over(self)
        return was

    def __str__(self) -> str:
        """Return ``t-0001 → ann every 60 s, 3 sent``."""
        when = f"every {self.seconds:g} s" if self.repeats else f"after {self.seconds:g} s"
        of = f" of {self.times}" if self.repeats and self.times is not None else ""
        refused = f", {self.refused} refused" if self.refused else ""
        over = "" if self.active else ", over"
        return f"{self.id} → {self.session_name} {when}, {self.sent}{of} sent{refused}{over}"

    __repr__ = __str__


def check_seconds(seconds: Any, least: float) -> float:
    """Return a number of seconds.

    Raises:
        ConfigError: It is none, or less than ``least``, or over a year.
    """
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if number and least <= seconds <= LONGEST:
        return float(seconds)
    raise ConfigError(
        f"seconds={seconds!r} will not do: give a number of seconds, at least {least:g}, "
        f"at most {LONGEST:.0f} (a year).",
        value=seconds,
    )


def check_times(times: Any) -> int | None:
    """Return how many letters a timer sends.

    Raises:
        ConfigError: Not a whole number from 1, nor None.
    """
    if times is None:
        return None
    if isinstance(times, int) and not isinstance(times, bool) and times >= 1:
        return times
    raise ConfigError(
        f"times={times!r} will not do: give a whole number, at least 1, or None for no end.",
        value=times,
    )


def check_text(text: Any) -> str:
    """Return what a timer says.

    Raises:
        ConfigError: No text, or a blank one, which nobody would read.
    """
    if isinstance(text, str) and text.strip():
        return text
    raise ConfigError(f"text={text!r} will not do: a timer says something, as a text.", value=text)


class Timetable:
    """The timers of a room. ``add`` and ``all`` may be called from any thread; the rest on the loop.

    Args:
        router: The room's.
        hop: Runs a function on the loop, from any thread.
        task: Runs work on the loop.
        next_id: Counts out the id of a new timer.
    """

    def __init__(
        self,
        router: Router,
        hop: Callable[..., None],
        task: Callable[[Coroutine[Any, Any, Any], str], object],
        next_id: Callable[[], str],
    ) -> None:
        self._router, self._hop, self._task, self._next_id = router, hop, task, next_id
        self._table: dict[str, Timer] = {}
        self._handles: dict[str, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None

    def add(
        self,
        session: SessionId,
        name: str,
        text: str,
        seconds: float,
        *,
        times: int | None,
        repeats: bool,
    ) -> Timer:
        """Start a timer; what it is given has been checked."""
        timer = Timer(
            id=self._next_id(),
            session=session,
            session_name=name,
            text=text,
            seconds=seconds,
            times=times,
            repeats=repeats,
            _over=self._over,
        )
        self._table[timer.id] = timer
        self._hop(self._start, timer)
        return timer

    def all(self) -> list[Timer]:
        """Return the timers under way, oldest first."""
        return [timer for timer in tuple(self._table.values()) if timer.active]

    def end_with(self, session: SessionId) -> None:
        """Cancel the timers of a session that is closed."""
        for timer in self.all():
            if timer.session == session:
                timer.cancel()

    def close(self) -> None:
        """Cancel all timers."""
        for timer in self.all():
            timer.cancel()

    def attach(self, loop: asyncio.AbstractEventLoop, context: Context | None) -> None:
        """Live on ``loop`` from now on. Timers set before start here; on a new loop they start over."""
        self._loop, self._context = loop, context
        self._handles.clear()
        for timer in self.all():
            self._start(timer)

    def _over(self, timer: Timer) -> None:
        self._table.pop(timer.id, None)
        self._hop(self._ended, timer.id)

    def _ended(self, id: str) -> None:
        if (handle := self._handles.pop(id, None)) is not None:
            handle.cancel()

    def _start(self, timer: Timer) -> None:
        if self._loop is not None:
            self._arm(timer, self._loop, self._loop.time() + timer.seconds)

    def _arm(self, timer: Timer, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if timer.active:
            self._handles[timer.id] = loop.call_at(
                when, self._due, timer, loop, when, context=self._context
            )

    def _due(self, timer: Timer, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if not timer.active:
            return
        timer.due += 1
        last = timer.times is not None and timer.due >= timer.times
        outgoing = Outgoing(
            session=timer.session,
            sender=FromSystem(f"timer:{timer.id}"),
            body=UserMessage(timer.text),
        )
        try:
            posted = self._router.deliver(outgoing)
        except PostroomError as refusal:
            timer.refused, timer.why_refused = timer.refused + 1, str(refusal)
        else:
            self._task(_settle(timer, posted), f"{timer.id}:{timer.due}")
        if last:
            timer.cancel()
        else:
            # By the plan, not by when it was done, so that it does not drift; what a loop that was
            # held up has missed is made up for by one letter.
            self._arm(timer, loop, max(when + timer.seconds, loop.time()))


async def _settle(timer: Timer, posted: Posted) -> None:
    try:
        await posted
    except PostroomError as refusal:
        timer.refused, timer.why_refused = timer.refused + 1, str(refusal)
        log.info("%s was refused: %s", timer, refusal)
    else:
        timer.sent += 1
