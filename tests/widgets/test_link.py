"""A feed folds one session's events for all its views, and takes their words, once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call, CallState, Progress
from postroom_runtime.contracts.errors import AlreadyAnswered
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.testing import run_virtual
from postroom_widgets.link import MAX_ANSWERS, Feed, feed_of
from postroom_widgets.reader import Reader
from widgets.fake_sessions import FakeRoom, FakeSession, Refused
from widgets.story import Story

BATCH = 0.06


class Front:
    """A front end: it keeps what it is told."""

    def __init__(self, feed: Feed, *, listening: bool = True) -> None:
        self.feed, self.got = feed, list[Any]()
        self.reader = Reader(self.got.append)
        feed.join(self.reader)
        if listening:
            self.say("hello", after=0)

    def say(self, op: str, **more: Any) -> None:
        self.feed.receive(self.reader, {"op": op, **more})

    def send(self, id: str, text: str = "hi", **more: Any) -> None:
        self.say("send", id=id, text=text, **more)

    def of(self, op: str) -> list[Any]:
        return [message for message in self.got if message["op"] == op]

    def rows(self) -> list[str]:
        return [row["key"] for message in self.of("rows") for row in message["rows"]]


def watched(
    main: Callable[[FakeSession, Feed], Awaitable[None]], story: Story | None = None
) -> None:
    async def run() -> None:
        session = FakeSession(story)
        await main(session, feed_of(session))
        for task in tuple(session.room.tasks):
            task.cancel()

    run_virtual(run())


def test_all_views_of_a_session_share_one_feed_and_hear_the_same() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        assert feed_of(session) is feed
        one, two = Front(feed), Front(feed)
        await asyncio.sleep(BATCH)
        session.story.mail("hello")
        session.tell()
        await asyncio.sleep(BATCH)

        assert one.rows() == two.rows() == ["m:1"]

    watched(main)


def test_a_view_that_has_not_said_hello_or_said_bye_hears_nothing() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        silent, gone = Front(feed, listening=False), Front(feed)
        await asyncio.sleep(BATCH)
        del gone.got[:]
        gone.say("bye")
        session.story.mail("hello")
        session.tell()
        await asyncio.sleep(1)

        assert silent.got == gone.got == []

    watched(main)


def test_what_happens_at_once_travels_in_one_message() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        await asyncio.sleep(BATCH)
        del front.got[:]
        for n in range(30):
            session.story.mail(f"letter {n}")
            session.tell()
            await asyncio.sleep(0.001)
        await asyncio.sleep(BATCH)

        assert len(front.of("rows")) == 1
        assert len(front.rows()) == 30

    watched(main)


def test_a_view_opened_while_a_call_runs_knows_what_it_reported_last() -> None:
    """Reports are live only: who comes later would wait for the next one."""
    story = Story()
    story.mail("go")
    story.run().heard().said("", {"id": "call_1", "tool": "tests", "arguments": {}})
    story.started("call_1", "tests")
    reports = (Progress(done=0, total=4), Progress(done=1, total=4, text="b.py"))

    async def main(session: FakeSession, _: Feed) -> None:
        about: dict[str, Any] = {
            "id": "call_1",
            "session": session.id,
            "tool": "tests",
            "arguments": {},
        }
        session.made = [Call(**about, state=CallState.RUNNING, progress=reports)]
        row = Feed(session).state.rows["c:call_1"]
        assert row["progress"] == {"done": 1, "total": 4, "text": "b.py"}

    watched(main, story)


def test_at_most_twenty_messages_a_second_however_much_happens() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        for n in range(1000):
            session.story.mail(f"letter {n}")
            session.tell()
            await asyncio.sleep(0.001)

        assert len(front.of("rows")) <= 20

    watched(main)


def test_catching_up_at_once_and_hearing_it_again_later_shows_it_once() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        await asyncio.sleep(BATCH)
        session.story.mail("hello")
        session.tell()
        assert list(feed.catch_up().rows) == ["m:1"]
        version = feed.state.version
        await asyncio.sleep(BATCH)

        assert feed.state.version == version
        assert front.rows() == ["m:1"]

    watched(main)


def test_the_head_says_what_the_session_does_now_and_what_it_needs() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        session.status, session.undefined = SessionStatus.READY, True

        assert feed.catch_up().head["status"] == "ready"
        assert feed.state.head["needs"] == "ready (needs agent reviewer)"

    watched(main)


def test_words_are_sent_once_however_often_they_are_said_and_each_time_answered() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front, other = Front(feed), Front(feed)
        front.send("view-a-0", "hello", interrupt=True, reply_to="m-0007")
        front.send("view-a-0", "hello", interrupt=True, reply_to="m-0007")
        await asyncio.sleep(BATCH)
        other.send("view-a-0", "hello", interrupt=True, reply_to="m-0007")
        await asyncio.sleep(BATCH)

        assert session.sent == [("hello", True, "m-0007")]
        acks = [(m["id"], m["mail"]) for m in front.of("ack")]
        assert acks == [("view-a-0", "m-0001")]
        assert [m["id"] for m in other.of("ack")] == ["view-a-0", "view-a-0"]

    watched(main)


def test_a_refusal_is_answered_with_its_words() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        session.refusal = Refused("mailbox of rev is full")
        front.send("view-a-0")
        await asyncio.sleep(BATCH)

        assert front.of("refused") == [
            {"op": "refused", "id": "view-a-0", "words": "mailbox of rev is full"}
        ]

    watched(main)


def test_words_that_could_not_be_sent_for_any_reason_go_back_to_who_wrote_them() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        session.refusal = RuntimeError("a bug")
        front.send("view-a-0")
        (send,) = [task for task in session.room.tasks if "send" in task.get_name()]
        with pytest.raises(RuntimeError, match="a bug"):
            await send

        assert front.of("refused")[0]["words"] == "RuntimeError: a bug"

    watched(main)


def test_answers_are_kept_for_the_last_thousand_words() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        for n in range(MAX_ANSWERS + 1):
            front.send(f"view-a-{n}")
        await asyncio.sleep(BATCH)
        front.send(f"view-a-{MAX_ANSWERS}")
        front.send("view-a-1")
        await asyncio.sleep(BATCH)

        assert len(session.sent) == MAX_ANSWERS + 1

    watched(main)


def test_a_ping_is_answered_with_the_last_change_that_was_sent() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        session.story.mail("hello")
        session.tell()
        front = Front(feed)
        await asyncio.sleep(BATCH)
        front.say("ping", id="ping")

        assert front.of("pong") == [{"op": "pong", "id": "ping", "upto": 1}]

    watched(main)


@pytest.mark.parametrize(
    ("op", "more", "done"),
    [
        ("stop", {}, ("stop",)),
        ("pause", {}, ("pause",)),
        ("resume", {}, ("resume",)),
        ("cancel", {"call": "call_0003"}, ("cancel", "call_0003")),
    ],
)
def test_a_button_gives_its_order_and_is_answered(
    op: str, more: dict[str, str], done: tuple[str, ...]
) -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        front.say(op, id="view-a-0", **more)
        await asyncio.sleep(BATCH)

        assert session.orders == [done]
        assert front.of("ack") == [{"op": "ack", "id": "view-a-0"}]

    watched(main)


def test_m97_an_approval_is_answered_in_the_name_of_the_view() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        front.say("approve", id="view-a-0", approval="ap-0001")
        front.say("deny", id="view-a-1", approval="ap-0002", reason="no")
        await asyncio.sleep(BATCH)

        assert session.room.answers == [
            ("approve", "ap-0001", "view"),
            ("deny", "ap-0002", "no", "view"),
        ]
        assert [ack["id"] for ack in front.of("ack")] == ["view-a-0", "view-a-1"]

    watched(main)


ASKED = Approval(
    id="ap-0001",
    token="t-0001",
    session="s-0002",
    agent="reviewer",
    call="call_0001",
    tool="deploy",
    arguments={"target": "staging", "workers": 12345678901234567890},
)


def test_m97_a_call_is_approved_with_what_was_typed_over_its_arguments() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        session.room.asked = [ASKED]
        front.say("approve", id="v-0", approval="ap-0001", edits={"target": '"canary"'})
        await asyncio.sleep(BATCH)

        whole = '{"target": "canary", "workers": 12345678901234567890}'
        assert session.room.answers == [("approve", "ap-0001", whole, "view")]

    watched(main)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({"target": "canary"}, "target is not JSON: 'canary'. Text needs quotes"),
        ({"port": "1"}, "'port' is no argument of this call; it has target, workers."),
        (["target"], "edits are JSON texts by name, not ['target']."),
    ],
)
def test_m97_an_edit_that_cannot_be_read_is_refused_and_answers_nothing(
    edits: Any, words: str
) -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        session.room.asked = [ASKED]
        front.say("approve", id="v-0", approval="ap-0001", edits=edits)
        await asyncio.sleep(BATCH)

        assert session.room.answers == []
        assert words in front.of("refused")[0]["words"]

    watched(main)


def test_m97_who_was_too_late_alone_reads_why() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        late, other = Front(feed), Front(feed)
        session.room.too_late = AlreadyAnswered("ap-0001", "approved", "%approve")
        late.say("deny", id="view-a-0", approval="ap-0001")
        await asyncio.sleep(BATCH)

        words = "ap-0001 was already approved by %approve; that stands."
        assert late.of("refused") == [{"op": "refused", "id": "view-a-0", "words": words}]
        assert other.of("refused") == []

    watched(main)


def test_nonsense_from_a_front_end_is_logged_and_harmless(caplog: pytest.LogCaptureFixture) -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        with caplog.at_level(logging.WARNING, "postroom_widgets.link"):
            front.say("dance")

        assert "dance" in caplog.text

    watched(main)


def test_a_running_session_is_heard_every_second_an_idle_one_is_silent() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        await asyncio.sleep(10)
        assert front.of("beat") == []

        session.status = SessionStatus.RUNNING
        session.story.mail("go")
        session.tell()
        await asyncio.sleep(10)
        assert 9 <= len(front.of("beat")) <= 10

        session.status = SessionStatus.IDLE
        await asyncio.sleep(2)
        del front.got[:]
        await asyncio.sleep(10)
        assert front.of("beat") == []

    watched(main)


def test_rest_is_told_once_for_each_piece_of_news() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        rested = list[int]()
        feed.on_rest.append(lambda: rested.append(feed.state.version))
        Front(feed)
        session.status = SessionStatus.RUNNING
        session.story.mail("go")
        session.story.run().heard()
        session.tell()
        await asyncio.sleep(3)
        assert rested == []

        session.story.said("done").stopped()
        session.status = SessionStatus.IDLE
        session.tell()
        await asyncio.sleep(3)
        assert rested == [feed.state.version]

    watched(main)


def test_when_the_room_closes_its_views_say_so() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        front = Front(feed)
        await asyncio.sleep(BATCH)
        for task in tuple(session.room.tasks):
            task.cancel()
        await asyncio.sleep(BATCH)

        assert "The room was closed" in front.of("over")[0]["words"]
        session.room.closed = True
        assert feed.catch_up() is feed.state

    watched(main)


def test_the_feed_ends_with_its_last_view_and_begins_again_with_the_next() -> None:
    async def main(session: FakeSession, feed: Feed) -> None:
        one, two = Front(feed), Front(feed)
        await asyncio.sleep(BATCH)
        feed.leave(one.reader)
        await asyncio.sleep(BATCH)
        assert session.room.tasks
        feed.leave(two.reader)
        await asyncio.sleep(BATCH)
        assert not session.room.tasks
        assert two.of("over") == []

        session.story.mail("hello")
        session.tell()
        three = Front(feed)
        await asyncio.sleep(2 * BATCH)
        assert three.rows() == ["m:1"]

    watched(main)


def test_a_room_that_gets_its_loop_late_is_followed_from_then_on() -> None:
    class LateRoom(FakeRoom):
        late = True

        def task(self, work: Any, name: str) -> Any:
            if self.late:
                work.close()
                return None
            return super().task(work, name)

    async def run() -> None:
        room = LateRoom()
        session = FakeSession(room=room)
        front = Front(feed_of(session), listening=False)
        room.late = False
        front.say("hello", after=0)
        await asyncio.sleep(BATCH)
        session.story.mail("hello")
        session.tell()
        await asyncio.sleep(BATCH)
        assert front.rows() == ["m:1"]
        for task in tuple(room.tasks):
            task.cancel()

    run_virtual(run())
