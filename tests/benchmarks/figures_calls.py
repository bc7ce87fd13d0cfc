"""What it costs that every call is wrapped, stored, and may be suspended."""

import asyncio
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from benchmarks.frame import Round, figure
from postroom_runtime.calls.hooks import Hooks
from postroom_runtime.calls.middleware import CallInput, Done, Outcome, Surroundings, compose
from postroom_runtime.calls.policy import read_policy
from postroom_runtime.calls.tool import make_tool
from postroom_runtime.contracts.config import Agent
from postroom_runtime.models.script import Script, ScriptTurn, call
from postroom_runtime.office.opening import open_room

FULL = [
    {"tag": "timeout", "seconds": 30},
    {"tag": "retries", "count": 2, "backoffMs": 500},
    {"tag": "truncate", "maxBytes": 65536},
    {"tag": "before", "hook": {"tool": "guard"}},
]
"""A chain as a careful agent has it."""


async def nothing(n: int) -> str:
    """Do nothing, which leaves what is around it."""
    return "ok"


async def guard(tool: str) -> dict[str, str]:
    """Let it run."""
    return {"action": "continue"}


async def _bare(count: int) -> float:
    start = time.thread_time()
    for n in range(count):
        await nothing(n=n)
    return time.thread_time() - start


# ── the chain itself ──


async def _chained(count: int) -> float:
    tool, asked = make_tool(nothing), make_tool(guard)

    async def ask(name: str, seen: Mapping[str, Any]) -> Any:
        return await asked.function(**asked.arguments({"tool": seen["tool"]}))

    async def base(each: CallInput) -> Outcome:
        return Done(await tool.function(**tool.arguments(each.arguments)))

    hooks = Hooks(ask, lambda call, words: None)
    around = Surroundings(
        progress=lambda call, words: None, cache={}, before=hooks.before, after=hooks.after
    )
    (wrapper,) = read_policy({"wrappers": [{"decorators": FULL}]}).wrappers
    start = time.thread_time()
    for n in range(count):
        chain = compose(wrapper.decorators, base, around)
        await chain(
            CallInput(session="s-0001", call="c", agent="a", tool="nothing", arguments={"n": n})
        )
    return time.thread_time() - start


@figure("a call in a full chain / a bare coroutine")
def chain() -> Iterator[tuple[Round, Round]]:
    """Time limit, retries, cut and a guard around a tool, its arguments checked; without a store."""
    yield lambda: asyncio.run(_chained(1000)), lambda: asyncio.run(_bare(1000))


# ── whole sessions ──


def _in_turn(count: int) -> Script:
    """A script that makes one call a turn and reads its result in the next."""

    def script(turn: ScriptTurn) -> Generator[Any, Any, str]:
        for n in range(count):
            yield call("nothing", n=n)
        return "done"

    return Script(script, "in_turn")


def _by_mail(count: int) -> Script:
    """A script whose calls are suspended at once: it goes on when the mail comes."""

    def script(turn: ScriptTurn) -> Generator[Any, Any, str]:
        for n in range(count):
            yield call("nothing", n=n)
            yield "waiting"
        return "done"

    return Script(script, "by_mail")


async def _session(script: Script, count: int, policy: Any) -> float:
    async with open_room() as room:
        agent = Agent(
            "caller",
            model=script,
            tools=[nothing, guard],
            policy=policy,
            max_iterations=4 * count,
            max_autonomous_rounds=4 * count,
        )
        session = room.spawn(agent)
        start = time.thread_time()
        session.send("go")
        await session.wait(timeout=None)
        passed = time.thread_time() - start
        assert len(session.calls()) == count
        return passed


AT_ONCE = {"default": {"tag": "runAsync", "attachSeconds": 0}}
WRAPPED = {"wrappers": [{"match": {"tool": "nothing"}, "decorators": FULL}]}


@figure("a call of a session in a full chain / the same call without", at_most=1.5)
def chain_in_a_session() -> Iterator[tuple[Round, Round]]:
    """One call a turn, stored in memory, with the model turn that makes it and the one that reads it."""
    yield (
        lambda: asyncio.run(_session(_in_turn(100), 100, WRAPPED)),
        lambda: asyncio.run(_session(_in_turn(100), 100, None)),
    )


@figure("a call suspended and resumed by mail / the same call attended", at_most=2.5)
def suspending_in_a_session() -> Iterator[tuple[Round, Round]]:
    """Twice the turns: the placeholder is read in one and the result, as mail, in the next."""
    yield (
        lambda: asyncio.run(_session(_by_mail(100), 100, AT_ONCE)),
        lambda: asyncio.run(_session(_in_turn(100), 100, None)),
    )


@figure("a call suspended and resumed by mail / a bare coroutine")
def suspending() -> Iterator[tuple[Round, Round]]:
    """The call, its placeholder, its end as mail, and both turns, stored in memory."""
    yield (
        lambda: asyncio.run(_session(_by_mail(100), 100, AT_ONCE)) / 100,
        lambda: asyncio.run(_bare(1000)) / 1000,
    )


@figure("a call suspended and resumed by mail, in milliseconds", at_most=5.0)
def suspending_in_milliseconds() -> Iterator[tuple[Round, Round]]:
    """The same as a plain number."""
    yield lambda: asyncio.run(_session(_by_mail(100), 100, AT_ONCE)) / 100, lambda: 0.001
