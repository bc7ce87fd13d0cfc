"""Owner inboxes as views: cards out of entries, how each stands, and what its buttons do."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest

from office.reckoner import Reckoner
from office.rooms import in_room, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_widgets.assets import script as script_of
from postroom_widgets.assets import sheet
from postroom_widgets.inbox_link import InboxFeed, inbox_feed_of
from postroom_widgets.inbox_model import headline
from postroom_widgets.inbox_state import KEPT, InboxState
from postroom_widgets.inbox_static import inbox_html, inbox_text
from postroom_widgets.inbox_view import SNAPSHOT_TEXT, InboxView
from postroom_widgets.live_view import open_views
from postroom_widgets.reader import Message, Reader
from postroom_widgets.view_rows import Row
from widgets.test_session_view import Comm

ran: list[tuple[str, int]] = []


async def deploy(target: str, nodes: int = 1) -> str:
    """Put it there."""
    ran.append((target, nodes))
    return f"on {target}"


@script
def deploying(turn: ScriptTurn) -> Generator[Any, Any, str]:
    if "fail" in turn.text:
        raise ValueError("no <b>model</b>")
    if turn.text in ("go", "again"):
        yield call("deploy", target="staging", nodes=5)
    return "well"


POLICY = {
    "rules": [{"tool": "deploy", "disposition": {"tag": "defer", "reason": "touches <prod>"}}]
}


def coder(**knobs: Any) -> Agent:
    return Agent("coder", model=deploying, tools=[deploy], policy=POLICY, **knobs)


class Desk:
    """One view of an inbox: what it was told, and words to say."""

    def __init__(self, feed: InboxFeed) -> None:
        self.feed, self.heard = feed, list[Message]()
        self.reader = Reader(self.heard.append, 1000)
        feed.join(self.reader)
        self.say("hello")

    def say(self, op: str, **more: Any) -> None:
        self.feed.receive(self.reader, {"op": op, "id": op, **more})

    def answers(self, op: str) -> list[Message]:
        return [m for m in self.heard if m["op"] in ("ack", "refused") and m["id"] == op]

    def rows(self) -> dict[str, Row]:
        """Return the cards by their title, as this view has them."""
        known: dict[str, Row] = {}
        for message in self.heard:
            if message["op"] == "rows":
                known |= {row["key"]: row for row in message["rows"]}
        return {row["title"]: row for row in known.values() if row["kind"] == "card"}


async def soon() -> None:
    await asyncio.sleep(3)
    await ticks()


def seen(main: Callable[[Room, Desk], Awaitable[None]], agent: str = "") -> None:
    """Run ``main`` in a room with the agent coder and a view of its inbox."""
    ran.clear()

    async def act(room: Room) -> None:
        room.define(coder())
        await main(room, Desk(inbox_feed_of(room, agent)))

    in_room(act)


async def asked(room: Room, name: str = "lead", **more: Any) -> Session:
    session = room.spawn("coder", "go", name=name, **more)
    await session.wait()
    return session


# ── Cards ──


def test_a_question_becomes_a_card_with_its_path_arguments_and_reason() -> None:
    """I-37: drawn from the metadata's type and actions."""

    async def main(room: Room, desk: Desk) -> None:
        lead = await asked(room)
        await asked(room, "kid", parent=lead)
        await soon()
        card = desk.rows()["kid wants to run"]
        assert (card["face"], card["state"], card["tone"]) == ("approval", "open", "now")
        assert (card["tool"], card["args"]) == ("deploy", {"target": "staging", "nodes": 5})
        assert card["why"] == "touches <prod>"
        assert card["path"] == [
            ["user", "you"],
            ["agent", "lead"],
            ["agent", "kid"],
            ["call", "call_0002"],
        ]
        assert card["always"] == ["args", "tool", "agent"]
        assert card["expires"].startswith(str(room.approvals()[1].expires_at)[:10])
        assert desk.feed.state.head["asks"] == 2

    seen(main)


def test_a_notice_has_a_headline_and_only_web_pages_as_links() -> None:
    async def main(room: Room, desk: Desk) -> None:
        pages = [{"label": "Docs", "url": "https://x.y"}, {"label": "!", "url": "javascript:1"}, 7]
        room.notify("coder", "Notes are ready. They are in docs.", actions=pages)
        await soon()
        card = desk.rows()["Notes are ready"]
        assert (card["face"], card["why"]) == ("notice", "They are in docs.")
        assert card["links"] == [{"label": "Docs", "url": "https://x.y"}]

    seen(main)


