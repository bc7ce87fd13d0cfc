"""Scripts: models written in Python (A-13, M-42; api.md, "A script")."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from models.transcripts import RUN_TESTS, Run, model, prompt, quiet, request, result, user
from postroom_runtime.contracts.call import CallState, ToolRequest
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.built_in import echo
from postroom_runtime.models.model import Model, Thought
from postroom_runtime.models.script import Script, ScriptTurn, call, say, script


def think(of: Script, text: str = "hi") -> Thought:
    return asyncio.run(of.begin("s-0001").think(prompt(user(text)), quiet))


# ── What a script is ──


def test_a_script_is_a_model_called_by_its_functions_name() -> None:
    @script
    def careful(turn: ScriptTurn) -> str:
        """Answer."""
        return "done"

    assert isinstance(careful, Model)
    assert careful.name == "careful"
    assert careful.__doc__ == "Answer."


def test_a_script_may_be_given_another_name() -> None:
    @script(name="loud")
    def any_name(turn: ScriptTurn) -> str:
        return turn.text.upper()

    assert any_name.name == "loud"
    assert think(any_name, "hi").text == "HI"


def test_calling_a_script_calls_its_function() -> None:
    assert echo(ScriptTurn(prompt(user("hi")))) == "echo: hi"


def test_a_lambda_is_a_script_called_script() -> None:
    assert script(lambda turn: turn.text).name == "script"


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda: "no turn", "one argument"),
        (lambda turn, more: "too many", "one argument"),
        ("a text", "function of the turn"),
        (ScriptTurn, "function of the turn"),
        (echo, "function of the turn"),
    ],
)
def test_what_is_no_function_of_one_turn_cannot_be_a_script(function: Any, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        script(function)


def test_a_scripts_name_must_be_one_that_model_takes() -> None:
    with pytest.raises(ConfigError, match="openai:gpt"):
        script(name="openai:gpt")(lambda turn: "")


# ── Functions ──


def test_echo_answers_with_what_was_said() -> None:
    run = Run(echo.begin("s-0001"))

    thought = asyncio.run(run.hear("hello"))

    assert thought == Thought(text="echo: hello", usage=Usage(requests=1))
    assert run.streamed == ["echo: hello"]


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_script_that_returns_nothing_makes_a_degenerate_turn_a13(nothing: str | None) -> None:
    thought = think(script(lambda turn: nothing))

    assert (thought.text, thought.calls) == ("", ())


def test_a_function_is_called_once_per_turn_and_finds_its_results() -> None:
    @script
    def looks(turn: ScriptTurn) -> Any:
        if not turn.results:
            return [call("run-tests", suite="fast"), call("run-tests", suite="slow")]
        return ", ".join(f"{m.call} {m.state} {m.content}" for m in turn.results.values())

    async def main() -> tuple[Thought, Thought]:
        run = Run(looks.begin("s-0001"))
        return await run.hear("go"), await run.hear("", "passed", "failed")

    first, second = asyncio.run(main())

    assert [c.arguments for c in first.calls] == [{"suite": "fast"}, {"suite": "slow"}]
    assert second.text == "call_0001 completed passed, call_0002 completed failed"


def test_an_async_function_is_awaited() -> None:
    @script
    async def slow(turn: ScriptTurn) -> str:
        await asyncio.sleep(0)
        return turn.text

    assert think(slow, "late").text == "late"


# ── Generators ──


@script
def careful(turn: ScriptTurn) -> Generator[Any, Any, str]:
    report = yield call("run-tests", suite="fast")
    both = yield [call("run-tests", suite="a"), call("run-tests", suite="b")]
    return f"{report} {both}"


@script
async def careful_async(turn: ScriptTurn) -> AsyncGenerator[Any, Any]:
    report = yield call("run-tests", suite="fast")
    both = yield [call("run-tests", suite="a"), call("run-tests", suite="b")]
    yield f"{report} {both}"


@pytest.mark.parametrize("careful", [careful, careful_async])
def test_a_generator_gets_one_result_for_a_call_and_a_list_for_a_list(careful: Script) -> None:
    async def main() -> list[Thought]:
        run = Run(careful.begin("s-0001"))
        return [
            await run.hear("go"),
            await run.hear("", "green"),
            await run.hear("", "1", "2"),
        ]

    first, second, third = asyncio.run(main())

    assert first.calls == (ToolRequest(tool="run-tests", arguments={"suite": "fast"}),)
    assert [c.arguments["suite"] for c in second.calls] == ["a", "b"]
    assert (third.text, third.calls) == ("green ['1', '2']", ())


@pytest.mark.parametrize(
    ("content", "state", "value"),
    [
        ('{"woken_by": "mail"}', CallState.COMPLETED, {"woken_by": "mail"}),
        ("[1, 2]", CallState.COMPLETED, [1, 2]),
        ("12", CallState.COMPLETED, "12"),
        ("{half", CallState.COMPLETED, "{half"),
        ('{"status": "running"}', CallState.RUNNING, {"status": "running"}),
        ("run-tests failed: no suite", CallState.FAILED, "run-tests failed: no suite"),
        ('{"error": 1}', CallState.FAILED, '{"error": 1}'),
        ('{"error": 1}', CallState.CANCELLED, '{"error": 1}'),
    ],
)
def test_a_result_is_text_or_parsed_json_and_a_failure_is_its_text(
    content: str, state: CallState, value: object
) -> None:
    got: list[object] = []

    @script
    def asks(turn: ScriptTurn) -> Generator[Any, Any, None]:
        got.append((yield call("run-tests", suite="x")))

    async def main() -> None:
        run = Run(asks.begin("s-0001"))
        await run.hear("go")
        await run.hear("", result("call_0001", content, state=state))

    asyncio.run(main())

    assert got == [value]


def test_the_same_turn_shows_what_each_round_brought() -> None:
    seen: list[Any] = []

    @script
    def watches(turn: ScriptTurn) -> Generator[Any, Any, str]:
        seen.append((turn, turn.text, dict(turn.results), turn.tools, len(turn.history)))
        yield call("run-tests", suite="x")
        seen.append((turn, turn.text, dict(turn.results), turn.tools, len(turn.history)))
        return "done"

    async def main() -> None:
        run = Run(watches.begin("s-0001"))
        await run.hear("go")
        run.tools = ()
        await run.hear("and hurry", "green")

    asyncio.run(main())

    (first, *before), (second, *after) = seen
    assert first is second
    assert before == ["go", {}, ("run-tests",), 0]
    assert after == ["and hurry", {"call_0001": result("call_0001", "green")}, (), 2]


def test_text_that_is_said_streams_and_belongs_to_the_turn() -> None:
    @script
    def talks(turn: ScriptTurn) -> Generator[Any, Any, str]:
        yield say("let me ")
        yield say("look. ")
        yield call("run-tests", suite="x")
        yield say("all ")
        return "green"

    async def main() -> tuple[Run, list[Thought]]:
        run = Run(talks.begin("s-0001"))
        return run, [await run.hear("go"), await run.hear("", "ok")]

    run, (first, second) = asyncio.run(main())

    assert (first.text, len(first.calls)) == ("let me look. ", 1)
    assert second.text == "all green"
    assert run.streamed == ["let me ", "look. ", "all ", "green"]


def test_said_text_is_shown_before_the_script_goes_on() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        @script
        def talks(turn: ScriptTurn) -> Generator[Any, Any, None]:
            yield say("one")
            order.append("goes on")

        async def reader() -> None:
            order.append("reads")

        async with asyncio.TaskGroup() as group:
            group.create_task(talks.begin("s").think(prompt(user("hi")), order.append))
            group.create_task(reader())
        return order

    assert asyncio.run(main()) == ["one", "reads", "goes on"]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_yielding_a_text_ends_the_turn_and_the_generator_goes_on_if_the_run_does(kind: str) -> None:
    @script
    def plain(turn: ScriptTurn) -> Generator[Any, Any, None]:
        got = yield f"first: {turn.text}"
        yield f"then: {turn.text} {got}"

    @script
    async def asynchronous(turn: ScriptTurn) -> AsyncGenerator[Any, Any]:
        got = yield f"first: {turn.text}"
        yield f"then: {turn.text} {got}"

    async def main() -> list[str]:
        run = Run((plain if kind == "plain" else asynchronous).begin("s-0001"))
        return [(await run.hear(text)).text for text in ("a", "b", "c", "d")]

    # After its last text there is nothing left: the script is called anew.
    assert asyncio.run(main()) == ["first: a", "then: b None", "first: c", "then: d None"]


def test_a_script_that_returned_is_called_anew_when_the_run_goes_on() -> None:
    async def main() -> list[str]:
        run = Run(careful.begin("s-0001"))
        await run.hear("go")
        await run.hear("", "green")
        answer = await run.hear("", "1", "2")
        again = await run.hear("once more")
        return [answer.text, again.calls[0].tool]

    assert asyncio.run(main()) == ["green ['1', '2']", "run-tests"]


def test_a_list_without_calls_goes_on_at_once() -> None:
    @script
    def maps(turn: ScriptTurn) -> Generator[Any, Any, str]:
        results = yield [call("run-tests", suite=name) for name in turn.text.split()]
        return f"{results}"

    assert think(maps, "").text == "[]"


def test_calls_yielded_with_tools_off_are_in_the_thought_and_the_stepper_decides_a24() -> None:
    async def main() -> tuple[Thought, Thought]:
        mind = careful.begin("s-0001")
        asked = await mind.think(prompt(user("go")), quiet)
        # The stepper dropped the calls, and mail extended the run: no tool message came.
        return asked, await mind.think(prompt(user("go"), model(""), user("well?")), quiet)

    asked, then = asyncio.run(main())

    assert len(asked.calls) == 1
    assert len(then.calls) == 2


def test_a_call_without_tool_message_gives_a_text() -> None:
    @script
    def asks(turn: ScriptTurn) -> Generator[Any, Any, str]:
        answer = yield call("run-tests", suite="x")
        return str(answer)

    async def main() -> Thought:
        mind = asks.begin("s-0001")
        await mind.think(prompt(user("go")), quiet)
        return await mind.think(prompt(user("go"), model(""), user("well?")), quiet)

    assert asyncio.run(main()).text == "not called: the turn ended without it"


def test_a_turn_shows_instructions_agent_and_session() -> None:
    turn = ScriptTurn(
        prompt(
            user("go"),
            model("", request("run-tests", "call_0001")),
            user("", result("call_0001", "ok")),
            tools=[RUN_TESTS],
            instructions="be brief",
        )
    )

    assert (turn.instructions, turn.agent, turn.session) == ("be brief", "tester", "s-0001")
    assert [t.text for t in turn.history] == ["go", ""]
    assert "call_0001" in repr(turn)


# ── Many sessions, one script ──


def test_one_script_serves_many_sessions_each_with_its_own_generator() -> None:
    async def main() -> list[str]:
        runs = [Run(careful.begin(f"s-{n}")) for n in range(3)]
        for run in runs:
            await run.hear("go")
        for n, run in enumerate(runs):
            await run.hear("", f"report {n}")
        return [(await run.hear("", "1", "2")).text for run in runs]

    assert asyncio.run(main()) == [f"report {n} ['1', '2']" for n in range(3)]


def test_a_script_is_never_entered_twice_at_once_in_one_run() -> None:
    async def main() -> None:
        entered = asyncio.Event()

        @script
        async def slow(turn: ScriptTurn) -> None:
            entered.set()
            await asyncio.Event().wait()

        mind = slow.begin("s-0001")
        async with asyncio.TaskGroup() as group:
            first = group.create_task(mind.think(prompt(user("a")), quiet))
            await entered.wait()
            with pytest.raises(RuntimeError, match="entered twice"):
                await mind.think(prompt(user("b")), quiet)
            first.cancel()

    asyncio.run(main())
