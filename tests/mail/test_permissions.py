"""Who may write to whom and interrupt whom, from lineage alone (M-74, M-94, M-105, M-106, trap 4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.contracts.config import MAIL_SCOPES, WAKE_KINDS
from postroom_runtime.mail.permissions import (
    Relation,
    may_interrupt,
    may_write,
    relation,
    wake_kind,
)

#            root
#           /    \
#      parent     uncle
#      /    \        \
#     me   sibling   cousin            stranger
#     |       \
#   child    niece
#     |
#  grandchild
PARENTS = {
    "root": None,
    "uncle": "root",
    "cousin": "uncle",
    "parent": "root",
    "me": "parent",
    "sibling": "parent",
    "niece": "sibling",
    "child": "me",
    "grandchild": "child",
    "stranger": None,
}

KIN = {
    "me": Relation.SELF,
    "parent": Relation.PARENT,
    "root": Relation.ANCESTOR,
    "child": Relation.CHILD,
    "grandchild": Relation.DESCENDANT,
    "sibling": Relation.SIBLING,
    "niece": Relation.STRANGER,
    "uncle": Relation.STRANGER,
    "cousin": Relation.STRANGER,
    "stranger": Relation.STRANGER,
    "unheard-of": Relation.STRANGER,
}

# Whom a session of each scope reaches first. ✓ yes, · no; its parent it always reaches.
MATRIX = """
              self  parent  ancestor  child  grandchild  sibling  stranger
    own        ✓      ✓        ·        ·        ·          ·        ·
    children   ✓      ✓        ·        ✓        ·          ·        ·
    subtree    ✓      ✓        ·        ✓        ✓          ·        ·
    all        ✓      ✓        ✓        ✓        ✓          ✓        ✓
"""

# Whom an interrupt of each scope reaches as one; elsewhere it arrives as normal mail.
INTERRUPTS = """
              self  parent  ancestor  child  grandchild  sibling  stranger
    own        ✓      ·        ·        ·        ·          ·        ·
    children   ✓      ·        ·        ✓        ·          ·        ·
    subtree    ✓      ·        ·        ✓        ✓          ·        ·
    all        ✓      ✓        ✓        ✓        ✓          ✓        ✓
"""

COLUMNS = {
    "self": "me",
    "parent": "parent",
    "ancestor": "root",
    "child": "child",
    "grandchild": "grandchild",
    "sibling": "sibling",
    "stranger": "stranger",
}


def cells(table: str) -> list[tuple[str, str, bool]]:
    header, *lines = [line.split() for line in table.strip().splitlines()]
    return [
        (scope, column, mark == "✓")
        for scope, *marks in lines
        for column, mark in zip(header, marks, strict=True)
    ]


@pytest.mark.parametrize(("scope", "column", "allowed"), cells(MATRIX))
@pytest.mark.parametrize("replying", [False, True], ids=["first", "replying"])
def test_who_may_write_to_whom(scope: str, column: str, allowed: bool, replying: bool) -> None:
    """M-105: a reply is always allowed, and so is the direct parent."""
    kin = relation("me", COLUMNS[column], PARENTS)

    assert may_write(scope, kin, replying=replying) == (allowed or replying)


@pytest.mark.parametrize(("scope", "column", "allowed"), cells(INTERRUPTS))
def test_who_may_interrupt_whom(scope: str, column: str, allowed: bool) -> None:
    """M-74, M-106: a right to write, to the parent say, is none to interrupt."""
    kin = relation("me", COLUMNS[column], PARENTS)

    assert may_interrupt(scope, kin) == allowed


def test_the_tables_cover_every_scope_and_every_relation() -> None:
    for table in (MATRIX, INTERRUPTS):
        assert {scope for scope, _, _ in cells(table)} == set(MAIL_SCOPES)
        assert {relation("me", COLUMNS[c], PARENTS) for _, c, _ in cells(table)} == set(Relation)


@pytest.mark.parametrize(("other", "kin"), KIN.items())
def test_what_another_session_is_to_me(other: str, kin: Relation) -> None:
    assert relation("me", other, PARENTS) is kin


MIRROR = {
    Relation.PARENT: Relation.CHILD,
    Relation.ANCESTOR: Relation.DESCENDANT,
    Relation.CHILD: Relation.PARENT,
    Relation.DESCENDANT: Relation.ANCESTOR,
}


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10), st.integers(0, 10), st.integers(0, 10))
def test_of_two_sessions_each_is_to_the_other_what_the_mirror_says(
    above: list[int], one: int, other: int
) -> None:
    """Any forest: session ``n + 1`` has its parent among those before it, or none."""
    parents = {
        str(n + 1): str(parent) if parent <= n else None for n, parent in enumerate(above)
    } | {"0": None}
    a, b = str(one), str(other)

    kin = relation(a, b, parents)

    assert relation(b, a, parents) is MIRROR.get(kin, kin)


@given(
    st.dictionaries(st.sampled_from("abcde"), st.sampled_from("abcde")),
    st.sampled_from("abcde"),
    st.sampled_from("abcde"),
)
def test_lineage_that_goes_round_in_a_circle_is_survived(
    parents: dict[str, str], one: str, other: str
) -> None:
    kin = relation(one, other, parents)

    assert (kin is Relation.SELF) == (one == other)
    if one != other and parents.get(one) == other:
        assert kin is Relation.PARENT


def test_two_sessions_that_are_each_others_parents_may_answer_each_other() -> None:
    circle = {"a": "b", "b": "a"}

    assert relation("a", "b", circle) is Relation.PARENT
    assert relation("b", "a", circle) is Relation.PARENT


def test_two_roots_are_no_siblings() -> None:
    assert relation("root", "stranger", PARENTS) is Relation.STRANGER


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ("me", "tool"),
        ("parent", "parent"),
        ("root", "parent"),
        ("child", "child"),
        ("grandchild", "child"),
        ("sibling", "peer"),
        ("niece", "peer"),
        ("uncle", "peer"),
        ("stranger", "peer"),
    ],
)
def test_mail_of_another_session_wakes_under_the_word_of_its_kin(other: str, word: str) -> None:
    """M-94: any ancestor is a parent, any descendant a child, one's own mail a tool's."""
    assert wake_kind(relation("me", other, PARENTS)) == word


def test_every_relation_has_a_word_of_wake_on() -> None:
    """M-94."""
    assert {wake_kind(kin) for kin in Relation} == set(WAKE_KINDS) - {"user"}
