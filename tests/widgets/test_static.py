"""What is left of a view where no widget runs: text and plain HTML."""

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.contracts.event import EventKind
from postroom_widgets.static_html import static_html
from postroom_widgets.static_text import static_text
from postroom_widgets.view_model import fold
from postroom_widgets.view_state import ViewState, opened
from widgets.story import PEOPLE, Story, review

START = opened("s-0002", name="rev", agent="reviewer", model="scripted")

# JupyterLab's sanitizer drops other elements; `style` and `svg` are not among its own.
KEPT = {
    "div",
    "h4",
    "small",
    "p",
    "strong",
    "code",
    "blockquote",
    "details",
    "summary",
    "pre",
    "br",
}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def shown(story: Story) -> ViewState:
    return fold(START, story.events, PEOPLE)


class Page(HTMLParser):
    """The tags and the text of a piece of HTML, and whether its tags are balanced."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.open, self.text = set[str](), list[str](), ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text_is_a_transcript_a_person_can_read() -> None:
    story = Story()
    story.mail("Please review.\nBoth suites.")
    story.run().heard().tick(12).said("I read the diff.")
    story.stopped(rounds=1)
    story.mail("Check staging first.", interrupt=True)

    assert static_text(shown(story)) == "\n".join(
        [
            "rev · idle · reviewer · scripted · 1 unread · 4.8k tokens",
            "10:02:14  you → rev  m-0001",
            "    Please review.",
            "    Both suites.",
            "    (delivered in turn 1 — answered in turn 2)",
            "-- turn 2  12 s · 2.1k in · 318 out",
            "    I read the diff.",
            "== Run ended · final answer · 1 round · 12 s",
            "10:02:26  you → rev  interrupt  m-0002",
            "    Check staging first.",
            "    (queued, not delivered yet)",
        ]
    )


def test_both_tell_what_a_turn_and_a_session_cost_where_it_is_known() -> None:
    story = Story()
    story.price = {"cost": 0.0174}
    story.mail("Please review.")
    story.run().heard().tick(12).said("I read the diff.")
    story.stopped(rounds=1)

    for saved in (static_text(shown(story)), Page(static_html(shown(story))).text):
        assert "4.8k tokens · $0.035" in saved
        assert "12 s · 2.1k in · 318 out · $0.017" in saved
    assert "$" not in static_text(shown(review())) + static_html(shown(review()))


@pytest.mark.parametrize(
    "words",
    [
        "* read_diff(pr=214) completed 0.8 s",
        '* deploy_status(target="staging") failed 2.0 s\n    HTTP 503 from deploy.internal, 3 tries',
        "completed by mail 1 m 32 s\n    placeholder: still running after 10s → result in m-0009",
        "sent 0.8 s\n    m-1c08 to coder",
        "== Interrupted by you · m-0006 · 1 attached call detached, keeps running",
        "== INBOX · 1 mail read into turn 3",
        "coder → rev  child  re m-1c08  1 hop  m-0005",
        "run_tests → rev  call_0003  result of the call in turn 2  m-0009",
        "-- turn 12  streaming",
    ],
)
def test_text_has_a_word_for_every_state(words: str) -> None:
    assert words in static_text(shown(review()))


def test_both_say_how_many_earlier_rows_there_are_and_show_the_last_50() -> None:
    story = Story()
    for n in range(73):
        story.mail(f"letter {n}")
    state = shown(story)

    assert "(23 earlier entries)" in static_text(state)
    assert "23 earlier entries are in the room file" in static_html(state)
    assert "letter 22" not in static_text(state) + static_html(state)
    assert "letter 23" in static_text(state)


def test_an_empty_view_says_how_to_begin() -> None:
    assert static_text(START).splitlines()[1] == "No mail yet."
    page = Page(static_html(START))
    assert "No mail yet. Write with %send rev …" in page.text
    assert "Saved without a kernel. Run %watch rev to see it live." in page.text


def test_html_reads_without_style_script_or_drawing() -> None:
    page = Page(static_html(shown(review())))

    assert page.tags <= KEPT
    assert page.open == []
    for words in [
        "rev running · turn 12 · reviewer · scripted · 2 unread · 1 call running · 26.6k tokens",
        "you · interrupt m-0006 10:02:45",
        'deploy_status(target="staging") failed · 2.0 s',
        "HTTP 503 from deploy.internal, 3 tries",
        "delivered in turn 5 — answered in turn 8",
        "queued, not delivered yet",
        "Run ended · final answer · 4 rounds · 40 s",
        "Saved 10:04:25 without a kernel. Run %watch rev to see it live.",
    ]:
        assert words in page.text


def test_html_keeps_the_traceback_folded_and_the_error_in_sight() -> None:
    story = Story()
    story.mail("one")
    story.run().heard()
    story.event(EventKind.SESSION_FAILED, error="ModelError: 529", traceback="a\nb\nc")
    html = static_html(shown(story))

    assert "The run failed" in html
    assert "<summary><small>Traceback, 3 lines</small></summary><pre>a\nb\nc</pre>" in html


@given(st.text(), st.text(min_size=1))
def test_whatever_somebody_writes_stays_text(text: str, name: str) -> None:
    """M-133: mail with markup in it is shown, never run."""
    evil = f"<img src=x onerror=alert(1)>{text}</pre></details>&amp;<script>"
    story = Story()
    story.mail(evil, sender={"kind": "user", "owner": name + "<b>"}, in_reply_to=evil)
    story.run().heard().said(evil, {"id": evil, "tool": evil, "arguments": {evil: evil}})
    story.started(evil, evil).finished(evil, evil, evil, "failed")
    story.event(EventKind.SESSION_FAILED, error=evil, traceback=evil)

    page = Page(static_html(shown(story)))
    assert page.tags <= KEPT
    assert page.open == []


def test_no_formula_is_made_of_dollars() -> None:
    assert re.match(r'<div class="[^"]*mathjax_ignore', static_html(START))


def test_what_was_cut_is_counted() -> None:
    story = Story()
    story.mail("x" * 20_003)

    assert "… 3 more characters" in static_text(shown(story))
    assert "… 3 more characters" in static_html(shown(story))


def test_code_between_fences_keeps_its_columns() -> None:
    story = Story()
    story.mail("Look:\n```py\nif x:\n    <b>\n```\nSee?")
    html = static_html(shown(story))

    assert "<pre>if x:\n    &lt;b&gt;</pre>" in html
    assert "```" not in html
    assert "    ```py\n    if x:" in static_text(shown(story))
