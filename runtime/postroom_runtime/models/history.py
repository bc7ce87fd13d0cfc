"""Our turns as a provider's messages, and a provider's answer as our thought. Pure.

The transcript is ours; what only a provider understands (signatures of its thinking, its own ids) is
kept beside it on the model turn as JSON and handed back to the same provider. Ids of calls are ours,
for those of providers may repeat; only where a provider has stored the call itself does its id stay.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pydantic import ValidationError

from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.turn import Role, Turn, Usage
from postroom_runtime.models.model import Prompt, Thought
from postroom_runtime.models.prices import price_of

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestParameters

__all__ = ["messages_of", "parameters_of", "text_of", "thought_of"]

_NO_RESULT: Final = "not run: the turn ended before it"
"""What a model is told of a call that nothing answered, because its run was cut there."""

_SHOWN: Final = 2000
"""Characters of unreadable arguments that are quoted back to the model."""


def messages_of(prompt: Prompt, provider: str) -> "list[ModelMessage]":
    """Return the transcript as messages that every provider accepts, oldest first.

    A user turn is one request: the tool messages, then at most one user message (M-42). User turns
    that follow one another, because a completion was cut or failed, go out as one. A model turn that
    said and called nothing is left out.

    Args:
        prompt: What is asked; its instructions go with the last request.
        provider: Whose answers may get back what they left on their turns, see ``thought_of``.
    """
    from pydantic_ai.messages import ModelRequest, repair_messages

    messages: list[ModelMessage] = []
    heard: list[Turn] = []
    calls: Sequence[ToolRequest] = ()
    ids: Sequence[str] = ()
    for turn in prompt.turns:
        if turn.role is Role.USER:
            heard.append(turn)
        elif turn.text or turn.calls:
            messages += _request(heard, calls, ids)
            response = _restored(turn, provider) or _rebuilt(turn)
            messages.append(response)
            heard, calls, ids = [], turn.calls, [part.tool_call_id for part in _made(response)]
    messages += _request(heard, calls, ids)
    if isinstance(last := messages[-1], ModelRequest):
        messages[-1] = replace(last, instructions=prompt.instructions or None)
    return repair_messages(messages)


_OUTPUT_TOOL: Final = "final_result"
"""How a provider without a JSON mode is made to answer: as the arguments of a call of this."""


def parameters_of(
    prompt: Prompt, *, declare_used: bool = False, json_mode: bool = False
) -> "ModelRequestParameters":
    """Return what may be called, and what the answer has to look like, as a provider is told.

    Args:
        prompt: What is asked.
        declare_used: With tools off, declare by name those that the transcript used: some providers
            refuse a history with calls of tools they were not told of.
        json_mode: The model can be held to a JSON schema; else its profile decides how it is asked.
    """
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(
            name=spec.name,
            description=spec.description,
            parameters_json_schema=dict(spec.parameters),
        )
        for spec in prompt.tools
    ]
    if not tools and declare_used:
        used = {call.tool: None for turn in prompt.turns for call in turn.calls}
        tools = [ToolDefinition(name=name) for name in used]
    if (schema := prompt.schema) is None:
        return ModelRequestParameters(function_tools=tools)
    shape, told = dict(schema.json_schema), schema.description or None
    return ModelRequestParameters(
        function_tools=tools,
        output_mode="native" if json_mode else "auto",
        output_object=OutputObjectDefinition(shape, schema.name, told),
        output_tools=[
            ToolDefinition(
                name=_OUTPUT_TOOL, description=told, parameters_json_schema=shape, kind="output"
            )
        ],
    )


def thought_of(response: "ModelResponse", provider: str) -> Thought:
    """Return a provider's answer, without parts that this version does not know.

    A structured answer is its text, however the provider gave it.

    Args:
        response: The whole answer.
        provider: Who gave it: the system and its address.
    """
    made = _made(response)
    if outputs := [part for part in made if part.tool_name == _OUTPUT_TOOL]:
        return replace(
            thought_of(replace(response, parts=[]), provider), text=outputs[0].args_as_json_str()
        )
    return Thought(
        text=text_of(response),
        calls=tuple(_call(part) for part in made),
        usage=Usage(
            requests=1,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            cost=price_of(response),
        ),
        opaque=_kept(response, provider),
        cut_off=response.finish_reason == "length",
    )


def text_of(response: "ModelResponse") -> str:
    """Return what ``response`` says."""
    from pydantic_ai.messages import TextPart

    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _made(response: "ModelResponse") -> "list[ToolCallPart]":
    """Return the calls of ``response`` that are ours to make."""
    from pydantic_ai.messages import ToolCallPart

    return [part for part in response.parts if isinstance(part, ToolCallPart)]


def _request(
    turns: Sequence[Turn], calls: Sequence[ToolRequest], ids: Sequence[str]
) -> "Iterable[ModelRequest]":
    """Return what was heard after a model turn that made ``calls``, as one request or none.

    Args:
        turns: The user turns since then; may be empty.
        calls: What they answer.
        ids: What each of the calls goes out as.
    """
    from pydantic_ai.messages import (
        ModelRequest,
        ModelRequestPart,
        ToolReturnPart,
        UserPromptPart,
    )

    # The outcome of a failed call stays the default: otherwise some providers are sent the failure
    # in a wrapping of the library's, and the model would not read what its turn says.
    told = {message.call: message.content for turn in turns for message in turn.results}
    parts: list[ModelRequestPart] = [
        ToolReturnPart(call.tool, told.get(call.id, _NO_RESULT), tool_call_id=id)
        for call, id in zip(calls, ids, strict=True)
    ]
    if text := "\n\n".join(turn.text for turn in turns if turn.text):
        parts.append(UserPromptPart(text))
    if parts:
        yield ModelRequest(parts)


def _rebuilt(turn: Turn) -> "ModelResponse":
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ToolCallPart

    parts: list[ModelResponsePart] = [TextPart(turn.text)] if turn.text else []
    parts += [ToolCallPart(call.tool, dict(call.arguments), call.id) for call in turn.calls]
    return ModelResponse(parts)


def _restored(turn: Turn, provider: str) -> "ModelResponse | None":
    """Return the answer as ``provider`` gave it, with our call ids, if it left it on ``turn``."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ToolCallPart

    if not isinstance(turn.opaque, dict) or turn.opaque.get("provider") != provider:
        return None
    try:
        [response] = ModelMessagesTypeAdapter.validate_python([turn.opaque.get("message")])
    except (ValidationError, ValueError):
        return None  # Written by another version of the library: the words and calls still serve.
    if not isinstance(response, ModelResponse):
        return None

    if [part.tool_name for part in _made(response)] != [call.tool for call in turn.calls]:
        return None  # The turn was stored with other calls than the provider made.
    ours = iter(turn.calls)
    parts = [
        _as_called(part, next(ours)) if isinstance(part, ToolCallPart) else part
        for part in response.parts
    ]
    return replace(response, parts=parts)


