"""``room.sequence()``: what it reads from a journal, what it leaves out, and how it is drawn."""

import asyncio
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from office.busy_room import fill
from office.rooms import in_room
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.turn import no_reply
from postroom_runtime.models.script import ScriptTurn, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.sequence import (
    OWNER,
    Bar,
    Diagram,
    Lifeline,
    Mark,
    MarkKind,
    Run,
    Tone,
    select,
)
from postroom_runtime.office.sequence_mermaid import escaped, to_mermaid
from postroom_runtime.office.sequence_picture import Sequence
from postroom_runtime.office.sequence_reading import read_diagram
from postroom_runtime.office.sequence_svg import to_svg
from postroom_runtime.office.sequence_words import fit, plain, width_of
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import run_virtual
from postroom_runtime.testing.virtual import virtual_now

SVG = "{http://www.w3.org/2000/svg}"
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@script
def polite(turn: ScriptTurn) -> str:
    return f"You said: {turn.text}"


def busy(look: Callable[[Room], None]) -> None:
    async def main() -> None:
        async with Room(MemoryStorage(), name="memory", now=virtual_now) as room:
            await fill(room)
            look(room)

    run_virtual(main())


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> str:
    root = ElementTree.fromstring(svg)
    return "\n".join(each.text or "" for each in root.iter(f"{SVG}title"))


# ── What is read ──


def test_a_room_with_everything_is_told_in_its_order() -> None:
    def look(room: Room) -> None:
        marks = room.sequence(last=None).diagram.marks
        assert [mark.n for mark in marks] == sorted(mark.n for mark in marks)
        kinds = {mark.kind for mark in marks}
        assert kinds == set(MarkKind) - {MarkKind.REPLY}

        told = repr(room.sequence(last=None)).splitlines()
        assert told[:4] == [
            "you → lead    spawn",
            "lead → rev    spawn",
            "lead → coder  spawn",
            "you → docs    spawn",
        ]
        for line in (
            "lead          read_issue [call, call_0001]",
            "lead → rev    Review PR 214, both suites. [m-call_0002, expects reply]",
            "lead → docs   refused: not permitted [refused, call_0004]",
            "lead → coder  Never mind, staging first! [interrupt, m-call_0008]",
            'coder → you   may deploy(target="staging") run? [approval, ap-0001]',
            "you → coder   denied deploy: not on a Friday [approval, ap-0001]",
            "rev           run_tests completed: 231 passed, 2 failed [result, m-0012]",
            "rev           refused: no session nobody [refused, call_0011]",
            "coder         failed: ValueError: cannot digest this",
            "you → docs    pause [control, m-0018]",
            "you → docs    Shorter, two lines. [m-001c, not read yet]",
            "rev           closed",
        ):
            assert line in told, line
        assert any(line.startswith("rev → lead    lowered: The fast") for line in told)
        assert any(line.startswith("lead → you    Both are at work") for line in told)
        assert any(line.startswith("lead          timer t-0001: Is the") for line in told)
        assert any(line.startswith("coder → lead  watched: session.failed") for line in told)

    busy(look)


def test_a_run_that_said_nothing_tells_the_owner_nothing() -> None:
    """``no_reply`` reaches nobody, so no arrow carries it."""

    async def main(room: Room) -> None:
        @script
        def curt(turn: ScriptTurn) -> str:
            return "yes" if "?" in turn.text else no_reply

        s = room.spawn(Agent("curt", model=curt), name="ann")
        for text in ("a remark", "a question?"):
            s.send(text)
            await s.wait()
        assert repr(room.sequence()).splitlines() == [
            "you → ann  spawn",
            "you → ann  a remark [m-0001]",
            "you → ann  a question? [m-0002]",
            "ann → you  yes [answer]",
        ]

    in_room(main)


def test_m62_a_detached_call_is_a_bar_that_turns_and_returns_as_mail() -> None:
    """M-62: attached to the placeholder, detached to the mail; an attached one is only a bar."""

    def look(room: Room) -> None:
        bars = {bar.call: bar for bar in room.sequence(last=None).diagram.bars}
        slow, fast, wrong = bars["call_0005"], bars["call_0006"], bars["call_0007"]
        assert slow.detached is not None and slow.ended is not None and slow.returned is not None
        assert slow.begun < slow.detached < slow.ended < slow.returned
        assert (fast.detached, fast.returned, fast.state) == (None, None, "completed")
        assert wrong.state == "failed"
        assert {bar.tool for bar in bars.values()}.isdisjoint({"send-message"})

    busy(look)


