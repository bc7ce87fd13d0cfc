"""What the magics show."""

from datetime import UTC, datetime

import pytest

from postroom.display import Receipts, mail_grid
from postroom.reports import RoomStatus, human_size, spent_words
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


# ── Mail ──


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


# ── Receipts, transcript, status ──


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
        "── turn 4, by ann, run ended: final answer ──\ndone"
    )
    assert "hi &lt;b&gt;" in turns._repr_mimebundle_()["text/html"]
    assert repr(Transcript([], of="ann")) == "ann has no turns yet."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (EndReason.BUDGET, "run ended: budget of rounds"),
        (EndReason.FAILED, "run failed"),
        (EndReason.PAUSED, "run paused"),
        (EndReason.INTERRUPTED, "run ended: the kernel ended"),
    ],
)
def test_a_transcript_says_how_a_run_ended_in_the_words_of_the_view(
    reason: EndReason, words: str
) -> None:
    turns = Transcript([Turn(index=1, role=Role.MODEL, text="x", end_reason=reason)], of="ann")

    assert repr(turns) == f"── turn 1, by ann, {words} ──\nx"
    assert f"turn 1, by ann, {words}</strong>" in turns._repr_mimebundle_()["text/html"]


def test_of_many_turns_the_last_are_shown_and_all_on_demand() -> None:
    turns = [Turn(index=n, role=Role.USER, text=f"text {n}") for n in range(1, 131)]
    note = "30 earlier turns are not shown: %transcript ann --last=130"

    short, whole = Transcript(turns, of="ann"), Transcript(turns, of="ann", last=130)

    assert repr(short).splitlines()[0] == f"({note})"
    assert "turn 30," not in repr(short)
    assert f"<small>{note}</small>" in short._repr_mimebundle_()["text/html"]
    assert "turn 1," in repr(whole)
    assert "not shown" not in repr(whole)
    assert len(short) == 130


def test_a_long_turn_unfolds_and_a_little_too_long_one_is_not_folded() -> None:
    def page(text: str) -> str:
        turn = Turn(index=1, role=Role.USER, text=text)
        return Transcript([turn], of="ann")._repr_mimebundle_()["text/html"]

    lines = "\n".join(f"  line {n}" for n in range(60))

    assert "<details" not in page("\n".join("abc" for _ in range(45)))
    assert page(lines).count("<details>") == 1
    assert '">  line 40\n' in page(lines)
    assert "<summary><small>2000 more characters</small></summary>" in page("x" * 6_000)
    assert "… 10,000 more characters in the list itself" in page("x" * 50_000)


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
