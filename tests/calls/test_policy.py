"""Which disposition and which decorators a call gets (M-57…M-60, M-115…M-118, M-122)."""

import json
from typing import Any

import pytest

from postroom_runtime.calls.policy import (
    After,
    AppliedPolicy,
    Before,
    Cache,
    CommandTarget,
    Defer,
    Label,
    Match,
    Policy,
    Retries,
    Rule,
    RunAsync,
    RunSync,
    Timeout,
    ToolTarget,
    Truncate,
    Wrapper,
    apply,
    read_policy,
)
from postroom_runtime.contracts.errors import ConfigError

AS_JSON = """
{
  "default": {"tag": "runSync"},
  "rules": [{"tool": "run_tests", "disposition": {"tag": "runAsync", "attachSeconds": 10}}],
  "wrappers": [
    {"match": {"tool": "*"},        "decorators": [{"tag": "truncate", "maxBytes": 65536}]},
    {"match": {"tool": "http_*"},   "decorators": [{"tag": "retries", "count": 2, "backoffMs": 500},
                                                   {"tag": "timeout", "seconds": 30}]},
    {"match": {"tool": "deploy_*"}, "decorators": [{"tag": "before", "hook": {"command": "hooks/approve-deploy"}},
                                                   {"tag": "after",  "hook": {"tool": "audit_log"}}]}
  ]
}
"""
"""The example that every policy file is written after."""

AS_OBJECTS = Policy(
    default=RunSync(),
    rules=(Rule(tool="run_tests", disposition=RunAsync(attach_seconds=10)),),
    wrappers=(
        Wrapper(match=Match(tool="*"), decorators=(Truncate(max_bytes=65536),)),
        Wrapper(
            match=Match(tool="http_*"),
            decorators=(Retries(count=2, backoff_ms=500), Timeout(seconds=30)),
        ),
        Wrapper(
            match=Match(tool="deploy_*"),
            decorators=(
                Before(hook=CommandTarget(command="hooks/approve-deploy")),
                After(hook=ToolTarget(tool="audit_log")),
            ),
        ),
    ),
)


# ── Reading ──


@pytest.mark.parametrize(
    "given",
    [
        json.loads(AS_JSON),
        {"toolCallPolicyConfig": json.loads(AS_JSON)},
        AS_OBJECTS,
        {"rules": list(AS_OBJECTS.rules), "wrappers": list(AS_OBJECTS.wrappers)},
    ],
    ids=["json", "wrapped json", "objects", "objects in a dict"],
)
def test_the_example_is_read_as_json_wrapped_and_as_objects(given: object) -> None:
    """M-115."""
    assert read_policy(given) == AS_OBJECTS


@pytest.mark.parametrize(
    ("tool", "disposition", "stack"),
    [
        ("run_tests", RunAsync(attach_seconds=10), ["truncate"]),
        ("http_get", RunSync(), ["truncate", "retries", "timeout"]),
        ("deploy_site", RunSync(), ["truncate", "before", "after"]),
        ("read_file", RunSync(), ["truncate"]),
    ],
)
def test_the_example_gives_each_call_its_stack(tool: str, disposition: Any, stack: Any) -> None:
    """M-115, M-116: every match, in file order, the first one outermost."""
    applied = apply(read_policy(json.loads(AS_JSON)), tool, {})

    assert applied.disposition == disposition
    assert [decorator.tag for decorator in applied.decorators] == stack


@pytest.mark.parametrize("given", [None, {}, {"toolCallPolicyConfig": {}}, Policy()])
def test_without_a_policy_a_call_is_attended_to_its_end_and_nothing_wraps_it(given: object) -> None:
    """M-57."""
    applied = apply(read_policy(given), "t", {})

    assert applied == AppliedPolicy(RunSync(), ())


@pytest.mark.parametrize(
    ("tag", "read"),
    [
        ({"tag": "runSync"}, RunSync()),
        ({"tag": "runAsync"}, RunAsync()),
        ({"tag": "runAsync", "attachSeconds": 0}, RunAsync(attach_seconds=0)),
        ({"tag": "defer"}, Defer()),
        ({"tag": "defer", "reason": "why?"}, Defer(reason="why?")),
    ],
)
def test_every_disposition_is_read(tag: dict[str, Any], read: Any) -> None:
    """M-57, M-58, M-59, M-60, M-97."""
    assert read_policy({"default": tag}).default == read


