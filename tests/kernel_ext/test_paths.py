"""Which file a notebook's room is in (api.md, Which file)."""

from pathlib import Path

import pytest

from postroom.paths import Choice, choose, set_aside, shown

HERE = Path("/home/me/work")


def nowhere(path: Path) -> bool:
    return False


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"POSTROOM_ROOM": "/data/lab.duckdb"}, "/data/lab.duckdb"),
        ({"POSTROOM_ROOM": "lab.duckdb"}, "/home/me/work/lab.duckdb"),
        ({"POSTROOM_ROOM": ":memory:", "JPY_SESSION_NAME": "/a/b.ipynb"}, ":memory:"),
        ({"JPY_SESSION_NAME": "/a/Lesson 1.ipynb"}, "/a/Lesson 1.mail.duckdb"),
        ({"JPY_SESSION_NAME": "/a/v1.2.ipynb"}, "/a/v1.2.mail.duckdb"),
        ({"JPY_SESSION_NAME": "/a/lesson.md"}, "/a/lesson.mail.duckdb"),
        ({"JPY_SESSION_NAME": "sub/lesson.ipynb"}, "/home/me/work/lesson.mail.duckdb"),
        ({"JPY_SESSION_NAME": "/a/console-1-42aa"}, ":memory:"),
        ({"JPY_SESSION_NAME": ""}, ":memory:"),
        ({}, ":memory:"),
    ],
)
def test_the_variable_wins_then_the_notebook_then_memory(
    environment: dict[str, str], path: str
) -> None:
    assert choose(environment, HERE, nowhere).path == path


def test_a_relative_notebook_is_looked_for_below_the_folder() -> None:
    found = choose({"JPY_SESSION_NAME": "sub/lesson.ipynb"}, HERE, lambda path: True)

    assert found == Choice("/home/me/work/sub/lesson.mail.duckdb")


def test_a_room_in_memory_says_why_unless_it_was_asked_for() -> None:
    assert choose({}, HERE).note == "no notebook name known"
    assert choose({"POSTROOM_ROOM": ":memory:"}, HERE).note == ""


def test_paths_below_the_folder_are_shown_short() -> None:
    assert shown("/home/me/work/a/lab.duckdb", HERE) == "a/lab.duckdb"
    assert shown("/data/lab.duckdb", HERE) == "/data/lab.duckdb"
    assert shown(":memory:", HERE) == ":memory:"


def test_a_room_put_aside_keeps_its_kind_and_overwrites_nothing() -> None:
    taken = {HERE / "lab.D.mail.duckdb", HERE / "lab.D-2.mail.duckdb"}

    assert set_aside(HERE / "lab.mail.duckdb", "D", nowhere) == HERE / "lab.D.mail.duckdb"
    assert set_aside(HERE / "lab.mail.duckdb", "D", taken.__contains__) == (
        HERE / "lab.D-3.mail.duckdb"
    )
    assert set_aside(HERE / "lab.v1.duckdb", "D", nowhere) == HERE / "lab.v1.D.duckdb"
