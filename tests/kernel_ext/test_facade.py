"""``import postroom``: light, and complete."""

import subprocess
import sys

import pytest

import postroom

HEAVY = (
    "duckdb",
    "numpy",
    "IPython",
    "anywidget",
    "ipywidgets",
    "pydantic",
    "genai_prices",
    "pydantic_ai",
    "openai",
)


def test_the_import_brings_nothing_heavy_along() -> None:
    code = f"import sys, postroom; print([name for name in {HEAVY} if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"


@pytest.mark.parametrize("name", postroom.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(postroom, name)

    assert value is getattr(postroom, name)
    assert value.__doc__
    assert name in dir(postroom)


def test_the_names_that_are_said_are_the_names_that_are_found() -> None:
    assert sorted(postroom.__all__) == sorted(postroom._MODULE)
    assert len(set(postroom.__all__)) == len(postroom.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'postroom' has no attribute 'nope'"):
        postroom.nope  # noqa: B018


def test_outside_a_notebook_there_is_no_room_but_rooms_can_be_opened() -> None:
    with pytest.raises(postroom.NoRoom, match="%load_ext postroom first"):
        postroom.room()
    with postroom.open() as room:
        assert room.path == ":memory:"