def test_words_in_metadata_give_no_card_a_button_that_answers() -> None:
    async def main(room: Room, desk: Desk) -> None:
        room.notify("coder", "sure", metadata={"type": "approval", "approval": "ap-9999"})
        room.notify("coder", "hidden", metadata={"type": "approval_resolved", "approval": "x"})
        await soon()
        rows = list(desk.feed.state.ordered())
        assert [(row["face"], row.get("acts")) for row in rows] == [
            ("approval", None),
            ("notice", []),
        ]

    seen(main)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("disk almost full", ("disk almost full", "")),
        (
            "rev used its 10 rounds; it ended. Write.",
            ("rev used its 10 rounds", "It ended. Write."),
        ),
        ("one line\nand more", ("one line", "and more")),
        ("version 2.8.1 is out", ("version 2.8.1 is out", "")),
        ("a" * 200, ("a" * 200, "")),
        ("", ("", "")),
    ],
)
def test_a_headline_is_a_whole_sentence(text: str, parts: tuple[str, str]) -> None:
    assert headline(text) == parts


# ── How they stand ──


def test_a_card_that_is_drawn_before_its_question_can_be_answered_waits_for_it() -> None:
    async def main(room: Room, desk: Desk) -> None:
        await asked(room)
        state, entries = InboxState("coder"), room.inbox("coder").history()
        state.take(entries, room.people())
        state.look([], room.people(), {})
        assert [(row["state"], row.get("acts")) for row in state.ordered()] == [("open", None)]
        state.look(room.approvals(None), room.people(), {})
        assert [(row["state"], row["acts"]) for row in state.ordered()] == [("open", ["answer"])]

    seen(main)


def test_an_answer_that_is_told_before_it_is_taken_over_settles_the_card_and_is_completed() -> None:
    async def main(room: Room, desk: Desk) -> None:
        await asked(room)
        before = room.approvals(None)
        room.deny("ap-0001", "no", by="%deny")
        state = InboxState("coder")
        state.take(room.inbox("coder").history(), room.people())
        for approvals, words in (
            (before, "denied by %deny"),
            (room.approvals(None), "denied by %deny: no"),
        ):
            state.look(approvals, room.people(), {})
            assert [(r["state"], r["outcome"]) for r in state.ordered()] == [("done", words)]

    seen(main)


def test_i28_i29_an_answer_anywhere_settles_the_card_in_every_view() -> None:
    async def main(room: Room, desk: Desk) -> None:
        other = Desk(inbox_feed_of(room))
        agent = Desk(inbox_feed_of(room, "coder"))
        await asked(room)
        await soon()
        room.deny("ap-0001", "Not on a Friday.", by="%deny")
        await soon()
        for one in (desk, other, agent):
            card = one.rows()["lead wants to run"]
            assert (card["state"], card["end"]) == ("done", "bad")
            assert card["outcome"] == "denied by %deny: Not on a Friday."
        assert agent.feed.state.head["agent"] == "coder"

    seen(main)


def test_a_failure_is_open_until_its_session_goes_on_or_is_closed() -> None:
    async def main(room: Room, desk: Desk) -> None:
        session = room.spawn("coder", "fail", name="bad")
        await session.wait()
        await soon()
        card, mail = desk.rows()["bad failed"], session.mail()[0].id
        assert card["how"].startswith("%resume bad")
        assert (card["why"], card["state"]) == ("ValueError: no <b>model</b>", "open")
        assert "ValueError" in card["traceback"]
        assert card["acts"] == ["resume", "open", "close"]
        desk.say("resume", card=card["key"])
        await soon()
        *before, last = desk.feed.state.ordered()
        assert {(row["state"], row["outcome"]) for row in before} == {("done", "failed again")}
        assert (last["title"], last["state"]) == (
            f"bad has failed twice on the same mail ({mail})",
            "open",
        )
        desk.say("close", card=last["key"])
        await soon()
        assert desk.feed.state.ordered()[-1]["outcome"] == "closed"
        assert session.closed

    seen(main)


def test_a_cap_of_the_room_is_raised_by_its_own_size_and_the_session_goes_on() -> None:
    async def main(room: Room, desk: Desk) -> None:
        room.max_requests = 1
        session = await asked(room)
        session.send("go on")
        await session.wait()
        await soon()
        card = desk.rows()["lead reached the room's cap of 1 requests"]
        assert (card["face"], card["acts"][0]) == ("budget", "raise")
        desk.say("raise", card=card["key"])
        await soon()
        assert room.max_requests == 2
        assert desk.answers("raise") == [{"op": "ack", "id": "raise"}]

    seen(main)