def test_lifelines_stand_in_order_of_appearance_and_know_their_parents() -> None:
    def look(room: Room) -> None:
        lines = room.sequence(last=None).diagram.lifelines
        assert [line.name for line in lines] == ["you", "lead", "rev", "coder", "docs"]
        assert [line.parent for line in lines] == [None, None, "s-0001", "s-0001", None]
        assert [line.closed is not None for line in lines] == [False, False, True, False, False]

    busy(look)


def test_the_same_journal_gives_the_same_picture() -> None:
    def look(room: Room) -> None:
        first, again = room.sequence(), room.sequence()
        assert (first.svg, first.mermaid) == (again.svg, again.mermaid)
        assert read_diagram(room.storage.rows()) == read_diagram(iter(room.storage.rows()))

    busy(look)


def test_a_reply_is_told_from_a_letter_and_a_letter_read_from_one_unread() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn(Agent("friend", model=polite), "Hello", name="ann")
        await ann.wait()
        ann.pause()
        await asyncio.sleep(0)
        first = ann.mail()[0].id
        room.send("ann", "And now?", reply_to=first)
        marks = room.sequence(kinds=["mail", "reply", "answer"]).diagram.marks
        assert [(mark.kind, mark.unread) for mark in marks] == [
            ("mail", False),
            ("answer", False),
            ("reply", True),
        ]
        assert marks[2].flags == (f"re {first}",)

    in_room(main)


# ── What is left out ──


def test_sessions_are_chosen_by_name_id_and_object_also_closed_ones() -> None:
    def look(room: Room) -> None:
        rev: Any = room.people()["s-0002"]
        by = [room.sequence(sessions=key, last=None) for key in ("rev", "s-0002", [rev])]
        assert by[0].mermaid == by[1].mermaid == by[2].mermaid
        assert all("s-0002" in (m.source, m.target) for m in by[0].diagram.marks)
        assert {bar.session for bar in by[0].diagram.bars} == {"s-0002"}
        mine = room.sequence(sessions="you", last=None).diagram
        assert all(OWNER in (m.source, m.target) for m in mine.marks)
        docs = room.session("docs")
        assert [line.name for line in room.sequence(sessions=docs).diagram.lifelines] == [
            "you",
            "lead",
            "docs",
        ]

    busy(look)


def test_kinds_last_and_since_leave_out_the_rest() -> None:
    def look(room: Room) -> None:
        whole = room.sequence(last=None).diagram.marks
        calls = room.sequence(kinds="call").diagram
        assert {mark.kind for mark in calls.marks} == {MarkKind.CALL} and calls.bars
        assert not room.sequence(kinds=["mail"]).diagram.bars
        tail = room.sequence(last=3)
        assert tail.diagram.marks == whole[-3:] and tail.diagram.left_out == len(whole) - 3
        note = f"{len(whole) - 3} earlier ones left out: last=None shows all"
        assert note in repr(tail) and note in texts(tail.svg)
        assert escaped(note) in tail.mermaid and note in tail._repr_html_()
        since = whole[5].n
        assert room.sequence(since=since, last=None).diagram.marks == whole[6:]

    busy(look)