@pytest.mark.parametrize(
    ("tag", "read"),
    [
        ({"tag": "timeout", "seconds": 0.5}, Timeout(seconds=0.5)),
        ({"tag": "retries", "count": 0}, Retries(count=0, backoff_ms=0)),
        ({"tag": "cache"}, Cache()),
        ({"tag": "label", "label": "billing"}, Label(label="billing")),
        ({"tag": "truncate", "maxBytes": 1}, Truncate(max_bytes=1)),
        (
            {"tag": "before", "hook": {"command": ["guard", "--strict"]}},
            Before(hook=CommandTarget(command=("guard", "--strict"))),
        ),
        ({"tag": "after", "hook": {"tool": "audit"}}, After(hook=ToolTarget(tool="audit"))),
    ],
)
def test_every_decorator_is_read(tag: dict[str, Any], read: Any) -> None:
    """M-118, M-119, M-120, M-121, M-122."""
    (wrapper,) = read_policy({"wrappers": [{"decorators": [tag]}]}).wrappers

    assert wrapper.decorators == (read,)
    assert wrapper.match == Match(tool="*")


@pytest.mark.parametrize(
    ("policy", "place", "value", "rule"),
    [
        ({"default": {"tag": "runAsnc"}}, "default", "runAsnc", "runSync"),
        (
            {"default": {"tag": "runAsync", "attachSeconds": -1}},
            "attachSeconds",
            "-1",
            "equal to 0",
        ),
        ({"default": {"tag": "runAsync", "attach": 1}}, "default.runAsync.attach", "1", "Extra"),
        ({"rules": [{"tool": "x"}]}, "rules.0.disposition", "x", "required"),
        (
            {"rules": [{"tool": 7, "disposition": {"tag": "runSync"}}]},
            "rules.0.tool",
            "7",
            "string",
        ),
        ({"wrappers": [{"decorators": [{"tag": "cashe"}]}]}, "decorators.0", "cashe", "cache"),
        (
            {"wrappers": [{"decorators": [{"tag": "timeout", "seconds": 0}]}]},
            "wrappers.0.decorators.0.timeout.seconds",
            "0",
            "greater than 0",
        ),
        (
            {"wrappers": [{"decorators": [{"tag": "timeout", "seconds": float("inf")}]}]},
            "seconds",
            "inf",
            "finite",
        ),
        (
            {"wrappers": [{"decorators": [{"tag": "retries", "count": 1.5}]}]},
            "count",
            "1.5",
            "integer",
        ),
        (
            {"wrappers": [{"decorators": [{"tag": "truncate", "maxBytes": 0}]}]},
            "maxBytes",
            "0",
            "equal to 1",
        ),
        ({"wrappers": [{"match": {"tol": "x"}}]}, "wrappers.0.match.tol", "x", "Extra"),
        (
            {"wrappers": [{"match": {"args": {"type": "objct"}}}]},
            "wrappers.0.match.args",
            "objct",
            "no JSON schema",
        ),
        (
            {"wrappers": [{"decorators": [{"tag": "before", "hook": {"url": "x"}}]}]},
            "hook",
            "url",
            "required",
        ),
        ({"wrappes": []}, "wrappes", "[]", "Extra"),
        ("strict", "policy", "strict", "dictionary"),
        ({"toolCallPolicyConfig": None}, "policy", "None", "dictionary"),
        ({"toolCallPolicyConfig": {}, "rules": []}, "toolCallPolicyConfig", "{}", "Extra"),
    ],
)
def test_a_policy_that_will_not_do_is_told_by_place_value_and_rule(
    policy: object, place: str, value: str, rule: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_policy(policy)

    told = str(refused.value)
    assert told.startswith("the policy will not do: ")
    assert place in told
    assert value in told
    assert rule in told


# ── Matching ──


def labelled(*matches: dict[str, Any]) -> Policy:
    """A policy that labels what each of these fits with its number."""
    return read_policy(
        {
            "wrappers": [
                {"match": match, "decorators": [{"tag": "label", "label": str(number)}]}
                for number, match in enumerate(matches)
            ]
        }
    )


def labels(policy: Policy, tool: str, toolbox: str = "", **arguments: Any) -> str:
    applied = apply(policy, tool, arguments, toolbox=toolbox)
    return "".join(decorator.label for decorator in applied.decorators)


@pytest.mark.parametrize(
    ("glob", "fits", "not_"),
    [
        ("*", ["x", "http_get", ""], []),
        ("http_*", ["http_get", "http_"], ["HTTP_get", "Http_get", "my_http_get", "http"]),
        ("Deploy", ["Deploy"], ["deploy", "DEPLOY"]),
        ("run_test?", ["run_tests"], ["run_test", "run_tests_all"]),
        ("[ab]_x", ["a_x", "b_x"], ["A_x", "c_x"]),
        ("run-tests", ["run-tests"], ["run_tests"]),
    ],
)
def test_a_glob_is_of_the_whole_name_and_case_counts(
    glob: str, fits: list[str], not_: list[str]
) -> None:
    """M-117."""
    policy = labelled({"tool": glob})

    assert [labels(policy, tool) for tool in fits] == ["0"] * len(fits)
    assert [labels(policy, tool) for tool in not_] == [""] * len(not_)


def test_a_toolbox_is_one_of_ours_and_a_tool_of_the_user_is_in_none() -> None:
    """M-117."""
    policy = labelled({"toolbox": "mail"}, {"tool": "send-*", "toolbox": "mail"}, {"toolbox": ""})

    assert labels(policy, "send-message", "mail") == "01"
    assert labels(policy, "wait", "mail") == "0"
    assert labels(policy, "send-message", "calls") == ""
    assert labels(policy, "send-message") == "2"


def test_arguments_are_matched_by_a_json_schema() -> None:
    """M-117: a predicate on what the model sent."""
    policy = labelled(
        {"args": {"required": ["target"], "properties": {"target": {"const": "prod"}}}},
        {"tool": "dep*", "args": {"properties": {"count": {"minimum": 10}}}},
        {"args": True},
        {"args": False},
    )

    assert labels(policy, "deploy", target="prod", count=10) == "012"
    assert labels(policy, "deploy", target="test", count=9) == "2"
    assert labels(policy, "deploy") == "12"
    assert labels(policy, "other", target="prod") == "02"


def test_the_first_rule_that_fits_decides_and_no_other() -> None:
    """M-115."""
    policy = read_policy(
        {
            "default": {"tag": "defer", "reason": "default"},
            "rules": [
                {"tool": "a*", "args": {"required": ["x"]}, "disposition": {"tag": "runSync"}},
                {"tool": "a*", "disposition": {"tag": "runAsync", "attachSeconds": 1}},
                {"tool": "ab", "disposition": {"tag": "runAsync", "attachSeconds": 2}},
            ],
        }
    )

    assert apply(policy, "ab", {"x": 1}).disposition == RunSync()
    assert apply(policy, "ab", {}).disposition == RunAsync(attach_seconds=1)
    assert apply(policy, "b", {}).disposition == Defer(reason="default")


def test_a_tool_s_own_attach_time_is_a_rule_before_the_first() -> None:
    policy = read_policy({"rules": [{"tool": "t", "disposition": {"tag": "defer"}}]})

    assert apply(policy, "t", {}, attach_seconds=0).disposition == RunAsync(attach_seconds=0)
    assert apply(policy, "t", {}, attach_seconds=None).disposition == Defer()


# ── What stands on the call ──


def test_what_was_applied_is_stored_as_json_and_read_back_the_same() -> None:
    """M-116: whatever the policy says by then."""
    for tool in ("run_tests", "http_get", "deploy_site"):
        applied = apply(AS_OBJECTS, tool, {})
        stored = json.loads(json.dumps(applied.to_json()))
        assert AppliedPolicy.from_json(stored) == applied

    assert apply(AS_OBJECTS, "http_get", {}).to_json() == {
        "disposition": {"tag": "runSync"},
        "decorators": [
            {"tag": "truncate", "maxBytes": 65536},
            {"tag": "retries", "count": 2, "backoffMs": 500},
            {"tag": "timeout", "seconds": 30},
        ],
    }
