"""Runs that are steered from outside, by an inbox that is not ours (A-1…A-30, trap 8)."""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mail.foreign import BroadcastInbox, Giving, NoArgument, QueueInbox, RoutedInbox
from models.openai_server import Calls, OpenAIServer, Says
from office.rooms import Talk, in_room, lives, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import FromUser, Notification, UserMessage
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.helper import Helper
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Provenance, Role
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.stepper.loop import CONTINUE, WRAP_UP
from postroom_runtime.testing import story


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


@script
def napping(turn: ScriptTurn) -> Talk:
    """Sleep for a second, then say what it read."""
    yield call("nap", seconds=1)
    return f"read: {turn.text}"


@script
def working(turn: ScriptTurn) -> Talk:
    """Call a tool for as long as there are tools."""
    while turn.tools:
        yield call("nap", seconds=1)
    return "that is all"


@script
def echo(turn: ScriptTurn) -> str:
    """Say what it read."""
    return f"read: {turn.text}"


def napper(inbox: Any = None, **knobs: Any) -> Agent:
    return Agent("napper", model=napping, tools=[nap], inbox=inbox, **knobs)


def runs(s: Session) -> list[str]:
    return story(s.history(), EventKind.RUN_STARTED, EventKind.RUN_STOPPED)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


# ── where a message lands ──


def test_a1_a12_a_run_is_redirected_by_what_comes_while_its_tool_runs() -> None:
    """A-1, A-12: in the request that would be made anyway, behind the tool's message."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "read the logs")
        await asyncio.sleep(0.5)
        inbox.send("check the staging log instead")
        await s.wait()

        turns = s.transcript()
        assert [t.role for t in turns] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
        assert [m.content for m in turns[2].results] == ["slept 1"]
        assert turns[2].text == "check the staging log instead"
        assert said(s)[-1] == "read: check the staging log instead"
        assert runs(s) == ["run.started", "run.stopped answer"]

    in_room(main)


def test_a12_a23_a_provider_reads_it_behind_the_tool_s_message_with_no_mark_of_its_own() -> None:
    """A-12, A-23: assistant, tool, user; role and content and nothing else."""
    inbox = QueueInbox()

    def look() -> str:
        """Look at the log."""
        inbox.send("check staging")
        inbox.send("and hurry")
        return "all green"

    async def main(server: OpenAIServer) -> None:
        async with open_room() as room:
            agent = Agent("rev", model=server.model, tools=[look], inbox=inbox, toolbox=[])
            s = room.spawn(agent, "read the logs")
            await s.wait(timeout=100, strict=True)
            assert said(s)[-1] == "done"

    with OpenAIServer(Says((), (Calls("look", "{}"),)), Says(("done",))) as server:
        asyncio.run(main(server))

    first, second = (request.messages for request in server.requests)
    assert [m["role"] for m in first] == ["user"]
    assert [m["role"] for m in second] == ["user", "assistant", "tool", "user"]
    assert second[-2]["content"] == "all green"
    assert second[-1] == {"role": "user", "content": "check staging\n\nand hurry"}


def test_a13_a_message_replaces_the_nudge_after_an_empty_turn() -> None:
    """A-13: and does not run beside it."""

    async def main(room: Room) -> None:
        inbox, turns = QueueInbox(), list[str]()

        @script
        def shy(turn: ScriptTurn) -> str:
            turns.append(turn.text)
            if len(turns) == 2:
                inbox.send("please")
            return "" if len(turns) < 3 else "at last"

        s = room.spawn(Agent("shy", model=shy, inbox=inbox), "speak")
        await s.wait()

        assert turns == ["speak", CONTINUE, "please"]
        kinds = [t.provenance for t in s.transcript() if t.role is Role.USER]
        assert kinds == [None, Provenance.CONTINUATION, None]

    in_room(main)


def test_a13_a_turn_that_the_output_limit_cut_off_drains_nothing() -> None:
    """A-13: it is not degenerate; the run fails, and what waits is the next run's."""
    inbox = QueueInbox("for later")

    async def main(server: OpenAIServer) -> None:
        async with open_room() as room:
            s = room.spawn(Agent("rev", model=server.model, inbox=inbox, toolbox=[]), "go")
            await s.wait(timeout=100, strict=True)
            assert s.status is SessionStatus.FAILED
            assert "output limit" in s.error

    with OpenAIServer(Says((), finish="length")) as server:
        asyncio.run(main(server))
    assert (inbox.left, inbox.drains) == (["for later"], 0)


