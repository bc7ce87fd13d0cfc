"""What the magics show."""

from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.display import Receipts, mail_grid, session_grid
from postroom.reports import RoomStatus, SqlResult, human_size, spent_words, sql_grid
from postroom.tables import (
    HTML_LINES,
    TEXT_LINES,
    Column,
    Grid,
    Table,
    as_html,
    columns_of,
    plain,
    printable,
)
from postroom.transcripts import Transcript
from postroom_runtime.contracts.call import (
    CallState,
    ToolMessage,
    ToolRequest,
)
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    Control,
    Envelope,
    FromSession,
    FromToolCall,
    FromUser,
    Pause,
    Priority,
    Receipt,
    Sender,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.turn import EndReason, Role, Turn, Usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Listed:
    id: str
    name: str
    agent: str = "echo"
    parent: str | None = None
    status: str = "idle"
    unread: int = 0

    def status_words(self) -> str:
        return self.status


YOU = FromUser()


def mail(
    seq: int, body: Body, sender: Sender = YOU, *, hops: int = 0, interrupt: bool = False
) -> Envelope:
    return Envelope(
        id=f"m-{seq:04x}",
        seq=seq,
        session="s-0001",
        sender=sender,
        priority=Priority.INTERRUPT if interrupt else Priority.NORMAL,
        hops=hops,
        accepted_at=NOW,
        body=body,
    )


# ── Tables ──

TWO = Grid((Column("#", number=True), Column("who"), Column("text", text=True)), ())


def rows(*cells: tuple[str, ...]) -> Grid:
    return Grid(TWO.columns, cells)


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    assert plain(rows(("1", "ann", "hello"), ("12", "bob", "good day"))) == (
        " #  who  text\n"
        " 1  ann  hello\n"
        "12  bob  good day"
    )  # fmt: skip


def test_long_text_is_broken_inside_its_own_column() -> None:
    lines = plain(rows(("1", "ann", "word " * 20)), width=40).splitlines()

    assert len(lines) == 5
    assert all(line.startswith("        word") for line in lines[2:])
    assert all(columns_of(line) <= 40 for line in lines)


def test_line_ends_of_a_text_stay_and_a_very_long_text_says_what_it_hides() -> None:
    lines = plain(rows(("1", "ann", "\n".join("abcdefghijklmnopqrst")))).splitlines()

    assert lines[1].endswith("a")
    assert lines[2].strip() == "b"
    assert lines[-1].strip() == "… 9 more lines"
    assert len(lines) == 1 + TEXT_LINES


def test_wide_letters_keep_the_columns_straight() -> None:
    first, second = plain(rows(("1", "安娜", "x"), ("2", "ann", "y"))).splitlines()[1:]

    assert columns_of(first.partition("x")[0]) == columns_of(second.partition("y")[0])


def test_a_text_cannot_move_the_cursor_of_a_terminal() -> None:
    assert printable("a\x1b[2Jb\r\nc\td\x00") == "a\\x1b[2Jb\nc   d\\x00"


def test_html_escapes_everything_and_fixes_no_colour() -> None:
    page = as_html(rows(("<1>", "<b>", "<script>x</script> &\nline")))

    assert "<script" not in page
    assert "&lt;script&gt;x&lt;/script&gt; &amp;\nline" in page
    assert "white-space:pre-wrap" in page
    assert "color" not in page


def test_a_long_text_unfolds_in_html_and_nothing_of_it_is_lost() -> None:
    lines = [f"<line {n}>" for n in range(40)]
    page = as_html(rows(("1", "ann", "\n".join(lines)), ("2", "bob", "y" * 2_000)))

    assert "<summary>28 more lines</summary>&lt;line 12&gt;" in page
    assert "<summary>800 more characters</summary>" in page
    assert all(f"&lt;line {n}&gt;" in page for n in range(40))
    assert page.count("y") >= 2_000


def test_one_line_too_many_is_not_folded() -> None:
    page = as_html(rows(("1", "ann", "a\n" * HTML_LINES + "a")))

    assert "<details" not in page


def test_only_the_table_scrolls_where_it_is_wider_than_the_page() -> None:
    page = as_html(rows(("1", "ann", "hi")))

    assert page.startswith('<div style="overflow-x:auto;max-width:100%"><table>')
    assert page.count('<th scope="col"') == 3


