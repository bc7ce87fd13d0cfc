"""``pydantic_ai`` models handed over as objects, and how often one is asked; on a virtual clock."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pydantic_ai.direct  # noqa: F401  Imported before: no thread may start on a virtual clock.
import pytest
from pydantic_ai import exceptions as e
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from models.transcripts import RUN_TESTS, Run, model, prompt, quiet, request, result, user
from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.models.model import Thought
from postroom_runtime.models.resolve import resolve
from postroom_runtime.testing import run_virtual


def streaming(*steps: Any) -> tuple[FunctionModel, list[list[ModelMessage]]]:
    """A model that takes the next step at each request, an error is raised; and what it was sent."""
    heard: list[list[ModelMessage]] = []
    left = list(steps)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        heard.append(messages)
        for step in left.pop(0):
            if isinstance(step, Exception):
                raise step
            yield step

    return FunctionModel(stream_function=stream), heard


def http_error(status: int, **headers: str) -> Exception:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    category: Any = {429: e.ModelRateLimitError, 500: e.ModelServerError}.get(status)
    return e.ModelHTTPError.for_category(
        category, status_code=status, model_name="m", headers=named, body={"message": "no"}
    )


def timed(model: FunctionModel) -> tuple[Thought | ModelError, float]:
    """Ask once; return what came of it and the seconds that passed on the loop's clock."""

    async def main() -> tuple[Thought | ModelError, float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            came: Thought | ModelError = (
                await resolve(model).begin("s").think(prompt(user("hi")), quiet)
            )
        except ModelError as error:
            came = error
        return came, loop.time() - start

    return run_virtual(main())


def test_text_calls_and_usage_of_an_object_are_a_thought() -> None:
    function, heard = streaming(
        ["look", "ing", {0: DeltaToolCall("run-tests", '{"suite"', tool_call_id="x")},
         {0: DeltaToolCall(json_args=': "a"}')}],
        ["green"],
    )  # fmt: skip

    async def main() -> tuple[Run, list[Thought]]:
        run = Run(resolve(function).begin("s-0001"))
        return run, [await run.hear("go"), await run.hear("and?", "ok")]

    run, (first, second) = run_virtual(main())

    assert (first.text, [c.arguments for c in first.calls]) == ("looking", [{"suite": "a"}])
    assert first.usage.requests == 1
    assert first.usage.output_tokens > 0
    assert second.text == "green"
    assert run.streamed == ["look", "ing", "green"]
    assert [part.part_kind for part in heard[1][-1].parts] == ["tool-return", "user-prompt"]


def test_an_object_that_answers_whole_is_shown_whole() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert [tool.name for tool in info.function_tools] == ["run-tests"]
        return ModelResponse([TextPart("here"), ToolCallPart("run-tests", {"suite": "a"}, "x")])

    run = Run(resolve(FunctionModel(answer)).begin("s-0001"))
    thought = asyncio.run(run.hear("go"))

    assert (thought.text, thought.calls[0].arguments) == ("here", {"suite": "a"})
    assert run.streamed == ["here"]


def test_what_an_objects_own_function_raises_comes_out_as_it_is() -> None:
    function, _ = streaming([LookupError("a bug of the user's")])

    with pytest.raises(LookupError, match="a bug of the user's"):
        timed(function)


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([["ok"]], 0),
        ([[http_error(500)], ["ok"]], 1),
        ([[http_error(500)], [http_error(429)], ["ok"]], 1 + 4),
        ([[http_error(429, retry_after="7")], ["ok"]], 7),
        ([[http_error(429, retry_after="60")], [http_error(500)], ["ok"]], 60 + 4),
        ([[http_error(500, retry_after_ms="250")], ["ok"]], 0.25),
        ([[http_error(409, x_should_retry="true")], ["ok"]], 1),
        ([[e.ModelConnectionError("m", "cut", phase="read")], ["ok"]], 1),
        ([[e.ModelTimeoutError("m", "slow", phase="connect")], ["ok"]], 1),
    ],
)
def test_it_waits_as_long_as_it_is_asked_to_or_a_little_longer_each_time(
    steps: Any, seconds: float
) -> None:
    function, heard = streaming(*steps)

    came, passed = timed(function)

    assert isinstance(came, Thought)
    assert (came.text, passed, len(heard)) == ("ok", seconds, len(steps))


