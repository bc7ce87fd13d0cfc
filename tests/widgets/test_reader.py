"""A reader gets what changed, in numbered batches, and can always be brought up to date."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from postroom_widgets.reader import BATCH_ROWS, BYTES_PER_SECOND, WINDOW_ROWS, Reader
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import Row
from postroom_widgets.view_state import ViewState, opened
from widgets.story import PEOPLE, Story, review

START = opened("s-0002", name="rev", agent="reviewer")


class FrontEnd:
    """The least that a front end must do, to try the kernel's half of the protocol on."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.version = 0
        self.asks = False
        self.got: list[Any] = []
        self.reader = Reader(self.got.append)

    def hello(self, state: ViewState) -> None:
        self.asks = False
        self.reader.hello(state, self.version, [0, 0] if self.version else None)

    def read(self, message: Any) -> None:
        if message["after"] > self.version:
            self.asks = True
            return
        for row in message["rows"]:
            old = self.rows.get(row["key"], {})
            if old.get("v", 0) >= row["v"]:
                continue
            if "add" in row and old.get("v") != row["base"]:
                self.asks = True
                return
            text = {"text": old.get("text", "") + row["add"]} if "add" in row else {}
            self.rows[row["key"]] = {**old, "v": row["v"], **text} if text else row
        self.version = max(self.version, message["upto"])


def many(rows: int, text: str = "") -> ViewState:
    story = Story()
    for n in range(rows):
        story.mail(text or f"letter {n}")
    return fold(START, story.events, PEOPLE)


def test_a_reader_gets_nothing_before_it_says_hello_and_all_of_it_after() -> None:
    state = many(3)
    front = FrontEnd()
    assert not front.reader.listening

    front.hello(state)
    assert front.reader.push(state, "life", now=0.0) == 0
    (message,) = front.got
    assert (message["op"], message["life"], message["after"], message["upto"], message["left"]) == (
        "rows",
        "life",
        0,
        3,
        0,
    )
    assert [row["key"] for row in message["rows"]] == ["m:1", "m:2", "m:3"]


def test_a_reader_that_is_up_to_date_gets_nothing() -> None:
    state = many(3)
    front = FrontEnd()
    front.hello(state)
    front.reader.push(state, "life", now=0.0)

    assert front.reader.push(state, "life", now=9.0) == 0
    assert len(front.got) == 1


def test_a_batch_has_at_most_200_rows_and_says_how_many_are_left() -> None:
    state = many(450)
    front = FrontEnd()
    front.hello(state)
    now = 0.0
    while wait := front.reader.push(state, "life", now):
        now += wait

    sizes = [len(message["rows"]) for message in front.got]
    assert sizes == [BATCH_ROWS, BATCH_ROWS, 50]
    assert [message["left"] for message in front.got] == [250, 50, 0]
    assert [m["after"] for m in front.got[1:]] == [m["upto"] for m in front.got[:-1]]


def test_a_view_that_opens_late_gets_the_last_500_rows_and_asks_for_earlier_ones() -> None:
    state = many(WINDOW_ROWS + 130)
    front = FrontEnd()
    front.hello(state)
    now = 0.0
    while wait := front.reader.push(state, "life", now):
        now += wait
    assert sum(len(message["rows"]) for message in front.got) == WINDOW_ROWS
    assert front.got[0]["earlier"] == 130

    front.reader.older(state, 100)
    assert (len(front.got[-1]["rows"]), front.got[-1]["earlier"]) == (100, 30)
    front.reader.older(state, 100)
    assert (len(front.got[-1]["rows"]), front.got[-1]["earlier"]) == (30, 0)


def test_rows_above_the_first_one_are_not_sent_when_they_change() -> None:
    story = Story()
    for n in range(WINDOW_ROWS + 2):
        story.mail(f"letter {n}")
    state = fold(START, story.events, PEOPLE)
    front = FrontEnd()
    front.hello(state)
    now = 0.0
    while wait := front.reader.push(state, "life", now):
        now += wait
    story.run().heard(mail=story.unread[:1])
    front.reader.push(fold(state, story.events, PEOPLE), "life", now + 9)

    assert "m:1" not in {row["key"] for row in front.got[-1]["rows"]}


def test_a_reader_that_falls_far_behind_begins_anew_with_the_last_rows() -> None:
    story = Story()
    story.mail("first")
    state = fold(START, story.events, PEOPLE)
    front = FrontEnd()
    front.hello(state)
    front.reader.push(state, "life", now=0.0)
    for n in range(3000):
        story.mail(f"letter {n}")
    state = fold(state, story.events, PEOPLE)
    del front.got[:]
    now = 9.0
    while wait := front.reader.push(state, "life", now):
        now += wait

    assert sum(len(message["rows"]) for message in front.got) == WINDOW_ROWS
    assert front.got[0]["after"] == 1
    assert front.got[-1]["upto"] == state.version
    assert {m["earlier"] for m in front.got} == {3001 - WINDOW_ROWS}
    assert front.got[0]["top"] == front.got[0]["rows"][0]["o"]


def test_a_big_batch_makes_the_next_one_wait() -> None:
    state = many(20, "x" * 20_000)
    front = FrontEnd()
    front.hello(state)
    front.reader.push(state, "life", now=0.0)
    story = Story()
    story.seq, story.mails = 20, 20
    story.mail("one more")
    later = fold(state, story.events, PEOPLE)

    wait = front.reader.push(later, "life", now=0.1)
    assert wait > 20 * 20_000 / BYTES_PER_SECOND - 0.1
    assert len(front.got) == 1
    front.reader.push(later, "life", now=0.1 + wait)
    assert [row["key"] for row in front.got[-1]["rows"]] == ["m:21"]


def test_of_a_text_that_streams_only_what_is_new_is_sent() -> None:
    story = Story()
    story.mail("go")
    story.run().heard().delta("One. ")
    front = FrontEnd()
    state = fold(START, story.events, PEOPLE)
    front.hello(state)
    front.reader.push(state, "life", now=0.0)
    seen = len(story.events)
    story.delta("Two.")
    front.reader.push(fold(state, story.events[seen:], PEOPLE), "life", now=1.0)

    (row,) = front.got[-1]["rows"]
    assert row["add"] == "Two."
    assert "text" not in row


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=40))
def test_whatever_is_lost_on_the_way_the_front_end_ends_with_every_row(
    steps: list[tuple[int, bool]],
) -> None:
    """Rows arrive, are lost, or are asked for again; in the end nothing is missing or stale."""
    events = review().events
    front, state, now, at = FrontEnd(), START, 0.0, 0
    front.hello(state)
    for count, lost in [*steps, (len(events), False), (1, False), (1, False)]:
        state = fold(state, events[at : at + count], PEOPLE)
        at += count
        now += 10
        del front.got[:]
        front.reader.push(state, "life", now)
        for message in front.got:
            if not lost:
                front.read(message)
        if front.asks or front.version < front.reader.version:
            front.hello(state)

    assert {k: r for k, r in front.rows.items() if r["kind"] != "gone"} == {
        r["key"]: r for r in state.ordered()
    }