def test_an_empty_table_says_so() -> None:
    grid = Grid(TWO.columns, (), empty="No mail <yet>.")

    assert plain(grid) == "No mail <yet>."
    assert as_html(grid) == "<p>No mail &lt;yet&gt;.</p>"


def test_a_table_is_a_list_that_shows_itself() -> None:
    table = Table(["a", "b"], rows(("1", "ann", "a"), ("2", "bob", "b")))

    assert table == ["a", "b"]
    assert table[1] == "b"
    assert repr(table) == plain(table.grid)
    assert table._repr_mimebundle_() == {
        "text/plain": repr(table),
        "text/html": as_html(table.grid),
    }


_ASCII = st.text(st.characters(max_codepoint=0x7E))


@given(
    st.lists(
        st.tuples(_ASCII.map(lambda text: text[:2]), _ASCII.map(lambda text: text[:2]), _ASCII),
        min_size=1,
    )
)
def test_a_table_of_anything_fits_its_width_and_shows_every_row(
    cells: list[tuple[str, str, str]],
) -> None:
    lines = plain(rows(*cells), width=60).split("\n")

    assert len(lines) >= 1 + len(cells)
    assert max(map(len, lines)) <= 60


# ── Sessions, mail, calls ──


def test_children_stand_below_their_parents() -> None:
    grid = session_grid(
        [
            Listed("s-0001", "lead"),
            Listed("s-0002", "other", unread=2),
            Listed("s-0003", "child", parent="s-0001"),
            Listed("s-0004", "grandchild", parent="s-0003", status="ready (needs agent echo)"),
            Listed("s-0005", "orphan", parent="s-9999"),
        ]
    )

    assert [row[0] for row in grid.rows] == ["lead", "  child", "    grandchild", "other", "orphan"]
    assert grid.rows[2] == ("    grandchild", "s-0004", "echo", "ready (needs agent echo)", "0")
    assert "%spawn" in session_grid([]).empty


@pytest.mark.parametrize(
    ("envelope", "row"),
    [
        (mail(1, UserMessage("hi")), ("1", "m-0001", "you", "message", "hi")),
        (
            mail(2, UserMessage("hi"), FromUser("tim"), interrupt=True),
            ("2", "m-0002", "tim", "interrupt", "hi"),
        ),
        (
            mail(3, AgentMessage("no", "m-0001", True), FromSession("s-0002", "echo"), hops=1),
            ("3", "m-0003", "bob", "message, re m-0001, expects reply, 1 hop", "no"),
        ),
        (
            mail(
                4, ToolCallFinished("call_0001", "run", "failed", "no"), FromToolCall("call_0001")
            ),
            ("4", "m-0004", "call_0001", "run failed", "no"),
        ),
        (
            mail(5, ToolCallFinished("call_0001", "run", "completed", {"a": 1})),
            ("5", "m-0005", "you", "run completed", '{"a": 1}'),
        ),
        (mail(6, Control(Pause())), ("6", "m-0006", "you", "pause", "")),
        (
            mail(7, WatchedEvent("s-0002", "run.stopped"), FromSession("s-0009"), hops=2),
            ("7", "m-0007", "s-0009", "watched run.stopped, 2 hops", ""),
        ),
    ],
)
def test_a_mail_is_one_row_that_says_who_what_and_about_what(
    envelope: Envelope, row: tuple[str, ...]
) -> None:
    (shown,) = mail_grid([envelope], names={"s-0002": "bob"}, of="ann", cursor=99).rows

    assert shown == row


def test_mail_behind_the_cursor_is_marked_unread() -> None:
    grid = mail_grid(
        [mail(1, UserMessage("a")), mail(2, UserMessage("b"))], names={}, of="ann", cursor=1
    )

    assert [row[3] for row in grid.rows] == ["message", "message, unread"]


# ── Receipts, transcript, status, SQL ──