@pytest.mark.parametrize(
    "error",
    [
        http_error(400),
        http_error(500, x_should_retry="false"),
        http_error(429, retry_after="61"),
        e.ModelTimeoutError("m", "slow", phase="read"),
        e.ModelRequestTimeout("m", 3),
        e.ModelQuotaExceededError("m", "pay"),
        e.UnexpectedModelBehavior("babble"),
        e.UserError("wrong setting"),
    ],
)
def test_what_waiting_would_not_cure_is_not_waited_for(error: Exception) -> None:
    function, heard = streaming([error])

    came, passed = timed(function)

    assert isinstance(came, ModelError)
    assert "\n" not in str(came)
    assert (passed, len(heard)) == (0, 1)


def test_after_three_tries_it_gives_up() -> None:
    function, heard = streaming(*[[http_error(500)]] * 3)

    came, passed = timed(function)

    assert isinstance(came, ModelError)
    assert (came.status, passed, len(heard)) == (500, 5, 3)
    assert str(came).startswith("function:")


def test_once_text_was_shown_it_is_not_asked_again() -> None:
    function, heard = streaming(["half", e.ModelConnectionError("m", "cut", phase="read")])

    came, passed = timed(function)

    assert isinstance(came, ModelError)
    assert "broke off in the middle" in str(came)
    assert (passed, len(heard)) == (0, 1)


def test_a_call_that_was_cut_before_any_text_is_asked_for_again() -> None:
    cut = e.ModelConnectionError("m", "cut", phase="read")
    function, heard = streaming([{0: DeltaToolCall("run-tests", '{"su')}, cut], ["ok"])

    came, _ = timed(function)

    assert isinstance(came, Thought)
    assert (came.text, came.calls, came.usage.requests, len(heard)) == ("ok", (), 2, 2)


def test_cancelling_while_it_waits_to_ask_again_ends_the_wait() -> None:
    async def main() -> float:
        function, _ = streaming([http_error(429, retry_after="50")])
        loop = asyncio.get_running_loop()
        start = loop.time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await resolve(function).begin("s").think(prompt(user("hi")), quiet)
        return loop.time() - start

    assert run_virtual(main()) == 2


def test_all_models_of_a_fallback_failing_is_one_line() -> None:
    first, _ = streaming([http_error(400)])
    second, _ = streaming([http_error(401)])

    async def main() -> None:
        await resolve(FallbackModel(first, second)).begin("s").think(prompt(user("hi")), quiet)

    with pytest.raises(ModelError) as caught:
        run_virtual(main())

    assert "\n" not in str(caught.value)
    assert "(400)" in str(caught.value)


class Named:
    """A function model that says it is somebody else's."""

    def __init__(self, system: str, seen: Callable[[AgentInfo], None]) -> None:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
            seen(info)
            yield "done"

        self.model = FunctionModel(stream_function=stream)
        self.model._system = system


@pytest.mark.parametrize(("system", "told"), [("anthropic", ["run-tests"]), ("openai", [])])
def test_a_forced_last_answer_declares_used_tools_only_where_that_is_demanded_a24(
    system: str, told: list[str]
) -> None:
    seen: list[AgentInfo] = []
    turns = [
        user("go"),
        model("", request("run-tests", "call_0001", suite="a")),
        user("your last answer", result("call_0001", "green")),
    ]

    async def main(tools: Any) -> None:
        named = Named(system, seen.append).model
        await resolve(named).begin("s").think(prompt(*turns, tools=tools), quiet)

    run_virtual(main(()))
    run_virtual(main([RUN_TESTS]))

    off, on = seen
    assert [tool.name for tool in off.function_tools] == told
    assert (off.model_settings or {}).get("tool_choice") == ("none" if told else None)
    assert (on.model_settings or {}).get("tool_choice") is None