def test_a14_what_comes_with_the_last_answer_extends_the_run_by_a_round() -> None:
    async def main(room: Room) -> None:
        inbox = QueueInbox()

        @script
        async def slow(turn: ScriptTurn) -> str:
            await asyncio.sleep(1)
            return f"answer to {turn.text}"

        s = room.spawn(Agent("slow", model=slow, inbox=inbox), "one")
        await asyncio.sleep(0.5)
        inbox.send("two")
        await s.wait()

        assert said(s) == ["answer to one", "answer to two"]
        assert runs(s) == ["run.started", "run.stopped answer"]
        assert [t.end_reason for t in s.transcript()] == [None, None, None, EndReason.ANSWER]

    in_room(main)


def test_a14_what_came_while_calls_ran_in_the_background_is_read_with_their_ends() -> None:
    """A-14, M-37: in one round."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()

        @script
        def detaching(turn: ScriptTurn) -> Talk:
            if turn.text != "go":
                return f"read: {turn.text}"
            yield call("nap", seconds=5)
            return "it sleeps"

        policy = {"default": {"tag": "runAsync", "attachSeconds": 1}}
        agent = Agent("d", model=detaching, tools=[nap], policy=policy, inbox=inbox)
        s = room.spawn(agent, "go")
        await asyncio.sleep(3)  # the model has spoken; the run waits on its call
        assert s.status is SessionStatus.WAITING
        inbox.send("hurry")
        await s.wait()

        assert len(runs(s)) == 2
        assert [e.text for e in s.transcript()[4].mail] == ["slept 5", "hurry"]
        assert len(s.transcript()) == 6

    in_room(main)


def test_a15_several_messages_of_one_boundary_go_together_in_their_order() -> None:
    """A-15: joined by a blank line, one request."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        await ticks()
        for text in ("a", "b\n", "c"):
            inbox.send(text)
        await s.wait()

        assert read(s) == ["go", "a\n\nb\n\nc"]
        assert len(said(s)) == 2

    in_room(main)


@pytest.mark.parametrize("blank", [["  \n"], ["", "\t"], []])
def test_a16_whitespace_delivers_nothing_and_makes_no_round(blank: list[str]) -> None:
    async def main(room: Room) -> None:
        inbox = Giving(blank)
        s = room.spawn(Agent("echo1", model=echo, inbox=inbox), "go")
        await s.wait()

        assert said(s) == ["read: go"]
        assert len(s.mail()) == 1
        assert inbox.drains == 1

    in_room(main)


def test_a16_a_blank_message_among_others_is_dropped_and_the_rest_kept() -> None:
    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        await ticks()
        for text in ("a", " \n", "b"):
            inbox.send(text)
        await s.wait()
        assert read(s)[1] == "a\n\nb"

    in_room(main)


