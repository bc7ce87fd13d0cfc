"""Decorators as middleware over the running of one call: first listed is outermost (M-112, M-113).

An ``Exec`` runs a call to an outcome. A failure is an exception, never an error-looking text, so that
``retries`` and ``cache`` know it; a call that yields (``Yielded``), is denied or cancelled is neither
tried again nor cached (M-118).
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import anyio

from postroom_runtime.calls.policy import (
    After,
    Before,
    Cache,
    Label,
    Retries,
    Timeout,
    Truncate,
)
from postroom_runtime.calls.strays import PATIENCE_SECONDS
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId

log = logging.getLogger("postroom")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInput:
    """One call as middleware and hooks see it: what the model sent, never what is bound (M-123)."""

    session: SessionId
    call: CallId
    agent: str
    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Done:
    """The call has a result."""

    result: Json
    denied: bool = False
    """A guard kept the tool from running; the result is its refusal."""
    kept: bool = True
    """Whether a cache may keep it."""


@dataclass(frozen=True, slots=True)
class Yielded:
    """The call waits for somebody outside (M-9b, M-114)."""

    reason: str
    arguments: Json
    """As they stood at the hook that deferred it."""
    below: int
    """How many decorators stand above the place to go on from: their hooks before are not asked again."""


Outcome: TypeAlias = Done | Yielded
Exec: TypeAlias = Callable[[CallInput], Awaitable[Outcome]]


class TimedOut(Exception):
    """The call's own time limit passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What middleware needs of the session."""

    progress: Callable[[CallId, str], None]
    """Reports what a wrapper does, as progress of the call."""
    cache: MutableMapping[str, Json]
    """Results by tool and arguments, for the life of the session here."""
    before: Callable[[Before, CallInput], Awaitable[Any]]
    """Asks a before hook; never raises but for a cancellation."""
    after: Callable[[After, CallInput, str, Json, float], Awaitable[Any]]
    """Shows an after hook how the call went: state, result, milliseconds."""
    stray: Callable[[CallId, asyncio.Task[Any]], None] = lambda call, task: None
    """Takes a task that was told to end and may not heed it (M-73)."""


def compose(decorators: Sequence[Any], base: Exec, around: Surroundings) -> Exec:
    """Return ``base`` with ``decorators`` around it: ``[d1, d2]`` gives ``d1(d2(base))``.

    Args:
        decorators: Outermost first.
        base: Runs the tool itself.
        around: What they need of the session.
    """
    chain = base
    for place in range(len(decorators) - 1, -1, -1):
        chain = partial(_RUN[type(decorators[place])], decorators[place], chain, around, place)
    return chain


async def _timeout(
    own: Timeout, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    # A task of its own: one that ignores its cancellation is left behind, and ends nothing late (M-73).
    task = asyncio.get_running_loop().create_task(_caught(inner, call))
    try:
        await asyncio.wait([task], timeout=own.seconds)
        if task.done():
            return _raised_here(task.result())
        await _dismissed(task, call, around, PATIENCE_SECONDS)
    except asyncio.CancelledError:
        if not task.done():
            await _dismissed(task, call, around, None)
        raise
    raise TimedOut(f"timed out after {own.seconds:g}s")


async def _dismissed(
    task: asyncio.Task[Any], call: CallInput, around: Surroundings, seconds: float | None
) -> None:
    """Cancel a task and let it tidy up, so many seconds at most."""
    task.cancel()
    around.stray(call.call, task)
    await asyncio.wait([task], timeout=seconds)


async def _caught(inner: Exec, call: CallInput) -> Outcome | SystemExit | KeyboardInterrupt:
    # These two would pass through a task of their own into the loop, and end the kernel.
    try:
        return await inner(call)
    except (SystemExit, KeyboardInterrupt) as error:
        return error


def _raised_here(outcome: Outcome | SystemExit | KeyboardInterrupt) -> Outcome:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _retries(
    own: Retries, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    for tried in range(own.count + 1):
        try:
            return await inner(call)
        except Exception as error:  # whatever the tool raises is a reason to try again
            if tried == own.count:
                raise
            around.progress(call.call, f"retry {tried + 1} of {own.count} after {_words(error)}")
            await anyio.sleep(own.backoff_ms / 1000)
    raise AssertionError("unreachable")


async def _cache(
    own: Cache, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    key = json.dumps([call.tool, call.arguments], sort_keys=True)
    if key in around.cache:
        around.progress(call.call, "answered from the cache")
        return Done(around.cache[key])
    outcome = await inner(call)
    if isinstance(outcome, Done) and outcome.kept:
        around.cache[key] = outcome.result
    return outcome


async def _label(
    own: Label, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    return await inner(call)


async def _truncate(
    own: Truncate, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    outcome = await inner(call)
    if isinstance(outcome, Done):
        return replace(outcome, result=truncated(outcome.result, own.max_bytes))
    return outcome


def truncated(result: Json, max_bytes: int) -> Json:
    """Return ``result``, cut at a character boundary with a note when its text has more bytes (M-119)."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= max_bytes:
        return result
    return f"{raw[:max_bytes].decode('utf-8', 'ignore')}\n[truncated: result exceeded {max_bytes} bytes]"


async def _before(
    own: Before, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    answer = await around.before(own, call)
    match answer.action:
        case "deny":
            return Done(answer.message, denied=True, kept=False)
        case "answer":
            return Done(answer.result, kept=False)
        case "defer":
            return Yielded(answer.reason, call.arguments, place + 1)
        case _:
            arguments = call.arguments if answer.arguments is None else answer.arguments
            return await inner(replace(call, arguments=arguments))


async def _after(
    own: After, inner: Exec, around: Surroundings, place: int, call: CallInput
) -> Outcome:
    began = anyio.current_time()
    try:
        outcome = await inner(call)
    except Exception as error:  # shown to the hook as a failure, then it goes on as one
        passed = (anyio.current_time() - began) * 1000
        await around.after(own, call, "failed", _words(error), passed)
        raise
    if not isinstance(outcome, Done):
        return outcome
    passed = (anyio.current_time() - began) * 1000
    status = "failed" if outcome.denied else "completed"
    answer = await around.after(own, call, status, outcome.result, passed)
    if answer.action == "annotate":
        text = (
            outcome.result
            if isinstance(outcome.result, str)
            else json.dumps(outcome.result, ensure_ascii=False)
        )
        return replace(outcome, result=f"{text}\n{answer.text}")
    return outcome if answer.result is None else replace(outcome, result=answer.result)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


_RUN: dict[type, Callable[..., Awaitable[Outcome]]] = {
    Timeout: _timeout,
    Retries: _retries,
    Cache: _cache,
    Label: _label,
    Truncate: _truncate,
    Before: _before,
    After: _after,
}