def test_a_cap_of_money_says_dollars_and_is_raised_by_its_own_size() -> None:
    async def main(room: Room, desk: Desk) -> None:
        room.max_cost = 0.5
        session = room.spawn(Agent("lead", model=Reckoner(cost=0.3)), "go")
        for text in ("on", "and on"):
            await session.wait()
            session.send(text)
        await session.wait()
        await soon()
        card = desk.rows()["lead reached the room's cap of $0.50"]
        assert (card["limit"], card["used"], card["knob"]) == (0.5, 0.6, "room.max_cost")
        assert card["acts"][0] == "raise"
        assert "lead reached the room's cap of $0.50" in inbox_text(desk.feed.state)
        desk.say("raise", card=card["key"])
        await soon()
        assert room.max_cost == pytest.approx(1.1)
        assert session.usage.cost == pytest.approx(0.9)

    seen(main)


def test_i37_reading_marks_the_viewers_cursor_and_only_notices_are_done_by_it() -> None:
    async def main(room: Room, desk: Desk) -> None:
        await asked(room)
        room.notify("coder", "index finished")
        await soon()
        assert desk.feed.state.head["news"] == 2
        assert room.inbox().unread == 2
        desk.say("read")
        await soon()
        assert (desk.feed.state.head["news"], room.inbox().unread) == (0, 0)
        rows = desk.rows()
        assert rows["index finished"]["outcome"] == "read"
        assert rows["lead wants to run"]["state"] == "open"
        assert "fresh" not in rows["lead wants to run"]

    seen(main)


def test_reading_from_python_reaches_the_view_too() -> None:
    async def main(room: Room, desk: Desk) -> None:
        room.notify("coder", "index finished")
        await soon()
        room.inbox("coder").mark_read()
        await soon()
        assert desk.feed.state.head["news"] == 0

    seen(main)


def test_old_resolved_cards_are_left_to_the_file_and_open_ones_are_not() -> None:
    async def main(room: Room, desk: Desk) -> None:
        await asked(room)
        for number in range(KEPT + 5):
            room.notify("coder", f"notice {number}")
        desk.say("read")
        await soon()
        rows = desk.feed.state.ordered()
        assert len(rows) == KEPT + 1
        assert rows[0]["title"] == "lead wants to run"
        assert desk.feed.state.head["earlier"] == 5
        assert "(5 earlier ones)" not in inbox_text(desk.feed.state)
        assert f"({KEPT + 5 - 20} earlier ones)" in inbox_text(desk.feed.state)

    seen(main)


# ── Buttons ──


def test_edited_arguments_run_as_they_were_typed() -> None:
    """M-97."""

    async def main(room: Room, desk: Desk) -> None:
        session = await asked(room)
        await soon()
        desk.say("approve", approval="ap-0001", edits={"nodes": "30", "target": '"prod"'})
        await soon()
        await session.wait()
        assert ran == [("prod", 30)]
        assert desk.rows()["lead wants to run"]["outcome"] == "approved in a view, arguments edited"

    seen(main)


def test_i30_of_two_views_the_first_wins_and_the_other_is_told() -> None:
    async def main(room: Room, desk: Desk) -> None:
        other = Desk(inbox_feed_of(room))
        session = await asked(room)
        await soon()
        desk.say("approve", approval="ap-0001")
        other.say("deny", approval="ap-0001", reason="no")
        await soon()
        await session.wait()
        await soon()
        assert desk.answers("approve") == [{"op": "ack", "id": "approve"}]
        [late] = other.answers("deny")
        assert late["words"] == "ap-0001 was already approved by view; that stands."
        assert ran == [("staging", 5)]

    seen(main)


def test_a_standing_permission_is_given_listed_and_revoked_in_the_view() -> None:
    async def main(room: Room, desk: Desk) -> None:
        session = await asked(room)
        await soon()
        desk.say("approve", approval="ap-0001", always="tool")
        await soon()
        [rule] = desk.feed.state.head["permissions"]
        assert (rule["id"], rule["tool"], rule["where"]) == ("pm-0001", "deploy", "lead")
        assert rule["reach"] == "this tool, this session"
        card = desk.rows()["lead wants to run"]
        assert card["outcome"] == "approved in a view, always: this tool, this session"
        session.send("again")
        await session.wait()
        assert room.approvals() == []
        desk.say("revoke", permission="pm-0001")
        await soon()
        assert desk.feed.state.head["permissions"] == []
        desk.say("revoke", permission="pm-0001")
        await soon()
        assert [answer["op"] for answer in desk.answers("revoke")] == ["ack", "refused"]

    seen(main)