def test_a17_an_inbox_event_stands_right_before_the_round_that_reads_it() -> None:
    """A-17: one per delivered round, with the text joined; then that round's first token."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        heard: list[tuple[str, Any]] = []

        async def listen() -> None:
            async for event in s.events():
                heard.append((event.kind, event.data))  # noqa: PERF401 - a list of what came so far

        listening = asyncio.get_running_loop().create_task(listen())
        await asyncio.sleep(0.5)
        inbox.send("one")
        inbox.send("two")
        await s.wait()
        await ticks()
        listening.cancel()

        kinds = [kind for kind, _ in heard]
        delivered = [data for kind, data in heard if kind is EventKind.INBOX]
        assert [(d["text"], d["starts_run"], d["turn"]) for d in delivered] == [
            ("go", True, 1),
            ("one\n\ntwo", False, 3),
        ]
        at = max(i for i, kind in enumerate(kinds) if kind is EventKind.INBOX)
        tokens = [i for i, kind in enumerate(kinds) if kind is EventKind.TEXT_DELTA]
        assert at < min(i for i in tokens if i > at)
        assert not [i for i in tokens if i < at]
        between = kinds[at + 1 : min(i for i in tokens if i > at)]
        assert set(between) <= {EventKind.SESSION_UPDATED}  # the turn it is in, and the record

    in_room(main)


def test_a20_a21_a23_the_stored_turn_is_the_owner_s_with_the_raw_mail_beside() -> None:
    """A-20, A-21, A-23: nothing of it is attributed to the model or the loop."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        await ticks()
        inbox.send("check staging")
        await s.wait()

        turn = s.transcript()[2]
        assert (turn.role, turn.text, turn.provenance) == (Role.USER, "check staging", None)
        [envelope] = turn.mail
        assert (envelope.sender, envelope.body) == (FromUser(), UserMessage("check staging"))
        assert (envelope.id, envelope.seq, envelope.hops) == ("m-0003", 3, 0)  # the call's end: 2
        assert s.mail()[2] == envelope

    in_room(main)


def test_a10_a_run_with_an_empty_inbox_is_the_run_without_one() -> None:
    """A-10: the same journal, times and all, at the cap too."""

    def journal_of(inbox: Any, **knobs: Any) -> list[Any]:
        rows: list[Any] = []

        async def main(room: Room) -> None:
            agent = Agent("w", model=working, tools=[nap], inbox=inbox, **knobs)
            s = room.spawn(agent, "go")
            await s.wait()
            rows.extend((t.role, t.text, t.calls, t.results) for t in s.transcript())
            rows.extend((e.kind, e.seq) for e in s.history())

        in_room(main)
        return rows

    assert journal_of(QueueInbox(), max_iterations=3) == journal_of(None, max_iterations=3)


def test_a7_the_host_feeds_from_a_thread_of_its_own() -> None:
    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        thread = threading.Thread(target=inbox.send, args=("from a thread",))
        thread.start()
        await s.wait()
        thread.join()
        assert read(s)[1:] == ["from a thread"]

    in_room(main)


# ── readers ──


def test_a4_a33_a_reader_is_opened_once_per_run_under_the_session_s_name() -> None:
    """A-4, A-33: before the model is asked, and for each run anew."""

    async def main(room: Room) -> None:
        inbox, opened = QueueInbox(), list[int]()

        @script
        def looking(turn: ScriptTurn) -> str:
            opened.append(len(inbox.labels))
            return "ok"

        s = room.spawn(Agent("looking", model=looking, inbox=inbox), "one", name="rev")
        await s.wait()
        await s.ask("two")
        await s.ask("three")

        assert inbox.labels == ["rev", "rev", "rev"]
        assert opened == [1, 2, 3]

    in_room(main)


def test_a31_parent_and_child_both_read_what_is_said_to_all() -> None:
    async def main(room: Room) -> None:
        inbox = BroadcastInbox()
        parent = room.spawn(napper(inbox), "go", name="parent")
        child = room.spawn("napper", "go", name="child", parent=parent)
        await ticks()
        inbox.send("to all")
        await room.drain()

        assert sorted(inbox.labels, key=str) == ["child", "parent"]
        assert read(parent)[1] == read(child)[1] == "to all"

    in_room(main)


def test_a34_a_host_routes_a_message_to_one_session_by_its_name() -> None:
    """A-32, A-34: with the sample of the specification, whose reader calls the name as it likes."""

    async def main(room: Room) -> None:
        inbox = RoutedInbox()
        ann = room.spawn(napper(inbox), "go", name="ann")
        bob = room.spawn("napper", "go", name="bob")
        await ticks()
        inbox.send("bob", "for bob")
        await room.drain()

        assert (read(ann)[1], read(bob)[1]) == ("", "for bob")

    in_room(main)


