"""The switchboard's feed and what is saved of it, over real rooms on a virtual clock."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from office.busy_room import fill
from office.reckoner import Reckoner
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.models.script import ScriptTurn, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.sequence_mermaid import to_mermaid
from postroom_runtime.office.sequence_reading import KINDS, DiagramReader, read_diagram
from postroom_runtime.testing import run_virtual
from postroom_widgets.assets import STATIC, sheet
from postroom_widgets.assets import script as script_of
from postroom_widgets.board_link import BoardFeed, board_of
from postroom_widgets.board_static import board_html, board_text, line_words, tree
from postroom_widgets.board_view import SNAPSHOT_TEXT, BoardView
from postroom_widgets.live_view import open_views
from postroom_widgets.reader import Reader

BATCH = 0.06


@script
def polite(turn: ScriptTurn) -> str:
    return f"You said: {turn.text}"


class Front:
    """A front end: it keeps what it is told, and has each row as it was told last."""

    def __init__(self, feed: BoardFeed) -> None:
        self.feed, self.got = feed, list[Any]()
        self.reader = Reader(self.got.append, 1000)
        feed.join(self.reader)
        self.say("hello", after=0)

    def say(self, op: str, **more: Any) -> None:
        self.feed.receive(self.reader, {"op": op, **more})

    def of(self, op: str) -> list[Any]:
        return [message for message in self.got if message["op"] == op]

    @property
    def rows(self) -> dict[str, Any]:
        return {row["key"]: row for message in self.of("rows") for row in message["rows"]}

    @property
    def head(self) -> Any:
        return self.of("rows")[-1]["head"]

    def labels(self) -> list[str]:
        marks = sorted((r for r in self.rows.values() if r["kind"] == "mark"), key=lambda r: r["o"])
        return [row["label"] for row in marks]


def watched(main: Callable[[Room, Front], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_room() as room:
            await main(room, Front(board_of(room)))

    run_virtual(run())


def spawned(room: Room, name: str, **more: Any) -> Any:
    return room.spawn(Agent("polite", model=polite), name=name, **more)


# ── The diagram, row by row ──


def test_a_diagram_read_row_by_row_is_the_one_read_at_once() -> None:
    async def run() -> None:
        async with open_room() as room:
            live = room.live_diagram()
            stop = live.listen(lambda: None)
            await fill(room)
            assert live.heard().diagram() == read_diagram(room.storage.rows(kinds=KINDS))
            stop()

    run_virtual(run())


def test_every_prefix_of_a_journal_reads_as_what_was_known_then() -> None:
    async def run() -> None:
        async with open_room() as room:
            await fill(room)
            rows = room.storage.rows(kinds=KINDS)
            reader = DiagramReader()
            for n, row in enumerate(rows, 1):
                reader.read(row)
                if n % 9 == 0:
                    assert reader.diagram() == read_diagram(rows[:n])

    run_virtual(run())


def test_only_what_changed_is_told() -> None:
    async def run() -> None:
        async with open_room() as room:
            ann = spawned(room, "ann")
            live = room.live_diagram()
            live.catch_up().take_changes()
            room.send("ann", "hello")
            await ann.wait()
            changes = live.catch_up().take_changes()
            assert changes.lines == set()
            assert sorted(changes.marks) == [1, 2]
            assert live.reader.marks[1].turn == 1
            assert not live.reader.marks[1].unread
            assert live.catch_up().take_changes().marks == set()

    run_virtual(run())


# ── The feed ──


def test_a_letter_is_an_arrow_at_once_and_is_told_again_when_it_is_read() -> None:
    async def main(room: Room, front: Front) -> None:
        ann = spawned(room, "ann")
        ann.pause()
        await asyncio.sleep(BATCH)
        room.send("ann", "hello")
        await asyncio.sleep(BATCH)
        letter = next(row for row in front.rows.values() if row.get("label") == "hello")
        assert letter["unread"] is True

        ann.resume()
        await asyncio.sleep(1)
        letter = front.rows[letter["key"]]
        assert "unread" not in letter
        assert letter["turn"] == 1
        assert front.labels()[-1] == "You said: hello"

    watched(main)


def test_sessions_tell_what_they_do_their_unread_mail_calls_and_tokens() -> None:
    async def main(room: Room, front: Front) -> None:
        lead = spawned(room, "lead")
        kid = spawned(room, "kid", parent=lead)
        kid.pause()
        await asyncio.sleep(BATCH)
        room.send("kid", "one")
        room.send("kid", "two")
        await asyncio.sleep(1)
        row = front.rows[f"l:{kid.id}"]
        assert row["parent"] == lead.id
        assert row["status"] == "paused"
        assert row["unread"] == front.head["unread"] == 2

        kid.resume()
        await asyncio.sleep(2)
        row = front.rows[f"l:{kid.id}"]
        assert row["status"] == "idle"
        assert "unread" not in row
        assert row["requests"] == 1

        kid.close()
        await asyncio.sleep(2)
        assert front.rows[f"l:{kid.id}"]["status"] == "closed"
        assert front.head["sessions"] == 1

    watched(main)


def test_what_sessions_cost_is_told_where_it_is_known_and_nowhere_else() -> None:
    async def main(room: Room, front: Front) -> None:
        polite = spawned(room, "free")
        await asyncio.sleep(BATCH)
        room.send("free", "hi")
        await asyncio.sleep(1)
        assert "cost" not in front.rows[f"l:{polite.id}"] | front.head
        assert "$" not in board_html(board_of(room).state) + board_text(board_of(room).state)
        assert "<th" in board_html(board_of(room).state)
        assert ">cost<" not in board_html(board_of(room).state)

        for name, cost in (("lead", 0.0174), ("kid", 1.5)):
            room.spawn(Agent(name, model=Reckoner(cost=cost)), "go")
        await asyncio.sleep(2)
        costs = {
            row["name"]: row.get("cost") for row in front.rows.values() if row["kind"] == "line"
        }
        assert costs == {"free": None, "lead": 0.0174, "kid": 1.5}
        assert front.head["cost"] == pytest.approx(1.5174)
        html, text = board_html(board_of(room).state), board_text(board_of(room).state)
        assert " · $1.52" in html
        assert ">cost<" in html
        assert ">$0.017<" in html
        assert "lead  lead · idle · $0.017" in text
        assert " · $1.52" in text.splitlines()[0]

    watched(main)


def test_a_view_that_missed_something_gets_it_and_nothing_twice() -> None:
    async def main(room: Room, front: Front) -> None:
        ann = spawned(room, "ann")
        await asyncio.sleep(BATCH)
        seen = front.of("rows")[-1]["upto"]
        front.say("bye")
        room.send("ann", "hello")
        await ann.wait()
        await asyncio.sleep(1)
        del front.got[:]
        front.say("hello", after=seen, top=[0, 0])
        await asyncio.sleep(BATCH)
        assert front.labels() == ["hello", "You said: hello"]

        late = Front(front.feed)
        await asyncio.sleep(BATCH)
        assert late.labels() == ["spawn", "hello", "You said: hello"]

    watched(main)


def test_step_mode_tells_what_is_next_and_a_step_lets_it_through() -> None:
    async def main(room: Room, front: Front) -> None:
        spawned(room, "ann")
        front.say("stepping", id="v1", on=True)
        await asyncio.sleep(BATCH)
        assert room.stepping
        room.send("ann", "first")
        room.send("ann", "second")
        await asyncio.sleep(1)
        assert front.head["held"] == 2
        assert front.head["next"]["words"] == "you → ann: first"

        front.say("step", id="v2")
        await asyncio.sleep(1)
        assert front.labels()[-1] == "You said: first"
        assert front.head["next"]["words"] == "you → ann: second"
        assert [answer["id"] for answer in front.of("ack")] == ["v1", "v2"]

        front.say("stepping", id="v3", on=False)
        await asyncio.sleep(1)
        assert "stepping" not in front.head
        assert front.labels()[-1] == "You said: second"

    watched(main)


def test_a_step_that_cannot_be_made_is_refused_in_words() -> None:
    async def main(room: Room, front: Front) -> None:
        front.say("step", id="v1")
        await asyncio.sleep(BATCH)
        (refused,) = front.of("refused")
        assert refused["id"] == "v1"
        assert "the room does not step" in refused["words"]

    watched(main)


def test_all_sessions_are_paused_and_resumed_together() -> None:
    async def main(room: Room, front: Front) -> None:
        one, two = spawned(room, "one"), spawned(room, "two")
        one.pause()
        await asyncio.sleep(BATCH)
        front.say("pause", id="v1")
        await asyncio.sleep(1)
        assert {str(s.status) for s in (one, two)} == {"paused"}
        assert len([label for label in front.labels() if label == "pause"]) == 2

        front.say("resume", id="v2")
        await asyncio.sleep(1)
        assert "paused" not in {str(s.status) for s in (one, two)}

    watched(main)


def test_a_closed_room_ends_the_view_and_says_how_to_see_it_again() -> None:
    async def run() -> None:
        room = open_room()
        room.attach()
        front = Front(board_of(room))
        spawned(room, "ann")
        await asyncio.sleep(BATCH)
        room.close()
        await asyncio.sleep(BATCH)
        (over,) = front.of("over")
        assert "The room was closed" in over["words"]
        assert "%watch --all" in over["words"]
        assert front.feed.catch_up().head["sessions"] == 1

    run_virtual(run())


def test_owner_inboxes_are_no_part_of_a_switchboard() -> None:
    async def main(room: Room, front: Front) -> None:
        spawned(room, "ann", text="hello")
        await asyncio.sleep(2)
        assert len([row for row in front.rows.values() if row["kind"] == "line"]) == 1

    watched(main)


# ── What is saved ──


def test_the_saved_view_reads_without_a_style_and_escapes_what_was_written() -> None:
    async def main(room: Room, front: Front) -> None:
        lead = spawned(room, "lead")
        spawned(room, "kid", parent=lead, text="<b>bold</b> & more")
        await asyncio.sleep(2)
        state = front.feed.catch_up()
        html, text = board_html(state), board_text(state)
        assert "<th style=" in html
        assert "&lt;b&gt;bold&lt;/b&gt; &amp; more" in html
        assert "<b>" not in html
        for tag in ("<svg", "<style", "<script"):
            assert tag not in html
        assert "you → kid" in html
        assert "    kid  polite · idle" in text
        assert "  you → kid  <b>bold</b> & more  [m-0001]" in text
        assert "%watch --all" in html

    watched(main)


def test_an_empty_room_says_how_to_begin() -> None:
    async def main(room: Room, front: Front) -> None:
        state = front.feed.catch_up()
        assert "No sessions yet." in board_text(state)
        assert "%spawn" in board_html(state)

    watched(main)


def test_of_a_long_journal_the_last_fifty_are_saved_and_the_rest_counted() -> None:
    async def main(room: Room, front: Front) -> None:
        spawned(room, "ann").pause()
        for n in range(60):
            room.send("ann", f"letter {n}")
        await asyncio.sleep(2)
        html = board_html(front.feed.catch_up())
        assert html.count("<tr>") == 1 + 1 + 1 + 50
        assert "12 earlier entries are in the room file" in html

    watched(main)


def test_a_tree_lists_children_below_their_parents() -> None:
    lines = [{"id": "a"}, {"id": "b", "parent": "a"}, {"id": "c"}, {"id": "d", "parent": "b"}]
    assert [(depth, line["id"]) for depth, line in tree(lines)] == [
        (0, "a"),
        (1, "b"),
        (2, "d"),
        (0, "c"),
    ]


def test_a_saved_tree_is_indented_by_spaces_that_html_keeps() -> None:
    async def main(room: Room, front: Front) -> None:
        spawned(room, "bob", parent=spawned(room, "ann"))
        html = board_html(front.feed.catch_up())
        assert (
            ">\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}bob<" in html
        )
        assert ">ann<" in html

    watched(main)


def test_what_a_session_needs_comes_before_what_it_does() -> None:
    assert line_words({"status": "idle", "asks": 1}) == "needs you"
    assert line_words({"status": "ready", "needs": "ready (needs agent x)"}) == (
        "ready (needs agent x)"
    )
    assert line_words({"status": "running", "asks": 1}) == "running"


# ── The view ──


def test_a_room_shows_itself_only_where_there_is_a_notebook() -> None:
    async def run() -> None:
        async with open_room() as room:
            with pytest.raises(PostroomError, match=r"room\.sequence\(\) gives the same"):
                room.view()
            room.board_factory = lambda of: ("board", of)
            assert room.view() == ("board", room)

    run_virtual(run())


def test_a_board_carries_a_short_snapshot_and_its_static_forms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import comm

    from widgets.test_session_view import Comm

    monkeypatch.setattr(comm, "create_comm", Comm)
    pytest.importorskip("anywidget")
    script_of(BoardView.scripts)  # files are read once, and not on a loop
    sheet(BoardView.sheets)

    async def run() -> None:
        async with open_room() as room:
            spawned(room, "ann").pause()
            for n in range(200):
                room.send("ann", f"letter {n} {'x' * 900}")
            view = BoardView(room)
            snapshot = view.snapshot
            assert view in open_views()
            assert {"view", "life", "head", "rows", "earlier"} <= set(snapshot)
            assert len([row for row in snapshot["rows"] if row["kind"] == "line"]) == 1
            assert max(len(row.get("text", "")) for row in snapshot["rows"]) == SNAPSHOT_TEXT
            data = view.static()
            assert data["text/plain"].startswith("Switchboard memory · 1 session")
            assert "text/html" in data
            view.close()
            assert view not in open_views()

    run_virtual(run())


# ── Words that agree ──


def test_the_page_writes_the_mermaid_that_the_room_writes(tmp_path: Path) -> None:
    async def told() -> tuple[list[Any], str]:
        async with open_room() as room:
            await fill(room)
            rows = [row for row in board_of(room).catch_up().ordered() if row["kind"] != "run"]
            return rows, to_mermaid(room.sequence(last=None).diagram)

    rows, mermaid = run_virtual(told())
    (tmp_path / "rows.json").write_text(json.dumps(rows), "utf-8")
    program = (
        f'import {{ file }} from "{STATIC}/filing.js";'
        f'import {{ toMermaid }} from "{STATIC}/keeping.js";'
        'import { readFileSync } from "node:fs";'
        f'const log = file(JSON.parse(readFileSync("{tmp_path}/rows.json", "utf-8")));'
        "process.stdout.write(toMermaid(log, log));"
    )
    command = ["node", "--input-type=module", "-e", program]
    node = subprocess.run(command, capture_output=True, text=True, check=False)

    assert node.returncode == 0, node.stderr
    assert node.stdout == mermaid
