"""The knobs of an agent (api.md §2; M-31, M-66, M-94, M-95, M-105, M-106, M-109, A-24)."""

import ast
import inspect
from dataclasses import MISSING, Field, FrozenInstanceError, fields, replace
from typing import Any

import pytest

from postroom_runtime.contracts import config
from postroom_runtime.contracts.config import Agent, AgentConfig
from postroom_runtime.contracts.errors import ConfigError, PostroomError

KNOBS: dict[str, "Field[Any]"] = {knob.name: knob for knob in fields(AgentConfig)}

DEFAULTS: dict[str, Any] = {
    "model": "echo",
    "instructions": "",
    "tools": (),
    "helpers": (),
    "toolbox": None,
    "policy": None,
    "approve": None,
    "wake_on": ("user", "tool", "parent", "child"),
    "mail_scope": "subtree",
    "interrupt_scope": "children",
    "max_iterations": 10,
    "interrupt_completions": False,
    "mailbox_max_unread": 256,
    "max_mail_hops": 16,
    "max_wait_seconds": 300,
    "max_concurrency": 4,
    "async_yield_strategy": "yieldWhenAllDone",
    "async_call_timeout_seconds": None,
    "pause_cancels_calls": False,
    "resume_on_any_mail": False,
    "max_autonomous_rounds": 100,
    "max_requests": None,
    "max_tokens": None,
    "max_cost": None,
    "inbox": None,
    "notifications": None,
}
"""The knobs that api.md names, with the defaults of the specifications."""

WRONG: dict[str, list[Any]] = {
    "instructions": [None, 3, ["Be brief."]],
    "tools": ["run_tests", {"run_tests": 1}, None, len],
    "helpers": ["writer", 3, None, [1]],
    "toolbox": ["send-message", [1], 3],
    "policy": ["runSync", 3, b"{}", 0.5],
    "approve": [True, "yes", 3],
    "wake_on": ["user", ["user", "peers"], ["User"], [1], None, 5],
    "mail_scope": ["everybody", "", None, ["own"], "Subtree"],
    "interrupt_scope": ["descendants", None, 1],
    "max_iterations": [0, -1, 2.0, "10", True, None],
    "interrupt_completions": [1, "yes", None],
    "mailbox_max_unread": [0, -256, 25.6, "256", True, None],
    "max_mail_hops": [-1, 16.0, "16", False, None],
    "max_wait_seconds": [-1, "300", float("nan"), float("inf"), True, None],
    "max_concurrency": [0, 1.5, "4", True, None],
    "async_yield_strategy": [
        "yieldSometimes",
        None,
        5,
        {"tag": "yieldOnTimeout"},
        {"tag": "yieldOnTimeout", "milliseconds": -1},
        {"tag": "yieldOnTimeout", "milliseconds": "500"},
        {"tag": "yieldOnTimeout", "milliseconds": float("nan")},
        {"tag": "yieldOnTimeout", "milliseconds": float("inf")},
        {"tag": "yieldOnTimeout", "milliseconds": True},
        {"milliseconds": 500},
    ],
    "async_call_timeout_seconds": [0, -1, "30", float("nan"), True],
    "pause_cancels_calls": [0, "no", None],
    "resume_on_any_mail": [1, None],
    "max_autonomous_rounds": [0, 1.5, "100", True, None],
    "max_requests": [0, -1, 1.5, "5", True],
    "max_tokens": [0, 1e6, "many", True],
    "max_cost": [0, -0.5, "1", True, float("nan"), float("inf")],
    "notifications": ["mail", ["mail"], {"channels": "mail"}, {"channels": [1]}, 3],
}

ANYTHING = {"model", "inbox"}
"""Checked where they are understood: by ``models`` and by the run that opens the inbox."""


def test_the_knobs_are_those_that_are_promised_with_their_defaults() -> None:
    """M-31, M-66, M-95, M-105, M-106, M-109, A-24."""
    assert {name: knob.default for name, knob in KNOBS.items()} == DEFAULTS


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_has_a_default_that_keeps_its_own_rule_in_words_and_a_check(name: str) -> None:
    knob = KNOBS[name]

    assert knob.default is not MISSING
    assert knob.metadata["rule"]
    assert knob.metadata["check"](knob.default) is True
    assert knob.kw_only