@pytest.mark.reads_inbox
def test_i40_discussing_is_an_act_of_its_own_and_says_where_to_go() -> None:
    async def main(room: Room, desk: Desk) -> None:
        room.notify("coder", "fail: disk almost full")
        await soon()
        assert room.sessions() == []
        desk.say("discuss", card=desk.feed.state.ordered()[0]["key"])
        await soon()
        [session] = room.sessions()
        assert desk.answers("discuss")[0]["session"] == session.id
        assert "disk almost full" in session.transcript()[0].text

    seen(main)


@pytest.mark.parametrize("op", ["send", "notify", "write", "post", "", None])
def test_i11_whatever_would_write_to_an_inbox_is_refused_as_read_only(op: Any) -> None:
    async def main(room: Room, desk: Desk) -> None:
        before = room.storage.head()
        desk.feed.receive(desk.reader, {"op": op, "id": "w", "text": "hello", "to": "inbox"})
        await soon()
        [refused] = desk.answers("w")
        assert (refused["code"], refused["status"]) == ("inbox_read_only", 403)
        assert "read-only" in refused["words"]
        assert room.storage.head() == before

    seen(main)


def test_a_button_of_no_card_is_refused_in_words() -> None:
    async def main(room: Room, desk: Desk) -> None:
        desk.say("resume", card="e:coder:9")
        desk.say("discuss")
        desk.say("approve", approval="ap-0009")
        await soon()
        said = [desk.answers(op)[0]["words"] for op in ("resume", "discuss", "approve")]
        assert said[0] == "'e:coder:9' is no card of this inbox."
        assert said[2] == "no approval 'ap-0009'; open: none."

    seen(main)


def test_an_unknown_agent_has_no_view() -> None:
    async def main(room: Room, desk: Desk) -> None:
        with pytest.raises(ConfigError, match="Did you mean 'coder'"):
            inbox_feed_of(room, "codr")

    seen(main)


# ── The widget, and what is left of it ──


def test_the_widget_shows_cards_where_there_is_a_front_end_and_words_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import anywidget  # noqa: F401 - files are read before the loop runs
    import comm

    script_of(InboxView.scripts), sheet(InboxView.sheets)
    monkeypatch.setattr(Comm, "made", [])
    monkeypatch.setattr(comm, "create_comm", Comm)

    async def main(room: Room, desk: Desk) -> None:
        await asked(room)
        room.notify("coder", "long. " + "x" * 3 * SNAPSHOT_TEXT)
        view = InboxView(room)
        data = view.static()
        assert data["text/plain"].startswith("Inbox · 1 waiting for you · 2 new")
        assert data["text/html"].startswith("<div class=")
        snapshot = view.snapshot_of()
        assert [row["title"] for row in snapshot["rows"]] == ["lead wants to run", "long"]
        assert len(snapshot["rows"][1]["why"]) == SNAPSHOT_TEXT
        assert snapshot["rows"][1]["more"] > 0
        assert repr(view) == "<InboxView of inbox of all agents>"
        for one in open_views():
            one.close()

    seen(main)


def test_the_static_views_read_without_style_and_escape_what_others_wrote() -> None:
    async def main(room: Room, desk: Desk) -> None:
        await asked(room)
        room.notify("coder", "<script>x</script>")
        room.spawn("coder", "fail", name="bad")
        await room.wait()
        await soon()
        text, html = inbox_text(desk.feed.state), inbox_html(desk.feed.state)
        assert "lead wants to run deploy: touches <prod>" in text
        assert "you › lead › call_0001" in text
        assert "%approve ap-0001  or  %deny ap-0001 REASON" in text
        assert "<script" not in html
        assert "touches &lt;prod&gt;" in html
        assert "<code>&quot;staging&quot;</code>" in html
        assert "no &lt;b&gt;model&lt;/b&gt;" in html
        for tag in ("<svg", "<style", "<button", "<input"):
            assert tag not in html
        room.approve("ap-0001", by="%approve")
        desk.say("read")
        await soon()
        assert "ap-0001  lead · deploy  approved by %approve" in inbox_text(desk.feed.state)
        assert "approved by %approve" in inbox_html(desk.feed.state)

    seen(main)


def test_an_empty_inbox_says_what_lands_there() -> None:
    async def main(room: Room, desk: Desk) -> None:
        state = desk.feed.catch_up()
        assert inbox_text(state).splitlines() == [
            "Inbox of coder",
            "Nothing waits for you.",
            "Approvals, failures and budget stops of your agents land here.",
        ]
        assert "Run <code>%inbox coder</code> to answer." in inbox_html(state)

    seen(main, "coder")
