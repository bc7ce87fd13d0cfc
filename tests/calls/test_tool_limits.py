"""What cannot be a tool, and what a tool may return (A-48; api.md §2)."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from postroom_runtime.calls.tool import as_json, as_text, make_tool, tool
from postroom_runtime.contracts.errors import ConfigError


class Stage(Enum):
    LAB = "lab"
    LIVE = "live"


class Build(BaseModel):
    number: int
    tag: str = "main"


def pay(sum: int, api_key: str, account: str = "shop") -> str:
    """Pay.

    Args:
        sum: In cents.
        api_key: Never shown.
    """
    return f"{sum} {api_key} {account}"


# ── What is no tool ──


def positional(x: int, /) -> None: ...
def forward(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821
def attribute(x: "datetime.nope") -> None: ...  # type: ignore[name-defined]
def garbled(x: "int |") -> None: ...  # type: ignore[valid-type]  # noqa: F722
def schemaless(x: Callable[[], int]) -> None: ...


class Opaque: ...


def opaque(x: Opaque) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: x, "a lambda has no name"),
        (positional, "tool positional: 'x' is positional only, and models give names"),
        (len, "positional only"),
        (max, "tool max: no signature found"),
        (forward, r"tool forward: name 'Nowhere' is not defined; its annotations must resolve"),
        (attribute, r"tool attribute: .*nope.*; its annotations must resolve"),
        (garbled, r"tool garbled: .*; its annotations must resolve"),
        (schemaless, "tool schemaless: no JSON schema for its parameters"),
        (opaque, "tool opaque: no JSON schema for its parameters"),
        ("run_tests", "'run_tests' is no tool: give a typed function with a docstring"),
        (None, "None is no tool"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_where_it_is_made(function: Any, told: str) -> None:
    """A-48: to the programmer, not to a model."""
    with pytest.raises(ConfigError, match=told):
        make_tool(function)


@pytest.mark.parametrize("name", ["run tests", "run.tests", "prüfe", "x" * 65, "a/b", 5])
def test_a_name_that_providers_refuse_is_refused_here_first(name: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        tool(name=name)(pay)

    assert repr(name) in str(refused.value)
    assert "1 to 64 of a-z, A-Z, 0-9, '_' and '-'" in str(refused.value)


def test_a_lambda_with_a_name_is_a_tool() -> None:
    made = tool(name="double")(lambda x: x * 2)

    assert made.function(**made.arguments({"x": 4})) == 8


# ── What it returns ──


@dataclass
class Point:
    x: int
    y: float


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is\n{}", "as it is\n{}"),
        (None, "done"),
        (42, "42"),
        (True, "true"),
        ([1, "zwei"], '[1, "zwei"]'),
        ({"ä": 1}, '{"ä": 1}'),
        (Point(1, 2.5), '{"x": 1, "y": 2.5}'),
        (Build(number=7), '{"number": 7, "tag": "main"}'),
        ({1}, "[1]"),
        (datetime.date(2026, 3, 2), '"2026-03-02"'),
        ({Stage.LAB: Stage.LIVE}, '{"lab": "live"}'),
    ],
)
def test_a_result_is_read_as_text_or_as_json(result: Any, text: str) -> None:
    assert as_text(result) == text


@pytest.mark.parametrize("result", [object(), {"a": object()}, [lambda: 0], pytest])
def test_a_result_that_is_neither_text_nor_json_is_refused_by_name(result: Any) -> None:
    with pytest.raises(TypeError, match=f"returned {type(result).__name__}, which is neither"):
        as_json(result)


def test_a_result_that_contains_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(TypeError, match="neither text nor JSON"):
        as_json(circle)
