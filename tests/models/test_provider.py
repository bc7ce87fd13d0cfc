"""Providers over real HTTP: an OpenAI-compatible server on the loopback, strict about requests."""

import asyncio
import json
import threading
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from models.openai_server import (
    Babbles,
    Calls,
    Cuts,
    OpenAIServer,
    Received,
    Refuses,
    Reply,
    Says,
    Stalls,
)
from models.transcripts import RUN_TESTS, Run, model, prompt, quiet, request, result, user
from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.building import build
from postroom_runtime.models.forms import ModelForm
from postroom_runtime.models.model import Thought
from postroom_runtime.models.provider import ProviderMind, ProviderModel
from postroom_runtime.models.resolve import resolve

SECOND = 1.0


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach out with a key of whoever runs it, nor through a proxy."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def mind_of(server: OpenAIServer) -> ProviderMind:
    mind = resolve(server.model).begin("s-0001")
    assert isinstance(mind, ProviderMind)
    return mind


def ask(server: OpenAIServer, *texts: str, **fields: Any) -> Thought:
    turns = [user(text) for text in texts or ("hi",)]
    return asyncio.run(mind_of(server).think(prompt(*turns, **fields), quiet))


def fail(*replies: Reply) -> ModelError:
    with OpenAIServer(*replies) as server, pytest.raises(ModelError) as caught:
        ask(server)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(server.model)
    assert caught.value.model == server.model
    return caught.value


# ── Asking and answering ──


def test_an_answer_streams_and_is_returned_whole_with_its_usage() -> None:
    async def main(server: OpenAIServer) -> tuple[Run, Thought]:
        run = Run(mind_of(server))
        return run, await run.hear("hello")

    with OpenAIServer(Says(("Good ", "morning", "!"), usage=(21, 5))) as server:
        run, thought = asyncio.run(main(server))

    assert thought == Thought(
        text="Good morning!", usage=Usage(requests=1, input_tokens=21, output_tokens=5)
    )
    assert run.streamed == ["Good ", "morning", "!"]


def test_the_request_carries_instructions_the_text_as_it_is_and_the_tools() -> None:
    text = "[mail m-0001 from user]\nhello </mail> <system>"

    with OpenAIServer(Says(("ok",))) as server:
        ask(server, text, tools=[RUN_TESTS], instructions="be brief")

    [received] = server.requests
    assert received.path == "/v1/chat/completions"
    assert received.body["model"] == "test"
    assert received.messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": text},
    ]
    [tool] = received.body["tools"]
    assert tool["function"]["name"] == "run-tests"
    assert tool["function"]["description"] == "Run a test suite."
    assert tool["function"]["parameters"]["required"] == ["suite"]


def test_parallel_calls_in_fragments_come_whole_and_in_order() -> None:
    calls = (
        Calls("run-tests", '{"suite": "fast", "times": 3}'),
        Calls("run-tests", '{"suite": "slow"}'),
        Calls("list-sessions", ""),
    )

    with OpenAIServer(Says(("looking",), calls=calls)) as server:
        thought = ask(server, tools=[RUN_TESTS])

    assert thought.text == "looking"
    assert [(c.tool, c.arguments, c.malformed) for c in thought.calls] == [
        ("run-tests", {"suite": "fast", "times": 3}, ""),
        ("run-tests", {"suite": "slow"}, ""),
        ("list-sessions", {}, ""),
    ]
    assert [c.id for c in thought.calls] == ["", "", ""]


def test_results_and_mail_go_out_in_one_request_results_first_under_our_ids_m42() -> None:
    """M-42: one tool message per call, directly after it, then one user message (A-12)."""

    async def main(server: OpenAIServer) -> None:
        run = Run(mind_of(server))
        await run.hear("go")
        await run.hear("[mail m-0002 from user]\nand staging", "green", "red")
        await run.hear("", "blue")

    one_id_for_all = Calls("run-tests", '{"suite": "a"}')  # As some servers give them.
    with OpenAIServer(
        Says((), calls=(one_id_for_all, one_id_for_all)),
        Says((), calls=(one_id_for_all,)),
        Says(("done",)),
    ) as server:
        asyncio.run(main(server))

    last = server.requests[2].messages
    assert [(m["role"], m.get("tool_call_id") or m.get("content")) for m in last] == [
        ("user", "go"),
        ("assistant", None),
        ("tool", "call_0001"),
        ("tool", "call_0002"),
        ("user", "[mail m-0002 from user]\nand staging"),
        ("assistant", None),
        ("tool", "call_0003"),
    ]
    assert [call["id"] for call in last[1]["tool_calls"]] == ["call_0001", "call_0002"]
    assert [m["content"] for m in last if m["role"] == "tool"] == ["green", "red", "blue"]


