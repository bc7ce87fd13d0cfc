"""An inbox that is not ours: what its reader gives is checked, and becomes mail of the session.

Whatever it does, the run goes on (A-41): a reader that fails, or gives anything but texts, is told
of once and asked no more in this run.
"""

import inspect
import logging
import time
from collections.abc import Callable
from typing import Any

from postroom_runtime.contracts.inbox import Inbox

log = logging.getLogger("postroom")

NO_READER = "The inbox of %s could not open a reader: %s. The run goes on without one."
NO_DRAIN = "The inbox of %s failed: %s. The run goes on without it."
SLOW = (
    "Draining the inbox of %s took %.0f ms, on the loop that runs everything here. "
    "A drain must not block: keep the messages ready, and let another thread fetch them."
)

SLOW_AFTER = 0.05
"""Seconds a drain may take before a warning (A-6)."""


def check_reader(inbox: Any) -> None:
    """Refuse a reader that no run could open: its signature is bound as a run would, not called.

    One whose signature cannot be read passes: that is no sign of a wrong one (A-36).

    Args:
        inbox: An inbox, or None.

    Raises:
        TypeError: It takes no positional argument, or wants more than one (A-35).
    """
    if inbox is None:
        return
    try:
        # What it returns is not what is wrong with it.
        signature = inspect.signature(inbox.reader).replace(
            return_annotation=inspect.Signature.empty
        )
    except (TypeError, ValueError):
        return
    try:
        signature.bind("agent")
    except TypeError as error:
        kind = inbox if isinstance(inbox, type) else type(inbox)
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__}.reader{signature} cannot be called the way an "
            "agent's loop calls it: reader(agent), passing the name of the run opening the reader "
            "as one positional argument. Widen the signature in the class body, "
            "`def reader(self, agent=None)`, and ignore the name if it is of no use."
        ) from error


class ForeignReader:
    """What one run reads of one inbox. Opened by making it, once, at the run's start (A-4).

    Args:
        inbox: The source.
        label: What the run is called, handed on to it (A-32).
        clock: Seconds that go on, to see how long a drain takes.
    """

    def __init__(
        self, inbox: Inbox, label: str, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._label, self._clock = label, clock
        self._told_slow = False
        self._drain: Callable[[], Any] | None = None
        try:
            drain: Any = inbox.reader(label)
            if not callable(drain):
                raise TypeError(f"reader(agent) has to return a function, not {_a(drain)}")
            self._drain = drain
        except Exception as error:  # whoever wrote it: a run that works must not end for it
            self._give_up(NO_READER, error)

    @property
    def works(self) -> bool:
        """Whether it is still asked."""
        return self._drain is not None

    def drain(self) -> list[str]:
        """Return what came since the last time, oldest first, without blank ones; never raises."""
        if self._drain is None:
            return []
        began = self._clock()
        try:
            found = texts_of(self._drain())
        except Exception as error:  # as above
            self._give_up(NO_DRAIN, error)
            return []
        took = self._clock() - began
        if took > SLOW_AFTER and not self._told_slow:
            self._told_slow = True
            log.warning(SLOW, self._label, took * 1000)
        return found

    def _give_up(self, words: str, error: Exception) -> None:
        self._drain = None
        log.warning(words, self._label, f"{type(error).__name__}: {error}", exc_info=error)


def texts_of(given: Any) -> list[str]:
    """Return the messages in what a drain gave, stripped, without blank ones (A-16).

    Half a sign at the end of a cut text becomes U+FFFD.

    Raises:
        TypeError: It gave no list or tuple of texts. A bare text is refused too: taken for a list it
            would be a message per letter (A-39).
    """
    if not isinstance(given, (list, tuple)):
        if inspect.iscoroutine(given):
            given.close()  # or it is complained of once more, as never awaited
        raise TypeError(f"a drain has to return a list of texts, not {_a(given)}")
    for text in given:
        if not isinstance(text, str):
            raise TypeError(f"a drain has to return texts, and one of them is {_a(text)}")
    return [whole for text in given if (whole := _whole(text).strip())]


def _whole(text: str) -> str:
    # Half a sign, as a cut text may end with, could be stored nowhere and would end the run.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _a(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:59] + '…'}"
