"""Our turns as a provider's messages, and back (M-42, M-47, M-48)."""

import asyncio
import functools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from models.chat_rules import violations
from models.transcripts import RUN_TESTS, model, prompt, request, result, user
from postroom_runtime.contracts.call import CallState, ToolRequest
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.models.history import messages_of, parameters_of, thought_of
from postroom_runtime.models.model import Prompt

HERE = "anthropic https://api.example"


def signed() -> ModelResponse:
    """An answer with what only its provider understands."""
    return ModelResponse(
        parts=[
            ThinkingPart("step by step", signature="c2lnbmVk", provider_name="anthropic"),
            TextPart("Looking."),
            ToolCallPart("run-tests", '{"suite":  "fast"}', "toolu_1"),
            ToolCallPart("run-tests", '{"suite":  "slow"}', "toolu_1"),
        ],
        provider_name="anthropic",
        provider_url="https://api.example",
    )


def stored(response: ModelResponse) -> Turn:
    """The model turn that the stepper stores of an answer."""
    thought = thought_of(response, HERE)
    calls = [
        ToolRequest(tool=call.tool, arguments=call.arguments, id=f"call_{n:04d}")
        for n, call in enumerate(thought.calls, 1)
    ]
    return model(thought.text, *calls, opaque=thought.opaque)


def sent(turn: Turn, provider: str = HERE) -> ModelResponse:
    """What goes out for ``turn``."""
    answers = [result(call.id, "ok", tool=call.tool) for call in turn.calls]
    messages = messages_of(prompt(user("go"), turn, user("on", *answers)), provider)
    response = messages[1]
    assert isinstance(response, ModelResponse)
    return response


def test_what_only_the_provider_understands_goes_back_to_it_under_our_ids() -> None:
    response = sent(stored(signed()))

    thinking, text, *calls = response.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.content, thinking.signature) == ("step by step", "c2lnbmVk")
    assert text == TextPart("Looking.")
    assert [(c.args, c.tool_call_id) for c in calls if isinstance(c, ToolCallPart)] == [
        ('{"suite":  "fast"}', "call_0001"),
        ('{"suite":  "slow"}', "call_0002"),
    ]
    assert response.provider_name == "anthropic"


def test_a_call_that_the_provider_stored_keeps_its_id_and_so_does_its_result() -> None:
    response = ModelResponse(
        [ToolCallPart("run-tests", "{}", "call_xyz", id="fc_1", provider_name="openai")]
    )

    turns = [user("go"), stored(response), user("", result("call_0001", "ok"))]
    _, answer, back = messages_of(prompt(*turns), HERE)

    assert [getattr(part, "tool_call_id", None) for part in answer.parts] == ["call_xyz"]
    assert [getattr(part, "tool_call_id", None) for part in back.parts] == ["call_xyz"]


def test_malformed_arguments_go_back_as_an_empty_object_not_as_they_were() -> None:
    thinking = ThinkingPart("hm", signature="c2ln", provider_name="anthropic")
    response = ModelResponse([thinking, ToolCallPart("run-tests", '{"suite": "fa', "toolu_1")])
    thought = thought_of(response, HERE)
    called = [replace(call, id="call_0001") for call in thought.calls]

    _, call = sent(model(thought.text, *called, opaque=thought.opaque)).parts

    assert isinstance(call, ToolCallPart)
    assert call.args == {}


def test_it_survives_the_store_byte_by_byte() -> None:
    """Opaque JSON is JSON: stored and read again it makes the same request."""
    turn = stored(signed())
    read = model(turn.text, *turn.calls, opaque=json.loads(json.dumps(turn.opaque)))

    dump = ModelMessagesTypeAdapter.dump_json
    assert dump([sent(read)]) == dump([sent(turn)])


@pytest.mark.parametrize(
    ("opaque", "provider"),
    [
        ("as stored", "openai https://api.example"),
        ({"provider": HERE, "message": {"kind": "of a later version"}}, HERE),
        ({"provider": HERE, "message": {"kind": "request", "parts": []}}, HERE),
        ({"provider": HERE}, HERE),
        ({}, HERE),
        ([1], HERE),
        ("text", HERE),
        (None, HERE),
    ],
)
def test_what_cannot_be_read_or_is_anothers_falls_back_to_words_and_calls(
    opaque: Any, provider: str
) -> None:
    turn = stored(signed())
    turn = model(turn.text, *turn.calls, opaque=turn.opaque if opaque == "as stored" else opaque)

    text, *calls = sent(turn, provider).parts

    assert text == TextPart("Looking.")
    assert [(c.args, c.tool_call_id) for c in calls if isinstance(c, ToolCallPart)] == [
        ({"suite": "fast"}, "call_0001"),
        ({"suite": "slow"}, "call_0002"),
    ]