def test_a_transcript_with_gaps_still_makes_a_legal_request() -> None:
    """A completion cut by an interrupt leaves two user turns; a budget's end may drop calls."""
    turns = [
        user("one"),
        user("two"),
        model("", request("run-tests", "call_0001", suite="a")),
        user("never mind"),
        model(""),
        user("three", result("call_0009", "of nobody")),
        model("fine"),
        user("four"),
    ]

    with OpenAIServer(Says(("ok",))) as server:
        asyncio.run(mind_of(server).think(prompt(*turns), quiet))

    messages = server.requests[0].messages
    assert [m["role"] for m in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "user",
    ]
    assert messages[0]["content"] == "one\n\ntwo"
    assert messages[2]["content"] == "not run: the turn ended before it"
    assert messages[3]["content"] == "never mind\n\nthree"


@pytest.mark.parametrize("written", ['{"suite": "fa', "[1, 2]", '"text"', "suite=fast", "NaN"])
def test_arguments_that_are_no_json_object_are_malformed_and_the_request_after_is_legal(
    written: str,
) -> None:
    async def main(server: OpenAIServer) -> Thought:
        run = Run(mind_of(server))
        thought = await run.hear("go")
        await run.hear("", thought.calls[0].malformed)
        return thought

    with OpenAIServer(Says((), calls=(Calls("run-tests", written),)), Says(("ok",))) as server:
        thought = asyncio.run(main(server))

    [call] = thought.calls
    assert call.arguments == {}
    assert written in call.malformed
    assert "JSON" in call.malformed


def test_an_answer_ended_by_the_output_limit_is_cut_off_a13() -> None:
    with OpenAIServer(Says(("half a sen",), finish="length")) as server:
        thought = ask(server)

    assert (thought.text, thought.cut_off) == ("half a sen", True)


def test_an_empty_answer_is_a_degenerate_turn_and_no_error_a13() -> None:
    with OpenAIServer(Says(())) as server:
        thought = ask(server)

    assert (thought.text, thought.calls, thought.cut_off) == ("", (), False)


def test_an_answer_withheld_by_the_content_filter_is_an_error() -> None:
    assert "content filter" in str(fail(Says((), finish="content_filter")))


def test_thinking_is_kept_for_the_provider_and_never_shown() -> None:
    async def main(server: OpenAIServer) -> Run:
        run = Run(mind_of(server))
        await run.hear("go")
        await run.hear("more", "green")
        return run

    with OpenAIServer(
        Says((), thinks=("hm, ", "let me see"), calls=(Calls("run-tests", '{"suite": "a"}'),)),
        Says(("done",)),
    ) as server:
        run = asyncio.run(main(server))

    assert run.streamed == ["done"]
    assert "let me see" in json.dumps(run.turns[1].opaque)
    assert run.turns[3].opaque is None
    # It goes back to the server that it came from.
    assert server.requests[1].messages[1]["reasoning_content"] == "hm, let me see"


def test_with_tools_off_none_are_offered_a24() -> None:
    turns = [
        user("go"),
        model("", request("run-tests", "call_0001", suite="a")),
        user("your last answer", result("call_0001", "green")),
    ]

    with OpenAIServer(Says(("done",))) as server:
        asyncio.run(mind_of(server).think(prompt(*turns), quiet))

    assert "tools" not in server.requests[0].body


# ── Keys and servers ──


def test_a_named_server_needs_no_key() -> None:
    with OpenAIServer(Says(("ok",))) as server:
        ask(server)

    assert server.requests[0].headers["authorization"] == "Bearer no-key"


def test_a_key_that_is_set_is_used_also_when_it_is_set_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(server: OpenAIServer) -> None:
        run = Run(mind_of(server))
        for key in ("first", "second"):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            await run.hear("hi")

    with OpenAIServer(Says(("a",)), Says(("b",))) as server:
        asyncio.run(main(server))

    assert [r.headers["authorization"] for r in server.requests] == [
        "Bearer first",
        "Bearer second",
    ]


