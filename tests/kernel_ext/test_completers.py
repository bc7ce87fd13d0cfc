"""What Tab offers."""

from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.completer import IPCompleter, provisionalcompleter

from postroom.completers import IDENTIFIER, Matcher, Offer, offer
from postroom.grammar import Names

KNOWN = {
    Names.SESSION: ["ann", "bob", "rev-1", "rev.2"],
    Names.AGENT: ["echo", "reviewer"],
    Names.TOOL: ["run_tests", "read_file"],
    Names.UNTIL: ["call_0001", "run.stopped"],
    Names.CALL: ["call_0001"],
    Names.OPEN_CALL: ["call_0003", "call_0004"],
    Names.APPROVAL: ["ap-0002"],
    Names.PERMISSION: ["pm-0001"],
    Names.EVENT: ["run.stopped", "tool.completed"],
    Names.WATCH: ["w-0001", "w-0003"],
    Names.MODEL: ["echo", "openai:"],
    Names.VARIABLE: ["policy"],
}


class Book:
    def names(self, kind: Names) -> list[str]:
        return KNOWN.get(kind, [])


def offered(before: str) -> tuple[str, ...] | None:
    found = offer(before, Book())
    return None if found is None else found.names


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ("%send ", ("ann", "bob", "rev-1", "rev.2")),
        ("%send rev", ("rev-1", "rev.2")),
        ("%send rev-", ("rev-1",)),
        ("%send ann,", ("bob", "rev-1", "rev.2")),
        ("%send ann,b", ("bob",)),
        ("%%send a", ("ann",)),
        ("    %send a", ("ann",)),
        ("x = %send a", ("ann",)),
        ("a, b = %wait a", ("ann",)),
        ("%wait ann ", ("bob", "rev-1", "rev.2")),
        ("%wait ann --for=", ("idle", "answer", "mail", "call_0001", "run.stopped")),
        ("%wait ann --for=an", ("answer",)),
        ("%wait --", ("--for=", "--any", "--timeout=", "--strict")),
        ("%wait --any --a", ()),
        ("%send ann --w", ("--wait",)),
        ("%send ann --from=b", ("bob",)),
        ("%send ann -i --r", ("--reply-to=",)),
        ("%spawn re", ("reviewer",)),
        ("%spawn echo --parent ", ("ann", "bob", "rev-1", "rev.2")),
        ("%spawn echo --parent=a", ("ann",)),
        ("%spawn echo --tools run_tests,r", ("read_file",)),
        ("%spawn echo --model o", ("openai:",)),
        ("%%agent rev --helpers e", ("echo",)),
        ("%%agent rev --policy ", ("policy",)),
        ("%transcript ", ("ann", "bob", "rev-1", "rev.2")),
        ("%postroom f", ("fresh",)),
        ("%stop a", ("ann",)),
        ("%pause a", ("ann",)),
        ("%cancel ", ("call_0003", "call_0004")),
        ("%cancel call_0003 ", ("call_0004",)),
        ("%approve ", ("ap-0002",)),
        ("%approve ap-0002 --", ("--args=", "--always")),
        ("%approve ap-0002 --always=a", ("args", "agent")),
        ("%revoke ", ("pm-0001",)),
        ("%deny a", ("ap-0002",)),
        ("%inbox r", ("reviewer",)),
        ("%calls a", ("ann",)),
        ("%watch ann --into=b", ("bob",)),
        ("%watch ann --into=bob --events=run.stopped,", ("tool.completed",)),
        ("%watch ann --tool=run", ("run_tests",)),
        ("%unwatch ", ("w-0001", "w-0003")),
        ("%unwatch w-0001 ", ("w-0003",)),
    ],
)
def test_tab_offers_the_names_that_fit_the_place(before: str, names: tuple[str, ...]) -> None:
    assert offered(before) == names


@pytest.mark.parametrize(
    "before",
    [
        "%send",
        "%send ann hello a",
        "%send ann -i hello --w",
        "%send ann -- --w",
        "%spawn echo --as ",
        "%mailsql sel",
        "%ls a",
        "send = a",
        "x = '%send a",
        "# %send a",
        "%sessions a",
        "%deny ap-0002 a",
    ],
)
def test_tab_offers_nothing_of_ours_elsewhere(before: str) -> None:
    assert offered(before) is None


def test_an_offer_says_what_it_is_and_which_word_it_completes() -> None:
    assert offer("%send ann,b", Book()) == Offer("b", "session", ("bob",))
    assert offer("%wait --f", Book()) == Offer("--f", "option", ("--for=",))


@pytest.fixture
def shell() -> Any:
    completer = IPCompleter(namespace={}, global_namespace={})
    return SimpleNamespace(Completer=completer)


def test_the_matcher_is_there_once_and_gone_after_removal(shell: Any) -> None:
    matcher = Matcher(shell, Book())

    matcher.install()
    matcher.install()
    names = [getattr(found, "matcher_identifier", "") for found in shell.Completer.matchers]
    assert names.count(IDENTIFIER) == 1

    matcher.remove()
    matcher.remove()
    assert shell.Completer.custom_matchers == []


def test_ipython_completes_a_whole_name_with_its_dash(shell: Any) -> None:
    Matcher(shell, Book()).install()
    cell = "x = 1\n    %send rev-"

    with provisionalcompleter():
        found = list(shell.Completer.completions(cell, len(cell)))

    assert [(made.text, made.start, made.type) for made in found] == [
        ("rev-1", len(cell) - len("rev-"), "session")
    ]
