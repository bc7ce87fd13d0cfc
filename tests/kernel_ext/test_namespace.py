"""Names in options stand for functions and variables of the notebook."""

from types import SimpleNamespace
from typing import Any

import pytest

from postroom.namespace import Scripts, public_names, tool_names, tools, variable
from postroom_runtime.calls.tool import tool
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.models.script import script


def run_tests(suite: str) -> str:
    """Run a test suite."""
    return suite


@tool(name="look")
def look_at(place: str) -> str:
    """Look at a place."""
    return place


@script
def careful(turn: Any) -> str:
    return "yes"


@script(name="bold")
def other(turn: Any) -> str:
    return "no"


NAMES: dict[str, Any] = {
    "In": [],
    "get_ipython": run_tests,
    "_hidden": run_tests,
    "run_tests": run_tests,
    "look_at": look_at,
    "suite": SimpleNamespace(run=run_tests),
    "number": 5,
    "careful": careful,
    "other": other,
    "SomeClass": SimpleNamespace,
}


def test_functions_and_tools_are_found_by_name_and_by_path() -> None:
    found = tools(["run_tests", "look_at", "suite.run"], NAMES)

    assert [made.name for made in found] == ["run_tests", "look", "run_tests"]
    assert found[1] is look_at


def test_an_unknown_tool_names_what_is_near() -> None:
    with pytest.raises(
        ConfigError, match=r"no tool 'run_test' in this notebook\. Did you mean run_tests"
    ):
        tools(["run_test"], NAMES)
    with pytest.raises(ConfigError, match=r"no tool 'suite\.fun'"):
        tools(["suite.fun"], NAMES)


def test_what_cannot_be_a_tool_says_why() -> None:
    with pytest.raises(ConfigError, match="5 is no tool"):
        tools(["number"], NAMES)


def test_a_variable_is_found_or_its_neighbours_are_named() -> None:
    assert variable("number", NAMES) == 5
    with pytest.raises(
        ConfigError, match=r"no variable 'nmber' in this notebook\. Did you mean number"
    ):
        variable("nmber", NAMES)


def test_tab_is_told_what_may_be_a_tool() -> None:
    assert tool_names(NAMES) == ["run_tests", "look_at"]
    assert "get_ipython" not in public_names(NAMES)
    assert "_hidden" not in public_names(NAMES)


def test_scripts_are_known_as_they_are_now() -> None:
    names = dict(NAMES)
    scripts = Scripts(names)

    assert set(scripts) == {"careful", "other", "bold"}
    assert scripts["bold"] is other
    del names["other"]
    names["bold"] = careful
    assert dict(scripts) == {"careful": careful, "bold": careful}
    assert len(scripts) == 2
