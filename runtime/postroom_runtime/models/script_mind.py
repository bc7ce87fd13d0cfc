"""A script at work in one run: entered once per model turn, its generator kept in between."""

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import anyio.lowlevel

from postroom_runtime.contracts.call import CallState, ToolMessage, ToolRequest
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.model import Emit, Prompt, Thought
from postroom_runtime.models.schema import OutputSchema, WrongOutput
from postroom_runtime.models.script_words import Say, ScriptCall, ScriptTurn

__all__ = ["ScriptMind"]

_log = logging.getLogger(__name__)

_FAILED: Final = frozenset(state for state in CallState if state.final) - {CallState.COMPLETED}
_CLOSING_TRIES: Final = 3

_MAY_RETURN: Final = "a text, None, a pr.call(…) or a list of them"
_MAY_YIELD: Final = "pr.call(…), a list of them, pr.say(…) or a text"
_MAY_END_WITH: Final = "a text or None (it yields its calls)"

_Generator: TypeAlias = Generator[Any, Any, Any] | AsyncGenerator[Any, Any]


_WORDS: Final = (str, type(None), Say, ScriptCall, Generator, AsyncGenerator)
"""What a script gives as it is, also where an object is asked for."""


@dataclass(frozen=True, slots=True)
class _Returned:
    """A generator ended; ``value`` is what it returned, always None from an async one."""

    value: object


class ScriptMind:
    """One run of a script in one session."""

    def __init__(self, name: str, function: Callable[[ScriptTurn], Any]) -> None:
        self._name = name
        self._function = function
        self._generator: _Generator | None = None
        self._turn: ScriptTurn | None = None
        self._asked = 0
        self._asked_one = False
        self._busy = False
        self._cut = 0
        self._schema: OutputSchema | None = None

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        """Let the script answer ``prompt``.

        A plain or ``async`` function is called; a generator goes on with what its calls brought,
        or begins. The thought's text is what was emitted, joined.

        Raises:
            ConfigError: The script returned or yielded something that is no answer.
            RuntimeError: It is being thought already: a bug in the caller.
            Exception: Whatever the script raised.
        """
        if self._busy:
            raise RuntimeError(f"script {self._name!r} would be entered twice in one run")
        self._busy, self._schema = True, prompt.schema
        try:
            thought = await self._think(prompt, emit)
        except BaseException as error:
            self._cut += isinstance(error, asyncio.CancelledError)
            # Also when cancelled: the next mail calls the script anew (no half-done generator).
            self._let_go()
            raise
        finally:
            self._busy = False
        usage, self._cut = thought.usage + Usage(requests=self._cut), 0
        return replace(thought, usage=usage)

    @property
    def owed(self) -> Usage:
        """The requests that were cut: a script is paid for as a provider's model is."""
        return Usage(requests=self._cut)

    def close(self) -> None:
        """End the script's generator, if one waits; the next run calls the script anew."""
        self._let_go()

    async def _think(self, prompt: Prompt, emit: Emit) -> Thought:
        if self._generator is not None and self._turn is not None:
            self._turn.show(prompt)
            had_answered = self._asked == 0
            thought = await self._play(self._generator, self._brought(prompt), emit)
            if thought.text or thought.calls or self._generator is not None or not had_answered:
                return thought
            # It had nothing left to say after its answer, as if it had returned with it.

        self._turn = ScriptTurn(prompt)
        answer = self._function(self._turn)
        if inspect.isawaitable(answer):
            answer = await answer
        answer = self._worded(answer)
        if inspect.isgenerator(answer) or inspect.isasyncgen(answer):
            self._generator = answer
            return await self._play(answer, None, emit)
        if isinstance(answer, str) or answer is None:
            return _thought(_emitted(answer or "", emit))
        if (calls := _calls(answer)) is not None:
            return _thought("", calls)
        raise self._no_answer("returned", answer, _MAY_RETURN)

    async def _play(self, generator: _Generator, value: Json, emit: Emit) -> Thought:
        """Send ``value`` into the generator and follow it to the end of the model turn."""
        said = ""
        while True:
            step = await _resume(generator, value)
            value = None
            if isinstance(step, _Returned):
                step = _Returned(self._worded(step.value))
            else:
                step = self._worded(step)
            if isinstance(step, Say):
                said += _emitted(step.text, emit)
            elif isinstance(step, str):
                self._asked = 0
                return _thought(said + _emitted(step, emit))
            elif isinstance(step, _Returned):
                self._generator = None
                if not (isinstance(step.value, str) or step.value is None):
                    raise self._no_answer("returned", step.value, _MAY_END_WITH)
                return _thought(said + _emitted(step.value or "", emit))
            elif (calls := _calls(step)) is None:
                raise self._no_answer("yielded", step, _MAY_YIELD)
            elif calls:
                self._asked, self._asked_one = len(calls), isinstance(step, ScriptCall)
                return _thought(said, calls)
            else:
                value = []
            # A script that says a lot must let the kernel show it, and be stoppable meanwhile.
            await anyio.lowlevel.checkpoint()

    def _brought(self, prompt: Prompt) -> Json:
        """Return what the generator's last ``yield`` evaluates to in this round."""
        messages = prompt.turns[-1].results[: self._asked]
        values = [_value(message) for message in messages]
        values += ["not called: the turn ended without it"] * (self._asked - len(values))
        if self._asked_one:
            return values[0] if values else None
        return values if self._asked else None

    def _worded(self, value: object) -> object:
        """Return ``value``, or the JSON of it where a structured answer is due and it is one."""
        if self._schema is None or isinstance(value, _WORDS) or _calls(value):
            return value
        try:
            return self._schema.words(value)
        except WrongOutput as error:
            raise self._no_answer("answered", value, f"what fits its schema, for {error}") from None

    def _no_answer(self, verb: str, value: object, allowed: str) -> ConfigError:
        what = f"{value!r} ({type(value).__name__})"
        remedy = ""
        if inspect.iscoroutine(value):
            value.close()
            remedy = " Await it first, in an `async def` script."
        return ConfigError(
            f"script {self._name!r} {verb} {what}: give {allowed}.{remedy}", value=value
        )

    def _let_go(self) -> None:
        generator, self._generator, self._turn = self._generator, None, None
        if generator is None:
            return
        # A generator that yields in its `finally` is asked again, so that nothing is left of it.
        for attempt in range(_CLOSING_TRIES):
            try:
                _close(generator)
            except Exception as error:  # A script may do anything, and its run is over already.
                if attempt == 0:
                    _log.warning("script %r did not close: %s", self._name, error, exc_info=error)
            else:
                return