def test_receipts_are_a_list_that_prints_a_line_each() -> None:
    receipts = Receipts(
        Receipt(id=f"m-000{n}", seq=1, session=f"s-000{n}", name=name, recipient_status="idle")
        for n, name in enumerate(["ann", "bob"], 1)
    )

    assert repr(receipts) == "m-0001 → ann #1 (idle)\nm-0002 → bob #1 (idle)"
    assert receipts[1].name == "bob"


def test_a_transcript_shows_what_the_model_read_and_said() -> None:
    turns = Transcript(
        [
            Turn(index=1, role=Role.USER, text="hi <b>"),
            Turn(
                index=2,
                role=Role.MODEL,
                text="I look.",
                calls=(ToolRequest(id="call_0001", tool="run", arguments={"n": 1}),),
            ),
            Turn(
                index=3,
                role=Role.USER,
                text="",
                results=(
                    ToolMessage(
                        call="call_0001", tool="run", content="ok", state=CallState.COMPLETED
                    ),
                ),
            ),
            Turn(index=4, role=Role.MODEL, text="done", end_reason=EndReason.ANSWER),
        ],
        of="ann",
    )

    assert repr(turns) == (
        "── turn 1, to ann ──\nhi <b>\n\n"
        "── turn 2, by ann ──\nI look.\n* call_0001 run(n=1)\n\n"
        "── turn 3, to ann ──\ncall_0001 run → ok\n\n"
        "── turn 4, by ann, run ended: answer ──\ndone"
    )
    assert "hi &lt;b&gt;" in turns._repr_mimebundle_()["text/html"]
    assert repr(Transcript([], of="ann")) == "ann has no turns yet."


def test_the_status_of_a_room() -> None:
    status = RoomStatus(
        path="lab.mail.duckdb",
        size=1_234_567,
        sessions={"idle": 2, "running": 1},
        unread=3,
        calls=1,
        agents=("echo", "rev"),
        kernel="ipykernel 7.4.0",
    )

    assert repr(status) == (
        "room      lab.mail.duckdb (1.2 MB)\n"
        "sessions  3 (2 idle, 1 running)\n"
        "unread    3 mail\n"
        "calls     1 running\n"
        "approvals none waiting\n"
        "agents    echo, rev\n"
        "kernel    ipykernel 7.4.0"
    )


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2.5e9, "2.5 GB")]
)
def test_sizes(size: int, text: str) -> None:
    assert human_size(size) == text


def test_the_result_of_a_query_is_rows_a_table_and_a_relation() -> None:
    relation = duckdb.connect().sql(
        "select i, 'text ' || i as t, null as n from range(250) r(i) order by i"
    )

    result = SqlResult(relation)

    assert len(result) == 250
    assert result[2] == (2, "text 2", None)
    assert result.columns == ["i", "t", "n"]
    assert repr(result).splitlines()[0].split() == ["i", "t", "n"]
    assert repr(result).endswith("… 150 more rows; the result has them all.")
    assert len(result.df()) == 250
    with pytest.raises(AttributeError):
        result.nonsense  # noqa: B018


def test_only_long_texts_of_a_query_are_broken() -> None:
    grid = sql_grid(["id", "n", "text"], [("m-0001", 1, "word " * 9), ("m-0002", None, "")])

    assert [(column.number, column.text) for column in grid.columns] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    assert sql_grid(["a", "b"], []).empty == "No rows. Columns: a, b."


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, ""),
        ({"max_requests": 10}, "3 of 10 requests (room.max_requests)"),
        ({"max_tokens": 500}, "120 of 500 tokens (room.max_tokens)"),
        ({"max_cost": 0.5}, "$0.017 of $0.50 (room.max_cost)"),
        (
            {"max_tokens": 500, "max_requests": 10},
            "3 of 10 requests (room.max_requests), 120 of 500 tokens (room.max_tokens)",
        ),
    ],
)
def test_what_a_room_spent_is_told_where_a_cap_is_set(limits: dict[str, float], words: str) -> None:
    usage = Usage(requests=3, input_tokens=100, output_tokens=20, cost=0.0174)
    assert spent_words(usage, limits) == words
    status = RoomStatus(
        path="r", size=None, sessions={}, unread=0, calls=0, spent=words, agents=(), kernel=""
    )
    assert (f"spent     {words}" in repr(status)) is bool(words)
    assert ("spent" in repr(status)) is bool(words)
