"""The verbs of a room that send mail later: ``after`` and ``every``."""

from typing import TYPE_CHECKING

from postroom_runtime.office.timers import (
    SHORTEST,
    Timer,
    Timetable,
    check_seconds,
    check_text,
    check_times,
)
from postroom_runtime.office.verbs import RoomVerbs

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session


class TimerVerbs(RoomVerbs):
    """What a room does with timers; :class:`Room` is the rest."""

    timetable: Timetable

    def after(self, seconds: float, session: "Session | str", text: str) -> Timer:
        """Send ``text`` to ``session`` in ``seconds``; from any thread.

        A timer's mail is from the system: it wakes as ``tool`` does and is no word of a person, so it
        resets neither hops nor rounds. It lives in memory and is cancelled with its session.

        Args:
            seconds: From now, 0 for as soon as the loop gets to it.
            session: A session or its name.
            text: What it will read.

        Raises:
            ConfigError: A number or a text that will not do.
            UnknownRecipient: No such session is open.
        """
        given = check_seconds(seconds, 0)
        return self._timer(session, text, given, times=1, repeats=False)

    def every(
        self, seconds: float, session: "Session | str", text: str, times: int | None = None
    ) -> Timer:
        """Send ``text`` to ``session`` every ``seconds``, the first time in ``seconds``.

        Mail that is refused (a full mailbox) is counted, and the timer goes on. See :meth:`after`.

        Args:
            seconds: Between two letters, at least 0.01.
            session: A session or its name.
            text: What it will read.
            times: How many letters in all, refused ones too; None for no end.
        """
        given = check_seconds(seconds, SHORTEST)
        return self._timer(session, text, given, times=check_times(times), repeats=True)

    def timers(self) -> list[Timer]:
        """Return the timers under way, oldest first."""
        return self.timetable.all()

    def _timer(
        self,
        session: "Session | str",
        text: str,
        seconds: float,
        *,
        times: int | None,
        repeats: bool,
    ) -> Timer:
        self.check_open()
        said = check_text(text)
        found = self._open(session)
        timer = self.timetable.add(
            found.id, found.name, said, seconds, times=times, repeats=repeats
        )
        self.hop(self.attach)
        return timer