def test_by_default_the_last_two_hundred_are_shown() -> None:
    async def main(room: Room) -> None:
        room.spawn(Agent("friend", model=polite), name="ann").pause()
        for n in range(250):
            room.send("ann", f"letter {n}")
        sequence = room.sequence(kinds="mail")
        assert (len(sequence), sequence.diagram.left_out) == (200, 50)
        assert len(room.sequence(kinds="mail", last=None)) == 250

    in_room(main)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"kinds": ["mails"]}, "Did you mean 'mail'"),
        ({"kinds": "qqq"}, "There is: mail, reply,"),
        ({"kinds": [3]}, "kinds=3"),
        ({"sessions": "anm"}, "Did you mean 'ann'"),
        ({"sessions": [7]}, "sessions=7"),
        ({"last": 0}, "last=0 will not do"),
        ({"last": True}, "last=True"),
        ({"since": -1}, "since=-1"),
        ({"since": "m-0001"}, "since='m-0001'"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_with_a_near_match(
    wrong: dict[str, object], told: str
) -> None:
    async def main(room: Room) -> None:
        room.spawn(Agent("friend", model=polite), name="ann")
        with pytest.raises(ConfigError, match=re.escape(told)):
            room.sequence(**wrong)  # type: ignore[arg-type]

    in_room(main)


# ── How it is drawn ──


def small() -> Diagram:
    def at(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    def mark(n: int, kind: str, source: str, target: str, label: str, **more: object) -> Mark:
        return Mark(
            n=n,
            at=at(n),
            kind=MarkKind(kind),
            source=source,
            target=target,
            label=label,
            **more,  # type: ignore[arg-type]
        )

    return Diagram(
        lifelines=(
            Lifeline(id=OWNER, name="you"),
            Lifeline(id="s-0001", name="ann", agent="friend", born=1),
            Lifeline(id="s-0002", name="end", agent="end", parent="s-0001", born=3),
        ),
        marks=(
            mark(1, "spawn", OWNER, "s-0001", "spawn"),
            mark(2, "mail", OWNER, "s-0001", "Hi; <b>you</b> #1", tone=Tone.USER, id="m-0001"),
            mark(3, "call", "s-0001", "s-0001", "nap", text="nap(seconds=5)", id="call_0001"),
            mark(4, "refused", "s-0001", "s-0002", "refused: mailbox full", tone=Tone.BAD),
            mark(60, "reply", "s-0001", OWNER, "", tone=Tone.AGENT, unread=True),
            mark(61, "close", "s-0002", "s-0002", "closed"),
        ),
        bars=(
            Bar(call="call_0001", session="s-0001", tool="nap", begun=3, ended=5, state="failed"),
        ),
        runs=(Run(session="s-0001", begun=2, ended=60),),
    )


def test_the_mermaid_text_is_this() -> None:
    assert to_mermaid(small()).splitlines() == [
        "sequenceDiagram",
        "  actor p0 as you",
        "  participant p1 as ann (friend)",
        "  participant p2 as #101;nd",
        "  p0-->p1: spawn",
        "  p0->>p1: Hi#59; #60;b#62;you#60;/b#62; #35;1",
        "  p1->>p1: nap(seconds=5)",
        "  activate p1",
        "  p1-xp2: refused#58; mailbox full",
        "  deactivate p1",
        "  Note over p1: nap failed",
        "  p1-)p0: (no words)",
        "  Note over p2: closed",
    ]


def test_the_picture_has_every_word_a_head_a_key_and_tooltips() -> None:
    svg = to_svg(small())
    said = texts(svg)
    for word in ("you", "ann", "friend", "end", "Hi; <b>you</b> #1", "nap", "(no words)", "56 s"):
        assert word in said, word
    assert {"your mail", "refused", "not read yet", "run", "call", "ended badly"} <= set(said)
    assert "detached" not in said
    assert "you → ann (m-0001, row 2)\nHi; <b>you</b> #1" in titles(svg)
    assert "id=" not in re.sub(r"<title>.*?</title>", "", svg, flags=re.DOTALL)


def test_a_first_letter_draws_the_birth_in_its_own_row() -> None:
    said = texts(to_svg(small()))
    assert said.count("spawn") == 1  # in the key alone
    alone = select(small(), kinds={MarkKind.SPAWN})
    assert texts(to_svg(alone)).count("spawn") == 2


def test_many_lifelines_stand_close_with_their_labels_at_the_right() -> None:
    lines = (
        Lifeline(id=OWNER, name="you"),
        *(Lifeline(id=f"s{n}", name=f"n{n}") for n in range(30)),
    )
    marks = tuple(
        Mark(n=n, at=NOON, kind=MarkKind.MAIL, source=f"s{n}", target=f"s{n + 1}", label="x" * 500)
        for n in range(29)
    )
    svg = to_svg(Diagram(lifelines=lines, marks=marks))
    root = ElementTree.fromstring(svg)
    assert "n0 → n1" in texts(svg)
    assert float(root.attrib["width"]) < 1400


def test_it_shows_as_a_picture_and_as_words_where_pictures_are_taken_out() -> None:
    sequence = Sequence(small())
    bundle = sequence._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert sequence.svg in bundle["text/html"]
    assert 'style="display: none"><svg' in bundle["text/html"]
    without = re.sub(r"<svg.*</svg>", "", bundle["text/html"], flags=re.DOTALL)
    assert "<td>you → ann</td><td>Hi; &lt;b&gt;you&lt;/b&gt; #1</td><td>m-0001</td>" in without
    assert bundle["text/plain"] == repr(sequence) == plain(small())
    assert str(sequence) == sequence.mermaid and sequence._repr_svg_() == sequence.svg


def test_it_is_saved_by_the_suffix(tmp_path: Path) -> None:
    sequence = Sequence(small())
    ElementTree.parse(sequence.save(tmp_path / "a.svg"))
    assert sequence.save(tmp_path / "a.mmd").read_text() == sequence.mermaid + "\n"
    assert sequence.save(str(tmp_path / "a.MD")).read_text().startswith("```mermaid\nsequenceD")
    with pytest.raises(ConfigError, match=re.escape("end it in .svg, .mmd or .md")):
        sequence.save(tmp_path / "a.png")


def test_an_empty_room_says_so() -> None:
    async def main(room: Room) -> None:
        sequence = room.sequence()
        assert repr(sequence) == "No mail yet." and texts(sequence.svg) == ["No mail yet."]
        assert sequence.mermaid.endswith("Note over p0: No mail yet.") and sequence
        assert len(sequence) == 0

    in_room(main)


# ── Whatever somebody wrote ──

HOSTILE = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            "end",
            "END",
            "]]>",
            "</svg><script>alert(1)</script>",
            "%%{init: {}}%%",
            "wrap: x",
            "a;b#c\r\nend\nNote over p0: x",
            "$$x$$",
            "\x00\x1b[31m\ud800\uffff",
            "\u202etxet",
            "style a:#b;c",
            '"><img src=x onerror=alert(1)>',
            "participant p9 as x",
            "日本語" * 40,
            "👩\u200d🔬",
        ]
    ),
)
IDS = st.sampled_from([OWNER, "s-0001", "s-0002", "s-0003"])


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    lines = (
        Lifeline(id=OWNER, name="you"),
        *(
            Lifeline(id=f"s-000{n}", name=draw(HOSTILE), agent=draw(HOSTILE), born=n)
            for n in (1, 2, 3)
        ),
    )
    marks, bars, n, at = list[Mark](), list[Bar](), 3, NOON
    for _ in range(draw(st.integers(0, 8))):
        n += draw(st.integers(1, 5))
        at += timedelta(seconds=draw(st.sampled_from([0, 1, 45, 5000])))
        kind, source = draw(st.sampled_from(MarkKind)), draw(IDS)
        aside = kind in (MarkKind.CALL, MarkKind.CLOSE, MarkKind.FAILED, MarkKind.RESULT)
        marks.append(
            Mark(
                n=n,
                at=at,
                kind=kind,
                source=source,
                target=source if aside else draw(IDS),
                label=draw(HOSTILE),
                text=draw(HOSTILE),
                id=f"c{n}",
                tone=draw(st.sampled_from(Tone)),
                unread=draw(st.booleans()),
                flags=(draw(HOSTILE),),
            )
        )
        if kind is MarkKind.CALL:
            ended = draw(st.none() | st.integers(n, n + 12))
            turned = draw(st.none() | st.integers(n, n + 6))
            state = draw(st.sampled_from(["completed", "failed", "running", "timed_out"]))
            bars.append(
                Bar(
                    call=f"c{n}",
                    session=source,
                    tool=draw(HOSTILE),
                    begun=n,
                    detached=turned,
                    ended=ended,
                    state=state,
                    returned=draw(st.none() | st.integers(n + 1, n + 20)),
                )
            )
    runs = (Run(session="s-0001", begun=2, ended=draw(st.none() | st.integers(2, 40))),)
    return Diagram(
        lifelines=lines,
        marks=tuple(marks),
        bars=tuple(bars),
        runs=runs,
        left_out=draw(st.integers(0, 2)),
    )


