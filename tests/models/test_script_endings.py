"""How scripts end, are cut short, and go wrong (M-78)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from models.transcripts import Run, prompt, quiet, user
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.models.model import Thought
from postroom_runtime.models.script import Script, ScriptTurn, call, say, script


def think(of: Script, text: str = "hi") -> Thought:
    return asyncio.run(of.begin("s-0001").think(prompt(user(text)), quiet))


# ── Endings ──


def closing(kind: str, log: list[str]) -> Script:
    """A script that waits for a call, and logs its beginning and its end."""

    @script
    def plain(turn: ScriptTurn) -> Generator[Any, Any, None]:
        log.append(f"begins {turn.text}")
        try:
            yield say("…")
            yield call("run-tests", suite="x")
        finally:
            log.append("closed")

    @script
    async def asynchronous(turn: ScriptTurn) -> AsyncGenerator[Any, Any]:
        log.append(f"begins {turn.text}")
        try:
            yield say("…")
            yield call("run-tests", suite="x")
        finally:
            log.append("closed")

    return plain if kind == "plain" else asynchronous


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_when_the_run_ends_the_generator_is_closed_at_once(kind: str) -> None:
    async def main() -> list[str]:
        log: list[str] = []
        mind = closing(kind, log).begin("s-0001")
        await mind.think(prompt(user("a")), quiet)
        mind.close()
        mind.close()
        assert log == ["begins a", "closed"]
        await mind.think(prompt(user("b")), quiet)
        mind.close()
        return log

    assert asyncio.run(main()) == ["begins a", "closed", "begins b", "closed"]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_cancelling_a_script_closes_its_generator_m78(kind: str) -> None:
    async def main() -> list[str]:
        log: list[str] = []
        mind = closing(kind, log).begin("s-0001")
        spoken = asyncio.Event()
        task = asyncio.create_task(mind.think(prompt(user("a")), lambda piece: spoken.set()))
        await spoken.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["begins a", "closed"]
        await mind.think(prompt(user("b")), quiet)
        mind.close()
        return log

    assert asyncio.run(main()) == ["begins a", "closed", "begins b", "closed"]


def test_cancelling_an_async_script_reaches_what_it_awaits() -> None:
    async def main() -> str:
        waiting = asyncio.Event()
        ended: list[str] = []

        @script
        async def waits(turn: ScriptTurn) -> None:
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        task = asyncio.create_task(waits.begin("s").think(prompt(user("a")), quiet))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended[0]

    assert asyncio.run(main()) == "cancelled"


def test_what_a_script_raises_comes_out_and_the_next_mail_calls_it_anew() -> None:
    @script
    def fails(turn: ScriptTurn) -> Generator[Any, Any, None]:
        yield call("run-tests", suite="x")
        raise LookupError("no such suite")

    async def main() -> Thought:
        run = Run(fails.begin("s-0001"))
        await run.hear("go")
        with pytest.raises(LookupError, match="no such suite"):
            await run.hear("", "green")
        return await run.mind.think(prompt(user("again")), quiet)

    assert len(asyncio.run(main()).calls) == 1


def refuses_once(turn: ScriptTurn) -> Generator[Any, Any, None]:
    try:
        yield call("run-tests", suite="x")
    finally:
        yield call("run-tests", suite="y")


def raises_in_closing(turn: ScriptTurn) -> Generator[Any, Any, None]:
    try:
        yield call("run-tests", suite="x")
    finally:
        raise LookupError("lost the key")


async def raises_in_closing_async(turn: ScriptTurn) -> AsyncGenerator[Any, Any]:
    try:
        yield call("run-tests", suite="x")
    finally:
        raise LookupError("lost the key")


async def waits_in_closing(turn: ScriptTurn) -> AsyncGenerator[Any, Any]:
    try:
        yield call("run-tests", suite="x")
    finally:
        await asyncio.sleep(3600)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (refuses_once, "ignored GeneratorExit"),
        (raises_in_closing, "lost the key"),
        (raises_in_closing_async, "lost the key"),
        (waits_in_closing, "cannot wait"),
    ],
)
def test_a_script_that_will_not_close_is_logged_and_let_go(
    function: Callable[[ScriptTurn], Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        mind = Script(function).begin("s-0001")
        await mind.think(prompt(user("go")), quiet)
        mind.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())

    [record] = caplog.records
    assert function.__name__ in record.getMessage()
    assert why in record.getMessage()


# ── Mistakes ──


async def nobody_awaits_this() -> None: ...


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: 3, "3 (int)"),
        (lambda: {"a"}, "(set)"),
        (lambda: None, "None (NoneType)"),
        (lambda: [call("x"), 3], "(list)"),
        (lambda: [say("x")], "(list)"),
        (nobody_awaits_this, "(coroutine): give pr.call(…)"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_wrong_yield_names_what_it_was_and_what_may_be(
    wrong: Callable[[], Any], named: str, kind: str
) -> None:
    closed: list[bool] = []

    @script
    def plain(turn: ScriptTurn) -> Generator[Any, Any, None]:
        try:
            yield wrong()
        finally:
            closed.append(True)

    @script
    async def asynchronous(turn: ScriptTurn) -> AsyncGenerator[Any, Any]:
        try:
            yield wrong()
        finally:
            closed.append(True)

    with pytest.raises(ConfigError) as caught:
        think(plain if kind == "plain" else asynchronous)

    assert named in str(caught.value)
    assert "pr.say(…)" in str(caught.value)
    assert closed


@pytest.mark.parametrize("wrong", [3, {"a"}, b"bytes", say("x"), [say("x")], object()])
def test_a_wrong_return_names_what_it_was_and_what_may_be(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"script 'script' returned .*: give a text, None"):
        think(script(lambda turn: wrong))


@pytest.mark.parametrize("wrong", [3, call("run-tests", suite="x")])
def test_a_generator_returns_only_text(wrong: object) -> None:
    @script
    def ends(turn: ScriptTurn) -> Generator[Any, Any, Any]:
        yield say("x")
        return wrong

    with pytest.raises(ConfigError, match="it yields its calls"):
        think(ends)


def test_a_call_takes_arguments_of_any_name() -> None:
    made = call("wait", **{"for": "mail", "name": "x", "timeout_seconds": 3})

    assert made.tool == "wait"
    assert made.arguments == {"for": "mail", "name": "x", "timeout_seconds": 3}


def test_the_arguments_of_a_call_are_what_a_provider_would_send() -> None:
    assert call("x", pair=(1, 2)).arguments == {"pair": [1, 2]}


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), b"bytes"])
def test_an_argument_that_is_no_json_is_refused_at_the_call(value: object) -> None:
    with pytest.raises(ConfigError, match="of 'run-tests'"):
        call("run-tests", suite=value)


def test_a_call_names_its_tool_by_text() -> None:
    with pytest.raises(ConfigError, match="here 'quiet'"):
        call(quiet)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="''"):
        call("")


def test_only_text_can_be_said() -> None:
    with pytest.raises(ConfigError, match=r"say\(3\)"):
        say(3)  # type: ignore[arg-type]
