"""The lines of the magics, taken apart (api.md, Parsing)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.arguments import BadLine, parse, scan
from postroom.catalogue import (
    AGENT,
    BY_NAME,
    CALLS,
    CLOSE,
    MAGICS,
    SEND,
    SPAWN,
    TRANSCRIPT,
    WAIT,
)
from postroom.grammar import Magic, Tail
from postroom.room_grammar import MAILSQL, POSTROOM
from postroom.watch_grammar import WATCH


def test_the_first_word_that_is_no_option_begins_the_text() -> None:
    line = parse(SEND, "ann -i hello --wait=5 -- $x {nope} why?")

    assert line.heads == ("ann",)
    assert line.has("interrupt")
    assert not line.has("wait")
    assert line.text == "hello --wait=5 -- $x {nope} why?"


def test_two_dashes_end_the_options() -> None:
    line = parse(SEND, "ann -e -- --wait is an option,  is it?")

    assert line.has("expects-reply")
    assert line.text == "--wait is an option,  is it?"


def test_options_of_send_in_every_form() -> None:
    line = parse(SEND, "ann,bob --interrupt -e --reply-to=m-0001 --from=rev --wait=2.5 go")

    assert line.heads == ("ann", "bob")
    assert line.has("interrupt")
    assert line.has("expects-reply")
    assert line.text_of("reply-to") == "m-0001"
    assert line.text_of("from") == "rev"
    assert line.number_of("wait") == 2.5
    assert line.text == "go"


def test_wait_without_a_number_takes_no_word_of_the_text() -> None:
    line = parse(SEND, "ann --wait 5 apples?")

    assert line.has("wait")
    assert line.number_of("wait") is None
    assert line.text == "5 apples?"


@pytest.mark.parametrize(
    "line",
    [
        "ann -5 degrees",
        "ann - a dash",
        "ann --- a rule",
        "ann — an em dash",
        "ann -ie both",
        "ann -i!",
        "ann -x unknown short",
    ],
)
def test_what_only_resembles_an_option_is_text(line: str) -> None:
    assert parse(SEND, line).text == line.removeprefix("ann ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann --wiat hello", "no option --wiat. Did you mean --wait?"),
        ("ann --wiat hello", "write -- first"),
        ("ann --zebra hello", "It has --interrupt, --expects-reply"),
        ("ann --wait=soon hello", "--wait=soon will not do: give seconds"),
        ("ann --wait=-1 hello", "at least 0"),
        ("ann --wait=nan hello", "at least 0"),
        ("ann --wait= hello", "--wait= has no value"),
        ("ann --interrupt=yes hello", "--interrupt takes no value"),
        ("ann --reply-to m-0001 hello", "Write --reply-to=ID without spaces"),
        ("ann --wait --wait hello", "given twice"),
        ("ann --wait! hello", "no option --wait!"),
        ("--wait ann hello", "--wait stands before TO"),
        ("-i ann hello", "-i stands before TO"),
        ("", "%send needs TO"),
        ("ann, bob hello", "commas and no spaces"),
    ],
)
def test_a_wrong_line_says_what_is_wrong_and_what_to_write(line: str, said: str) -> None:
    with pytest.raises(BadLine, match=re.escape(said)):
        parse(SEND, line)


def test_words_that_follow_and_words_that_are_bound_mean_the_same() -> None:
    spaced = parse(SPAWN, "reviewer --as rev --parent lead --model M --tools a,b Please look?")
    bound = parse(SPAWN, "reviewer --as=rev --parent=lead --model=M --tools=a,b Please look?")

    assert spaced == bound
    assert spaced.head == "reviewer"
    assert spaced.text_of("as") == "rev"
    assert spaced.list_of("tools") == ("a", "b")
    assert spaced.text == "Please look?"


def test_an_option_does_not_swallow_the_next_option() -> None:
    with pytest.raises(BadLine, match="--as needs a value"):
        parse(SPAWN, "echo --as --again hello")


def test_quotes_keep_a_value_together() -> None:
    assert parse(SPAWN, "x --model 'replay:my file.json' hi").text_of("model") == (
        "replay:my file.json"
    )
    assert parse(SPAWN, 'x --model="a b" hi').text == "hi"
    assert parse(SPAWN, "x --model it's hi").text_of("model") == "it's"


def test_a_body_is_verbatim_but_for_its_last_line_end() -> None:
    body = '  {x} $y "quotes"\n%wait ann?\n\n'

    assert parse(SEND, "ann -i", body).text == body[:-1]
    assert parse(SEND, "ann", "one\r\n").text == "one"


def test_text_before_a_body_is_its_first_line() -> None:
    assert parse(SEND, "ann look at {this}:", "x = 1\n").text == "look at {this}:\nx = 1"


def test_expansion_reaches_head_values_and_text_but_no_body() -> None:
    names = {"{who}": "ann,bob", "{ n }": "3", "{x}": "--wait"}

    def swap(text: str) -> str:
        for name, value in names.items():
            text = text.replace(name, value)
        return text

    line = parse(SEND, "{who} --wait={ n } {x} says {x}", "{x}\n", expand=swap)

    assert line.heads == ("ann", "bob")
    assert line.number_of("wait") == 3
    assert line.text == "--wait says --wait\n{x}"


def test_wait_takes_names_and_options_in_any_order() -> None:
    line = parse(WAIT, " ann,bob --for=answer  carl --any --timeout=9 --strict ")

    assert line.names == ("ann", "bob", "carl")
    assert line.text_of("for") == "answer"
    assert line.number_of("timeout") == 9
    assert line.has("any")
    assert line.has("strict")


@pytest.mark.parametrize(
    ("line", "names", "quiet"),
    [
        ("ann;", ("ann",), True),
        ("ann ; # note", ("ann",), True),
        ("ann  # bob", ("ann",), False),
        ("# all of them", (), False),
        (";", (), True),
    ],
)
def test_wait_knows_a_semicolon_and_a_comment(
    line: str, names: tuple[str, ...], quiet: bool
) -> None:
    parsed = parse(WAIT, line)

    assert (parsed.names, parsed.quiet) == (names, quiet)


def test_text_keeps_its_semicolon_and_its_hash() -> None:
    assert parse(SEND, "ann see #3; then #4;").text == "see #3; then #4;"
    assert parse(MAILSQL, "select '#;'").text == "select '#;'"


def test_the_other_magics() -> None:
    assert parse(TRANSCRIPT, "ann --last=3").count_of("last") == 3
    assert parse(CALLS, "").head == ""
    assert parse(CALLS, "rev").head == "rev"
    assert parse(POSTROOM, "open my lab.mail.duckdb").text == "my lab.mail.duckdb"
    assert parse(MAILSQL, "-o df select 1").text_of("o") == "df"
    assert parse(MAILSQL, "-o df", "select 1\n").text == "select 1"
    assert parse(CLOSE, "ann bob").names == ("ann", "bob")
    assert parse(WATCH, "ann --into=bob --events=a,b").list_of("events") == ("a", "b")
    agent = parse(AGENT, "rev --max-iterations=3 --helpers x,y", "Be brief.\n")
    assert agent.count_of("max-iterations") == 3
    assert agent.list_of("helpers") == ("x", "y")
    assert agent.text == "Be brief."


@pytest.mark.parametrize("line", ["ann bob", "ann --last=2.5", "ann --last", ""])
def test_a_line_without_text_refuses_what_it_cannot_place(line: str) -> None:
    with pytest.raises(BadLine):
        parse(TRANSCRIPT, line)


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))


@given(text=_TEXT, flags=st.sets(st.sampled_from(["-i", "-e", "--from=bob", "--wait=1"])))
def test_no_character_of_a_text_is_lost(text: str, flags: set[str]) -> None:
    line = parse(SEND, f"ann {' '.join(sorted(flags))} -- {text}")

    assert line.text == text.strip()
    assert len(line.values) == len(flags)


@given(line=_TEXT)
def test_every_line_is_read_or_refused_and_what_is_read_is_a_piece_of_it(line: str) -> None:
    for magic in MAGICS:
        try:
            scanned = scan(magic, line)
        except BadLine:
            continue
        assert scanned.head in line
        assert scanned.text in line
        if magic.tail is Tail.TEXT and scanned.text:
            assert line.rstrip().endswith(scanned.text)


@given(body=st.text())
def test_no_character_of_a_body_is_lost(body: str) -> None:
    kept = parse(SEND, "ann", body).text

    assert body in (kept, kept + "\n", kept + "\r\n")


@pytest.mark.parametrize("magic", MAGICS, ids=lambda magic: magic.name)
def test_every_magic_has_help_with_its_forms_and_an_example(magic: Magic) -> None:
    assert BY_NAME[magic.name] is magic
    assert magic.help.startswith(magic.usage[0])
    assert "Example:" in magic.help
    assert all(option.written in magic.help for option in magic.options)
    assert max(map(len, magic.help.splitlines())) <= 140
