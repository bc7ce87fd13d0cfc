"""The strict validator of requests can fail: each rule, broken once (M-42)."""

from typing import Any

import pytest

from models.chat_rules import violations

USER: Any = {"role": "user", "content": "hi"}
SYSTEM: Any = {"role": "system", "content": "be brief"}
MODEL: Any = {"role": "assistant", "content": "hello"}


def calls(*ids: str, arguments: str = "{}") -> Any:
    function = {"name": "run-tests", "arguments": arguments}
    tool_calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "tool_calls": tool_calls}


def answer(id: str) -> Any:
    return {"role": "tool", "tool_call_id": id, "content": "ok"}


def request(*messages: Any, **fields: Any) -> Any:
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    return {"model": "test", **stream, "messages": list(messages), **fields}


def tool(name: str, kind: str = "object") -> Any:
    return {"type": "function", "function": {"name": name, "parameters": {"type": kind}}}


@pytest.mark.parametrize(
    "body",
    [
        request(USER),
        request(SYSTEM, USER, MODEL, USER, tools=[tool("a"), tool("b")]),
        request(USER, calls("1", "2"), answer("1"), answer("2")),
        request(USER, calls("1"), answer("1"), USER, calls("2"), answer("2"), USER),
    ],
)
def test_a_legal_request_breaks_no_rule(body: Any) -> None:
    assert violations(body) == []


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (request(USER, model=None), "no model"),
        (request(USER, stream=False), "not streamed"),
        (request(USER, stream_options={}), "no usage"),
        (request(), "no user's"),
        (request(USER, MODEL), "last message is no user's"),
        (request(MODEL, USER), "first message is no user's"),
        (request(USER, SYSTEM, USER), "not the first"),
        (request(USER, USER), "in a row"),
        (request(USER, MODEL, MODEL, USER), "in a row"),
        (request({"role": "user", "content": ""}), "empty message"),
        (request(USER, {"role": "assistant", "content": None}, USER), "empty message"),
        (request(USER, calls("1"), USER), "without an answer: ['1']"),
        (request(USER, calls("1", "2"), answer("1")), "without an answer: ['2']"),
        (request(USER, calls("1", "2"), answer("2"), answer("1")), "out of order"),
        (request(USER, calls("1"), answer("1"), answer("1")), "answers no call"),
        (request(USER, answer("1")), "answers no call"),
        (request(USER, calls("1"), USER, answer("1")), "answers no call"),
        (request(USER, calls("1", "1"), answer("1"), answer("1")), "ids of calls repeat"),
        (request(USER, calls("1"), answer("1"), calls("1"), answer("1")), "ids of calls repeat"),
        (request(USER, calls("1", arguments="{"), answer("1")), "no JSON object"),
        (request(USER, calls("1", arguments="[]"), answer("1")), "no JSON object"),
        (request(USER, tools=[]), "empty list"),
        (request(USER, tools=[tool("a"), tool("a")]), "share a name"),
        (request(USER, tools=[tool("a b")]), "cannot name a tool"),
        (request(USER, tools=[tool("a", "string")]), "are no object"),
    ],
)
def test_each_rule_is_noticed_when_it_is_broken(body: Any, rule: str) -> None:
    assert any(rule in wrong for wrong in violations(body)), violations(body)
