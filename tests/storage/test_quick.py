from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from postroom_runtime.contracts.envelope import Envelope, Receipt
from postroom_runtime.storage.quick import maker
from storage.records import NOON, letter


def test_a_record_made_fast_is_the_record_made_slowly() -> None:
    slow = letter()

    fast = maker(Envelope)(slow.id, 1, slow.session, slow.sender, slow.priority, 0, NOON, slow.body)

    assert fast == slow
    assert repr(fast) == repr(slow)
    assert type(fast) is Envelope
    with pytest.raises(FrozenInstanceError):
        fast.seq = 2  # type: ignore[misc]


def test_defaults_may_be_left_out_or_named() -> None:
    assert maker(Receipt)("m", 1, "s", note="n") == Receipt(id="m", seq=1, session="s", note="n")


def test_a_record_built_on_another_is_refused() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Stamped(Receipt):
        stamp: str = ""

    with pytest.raises(TypeError, match="Stamped is built on another class"):
        maker(Stamped)


def test_a_default_made_anew_for_each_record_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Listing:
        items: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match="the default of items"):
        maker(Listing)