def test_the_name_of_a_model_may_hold_colons_slashes_and_at_signs() -> None:
    with OpenAIServer(Says(("ok",))) as server:
        named = resolve(f"openai-chat:@hub/qwen2.5:7b@{server.url}")
        asyncio.run(named.begin("s").think(prompt(user("hi")), quiet))

    assert server.requests[0].body["model"] == "@hub/qwen2.5:7b"


def test_ollama_is_reached_where_it_is_named() -> None:
    with OpenAIServer(Says(("ok",))) as server:
        named = resolve(f"ollama:qwen2.5:0.5b@{server.url}")
        asyncio.run(named.begin("s").think(prompt(user("hi")), quiet))

    assert server.requests[0].body["model"] == "qwen2.5:0.5b"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5", "openai-chat:gpt-5@http://host/v1"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("google:gemini", "GOOGLE_API_KEY or GEMINI_API_KEY"),
    ],
)
def test_a_missing_key_is_one_line_that_says_what_to_set(text: str, wanted: str) -> None:
    with pytest.raises(ModelError) as caught:
        asyncio.run(resolve(text).begin("s").think(prompt(user("hi")), quiet))

    assert str(caught.value).startswith(f"{text} needs ")
    assert wanted in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_a_missing_package_is_one_line_that_says_what_to_install(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "key")
    # None in sys.modules is how Python itself marks a module that cannot be imported.
    monkeypatch.setitem(__import__("sys").modules, f"pydantic_ai.models.{provider}", None)

    with pytest.raises(ModelError) as caught:
        asyncio.run(resolve(f"{provider}:x").begin("s").think(prompt(user("hi")), quiet))

    assert f"pip install 'postroom[{provider}]'" in str(caught.value)


# ── Failures ──


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Refuses(401, "Incorrect API key provided"), "check OPENAI_API_KEY. It said: Incorrect"),
        (Refuses(403), "the key was refused"),
        (Refuses(404, "model 'test' not found"), "no such model: check its name"),
        (Refuses(400, "bad request"), "the request was refused. It said: bad request"),
        (
            Refuses(400, "maximum context length is 8192", code="context_length_exceeded"),
            "no longer fits",
        ),
        (Refuses(429, "pay first", code="insufficient_quota"), "quota is used up"),
        (Refuses(429, retry_after=3600), "asks to wait 3600s"),
    ],
)
def test_what_no_second_try_would_cure_fails_at_once_in_one_line(reply: Refuses, says: str) -> None:
    error = fail(reply)  # The server would complain of a second request.

    assert says in str(error)
    assert error.status == reply.status


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_what_passes_by_itself_is_tried_again(status: int) -> None:
    with OpenAIServer(
        Refuses(status, retry_after=0.001), Refuses(status, retry_after=0.001), Says(("ok",))
    ) as server:
        thought = ask(server)

    assert thought.text == "ok"
    assert thought.usage.requests == 1, "a refusal costs nothing"


def test_after_three_tries_it_fails_and_says_so() -> None:
    error = fail(*[Refuses(429, "slow down", retry_after=0.001)] * 3)

    assert error.status == 429
    assert "Tried 3 times. It said: slow down" in str(error)


def test_a_connection_cut_before_anything_was_shown_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("postroom_runtime.models.provider_errors._WAITS", (0.001, 0.001))
    half_a_call = Cuts(calls=(Calls("run-tests", '{"suite": "a"}'),))

    with OpenAIServer(Cuts(), half_a_call, Says(("ok",))) as server:
        thought = ask(server, tools=[RUN_TESTS])

    assert (thought.text, thought.calls) == ("ok", ())
    assert thought.usage.requests == 2, "the one that had begun to answer is paid for"


def test_an_answer_cut_in_the_middle_is_an_error_and_is_not_asked_for_twice() -> None:
    async def main(server: OpenAIServer) -> ProviderMind:
        mind = mind_of(server)
        with pytest.raises(ModelError, match=r"was cut\. The answer broke off in the middle"):
            await mind.think(prompt(user("hi")), shown.append)
        return mind

    shown: list[str] = []
    with OpenAIServer(Cuts(("half ", "an"))) as server:
        mind = asyncio.run(main(server))

    assert shown == ["half ", "an"]
    assert mind.owed == Usage(requests=1)


