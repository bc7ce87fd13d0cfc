"""What ``%sessions`` shows."""

import re

import pytest

from office.rooms import in_room
from postroom.grid_html import as_html
from postroom.grid_text import plain
from postroom.session_tables import LETTERS, SessionTable, mail_html, session_grid
from postroom_runtime.contracts.config import Agent
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_widgets.view_rows import Row


def line(id: str, name: str, **more: object) -> Row:
    return {"id": id, "name": name, "agent": "echo", "status": "idle", "unread": 0, **more}


def test_children_stand_below_their_parents() -> None:
    grid = session_grid(
        [
            line("s-0001", "lead"),
            line("s-0002", "other", unread=2),
            line("s-0003", "child", parent="s-0001"),
            line("s-0004", "grandchild", parent="s-0003", needs="ready (needs agent echo)"),
            line("s-0005", "orphan", parent="s-9999"),
        ]
    )

    assert [row[0] for row in grid.rows] == ["lead", "  child", "    grandchild", "other", "orphan"]
    assert tuple(map(str, grid.rows[2])) == (
        "    grandchild", "s-0004", "echo", "ready (needs agent echo)", "0",
    )  # fmt: skip
    assert "%spawn" in session_grid([]).empty


def test_running_calls_tokens_and_costs_are_shown_where_there_are_any() -> None:
    quiet = [line("s-0001", "ann")]
    busy = [*quiet, line("s-0002", "bob", status="running", calls=2, tokens=2149)]

    assert plain(session_grid(quiet)).splitlines()[0].split() == [
        "name", "id", "agent", "status", "unread",
    ]  # fmt: skip
    assert plain(session_grid(busy)).splitlines() == [
        "name  id      agent  status   unread  calls  tokens",
        "ann   s-0001  echo   idle          0",
        "bob   s-0002  echo   running       0      2    2.1k",
    ]
    priced = [*busy, line("s-0003", "cy", tokens=900, cost=0.0174)]
    assert plain(session_grid(priced)).splitlines() == [
        "name  id      agent  status   unread  calls  tokens    cost",
        "ann   s-0001  echo   idle          0",
        "bob   s-0002  echo   running       0      2    2.1k",
        "cy    s-0003  echo   idle          0            900  $0.017",
    ]


@pytest.mark.parametrize(
    ("state", "sign", "word"),
    [
        ({"status": "idle"}, "○", "idle"),
        ({"status": "idle", "end": "stopped"}, "■", "idle"),
        ({"status": "running"}, "●", "running"),
        ({"status": "waiting", "calls": 1}, "●", "waiting"),
        ({"status": "waiting", "asks": 1}, "◐", "needs you"),
        ({"status": "idle", "asks": 1}, "◐", "needs you"),
        ({"status": "capped"}, "‖", "capped"),
        ({"status": "paused"}, "‖", "paused"),
        ({"status": "failed"}, "◆", "failed"),
        ({"status": "ready"}, "◌", "ready"),
    ],
)
def test_a_status_is_a_word_and_a_sign_as_in_the_live_tree(
    state: Row, sign: str, word: str
) -> None:
    page = as_html(session_grid([line("s-0001", "ann", **state)]))

    assert re.search(rf'aria-hidden="true" style="color:var[^"]*">{sign}</span> {word}</td>', page)


@script
def writer(turn: ScriptTurn):  # type: ignore[no-untyped-def]
    if turn.text.startswith("write"):
        yield call("send-message", to="bob", text=f"<b>{turn.text}</b>")
    return ""


async def two(room: Room, letters: int) -> SessionTable:
    ann = room.spawn(Agent("writer", model=writer), name="ann")
    room.spawn(Agent("quiet", model=writer), name="bob", parent=ann)
    for n in range(letters):
        ann.send(f"write {n}")
        await ann.wait()
    return SessionTable(room.sessions(), room)


def test_the_mail_between_the_sessions_is_a_small_still_picture() -> None:
    async def main(room: Room) -> tuple[str, str]:
        table = await two(room, LETTERS + 3)
        bundle = table._repr_mimebundle_()
        assert repr(table) == plain(table.grid)
        return bundle["text/html"], bundle["text/plain"]

    page, text = in_room(main)

    assert f"Mail between them, the latest {LETTERS} letters." in page
    assert page.count("<svg") == 1
    assert "&lt;b&gt;write 14&lt;/b&gt;" in page
    assert "write 2&" not in page  # the first three are too old
    assert "you" not in re.findall(r'class="hn"[^>]*>([^<]*)<', page)
    assert re.search(r'<div data-picture="\d+" style="display: none"><svg', page)
    # What another output on the page styles is told by its classes.
    assert "postroom-picture" not in page
    assert "postroom-words" not in page
    assert "svg" not in text
    assert len(page) < 32_000


def test_sessions_that_do_not_write_to_each_other_have_no_picture() -> None:
    async def main(room: Room) -> str:
        table = await two(room, 0)
        assert mail_html(table.picture) == ""
        return table._repr_mimebundle_()["text/html"]

    page = in_room(main)

    assert "<svg" not in page
    assert "Mail between" not in page


def test_a_slice_and_an_empty_room_have_none_either() -> None:
    async def main(room: Room) -> tuple[str, str]:
        empty = SessionTable(room.sessions(), room)
        table = await two(room, 1)
        return empty._repr_mimebundle_()["text/html"], table[:1]._repr_mimebundle_()["text/html"]

    empty, part = in_room(main)

    assert empty == "<p>No sessions yet. Start one: %spawn echo --as ann Hello</p>"
    assert "<svg" not in part
