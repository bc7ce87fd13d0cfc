"""Scripts: models written in Python, for lessons and tests.

A script is a function of the turn it should answer::

    @script
    def echo(turn):
        return f"echo: {turn.text}"

    @script
    def careful(turn):
        report = yield call("run_tests", suite="fast")
        a, b = yield [call("slow", n=1), call("slow", n=2)]
        yield call("send-message", to=turn.mail[0].sender.id, text=report)
        return "done"

* A plain or ``async`` function is called once per model turn and returns a text, None (a degenerate
  turn), a ``call(…)`` or a list of them, whose results it finds in ``turn.results`` next time.
* A generator, plain or async, yields its calls: a model turn ends at each ``call(…)`` or list of
  them, and the generator goes on in the next one with the result, or a list of results in that
  order. A result is a text, or the parsed value where the tool message is a JSON object or array;
  a failed call gives its failure text. A list without calls goes on at once, with ``[]``.
* ``yield say("…")`` streams text that belongs to the turn; the turn goes on.
* ``yield "text"`` ends the model turn with that text: how an async generator answers, which cannot
  return one. Should the run go on all the same, because mail extended it, the generator goes on
  with None and ``turn`` shows the mail; otherwise it is closed. A generator that has returned, or
  has nothing left after its text, is called anew.
* When the run ends, is stopped or the session fails, the generator is closed: its ``finally`` runs
  at once. An async one cannot wait for anything there.

A script's body runs on the kernel's loop: work that takes long, and anything that blocks, belongs in
a tool. One script serves any number of sessions; what it remembers is per run, in its generator.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias, overload

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import SessionId, check_name
from postroom_runtime.models.script_mind import ScriptMind
from postroom_runtime.models.script_words import Say, ScriptCall, ScriptTurn, call, say

__all__ = ["Say", "Script", "ScriptCall", "ScriptFunction", "ScriptTurn", "call", "say", "script"]

ScriptFunction: TypeAlias = Callable[[ScriptTurn], Any]
"""A function, generator function, ``async def`` or async generator function of one turn."""


class Script:
    """A function as a model; calling it calls the function, which is handy in a test of it.

    Args:
        function: Takes the turn to answer; see the module for what it may return and yield.
        name: How listings and ``model=`` call it; default the function's name.

    Raises:
        ConfigError: Not a function of one argument, or the name will not do.
    """

    def __init__(self, function: ScriptFunction, name: str | None = None) -> None:
        if isinstance(function, type | Script) or not callable(function):
            raise ConfigError(
                f"{function!r} cannot be a script: give a function of the turn, "
                "e.g. lambda turn: turn.text.",
                value=function,
            )
        own = getattr(function, "__name__", type(function).__name__)
        self._name = check_name(
            name if name is not None else "script" if own == "<lambda>" else own, "script"
        )
        self._function = function
        functools.update_wrapper(self, function)
        _check_takes_a_turn(function, self._name)

    @property
    def name(self) -> str:
        """How it is called in listings, and by ``model=``."""
        return self._name

    def begin(self, session: SessionId) -> ScriptMind:
        """Return a mind for one run of ``session``."""
        return ScriptMind(self._name, self._function)

    def __call__(self, turn: ScriptTurn) -> Any:
        """Return what the function returns: an answer, a coroutine or a fresh generator."""
        return self._function(turn)

    def __repr__(self) -> str:
        """Return ``Script(NAME)``."""
        return f"Script({self._name})"


@overload
def script(function: ScriptFunction, /) -> Script: ...


@overload
def script(*, name: str | None = None) -> Callable[[ScriptFunction], Script]: ...


def script(
    function: ScriptFunction | None = None, /, *, name: str | None = None
) -> Script | Callable[[ScriptFunction], Script]:
    """Make a model of a function: ``@script`` or ``@script(name="…")``.

    Raises:
        ConfigError: Not a function of one argument, or the name will not do.
    """
    if function is not None:
        return Script(function, name)
    return lambda function: Script(function, name)


def _check_takes_a_turn(function: ScriptFunction, name: str) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # Some callables written in C have none; the first turn will tell.
    try:
        signature.bind(None)
    except TypeError:
        raise ConfigError(
            f"{name}{signature} cannot be a script: it is called with one argument, the turn.",
            value=function,
        ) from None