@pytest.mark.parametrize(
    "body",
    [
        "data: {this is no JSON\n\n",
        'data: {"error": {"message": "out of memory", "code": 500}}\n\ndata: [DONE]\n\n',
        "data: [1, 2, 3]\n\n",
        'data: {"choices": [{"index": 0, "delta": "text"}]}\n\n',
        "<html>busy</html>",
    ],
)
def test_a_malformed_stream_is_a_model_error(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom_runtime.models.provider_errors._WAITS", (0.001, 0.001))

    with (
        OpenAIServer(answer=lambda received: Babbles(body)) as server,
        pytest.raises(ModelError) as caught,
    ):
        ask(server)

    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom_runtime.models.provider_errors._WAITS", (0.001, 0.001))
    with OpenAIServer() as gone:
        pass

    with pytest.raises(ModelError, match=rf"{gone.url}: cannot be reached: .*Tried 3 times"):
        ask(gone)


# ── Cancelling ──


@pytest.mark.parametrize("pieces", [(), ("a few ", "words")])
def test_cancelling_hangs_up_at_once_and_the_request_counts_m78(pieces: tuple[str, ...]) -> None:
    """M-78: an interrupt that cuts a completion closes the request, which is paid for."""

    async def main(server: OpenAIServer) -> tuple[Received, Usage, Thought]:
        mind = mind_of(server)
        streamed = asyncio.Event()
        task = asyncio.create_task(
            mind.think(
                prompt(user("hi")), lambda piece: streamed.set() if piece == "words" else None
            )
        )
        received = await asyncio.to_thread(server.wait_for_request)
        if pieces:
            await streamed.wait()
        assert not received.hung_up.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(received.hung_up.wait, SECOND), "the request is still open"
        owed = mind.owed
        return received, owed, await mind.think(prompt(user("hi"), user("again")), quiet)

    with OpenAIServer(Stalls(pieces), Says(("ok",))) as server:
        _, owed, after = asyncio.run(main(server))

    assert owed == Usage(requests=1)
    assert after.usage == Usage(requests=2, input_tokens=11, output_tokens=7)


def test_cancelling_while_the_client_is_being_built_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow_import(form: ModelForm) -> None:
        begun.set()
        go_on.wait(20)

    async def main() -> None:
        mind = resolve("openai-chat:m@http://127.0.0.1:1/v1").begin("s-0001")
        task = asyncio.create_task(mind.think(prompt(user("hi")), quiet))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not go_on.is_set()
        go_on.set()

    monkeypatch.setattr("postroom_runtime.models.provider.build", slow_import)
    # Were the import waited for, the test would end after 20 seconds, by the event's own time-out.
    asyncio.run(asyncio.wait_for(main(), 15))


def test_sessions_that_begin_at_once_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[ModelForm] = []

    def counting(form: ModelForm) -> Any:
        built.append(form)
        return build(form)

    async def main(server: OpenAIServer) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(mind_of(server).think(prompt(user("hi")), quiet))

    monkeypatch.setattr("postroom_runtime.models.provider.build", counting)
    with OpenAIServer(answer=lambda received: Says(("ok",))) as server:
        asyncio.run(main(server))

    assert len(built) == 1


def test_a_client_of_an_object_handed_over_does_not_retry_beside_us() -> None:
    with OpenAIServer(answer=lambda received: Refuses(429, retry_after=0.001)) as server:
        chat = OpenAIChatModel("test", provider=OpenAIProvider(server.url, "key"))
        with pytest.raises(ModelError, match="Tried 3 times"):
            asyncio.run(resolve(chat).begin("s").think(prompt(user("hi")), quiet))

    assert len(server.requests) == 3


# ── Loops ──


def test_one_model_serves_sessions_at_once_and_loops_one_after_another() -> None:
    async def main() -> list[str]:
        minds = [shared.begin(f"s-{n}") for n in range(5)]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(mind.think(prompt(user(str(n))), quiet))
                for n, mind in enumerate(minds)
            ]
        return [task.result().text for task in tasks]

    def repeats(received: Received) -> Says:
        return Says((received.messages[-1]["content"],))

    with OpenAIServer(answer=repeats) as server:
        shared = resolve(server.model)
        assert isinstance(shared, ProviderModel)
        assert shared.name == server.model
        for _ in range(2):
            assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]


def test_a_server_that_only_the_environment_names_is_in_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer(Refuses(401)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        mind = resolve("openai-chat:test").begin("s-0001")
        with pytest.raises(ModelError) as caught:
            asyncio.run(mind.think(prompt(user("hi")), quiet))

    assert f"openai-chat:test (401): the key was refused at {server.url}" in str(caught.value)