@pytest.mark.parametrize(
    "name", [n for n, knob in KNOBS.items() if "number" in knob.metadata["rule"]]
)
def test_a_knob_that_is_a_number_has_a_unit(name: str) -> None:
    assert KNOBS[name].metadata["unit"]


def test_the_unit_of_a_knob_in_seconds_stands_in_its_name() -> None:
    assert {n for n, knob in KNOBS.items() if knob.metadata["unit"] == "seconds"} == {
        n for n in KNOBS if n.endswith("_seconds")
    }


def test_every_knob_is_documented_under_its_field() -> None:
    documented = set()
    for part in ast.walk(ast.parse(inspect.getsource(config))):
        if isinstance(part, ast.ClassDef):
            for field, words in zip(part.body, part.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(words, ast.Expr)
                    and isinstance(words.value, ast.Constant)
                ):
                    documented.add(field.target.id)

    assert set(KNOBS) <= documented


def test_every_knob_with_a_rule_is_tried_with_wrong_values() -> None:
    assert set(WRONG) | ANYTHING == set(KNOBS)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_wrong_value_is_refused_at_the_call_naming_knob_value_and_rule(
    name: str, value: Any
) -> None:
    with pytest.raises(ConfigError) as refused:
        Agent("rev", **{name: value})

    said = str(refused.value)
    assert said.startswith(f"{name}={value!r}")
    assert KNOBS[name].metadata["rule"] in said
    assert f"default is {KNOBS[name].default!r}" in said
    assert KNOBS[name].metadata["unit"] in said
    assert refused.value.value is value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [len]),
        ("helpers", ["writer"]),
        ("helpers", {"writer": {"bind": {}}}),
        ("toolbox", []),
        ("toolbox", ("wait", "send-message")),
        ("policy", {"default": {"tag": "runSync"}}),
        ("approve", lambda name, arguments: True),
        ("wake_on", []),
        ("wake_on", {"peer", "user"}),
        ("mail_scope", "own"),
        ("mail_scope", "all"),
        ("interrupt_scope", "all"),
        ("max_iterations", 1),
        ("mailbox_max_unread", 1),
        ("max_mail_hops", 0),
        ("max_wait_seconds", 0),
        ("max_wait_seconds", 0.5),
        ("async_yield_strategy", "yieldOnAnyProgress"),
        ("async_yield_strategy", {"tag": "yieldOnTimeout", "milliseconds": 500}),
        ("async_call_timeout_seconds", 0.5),
        ("async_call_timeout_seconds", None),
        ("max_requests", 1),
        ("max_tokens", None),
        ("max_cost", 0.0001),
        ("max_cost", 5),
        ("notifications", {"channels": ["telegram"]}),
        ("notifications", {}),
    ],
)
def test_a_value_at_the_edge_of_its_rule_is_taken_as_it_is(name: str, value: Any) -> None:
    assert getattr(Agent("rev", **{name: value}), name) is value


def test_a_wrong_value_is_also_a_value_error() -> None:
    with pytest.raises(ValueError, match="max_iterations"):
        Agent("rev", max_iterations=0)
    assert issubclass(ConfigError, PostroomError)


def test_an_unknown_knob_is_a_type_error_naming_it() -> None:
    with pytest.raises(TypeError, match="max_iteration"):
        Agent("rev", max_iteration=3)  # type: ignore[call-arg]


def test_a_knob_cannot_be_given_by_position() -> None:
    with pytest.raises(TypeError):
        Agent(*("rev", "echo"))  # type: ignore[arg-type, call-arg]


def test_an_agent_cannot_be_changed_and_a_changed_copy_is_checked_again() -> None:
    agent = Agent("rev")

    with pytest.raises(FrozenInstanceError):
        agent.max_iterations = 3  # type: ignore[misc]
    with pytest.raises(ConfigError, match="max_iterations=0"):
        replace(agent, max_iterations=0)
    assert replace(agent, max_iterations=3).slug == "rev"


@pytest.mark.parametrize("slug", ["", "a b", "inbox", "a/b", 5])
def test_an_agents_slug_must_be_a_name(slug: Any) -> None:
    with pytest.raises(ConfigError, match="agent"):
        Agent(slug)


def test_knobs_tells_only_what_differs_from_the_defaults() -> None:
    agent = Agent("rev", model="echo", max_iterations=3, wake_on=("user",))

    assert agent.knobs() == {"max_iterations": 3, "wake_on": ("user",)}
    assert Agent("rev").knobs() == {}
