"""Providers over real HTTP: an OpenAI-compatible server on the loopback, strict about requests."""

import asyncio
import json

import pytest

from models.asking import ask, fail, mind_of
from models.openai_server import (
    Calls,
    OpenAIServer,
    Says,
)
from models.transcripts import RUN_TESTS, Run, model, prompt, quiet, request, result, user
from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.model import Thought
from postroom_runtime.models.resolve import resolve

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
