"""``{expr}`` in the text of a line (api.md, Parsing)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.expansion import expand

NAMES = {
    "x": 5,
    "name": "ann",
    "pi": 3.14159,
    "xs": ["a", "b"],
    "d": {"a b": 1, "}": 2},
    "n": 3,
    "list": None,
}


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("{x} of {name}", "5 of ann"),
        ("{ x }", "5"),
        ("{pi:.2f} {x:03d}", "3.14 005"),
        ("{name!r} {name!r:>7}", "'ann'   'ann'"),
        ("{1+1}", "2"),
        ("{d['a b']} {d['}']}", "1 2"),
        ("{', '.join(xs)}", "a, b"),
        ("{[v for v in xs if v != name]}", "['a', 'b']"),
        ("{len(xs)}", "2"),
        ("{sum(v + n for v in range(2))}", "7"),
        ("{x if x else {}}", "5"),
        ('{f"{x}"}', "5"),
        ("{list}", "None"),
    ],
)
def test_what_evaluates_is_replaced(typed: str, sent: str) -> None:
    assert expand(typed, NAMES) == sent


@pytest.mark.parametrize(
    "typed",
    [
        "$x $name",
        "{nope} {nope.x} {nope(x)}",
        "{1/0}",
        "{}",
        "{ }",
        "{x",
        "x}",
        '{"a": 1} {"a":10} {1: 2}',
        "a{3} a{2,3} x^{-1} \\frac{1}{2}",
        "{x: 5} {n: b}",
        "{id} {type} {input}",
        "{await x} {yield} {lambda}",
        "{x y}",
        "{name:.2f}",
        "% {\n}",
    ],
)
def test_any_other_brace_stays_as_typed(typed: str) -> None:
    assert expand(typed, NAMES) == typed


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("{nope} and {x}", "{nope} and 5"),
        ('{"user": "{name}"}', '{"user": "ann"}'),
        ("{{x}}", "{5}"),
        ("{{{x}}}", "{{5}}"),
        ("{nope({x})}", "{nope(5)}"),
        ("{{nope}} {x", "{{nope}} {x"),
    ],
)
def test_a_brace_that_stays_hides_none_inside_it(typed: str, sent: str) -> None:
    assert expand(typed, NAMES) == sent


def test_an_expression_is_evaluated_once_and_its_failure_is_no_error() -> None:
    seen: list[int] = []

    class Rude:
        def __str__(self) -> str:
            raise RuntimeError("no")

    text = expand("{seen.append(1)} {rude}", {"seen": seen, "rude": Rude()})

    assert text == "None {rude}"
    assert seen == [1]


def test_the_value_is_not_expanded_again() -> None:
    assert expand("{a}", {"a": "{b}", "b": "c"}) == "{b}"


@given(st.text(st.sampled_from("{}:!'\"ax ,.1[]()")))
def test_without_names_nothing_but_calculations_can_change(text: str) -> None:
    if "[" not in text and "(" not in text and "'" not in text and '"' not in text:
        assert expand(text, {}) == text