async def _resume(generator: _Generator, value: Json) -> object:
    try:
        if isinstance(generator, AsyncGenerator):
            return await generator.asend(value)
        return generator.send(value)
    except StopIteration as end:
        return _Returned(end.value)
    except StopAsyncIteration:
        return _Returned(None)


def _close(generator: _Generator) -> None:
    """Raise GeneratorExit where the generator waits.

    An async one is closed on the spot too, so that it has ended before the script begins anew;
    what it would await in closing is cut.
    """
    if not isinstance(generator, AsyncGenerator):
        generator.close()
        return
    closing = generator.aclose()
    try:
        closing.send(None)
    except StopIteration:
        return
    with contextlib.suppress(StopIteration):
        closing.throw(GeneratorExit)  # close() would leave it hanging where it awaits.
    raise RuntimeError("an async script cannot wait for anything once its run is over")


def _calls(value: object) -> tuple[ToolRequest, ...] | None:
    """Return what ``value`` calls, or None when it is no call and no list of calls."""
    wanted: Iterable[object] = value if isinstance(value, list | tuple) else (value,)
    calls = [item for item in wanted if isinstance(item, ScriptCall)]
    if len(calls) != len(tuple(wanted)):
        return None
    return tuple(ToolRequest(tool=item.tool, arguments=item.arguments) for item in calls)


def _value(message: ToolMessage) -> Json:
    return message.content if message.state in _FAILED else message.value


def _emitted(text: str, emit: Emit) -> str:
    if text:
        emit(text)
    return text


def _thought(text: str, calls: tuple[ToolRequest, ...] = ()) -> Thought:
    return Thought(text=text, calls=calls, usage=Usage(requests=1))