def _as_called(part: "ToolCallPart", call: ToolRequest) -> "ToolCallPart":
    args: Any = dict(call.arguments) if call.malformed else part.args
    # An item that the provider stored under an id of its own may be looked up, its call id included.
    id = part.tool_call_id if part.id else call.id
    return replace(part, tool_call_id=id, args=args)


def _kept(response: "ModelResponse", provider: str) -> Json:
    """Return what the turn keeps for ``provider``: None when text and calls say it all."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter, TextPart, ToolCallPart

    def plain(part: object) -> bool:
        return (
            isinstance(part, TextPart | ToolCallPart)
            and part.id is None
            and part.provider_details is None
        )

    if all(plain(part) for part in response.parts):
        return None
    [message] = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    message.pop("usage", None)  # On the turn already.
    return {"provider": provider, "message": message}


def _call(part: "ToolCallPart") -> ToolRequest:
    if not part.args:
        return ToolRequest(tool=part.tool_name, arguments={})
    if isinstance(part.args, dict):
        return ToolRequest(tool=part.tool_name, arguments=part.args)
    try:
        arguments = json.loads(part.args, parse_constant=_no_json)
    except ValueError as error:
        return _malformed(part.tool_name, part.args, f"not JSON ({error})")
    if not isinstance(arguments, dict):
        return _malformed(part.tool_name, part.args, "not a JSON object")
    return ToolRequest(tool=part.tool_name, arguments=arguments)


def _malformed(tool: str, written: str, why: str) -> ToolRequest:
    more = "…" if len(written) > _SHOWN else ""
    return ToolRequest(
        tool=tool, arguments={}, malformed=f"the arguments are {why}: {written[:_SHOWN]}{more}"
    )


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON value")
