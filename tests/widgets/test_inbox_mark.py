"""Whatever shows a run shows that it was steered, and by whom: never by its model (A-18…A-20)."""

import re
from dataclasses import replace

import pytest

from mail.foreign import QueueInbox
from office.rooms import in_room, ticks
from office.test_steering import napper
from postroom.transcripts import Transcript
from postroom_runtime.contracts.event import Event
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.office.room import Room
from postroom_widgets.static_html import static_html
from postroom_widgets.static_text import static_text
from postroom_widgets.view_model import fold
from postroom_widgets.view_rows import Row
from postroom_widgets.view_state import ViewState, opened

WORDS = "check the staging log instead"


@pytest.fixture(scope="module")
def steered() -> tuple[list[Turn], list[Event], ViewState]:
    """A run that two messages reached on its way: its turns, its events and its view."""

    async def main(room: Room) -> tuple[list[Turn], list[Event], ViewState]:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "read the logs", name="rev")
        await ticks()
        inbox.send(WORDS)
        inbox.send("and hurry")
        await s.wait()
        state = opened(s.id, name="rev", agent="napper", model="script")
        return s.transcript(), s.history(), fold(state, s.history(), room.people())

    return in_room(main)


def rows(state: ViewState) -> list[Row]:
    return state.ordered()


def test_a18_a20_a_transcript_marks_the_turn_and_gives_its_words_to_no_model(
    steered: tuple[list[Turn], list[Event], ViewState],
) -> None:
    """A-18, A-20: as text and as HTML."""
    shown = Transcript(steered[0], of="rev")
    blocks = repr(shown).split("\n\n── ")

    assert blocks[2] == (
        "turn 3, to rev, INBOX: 2 mails read on its way ──\n"
        f"call_0001 nap → slept 1\n{WORDS}\n\nand hurry"
    )
    by_model = [block for block in blocks if ", by rev" in block]
    assert [WORDS in block for block in by_model] == [False, True]  # it says what it read
    assert "INBOX" not in blocks[0]
    html = shown._repr_mimebundle_()["text/html"]
    assert "<strong>turn 3, to rev, INBOX: 2 mails read on its way</strong>" in html


def test_a18_the_mark_counts_one_mail_as_one(
    steered: tuple[list[Turn], list[Event], ViewState],
) -> None:
    turns = steered[0]
    third = turns[2]
    alone = Transcript([turns[1], _with_mail(third, 1)], of="rev")
    assert ", INBOX: 1 mail read on its way ──" in repr(alone)
    cut = Transcript([third], of="rev")  # its last turns alone, as %transcript --last gives them
    assert ", INBOX: 2 mails" in repr(cut)


def _with_mail(turn: Turn, count: int) -> Turn:
    return replace(turn, mail=turn.mail[:count])


def test_a18_a20_a_view_as_text_marks_the_round_and_names_who_wrote(
    steered: tuple[list[Turn], list[Event], ViewState],
) -> None:
    text = static_text(steered[2])

    at = text.index("== INBOX · 2 mails read into turn 3")
    above, below = text[:at], text[at:]
    assert WORDS not in above
    assert re.search(rf"you → rev  m-0003\n    {WORDS}\n", below)
    assert below.index(WORDS) < below.index("-- turn 4")


def test_a18_a20_a_view_as_html_marks_it_too(
    steered: tuple[list[Turn], list[Event], ViewState],
) -> None:
    html = static_html(steered[2])

    at = html.index("<strong>INBOX</strong>")
    assert WORDS not in html[:at]
    assert html.index("<strong>you</strong>", at) < html.index(WORDS, at)
    assert html.index(WORDS, at) < html.index("<strong>Turn 4</strong>", at)


def test_a19_a20_the_frame_of_a_steered_round_is_its_own(
    steered: tuple[list[Turn], list[Event], ViewState],
) -> None:
    """A-19, A-20: not one of those that tell of the loop's own words."""
    found = rows(steered[2])
    [mark] = [row for row in found if row["kind"] == "mark"]
    assert (mark["mark"], mark["count"], mark["turn"]) == ("inbox", 2, 3)
    mail = [row for row in found if row["kind"] == "mail" and row["turn"] == 3]
    assert [(row["tone"], row["name"], row["text"]) for row in mail] == [
        ("user", "you", WORDS),
        ("user", "you", "and hurry"),
    ]
    said = [row for row in found if row["kind"] == "turn"]
    assert [row.get("text", "") for row in said] == ["", f"read: {WORDS}\n\nand hurry"]