_TEXT = r"(?:[^\W_]|[ .,!?()'_/+*@=→…-]|#\d+;)+"
GRAMMAR = re.compile(
    rf"  (?:(?:participant|actor) p\d+ as {_TEXT}"
    rf"|p\d+(?:->>|-->>|-->|-\)|-x)p\d+: {_TEXT}"
    rf"|Note over p\d+(?:,p\d+)?: {_TEXT}"
    r"|(?:de)?activate p\d+)"
)
"""All that a line may be: checked against the parser of Mermaid itself when it was written."""


@settings(max_examples=150, deadline=None)
@given(diagrams())
def test_whatever_is_written_stays_text(diagram: Diagram) -> None:
    """The SVG is XML of our own elements alone, the table HTML likewise, the Mermaid its grammar."""
    svg = to_svg(diagram)
    root = ElementTree.fromstring(svg)
    ours = {"svg", "style", "rect", "g", "path", "circle", "text", "title"}
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= ours
    names = {name for each in root.iter() for name in each.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]

    html = Sequence(diagram)._repr_html_().replace("<style>", "<style><![CDATA[", 1)
    page = ElementTree.fromstring(html.replace("</style>", "]]></style>", 1))
    plain_tags = {"div", "table", "tbody", "tr", "td", "p"}
    assert {each.tag.removeprefix(SVG) for each in page.iter()} <= ours | plain_tags

    first, *lines = to_mermaid(diagram).split("\n")
    assert first == "sequenceDiagram"
    depth: dict[str, int] = {}
    for line in lines:
        assert GRAMMAR.fullmatch(line), line
        word, _, who = line.strip().partition(" ")
        depth[who] = depth.get(who, 0) + {"activate": 1, "deactivate": -1}.get(word, 0)
        assert depth[who] >= 0
    assert not any(depth.values())
    assert "\x1b" not in repr(Sequence(diagram))


@given(st.text(max_size=60), st.integers(0, 300))
def test_a_label_is_cut_to_its_room(text: str, room: int) -> None:
    cut = fit(text, room)
    assert width_of(cut) <= room
    assert cut == text or cut == "" or cut.endswith("…")
