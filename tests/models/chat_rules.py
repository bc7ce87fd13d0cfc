"""What a strict OpenAI-compatible server demands of a chat completion request (M-42). Pure."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def violations(body: Any) -> list[str]:
    """Return what is wrong with ``body``, in words; empty when a strict server would take it."""
    return [*_envelope(body), *_tools(body), *_messages(body.get("messages", []))]


def _envelope(body: Any) -> Iterator[str]:
    if not isinstance(body.get("model"), str):
        yield "no model is named"
    if body.get("stream") is not True:
        yield "the answer is not streamed"
    if not (body.get("stream_options") or {}).get("include_usage"):
        yield "no usage is asked for"


def _tools(body: Any) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        return
    if not tools:
        yield "an empty list of tools"
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) != len(names):
        yield f"tools share a name: {names}"
    for tool in tools:
        if not _TOOL_NAME.fullmatch(tool["function"]["name"]):
            yield f"{tool['function']['name']!r} cannot name a tool"
        if tool["function"].get("parameters", {}).get("type") != "object":
            yield f"the parameters of {tool['function']['name']} are no object"


def _messages(messages: list[Any]) -> Iterator[str]:
    roles = [message["role"] for message in messages]
    if "system" in roles[1:]:
        yield "a system message that is not the first"
    if not roles or roles[-1] not in ("user", "tool"):
        yield f"the last message is no user's: {roles}"
    if (said := [role for role in roles if role != "system"]) and said[0] != "user":
        yield f"the first message is no user's: {roles}"
    for before, after in pairwise(said):
        if before == after and before != "tool":
            yield f"two messages of {before} in a row: {roles}"
    yield from _texts(messages)
    yield from _answers(messages)


def _texts(messages: list[Any]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if message["role"] == "tool":
            if not isinstance(content, str):
                yield f"a tool message without text: {message}"
        elif not (isinstance(content, str) and content) and not message.get("tool_calls"):
            yield f"an empty message: {message}"


def _answers(messages: list[Any]) -> Iterator[str]:
    """Each call is answered once, directly after its turn, in order; no answer is left over."""
    seen: set[str] = set()
    expected: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not expected or message.get("tool_call_id") != expected.pop(0):
                yield f"a tool message that answers no call, or out of order: {message}"
            continue
        if expected:
            yield f"calls without an answer: {expected}"
        expected = [call["id"] for call in message.get("tool_calls") or []]
        if repeated := seen.intersection(expected) or len(set(expected)) != len(expected):
            yield f"ids of calls repeat: {repeated}"
        seen.update(expected)
        for call in message.get("tool_calls") or []:
            if not _is_object(call["function"]["arguments"]):
                yield f"arguments that are no JSON object: {call}"
    if expected:
        yield f"calls without an answer: {expected}"


def _is_object(text: object) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False
