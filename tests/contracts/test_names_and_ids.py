"""Names people choose and ids the room counts out (api.md, Names and Ids; M-19, M-45, I-3)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.ids import (
    call_id,
    check_given_id,
    check_name,
    inbox_key,
    is_inbox_key,
    mail_id,
    session_id,
)


@pytest.mark.parametrize(
    "name", ["ann", "Ann", "a", "a.b-c_9", "prüfer", "文", "x" * 64, "inboxes"]
)
def test_a_name_of_up_to_64_letters_digits_and_three_signs_is_taken_as_it_is(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "x" * 65, "a b", "a/b", "a@b", "a\n", "ann ", "a,b", "a:b", None, 5, b"ann", ["ann"]],
)
def test_anything_else_cannot_be_a_name_and_the_refusal_says_what_can(name: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        check_name(name)

    assert repr(name) in str(refused.value)
    assert "session" in str(refused.value)
    assert "1 to 64 letters, digits, '_', '.' or '-'" in str(refused.value)
    assert refused.value.value is name


@pytest.mark.parametrize("name", ["inbox", "Inbox", "INBOX", "inBox"])
def test_inbox_is_reserved_in_any_case(name: str) -> None:
    """I-3."""
    with pytest.raises(ConfigError, match=r"reserved for the owner inbox\. Choose another"):
        check_name(name)


def test_the_refusal_of_a_name_says_what_was_to_be_named() -> None:
    with pytest.raises(ConfigError, match="cannot name an agent"):
        check_name("a b", "agent")


@pytest.mark.parametrize(
    "id", ["x", "x" * 128, "m-0001", "answer to Ann, 2nd try", "ключ", "a'b\"c"]
)
def test_a_given_id_is_free_text_of_up_to_128_characters(id: str) -> None:
    """M-19."""
    assert check_given_id(id) == id


@pytest.mark.parametrize(
    "id", ["", "   ", "x" * 129, "a\nb", "a\x00", "a\u2028b", "\u200b", "a\tb", None, 5, b"id"]
)
def test_an_id_with_what_cannot_be_printed_on_one_line_is_refused(id: Any) -> None:
    """M-19, M-46: an id stands in a header."""
    with pytest.raises(ConfigError) as refused:
        check_given_id(id)

    assert repr(id) in str(refused.value)
    assert "1 to 128 printable characters" in str(refused.value)
    assert "or none" in str(refused.value)


def test_ids_are_counted_out_short_and_wide_enough_to_sort() -> None:
    """M-45."""
    assert [mail_id(n) for n in (1, 10, 255, 0xFFFF, 0x10000)] == [
        "m-0001",
        "m-000a",
        "m-00ff",
        "m-ffff",
        "m-10000",
    ]
    assert [session_id(n) for n in (1, 42, 12345)] == ["s-0001", "s-0042", "s-12345"]
    assert [call_id(n) for n in (1, 42, 12345)] == ["call_0001", "call_0042", "call_12345"]


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_two_numbers_never_give_the_same_id(one: int, other: int) -> None:
    for counted in (mail_id, session_id, call_id):
        assert (counted(one) == counted(other)) == (one == other)


@pytest.mark.parametrize("counted", [mail_id, session_id, call_id])
def test_an_id_that_is_counted_out_could_be_given(counted: Any) -> None:
    assert check_given_id(counted(7)) == counted(7)


def test_an_owner_inbox_has_a_key_that_no_session_can_be_called() -> None:
    """I-4."""
    key = inbox_key("reviewer")

    assert key == "inbox@reviewer"
    assert is_inbox_key(key)
    assert not is_inbox_key("inbox")
    assert not is_inbox_key("s-0001")
    with pytest.raises(ConfigError):
        check_name(key)
