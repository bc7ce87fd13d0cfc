"""Hooks: a command or a tool that may continue, deny, defer, answer or rewrite a call.

A before hook that fails in any way denies: a guard fails closed. An after hook that fails changes
nothing. Both leave a trace in the call's progress (M-120…M-124). A tool as a hook runs without
policy and hooks of its own, so that a guard on ``*`` never guards itself (M-122).
"""

import json
import logging
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import anyio
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from postroom_runtime.calls.middleware import CallInput
from postroom_runtime.calls.policy import After, Before, CommandTarget, Target, ToolTarget
from postroom_runtime.calls.processes import ProcessFailed, run_process
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId

log = logging.getLogger("postroom")

HOOK_SECONDS = 30.0
"""The time limit of one hook."""

RunTool: TypeAlias = Callable[[str, Mapping[str, Json]], Awaitable[Any]]
"""Runs a tool registered on the agent, visible to the model or not."""


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GoOn(_Answer):
    """Run it, with ``arguments`` as rewritten where given."""

    action: Literal["continue"] = "continue"
    arguments: dict[str, Json] | None = None


class Keep(_Answer):
    """The call goes on with its result, or with ``result`` where given."""

    action: Literal["continue"] = "continue"
    result: Json = None


class Deny(_Answer):
    """The message is the result, and the tool does not run."""

    action: Literal["deny"] = "deny"
    message: str


class AskOwner(_Answer):
    """The owner has to say whether it runs."""

    action: Literal["defer"] = "defer"
    reason: str = ""


class Instead(_Answer):
    """This is the result, and the tool does not run."""

    action: Literal["answer"] = "answer"
    result: Json


class Annotate(_Answer):
    """The text is added to the result."""

    action: Literal["annotate"] = "annotate"
    text: str


BeforeAnswer: TypeAlias = Annotated[GoOn | Deny | AskOwner | Instead, Field(discriminator="action")]
AfterAnswer: TypeAlias = Annotated[Keep | Annotate, Field(discriminator="action")]

A = TypeVar("A")

_BEFORE: TypeAdapter[BeforeAnswer] = TypeAdapter(BeforeAnswer)
_AFTER: TypeAdapter[AfterAnswer] = TypeAdapter(AfterAnswer)


_FENCED = re.compile(r"^[ \t]*```(?:json)?[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


class HookFailed(Exception):
    """The hook crashed, ran out of time, or answered something else."""


class Hooks:
    """Asks the hooks of one session.

    Args:
        run_tool: Runs a tool as a hook.
        trace: Leaves a line in the progress of a call.
        seconds: The time limit of one hook.
        broken: Told of a guard that denied because it failed: somebody has to mend it.
    """

    def __init__(
        self,
        run_tool: RunTool,
        trace: Callable[[CallId, str], None],
        seconds: float = HOOK_SECONDS,
        broken: Callable[[CallId, str], None] = lambda call, words: None,
    ) -> None:
        self._run_tool, self._trace, self._seconds = run_tool, trace, seconds
        self._broken = broken

    async def before(self, own: Before, call: CallInput) -> BeforeAnswer:
        """Return what a before hook answers; one that fails denies (M-124)."""
        try:
            said = await self._ask(own.hook, facts(call))
            if said is False:
                return Deny(message=f"Tool '{call.tool}' was not approved.")
            return GoOn() if said is True or _nothing(said) else _read(_BEFORE, said)
        except Exception as error:  # whatever a hook does wrong, the call must not run
            words = (
                f"the guard {name_of(own.hook)} failed, so {call.tool} was not run: {_words(error)}"
            )
            self._tell(call.call, words)
            self._broken(call.call, words)
            return Deny(message=words)

    async def after(
        self, own: After, call: CallInput, status: str, result: Json, milliseconds: float
    ) -> AfterAnswer:
        """Return what an after hook answers; one that fails changes nothing (M-121)."""
        seen = facts(call) | {
            "result": result,
            "status": status,
            "duration_ms": round(milliseconds),
        }
        try:
            said = await self._ask(own.hook, seen)
            return Keep() if said is True or _nothing(said) else _read(_AFTER, said)
        except Exception as error:  # the result stands whatever the hook does wrong
            self._tell(call.call, f"the hook {name_of(own.hook)} failed: {_words(error)}")
            return Keep()

    async def _ask(self, target: Target, seen: Mapping[str, Json]) -> Any:
        said: Any = None
        with anyio.move_on_after(self._seconds) as scope:
            match target:
                case ToolTarget(tool=tool):
                    said = await self._asked_tool(tool, seen)
                case CommandTarget(command=command):
                    said = await _asked_program(command, seen)
        if scope.cancelled_caught:
            raise HookFailed(f"no answer within {self._seconds:g}s")
        return said

    async def _asked_tool(self, name: str, seen: Mapping[str, Json]) -> Any:
        try:
            return await self._run_tool(name, seen)
        except (SystemExit, KeyboardInterrupt) as error:  # a tool may do anything, exit() included
            raise HookFailed(f"{type(error).__name__}: {error}".rstrip(": ")) from None

    def _tell(self, call: CallId, words: str) -> None:
        log.warning("%s: %s", call, words)
        self._trace(call, words)


def facts(call: CallInput) -> dict[str, Json]:
    """Return what a before hook sees: what the model sent, never a bound value (M-120, M-123)."""
    return {
        "tool": call.tool,
        "arguments": call.arguments,
        "session_id": call.session,
        "tool_call_id": call.call,
        "agent": call.agent,
    }


def name_of(target: Target) -> str:
    """Return how people call a hook: its tool or its command."""
    match target:
        case ToolTarget(tool=tool):
            return tool
        case CommandTarget(command=command):
            return command if isinstance(command, str) else shlex.join(command)


async def _asked_program(command: str | Sequence[str], seen: Mapping[str, Json]) -> str:
    argv = shlex.split(command) if isinstance(command, str) else list(command)
    try:
        said = await run_process(argv, stdin=json.dumps(seen))
    except ProcessFailed as error:
        raise HookFailed(str(error)) from None
    if said.returncode != 0:
        raise HookFailed(f"exit code {said.returncode}: {said.stderr.strip()}".rstrip(": "))
    return said.stdout


def _nothing(said: Any) -> bool:
    return said is None or (isinstance(said, str) and not said.strip())


def _read(adapter: TypeAdapter[A], said: Any) -> A:
    try:
        if isinstance(said, (str, bytes)):
            return adapter.validate_json(_unfenced(said))
        return adapter.validate_python(said)
    except ValidationError:
        raise HookFailed(f"it answered {str(said)[:200]!r}, which is no hook answer") from None


def _unfenced(said: str | bytes) -> str | bytes:
    """Return what stands in the one fenced block of ``said``, which is how models write JSON."""
    if isinstance(said, bytes):
        return said
    blocks = _FENCED.findall(said)
    return blocks[0] if len(blocks) == 1 else said


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, HookFailed) else f"{type(error).__name__}: {error}"
