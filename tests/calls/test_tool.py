"""Tools from Python functions: schema, words, arguments, bound values (M-123; api.md §2)."""

import datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from postroom_runtime.calls.tool import BadArguments, Tool, make_tool, tool


class Stage(Enum):
    LAB = "lab"
    LIVE = "live"


class Build(BaseModel):
    number: int
    tag: str = "main"


@tool
def deploy(build: Build, stage: Stage, retries: int = 2, note: str | None = None) -> str:
    """Deploy a build.

    Args:
        build: Which one.
        stage: Where to.
    """
    return f"{build.number} {stage.name} {retries} {note}"


def properties(of: Tool) -> Any:
    return of.spec.parameters["properties"]


# ── What the model is told ──


def test_the_schema_comes_from_the_signature_and_the_words_from_the_docstring() -> None:
    assert (deploy.name, deploy.spec.description) == ("deploy", "Deploy a build.")
    assert deploy.spec.parameters["type"] == "object"
    assert deploy.spec.parameters["required"] == ["build", "stage"]
    assert deploy.spec.parameters["additionalProperties"] is False
    assert {name: part.get("description") for name, part in properties(deploy).items()} == {
        "build": "Which one.",
        "stage": "Where to.",
        "retries": None,
        "note": None,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}),
        (datetime.date, {"type": "string", "format": "date"}),
        (Any, {}),
    ],
)
def test_a_parameter_has_the_schema_of_its_type(annotation: Any, schema: dict[str, Any]) -> None:
    def f(x):  # type: ignore[no-untyped-def]
        pass

    f.__annotations__["x"] = annotation

    assert properties(make_tool(f))["x"] == schema


def test_a_default_is_told_and_makes_the_parameter_optional() -> None:
    def f(x: int, y: int = 5) -> None: ...

    made = make_tool(f)

    assert made.spec.parameters["required"] == ["x"]
    assert properties(made)["y"] == {"type": "integer", "default": 5}


def test_a_tool_without_parameters_takes_none() -> None:
    def now() -> str:
        """Tell the time."""
        return "12:00"

    made = make_tool(now)

    assert made.spec.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert made.arguments({}) == {}


def test_the_schema_names_no_titles() -> None:
    """They cost tokens and say nothing."""
    assert "title" not in deploy.spec.parameters
    assert not any("title" in part for part in properties(deploy).values())


def test_a_tool_may_go_by_another_name_and_hand_back_after_a_while() -> None:
    @tool(name="run-tests", attach_seconds=10)
    def run(suite: str) -> str:
        return suite

    assert (run.name, run.attach_seconds) == ("run-tests", 10)
    assert make_tool(run) is run


def test_an_object_that_can_be_called_goes_by_its_class() -> None:
    class Search:
        """Search the archive."""

        async def __call__(self, query: str, limit: int = 5) -> list[str]:
            return [query] * limit

    made = make_tool(Search())

    assert (made.name, made.spec.description) == ("Search", "Search the archive.")
    assert properties(made)["query"] == {"type": "string"}
    assert made.is_async


def test_a_partial_function_goes_by_its_function() -> None:
    def add(x: int, y: int) -> int:
        """Add."""
        return x + y

    made = make_tool(partial(add, 1))

    assert (made.name, made.spec.description) == ("add", "Add.")
    assert list(properties(made)) == ["y"]
    assert made.function(**made.arguments({"y": 2})) == 3


def test_a_method_is_a_tool_without_its_self() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def more(self, by: int) -> int:
            """Count on."""
            self.count += by
            return self.count

    made = make_tool(Counter().more)

    assert list(properties(made)) == ["by"]
    assert made.function(**made.arguments({"by": 2})) == 2


def test_a_coroutine_function_runs_on_the_loop_and_a_plain_one_does_not() -> None:
    async def on_loop() -> None: ...
    def off_loop() -> None: ...

    assert make_tool(on_loop).is_async
    assert not make_tool(off_loop).is_async


def test_a_tool_can_still_be_called_as_the_function_it_was() -> None:
    assert deploy(Build(number=7), Stage.LAB, retries=0) == "7 LAB 0 None"


# ── What the model gives ──