def test_a_turn_stored_without_the_calls_it_made_falls_back_to_its_words() -> None:
    whole = stored(signed())

    assert sent(model(whole.text, opaque=whole.opaque)).parts == [TextPart("Looking.")]


def test_plain_answers_keep_nothing_beside_the_turn() -> None:
    plain = ModelResponse([TextPart("hi"), ToolCallPart("run-tests", "{}", "x")])

    assert thought_of(plain, HERE).opaque is None


def test_parts_that_are_neither_text_nor_call_are_not_shown_but_kept() -> None:
    picture = FilePart(BinaryContent(b"pixels", media_type="image/png"))
    response = ModelResponse([TextPart("hi "), picture, TextPart("there")])

    thought = thought_of(response, HERE)

    assert (thought.text, thought.calls) == ("hi there", ())
    assert [part.part_kind for part in sent(stored(response)).parts] == ["text", "file", "text"]


def test_a_failed_calls_message_goes_out_as_it_is() -> None:
    turns = [
        user("go"),
        model("", request("run-tests", "call_0001", suite="x")),
        user("", result("call_0001", "run-tests failed: no", state=CallState.FAILED)),
    ]

    last = messages_of(prompt(*turns), HERE)[-1]
    assert isinstance(last, ModelRequest)
    [part] = last.parts

    assert isinstance(part, ToolReturnPart)
    assert part.model_response_str() == "run-tests failed: no"


def test_instructions_go_with_the_last_request_and_none_are_no_empty_ones() -> None:
    turns = [user("one"), model("1"), user("two")]

    with_some = messages_of(prompt(*turns, instructions="be brief"), HERE)
    without = messages_of(prompt(*turns), HERE)

    assert [getattr(m, "instructions", None) for m in with_some] == [None, None, "be brief"]
    assert [getattr(m, "instructions", None) for m in without] == [None, None, None]


def test_what_a_prompt_offers_is_what_the_provider_is_told() -> None:
    [tool] = parameters_of(prompt(user("go"), tools=[RUN_TESTS])).function_tools

    assert (tool.name, tool.description) == ("run-tests", "Run a test suite.")
    assert tool.parameters_json_schema == RUN_TESTS.parameters


def test_with_tools_off_those_used_are_declared_where_a_provider_insists() -> None:
    turns = [user("go"), model("", request("a", "c1"), request("b", "c2"), request("a", "c3"))]

    assert parameters_of(prompt(*turns)).function_tools == []
    declared = parameters_of(prompt(*turns), declare_used=True).function_tools
    assert [tool.name for tool in declared] == ["a", "b"]


# ── A property: whatever the transcript, the request is legal ──

_IDS = [f"call_{n:04d}" for n in range(1, 6)]
_TEXTS = st.sampled_from(["", "hi", "[mail m-0001 from user]\nhello"])


@st.composite
def transcripts(draw: st.DrawFn) -> Prompt:
    """Any mess a session's history could be, ended by something a user said."""
    free = iter(_IDS)
    turns: list[Turn] = [user("go")]
    for role in draw(st.lists(st.sampled_from(list(Role)), max_size=8)):
        if role is Role.MODEL:
            ids = [id for id in (next(free, None) for _ in range(draw(st.integers(0, 2)))) if id]
            turns.append(model(draw(_TEXTS), *[request("run-tests", id) for id in ids]))
        else:
            answered = draw(st.lists(st.sampled_from(_IDS), unique=True, max_size=3))
            turns.append(user(draw(_TEXTS), *[result(id, "ok") for id in answered]))
    return prompt(*turns, user("and now?"), instructions=draw(_TEXTS))


@given(transcripts())
def test_every_transcript_makes_a_request_that_a_strict_server_takes_m42(asked: Prompt) -> None:
    messages = messages_of(asked, HERE)

    assert violations(wire(messages)) == []
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    assert isinstance(last.parts[-1], UserPromptPart)


@functools.cache
def openai_adapter() -> OpenAIChatModel:
    return OpenAIChatModel("test", provider=OpenAIProvider("http://127.0.0.1/v1", "key"))


def wire(messages: list[ModelMessage]) -> Any:
    """What the OpenAI adapter would send of these messages."""
    parameters = parameters_of(prompt(user("x")))
    mapped = asyncio.run(openai_adapter()._map_messages(messages, parameters))
    return {
        "model": "test",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": mapped,
    }