@pytest.mark.parametrize("where", ["define", "spawn", "helper", "override"])
def test_a35_a_reader_that_takes_no_name_is_refused_before_anything_runs(where: str) -> None:
    """A-35: a TypeError to who gave it; no model is asked, no reader opened, nothing stored."""

    async def main(room: Room) -> None:
        inbox = NoArgument()
        s = room.spawn(Agent("echo1", model=echo))
        before = room.storage.head()

        bad: Any = inbox
        give: dict[str, Callable[[], object]] = {
            "define": lambda: room.define(Agent("bad", model=echo, inbox=bad)),
            "spawn": lambda: room.spawn(Agent("bad", model=echo, inbox=bad), "go"),
            "helper": lambda: room.define(Agent("bad", helpers={"echo": Helper(inbox=bad)})),
            "override": lambda: s.life.steering.override(1, bad),
        }
        with pytest.raises(TypeError, match=r"NoArgument\.reader\(\) cannot be called the way"):
            give[where]()
        await ticks()

        assert room.storage.head() == before
        assert [a.slug for a in room.agents()] == ["echo", "echo1"]
        assert inbox.opened == 0

    in_room(main)


@pytest.mark.parametrize("given", ["stop", RuntimeError("gone"), None, [3]])
def test_a37_a38_a39_a41_a_run_whose_inbox_fails_goes_on_and_says_so_once(
    given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A-37…A-39, A-41: no letter of it reaches the model; the next run tries again."""

    async def main(room: Room) -> None:
        inbox = Giving(given)
        agent = Agent("w", model=working, tools=[nap], inbox=inbox, max_iterations=3)
        s = room.spawn(agent, "go")
        await s.wait()

        assert said(s)[-1] == "that is all"
        assert read(s) == ["go", "", "", WRAP_UP.format(rounds=3)]
        assert (inbox.opened, inbox.drains) == (1, 1)
        assert len(warned(caplog)) == 1
        s.send("again")
        await s.wait()
        assert (inbox.opened, inbox.drains) == (2, 2)

    with caplog.at_level(logging.WARNING, "postroom"):
        in_room(main)
    assert len(warned(caplog)) == 2


# ── which inbox ──


def test_a8_an_override_holds_for_the_run_that_reads_its_mail_and_for_no_other() -> None:
    """A-8: then the agent's own counts again."""

    async def main(room: Room) -> None:
        own, other = QueueInbox("own 1"), QueueInbox("other 1")
        s = room.spawn(Agent("e", model=echo, inbox=own))

        receipt = s.send("first")
        s.life.steering.override(receipt.seq, other)
        await s.wait()
        assert read(s) == ["first", "other 1"]
        assert (own.labels, other.labels) == ([], ["e"])

        await s.ask("second")
        assert read(s)[2:] == ["second", "own 1"]
        assert (own.labels, other.labels) == (["e"], ["e"])

    in_room(main)


def test_a8_a44_an_override_of_none_turns_it_off_for_that_run() -> None:
    async def main(room: Room) -> None:
        own = QueueInbox("own 1")
        s = room.spawn(Agent("e", model=echo, inbox=own))

        s.life.steering.override(s.send("first").seq, None)
        await s.wait()
        assert (read(s), own.left) == (["first"], ["own 1"])

        await s.ask("second")
        assert read(s)[1:] == ["second", "own 1"]

    in_room(main)


def test_a8_an_override_may_come_with_mail_that_a_run_reads_on_its_way() -> None:
    """A-8: from there on it counts for that run."""

    async def main(room: Room) -> None:
        own, other = QueueInbox(), QueueInbox()
        agent = Agent("w", model=working, tools=[nap], inbox=own, max_iterations=5)
        s = room.spawn(agent, "go")
        await asyncio.sleep(0.5)
        s.life.steering.override(s.send("with another inbox").seq, other)
        await asyncio.sleep(1)
        own.send("own")
        other.send("other")
        await s.wait()

        assert "other" in read(s)
        assert own.left == ["own"]

    in_room(main)


def test_a8_a_paused_run_keeps_its_override_when_it_goes_on() -> None:
    async def main(room: Room) -> None:
        own, other = QueueInbox("own"), QueueInbox()
        s = room.spawn(napper(own))
        s.life.steering.override(s.send("go").seq, other)
        await ticks()
        s.pause()
        await s.wait()
        assert s.status is SessionStatus.PAUSED
        other.send("other")
        s.resume()
        await s.wait()
        assert read(s)[-1] == "other"

        await s.ask("next")
        assert (own.left, read(s)[-1]) == ([], "own")

    in_room(main)


def test_a8_an_override_that_is_no_inbox_is_refused() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        with pytest.raises(
            ConfigError, match="inbox='x' will not do: give an object with a reader"
        ):
            s.life.steering.override(1, "x")  # type: ignore[arg-type]

    in_room(main)


def test_a8_a_new_definition_counts_from_the_next_turn() -> None:
    async def main(room: Room) -> None:
        old, new = QueueInbox(), QueueInbox()
        s = room.spawn(napper(old), "go")
        await ticks()
        room.define(napper(new))
        old.send("old")
        new.send("new")
        await s.wait()
        assert read(s)[1] == "new"

    in_room(main)


# ── the budget ──


def test_a25_a_delivered_message_starts_the_count_of_rounds_anew() -> None:
    """A-24, A-25: from the round it landed in."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(Agent("w", model=working, tools=[nap], max_iterations=4, inbox=inbox), "go")
        await asyncio.sleep(2.5)  # in its third round; read in the fourth
        inbox.send("carry on")
        await s.wait()

        # Rounds 1-3, then four from the one it landed in, then the forced answer.
        assert len(said(s)) == 3 + 4 + 1

    in_room(main)


def test_a26_a27_a29_a40_a_drain_that_never_advances_is_capped_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A-26, A-27, A-29, A-40, trap 8: still delivered, and nothing runs on behind the cap."""

    async def main(room: Room) -> None:
        inbox = Giving(["more"])
        s = room.spawn(Agent("w", model=working, tools=[nap], inbox=inbox), "go")
        await s.wait()
        await room.drain()

        assert read(s)[1:-1] == ["more"] * 19
        assert len(said(s)) == 20 + 1  # the tenth extension is in round 11; ten more, one forced
        assert inbox.drains == 19
        assert (s.status, s.end_reason, s.unread) == (SessionStatus.CAPPED, EndReason.BUDGET, 0)
        assert len(runs(s)) == 2

    with caplog.at_level(logging.WARNING, "postroom"):
        in_room(main)
    words = (
        "The inbox has extended this run's round budget 10 times; refusing further extensions.\n"
        "A drain returning already-delivered messages instead of the unread slice does this."
    )
    assert warned(caplog) == [words]


def test_a26_a_run_that_only_answers_a_drain_that_never_advances_ends_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A-26, A-29: each answer is extended by a round, until the rounds are used up."""

    async def main(room: Room) -> None:
        inbox = Giving(["more"])
        s = room.spawn(Agent("e", model=echo, inbox=inbox, max_iterations=3), "go")
        await s.wait()
        await room.drain()

        assert said(s) == ["read: go", *["read: more"] * 5]
        assert (s.end_reason, s.unread) == (EndReason.ANSWER, 0)
        assert inbox.drains == 5

    in_room(main)
    assert len(warned(caplog)) == 1


def test_a28_a_message_that_comes_when_the_budget_is_spent_is_for_the_next_run() -> None:
    """A-28, trap 8: it stays where it was, so that it starts no run by itself either."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        agent = Agent("w", model=working, tools=[nap], max_iterations=2, inbox=inbox)
        s = room.spawn(agent, "go")
        await asyncio.sleep(1.5)  # in the last round
        inbox.send("too late")
        await s.wait()
        await room.drain()

        assert (inbox.left, s.status) == (["too late"], SessionStatus.CAPPED)
        assert runs(s) == ["run.started", "run.stopped budget"]
        s.send("go on")
        await s.wait()
        assert read(s)[3:5] == ["go on", "too late"]

    in_room(main)


def test_a30_only_a_person_resets_the_budget() -> None:
    """A-30: a letter of an agent at the same boundary does not."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("w", model=working, tools=[nap], max_iterations=4), "go")
        other = room.spawn("echo", name="other", parent=s)
        await asyncio.sleep(2.5)
        room.send(s, "psst", sender=other)
        await s.wait()
        assert len(said(s)) == 4 + 1

    in_room(main)


# ── orders, and a mailbox that is full ──


def test_a_stopped_run_drains_no_more_and_is_not_started_again_by_its_inbox() -> None:
    """A-41, M-85: what was not drained is the next run's."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        await ticks()
        inbox.send("wait, also this")
        s.stop()
        await s.wait()
        await ticks()

        assert (s.end_reason, inbox.left) == (EndReason.STOPPED, ["wait, also this"])
        assert len(runs(s)) == 2

    in_room(main)


def test_a_paused_run_drains_no_more() -> None:
    async def main(room: Room) -> None:
        inbox = QueueInbox()
        s = room.spawn(napper(inbox), "go")
        await ticks()
        inbox.send("wait, also this")
        s.pause()
        await s.wait()

        assert (s.status, inbox.left) == (SessionStatus.PAUSED, ["wait, also this"])
        s.resume()
        await s.wait()
        assert read(s)[-1] == "wait, also this"

    in_room(main)


def test_m31_messages_that_find_the_mailbox_full_are_kept_and_told_of_once() -> None:
    """M-31: they come in at a later round, in their order, and none is lost."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()
        agent = Agent(
            "w", model=working, tools=[nap], inbox=inbox, mailbox_max_unread=2, max_iterations=9
        )
        s = room.spawn(agent, "go")
        await ticks()
        s.send("x")
        for text in "abcd":
            inbox.send(text)
        await s.wait()

        assert read(s)[1:4] == ["x\n\na", "b\n\nc", "d"]
        refused = [
            e.body
            for e in room.inbox("w")
            if isinstance(e.body, Notification) and e.body.type == "refused"
        ]
        assert len(refused) == 1
        assert refused[0].content.startswith(
            "3 of the messages from the inbox of w did not get in: "
        )
        assert refused[0].metadata["messages"] == ["b", "c", "d"]

    in_room(main)


def test_a41_a_cut_sign_ends_no_run_on_disk_either(tmp_path: Path) -> None:
    """A-41: it could not be stored as it is."""

    room = open_room(tmp_path / "lab.mail.duckdb")

    async def main() -> None:
        inbox = QueueInbox("half a sign: \ud800", "a\x00b")
        s = room.spawn(Agent("e", model=echo, inbox=inbox), "go")
        await s.wait(timeout=100, strict=True)
        assert s.status is SessionStatus.IDLE
        assert read(s) == ["go", "half a sign: \ufffd\n\na\x00b"]

    asyncio.run(main())
    room.close()


def test_a41_a_store_that_fails_under_a_message_does_end_the_run() -> None:
    """A-41, M-22: that is no fault of the inbox."""

    async def main(room: Room) -> None:
        inbox = QueueInbox()

        @script
        def closing(turn: ScriptTurn) -> str:
            inbox.send("into nothing")
            room.storage.close()
            return "said"

        s = room.spawn(Agent("c", model=closing, inbox=inbox), "go")
        await ticks(50)
        assert s.status is SessionStatus.FAILED
        assert s.life.trouble

    in_room(main)


def test_a_restarted_kernel_opens_a_reader_anew() -> None:
    """A-4, M-91: nothing of an inbox is stored but the mail it gave."""
    inbox = QueueInbox()

    async def first(room: Room) -> None:
        s = room.spawn(Agent("e", model=echo, inbox=inbox), "one")
        await s.wait()

    async def second(room: Room) -> None:
        room.define(Agent("e", model=echo, inbox=inbox))
        inbox.send("after the restart")
        s = room.session("e")
        await s.ask("two")
        assert read(s) == ["one", "two", "after the restart"]

    lives(first, second)
    assert inbox.labels == ["e", "e"]


# ── helpers ──


@pytest.mark.parametrize(
    ("helper", "own", "reads"),
    [
        (None, None, "caller"),
        (Helper(), None, "caller"),
        (Helper(inbox=None), None, None),
        (Helper(inbox=QueueInbox("given")), None, "given"),
        (Helper(), QueueInbox("own"), "own"),
        (Helper(inbox=None), QueueInbox("own"), None),
        (Helper(inbox=QueueInbox("given")), QueueInbox("own"), "given"),
    ],
)
def test_a42_a44_a45_what_steers_a_helper_s_runs(
    helper: Helper | None, own: QueueInbox | None, reads: str | None
) -> None:
    """A-42, A-44, A-45: not given is inherited, None is off; each opens a reader as itself."""

    async def main(room: Room) -> None:
        for source in (own, helper.inbox if helper else None):
            if isinstance(source, QueueInbox):  # shared by the parameters above
                source.labels.clear()
        callers = RoutedInbox()
        callers.send("subagent-writer", "caller")
        caller = room.spawn(Agent("caller", model=echo, inbox=callers))
        writer = room.spawn(Agent("writer", model=echo, inbox=own), name="writer-2", parent=caller)
        writer.life.steering.inherit(caller.life.steering, helper, "subagent-writer")
        writer.send("go")
        await writer.wait()

        assert read(writer) == ["go", *([reads] if reads else [])]
        assert writer.life.steering.label == "subagent-writer"

    in_room(main)


def test_a46_a_grandchild_inherits_what_steers_its_grandparent_s_run() -> None:
    """A-46: the override of that run too."""

    async def main(room: Room) -> None:
        standing, override = QueueInbox(), BroadcastInbox()
        top = room.spawn(napper(standing), name="top")
        top.life.steering.override(top.send("go").seq, override)
        await ticks()
        child = room.spawn(Agent("writer", model=napping, tools=[nap]), parent=top)
        child.life.steering.inherit(top.life.steering, None, "subagent-writer")
        child.send("go")
        await ticks()
        grandchild = room.spawn("writer", name="writer-2", parent=child)
        grandchild.life.steering.inherit(child.life.steering, Helper(), "subagent-writer")
        grandchild.send("go")
        await ticks()
        override.send("to all")
        await room.drain()

        assert override.labels == ["top", "subagent-writer", "subagent-writer"]
        assert [read(s)[1] for s in (top, child, grandchild)] == ["to all"] * 3

    in_room(main)


# ── out: a session's mailbox steers somebody else ──


def test_a2_a5_a_session_s_mailbox_gives_what_its_model_would_read() -> None:
    """A-2, A-5, A-21: texts alone, from anybody; never orders, nor what was withdrawn."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("box", model=echo, wake_on=()))
        other = room.spawn("echo", name="other", parent=s)
        drain = s.mailbox.reader("stager")
        s.send("one")
        gone = s.send("gone")
        room.send(s, "two", sender=other)
        s.send("  ")
        s.cancel("call_0009")
        room.withdraw(gone.id)

        assert drain() == ["one", "two"]
        assert drain() == []
        await ticks()
        assert s.unread == 2

    in_room(main)


def test_a_session_can_steer_another_session_by_its_mailbox() -> None:
    """A-2: ours is an inbox like any other."""

    async def main(room: Room) -> None:
        box = room.spawn(Agent("box", model=echo, wake_on=()))
        s = room.spawn(napper(box.mailbox), "go")
        await ticks()
        box.send("check staging")
        await s.wait()
        assert read(s)[1] == "check staging"

    in_room(main)