def test_arguments_become_the_values_that_the_function_wants() -> None:
    given = {"build": {"number": 7}, "stage": "live", "note": "go"}

    assert deploy.arguments(given) == {
        "build": Build(number=7, tag="main"),
        "stage": Stage.LIVE,
        "retries": 2,
        "note": "go",
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"build": {"number": 7}}, ["stage: Field required"]),
        ({"build": {"number": "x"}, "stage": "lab"}, ["build.number: Input should be a valid int"]),
        ({"build": {"number": 7}, "stage": "moon"}, ["stage: Input should be 'lab' or 'live'"]),
        (
            {"build": {"number": 7}, "stage": "lab", "stag": 1},
            ["stag: Extra inputs are not permitted"],
        ),
        ({"retries": "many"}, ["build: Field", "stage: Field", "retries: Input should be"]),
        ({"p0": {"number": 7}, "p1": "lab"}, ["build: Field required", "p0: Extra inputs"]),
    ],
)
def test_arguments_that_do_not_fit_are_told_to_the_model_one_by_one(
    given: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(BadArguments) as refused:
        deploy.arguments(given)

    assert str(refused.value).startswith("deploy was not called: ")
    for fault in told:
        assert fault in str(refused.value)


@pytest.mark.parametrize(
    "name", ["json", "copy", "schema", "dict", "model_config", "validate", "self_", "_hidden", "p0"]
)
def test_a_parameter_may_have_any_name_that_python_allows(name: str) -> None:
    """Also those that a pydantic model keeps for itself."""
    namespace: dict[str, Any] = {}
    exec(f"def f({name}: int, other: str = 'x'):\n    return {name}, other", namespace)

    made = make_tool(namespace["f"])

    assert list(properties(made)) == [name, "other"]
    assert made.function(**made.arguments({name: 3})) == (3, "x")


def test_what_a_function_takes_beyond_its_named_parameters_is_not_the_models_to_give() -> None:
    def f(x: int, *rest: int, **more: int) -> None: ...

    made = make_tool(f)

    assert list(properties(made)) == ["x"]
    with pytest.raises(BadArguments, match="more: Extra"):
        made.arguments({"x": 1, "more": {}})


def test_a_parameter_by_keyword_only_is_given_by_its_name() -> None:
    def f(*, x: int) -> int:
        return x

    made = make_tool(f)

    assert made.function(**made.arguments({"x": 1})) == 1


def test_a_default_that_can_change_is_not_shared_between_calls() -> None:
    def f(found: list[str] = []) -> list[str]:  # noqa: B006
        return found

    made = make_tool(f)
    made.arguments({})["found"].append("x")

    assert made.arguments({}) == {"found": []}


# ── Bound ──


def pay(sum: int, api_key: str, account: str = "shop") -> str:
    """Pay.

    Args:
        sum: In cents.
        api_key: Never shown.
    """
    return f"{sum} {api_key} {account}"


def test_a_bound_argument_is_hidden_from_the_model_and_given_to_the_function() -> None:
    """M-123."""
    made = make_tool(pay, bound={"api_key": "secret"})

    assert list(properties(made)) == ["sum", "account"]
    assert "secret" not in str(made.spec)
    assert "api_key" not in str(made.spec)
    assert made.function(**made.arguments({"sum": 5})) == "5 secret shop"


def test_a_model_cannot_override_what_is_bound() -> None:
    """M-123."""
    made = make_tool(pay, bound={"api_key": "secret"})

    with pytest.raises(BadArguments, match="api_key: Extra inputs are not permitted"):
        made.arguments({"sum": 5, "api_key": "mine"})


def test_a_tool_binds_only_what_it_has_a_parameter_for() -> None:
    made = make_tool(pay, name="pay-now", attach_seconds=3, toolbox="shop")

    bound = made.bind({"api_key": "secret", "unheard_of": 1})

    assert bound.arguments({"sum": 5}) == {"sum": 5, "api_key": "secret", "account": "shop"}
    assert (bound.name, bound.attach_seconds, bound.toolbox) == ("pay-now", 3, "shop")
    assert made.bind({"unheard_of": 1}) is made
    assert list(properties(made)) == ["sum", "api_key", "account"]  # as it was


def test_binding_twice_keeps_what_was_bound_first() -> None:
    made = make_tool(pay).bind({"api_key": "secret"}).bind({"account": "lab"})

    assert made.arguments({"sum": 5}) == {"sum": 5, "api_key": "secret", "account": "lab"}


def test_a_bound_value_need_not_have_a_type_that_json_knows() -> None:
    class Connection: ...

    def query(sql: str, connection: Connection) -> str:
        return sql

    made = make_tool(query, bound={"connection": Connection()})

    assert list(properties(made)) == ["sql"]
