"""Programs as tools and hooks: each in a process group of its own, killed as a group (M-68)."""

import inspect
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from string import Formatter
from typing import Any

import anyio
from anyio.abc import Process

from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.errors import ConfigError

GRACE_SECONDS = 2.0
"""Between asking a group to end and killing it."""


class ProcessFailed(Exception):
    """A program could not be started, or ended with a failure."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program said."""

    returncode: int
    stdout: str
    stderr: str


async def run_process(
    argv: Sequence[str],
    *,
    stdin: str = "",
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Said:
    """Run a program to its end; a cancelled caller ends its whole process group.

    Raises:
        ProcessFailed: It cannot be started.
    """
    try:
        process = await anyio.open_process(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=None if env is None else {**os.environ, **env},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ProcessFailed(f"{shlex.join(argv)} cannot be started: {error}") from None
    out, err = bytearray(), bytearray()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process, stdin)
            tasks.start_soon(_collect, process.stdout, out)
            tasks.start_soon(_collect, process.stderr, err)
            code = await process.wait()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end_group(process)
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return Said(code, out.decode(errors="replace"), err.decode(errors="replace"))


async def _feed(process: Process, text: str) -> None:
    if process.stdin is not None:
        try:
            await process.stdin.send(text.encode())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # it does not want to know, which is its right
        await process.stdin.aclose()


async def _collect(stream: Any, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk


async def _end_group(process: Process) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            # The group outlives its leader while children run, so it is asked by the leader's id.
            os.killpg(process.pid, sign)
        except (ProcessLookupError, PermissionError):
            return  # nothing is left of it; some systems say so of a group of the dead
        with anyio.move_on_after(GRACE_SECONDS):
            await process.wait()
            if sign is signal.SIGTERM:
                await anyio.sleep(0.05)


def command(
    name: str,
    argv: str | Sequence[str],
    description: str,
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    attach_seconds: float | None = None,
) -> Tool:
    """Return a tool that runs a program in a process group of its own.

    Args:
        name: What the model calls it.
        argv: The command line. ``{word}`` in it is a parameter of the tool, a text, put in as one
            argument: no shell reads it. A brace itself is ``{{`` or ``}}``.
        description: What the model is told.
        cwd: Where it runs.
        env: Variables on top of the kernel's own.
        attach_seconds: A slow call hands control back after so many seconds.

    Returns:
        The tool; its result is the standard output, a failing exit code its failure.

    Raises:
        ConfigError: The command line is empty or cannot be read.
    """
    try:
        parts = shlex.split(argv) if isinstance(argv, str) else [str(part) for part in argv]
    except ValueError as error:
        raise ConfigError(
            f"command {name}: {argv!r} cannot be read: {error}.", value=argv
        ) from None
    if not parts:
        raise ConfigError(f"command {name}: the command line is empty.", value=argv)
    names = _parameters(parts)

    async def run(**given: str) -> str:
        filled = [part.format_map(given) for part in parts]
        said = await run_process(filled, cwd=cwd, env=env)
        if said.returncode != 0:
            told = said.stderr.strip() or said.stdout.strip()
            raise ProcessFailed(f"exit code {said.returncode}: {told}")
        return said.stdout

    return make_tool(
        _with_parameters(run, name, names, description), name=name, attach_seconds=attach_seconds
    )


def _parameters(parts: Sequence[str]) -> list[str]:
    try:
        found = [field for part in parts for _, field, _, _ in Formatter().parse(part)]
    except ValueError as error:
        raise ConfigError(
            f"{shlex.join(parts)} cannot be read: {error}; a brace itself is {{{{ or }}}}.",
            value=list(parts),
        ) from None
    names = dict.fromkeys(field for field in found if field is not None)
    if bad := [field for field in names if not field.isidentifier() or iskeyword(field)]:
        raise ConfigError(
            f"{{{bad[0]}}} is no parameter name: use letters, digits and '_', and no word of Python; "
            "a brace itself is {{ or }}.",
            value=bad[0],
        )
    return list(names)


def _with_parameters(run: Any, name: str, names: Sequence[str], description: str) -> Any:
    run.__name__, run.__doc__ = name, description
    run.__annotations__ = {**dict.fromkeys(names, str), "return": str}
    run.__signature__ = inspect.Signature(
        [inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, annotation=str) for each in names],
        return_annotation=str,
    )
    return run
