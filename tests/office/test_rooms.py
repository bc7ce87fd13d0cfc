"""Rooms: spawning, names, closing, waiting, asking, and letters between sessions."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import (
    AnswerFailed,
    ConfigError,
    InboxReadOnly,
    MailboxFull,
    NameTaken,
    NotPermitted,
    PostroomError,
    UnknownRecipient,
    WaitTimedOut,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import story


@script
def writing(turn: ScriptTurn) -> Talk:
    """Write to whom the owner names; answer whoever writes."""
    first = turn.mail[0]
    if first.sender.kind == "user":
        to, _, text = first.text.partition(" ")
        receipt = yield call("send-message", to=to, text=text)
        return str(receipt)
    yield call("send-message", to=first.sender.id, text=f"re: {first.text}", in_reply_to=first.id)
    return "answered"


def pair(room: Room, **knobs: object) -> None:
    agent = Agent("writer", model=writing, **knobs)  # type: ignore[arg-type]
    room.spawn(agent, name="ann")
    room.spawn(agent, name="bob")


# ── names and spawning ──


def test_spawning_the_same_name_and_agent_again_is_the_same_session_and_sends_nothing() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi", name="e")
        again = room.spawn("echo", "hi", name="e")
        await s.wait()
        assert again is s
        assert "not sent again" in s.note
        assert said(s) == ["echo: hi"]
        room.spawn("echo", "once more", name="e", again=True)
        await s.wait()
        assert said(s) == ["echo: hi", "echo: once more"]

    in_room(main)


def test_a_name_of_another_agent_is_taken_and_a_closed_session_frees_it() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", name="x")
        with pytest.raises(NameTaken, match=r"'x' is a session of agent 'echo'.*%close x"):
            room.spawn(Agent("other"), name="x")
        s.close()
        other = room.spawn("other", name="x")
        assert other.id != s.id
        assert room.session("x") is other

    in_room(main)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "inbox", "InBox", "a/b"])
def test_a_name_that_breaks_the_rule_is_refused_before_anything_is_stored(name: str) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match="cannot name a session"):
            room.spawn("echo", name=name)
        assert room.sessions() == []

    in_room(main)


def test_an_unknown_agent_is_named_with_those_known_and_a_model_makes_one_up() -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match=r"did you mean 'echo'.*%%agent ecko.*--model"):
            room.spawn("ecko")
        s = room.spawn("adhoc", "hi", model="echo")
        await s.wait()
        assert (s.agent, said(s)) == ("adhoc", ["echo: hi"])

    in_room(main)


def test_ids_are_short_in_order_and_the_same_in_every_replay() -> None:
    def run() -> list[str]:
        ids: list[str] = []

        async def main(room: Room) -> None:
            pair(room, mail_scope="all", wake_on=["user", "peer"])
            await room.session("ann").ask("bob hello")
            await room.wait()
            ids.extend(s.id for s in room.sessions())
            ids.extend(e.id for s in room.sessions() for e in s.mail())
            ids.extend(c.id for s in room.sessions() for c in s.calls())

        in_room(main)
        return ids

    first = run()
    assert first == run()
    assert first[:4] == ["s-0001", "s-0002", "m-0001", "m-0003"]
    assert len(set(first)) == len(first)


def test_a_session_is_found_by_name_id_and_unique_prefix() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", name="reviewer")
        room.spawn("echo", name="ann")
        assert room.session("reviewer") is room.session(s.id) is room.session("rev") is s
        with pytest.raises(UnknownRecipient, match="Did you mean 'reviewer'"):
            room.session("reviewr")

    in_room(main)


def test_m102_closing_a_parent_closes_its_children_and_refuses_their_mail() -> None:
    async def main(room: Room) -> None:
        parent = room.spawn("echo", name="parent")
        child = room.spawn("echo", name="child", parent=parent)
        parent.close()
        assert child.status is SessionStatus.CLOSED
        with pytest.raises(UnknownRecipient, match="closed"):
            child.send("hello?")
        assert room.sessions() == []

    in_room(main)


def test_closing_a_session_that_runs_stops_its_run_first() -> None:
    async def main(room: Room) -> None:
        @script
        async def endless(turn: ScriptTurn) -> str:
            await asyncio.sleep(3600)
            return ""

        s = room.spawn(Agent("endless", model=endless), "go")
        await ticks()
        s.close()
        await ticks()
        assert s.record.status is SessionStatus.CLOSED
        assert story(s.history(), EventKind.RUN_STOPPED) == ["run.stopped stopped"]

    in_room(main)


def test_bound_values_are_given_to_the_tool_and_shown_to_nobody() -> None:
    """M-101, M-123."""

    async def main(room: Room) -> None:
        got: list[str] = []

        async def fetch(url: str, token: str) -> str:
            """Fetch a page."""
            got.append(token)
            return url

        @script
        def fetcher(turn: ScriptTurn) -> Talk:
            page = yield call("fetch", url="x", token="forged")
            return str(page)

        s = room.spawn(Agent("f", model=fetcher, tools=[fetch]), "go", bind={"token": "secret"})
        await s.wait()
        assert got == []  # a forged value is refused, not merged
        assert "token" in said(s)[-1]
        assert "secret" not in repr(room.storage.rows())
        with pytest.raises(ConfigError, match="no tool has such a parameter"):
            room.spawn("f", name="g", bind={"tokn": 1})

    in_room(main)


# ── letters ──


def test_m4_m11_m99_a_letter_is_stamped_by_the_runtime_and_answered_by_mail() -> None:
    async def main(room: Room) -> None:
        pair(room, mail_scope="all", wake_on=["user", "peer"], max_mail_hops=2)
        answer = await room.session("ann").ask("bob hello")
        await room.wait()

        bob, ann = room.session("bob"), room.session("ann")
        letter = bob.mail()[0]
        assert (letter.sender.kind, letter.sender.id, letter.sender.agent) == (
            "session",
            ann.id,
            "writer",
        )
        assert "'recipient_status': 'idle'" in answer.text
        assert read(bob)[0] == f'[mail {letter.id} from session {ann.id} (agent "writer")]\nhello'
        assert read(ann)[2].startswith(f"[mail m-call_0002 from session {bob.id}")
        assert f", in reply to {letter.id}]\nre: hello" in read(ann)[2]

    in_room(main)


def test_m108_m109_two_polite_sessions_stop_after_seventeen_letters() -> None:
    """M-108…M-111: hops 0 to 16 are accepted, 17 is refused and the owner is told."""

    async def main(room: Room) -> None:
        pair(room, mail_scope="all", wake_on=["user", "peer"])
        await room.session("ann").ask("bob hello")
        await room.wait()

        letters = [e for s in room.sessions() for e in s.mail() if e.body.kind == "agent_message"]
        assert sorted(e.hops for e in letters) == list(range(17))
        entries = [e.body.type for e in room.inbox("writer")]  # type: ignore[union-attr]
        assert entries == ["hops"]
        last = room.session("bob").calls()[-1]
        assert (last.state, "limit 16" in last.result) == ("failed", True)

        before = len(room.session("bob").mail())
        await room.session("ann").ask("bob again")  # M-110: a person's word starts at 0
        fresh = [e for e in room.session("bob").mail()[before:] if e.body.kind == "agent_message"]
        assert fresh[0].hops == 0

    in_room(main)


def test_m105_scope_refuses_a_stranger_and_a_child_may_always_answer() -> None:
    """M-105, trap 4."""

    async def main(room: Room) -> None:
        lead = room.spawn(Agent("lead", model="echo"))
        child = room.spawn(Agent("child", model="echo"), parent=lead)
        stranger = room.spawn(Agent("stranger", model="echo"))

        room.send(child.id, "go", sender=lead)
        room.send(lead.id, "done", sender=child)
        with pytest.raises(NotPermitted, match="stranger may not write to lead, a stranger to it"):
            room.send("lead", "hi", sender="stranger")
        await lead.wait()
        room.send("stranger", "who are you?", sender=room.spawn(Agent("x", mail_scope="all")))
        await stranger.ask("read your mail")
        room.send("x", "just me", sender=stranger)  # a reply is always allowed

    in_room(main)


def test_m106_an_interrupt_out_of_scope_is_lowered_and_the_receipt_says_so() -> None:
    async def main(room: Room) -> None:
        a = room.spawn(Agent("a", mail_scope="all"))
        b = room.spawn("echo", name="b")
        receipt = room.send("b", "hey", sender=a, interrupt=True)
        assert (receipt.lowered, receipt.priority) == (True, "normal")
        lowered = "interrupt lowered: interrupt_scope 'children' of a does not reach b (stranger)"
        assert str(receipt).count("interrupt lowered") == 1
        assert lowered in str(receipt)
        assert b.mail()[0].priority == "normal"

    in_room(main)


def test_i10_nobody_writes_to_an_owner_inbox() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("a", mail_scope="all"))
        for to in ("inbox", "INBOX", "inbox@a"):
            with pytest.raises(InboxReadOnly) as refused:
                room.send(to, "hi")
            assert (refused.value.code, refused.value.status) == ("inbox_read_only", 403)
            with pytest.raises(InboxReadOnly):
                room.send(to, "hi", sender=s)

    in_room(main)


def test_i19_notify_writes_an_entry_that_is_no_mail_and_starts_nothing() -> None:
    """I-2, I-12, I-19: no actions key unless actions are given, an empty list included."""

    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi")
        room.notify("echo", "disk almost full", metadata={"free": 3})
        room.notify("echo", "look", actions=[])
        await room.wait()
        first, second = room.inbox("echo")
        assert first.text == "disk almost full"
        assert first.body.metadata == {"free": 3}  # type: ignore[union-attr]
        assert second.body.metadata == {"actions": []}  # type: ignore[union-attr]
        assert first.sender.kind == "system"
        assert len(s.mail()) == 1
        assert [r.name for r in room.sessions()] == ["echo"]
        assert any(getattr(r, "name", "") == "inbox" for r in room.sessions(inbox=True))
        with pytest.raises(ConfigError, match="no agent 'nobody'"):
            room.notify("nobody", "x")

    in_room(main)


def test_m31_a_full_mailbox_refuses_the_owner_too_and_takes_mail_again_when_read() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("slow", model="echo", mailbox_max_unread=2, wake_on=["peer"]))
        s.send("1")
        s.send("2")
        with pytest.raises(MailboxFull, match=r"2 unread, limit 2.*mailbox_max_unread"):
            s.send("3")
        room.define(Agent("slow", model="echo", mailbox_max_unread=2))
        await s.wait()
        s.send("3")

    in_room(main)


def test_m19_a_given_id_is_accepted_once_whatever_it_says_the_second_time() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        first = s.send("hello", id="my-1")
        second = s.send("changed", id="my-1")
        assert (second.duplicate, second.seq, second.id) == (True, first.seq, "my-1")
        assert [e.text for e in s.mail()] == ["hello"]
        with pytest.raises(ConfigError, match="cannot be a mail id"):
            s.send("x", id="a" * 129)

    in_room(main)


def test_m45_an_unknown_reply_to_is_fresh_mail_and_named_in_the_receipt() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        receipt = s.send("as I said", reply_to="m-9999")
        assert "m-9999" in receipt.note
        assert s.mail()[0].body.in_reply_to is None  # type: ignore[union-attr]
        known = s.send("yes", reply_to=receipt.id)
        assert known.note == ""
        assert s.mail()[1].body.in_reply_to == receipt.id  # type: ignore[union-attr]

    in_room(main)


# ── waiting and asking ──


def test_a_wait_right_after_spawn_or_send_is_never_too_early() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi")
        result = await s.wait()
        assert said(s) == ["echo: hi"]
        assert (result.woken_by, result.sessions, result.left) == ("idle", ("echo",), ())
        s.send("again")
        await s.wait()
        assert len(said(s)) == 2

    in_room(main)


def test_a_time_out_says_what_still_works_and_strict_raises() -> None:
    async def main(room: Room) -> None:
        @script
        async def slow(turn: ScriptTurn) -> str:
            await asyncio.sleep(100)
            return "done"

        s = room.spawn(Agent("slow", model=slow), "go")
        loop = asyncio.get_running_loop()
        before = loop.time()
        result = await room.wait(timeout=5)
        assert loop.time() - before == 5
        assert (result.woken_by, result.left) == ("timeout", ("slow",))
        assert result.text == "time is up after 5 s; still working: slow (running)"
        with pytest.raises(WaitTimedOut, match="still working"):
            await s.wait(timeout=1, strict=True)
        assert (await s.wait("answer")).woken_by == "answer"

    in_room(main)


def test_waiting_for_any_for_mail_for_a_call_and_for_an_event() -> None:
    async def main(room: Room) -> None:
        @script
        async def slow(turn: ScriptTurn) -> str:
            await asyncio.sleep(100)
            return "done"

        room.spawn(Agent("slow", model=slow), "go")
        quick = room.spawn("echo", "hi", name="quick")
        result = await room.wait(any=True, timeout=50)
        assert (result.sessions, result.left) == (("quick",), ("slow",))

        lazy = room.spawn(Agent("lazy", wake_on=["peer"]))
        lazy.send("later")
        assert (await lazy.wait("mail")).woken_by == "mail"
        waiting = asyncio.get_running_loop().create_task(quick.wait("run.stopped", timeout=9))
        await ticks()
        quick.send("x")
        assert (await waiting).woken_by == "event"
        with pytest.raises(ConfigError, match="nothing to wait for"):
            await quick.wait("lunch")

    in_room(main)


def test_ask_returns_the_final_text_of_the_run_that_read_the_question() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi")
        first, second = s.ask("one"), s.ask("two")
        answers = await asyncio.gather(first, second)
        assert [a.text for a in answers][1].endswith("two")
        assert answers[1].usage.requests >= 1
        assert answers[1].mail[0].text in ("one", "two")

    in_room(main)


def test_ask_fails_with_the_reason_when_no_answer_comes() -> None:
    async def main(room: Room) -> None:
        @script
        def bad(turn: ScriptTurn) -> str:
            raise ValueError("boom")

        @script
        async def slow(turn: ScriptTurn) -> str:
            await asyncio.sleep(100)
            return "done"

        with pytest.raises(AnswerFailed, match="ValueError: boom"):
            await room.spawn(Agent("bad", model=bad)).ask("x")
        s = room.spawn(Agent("slow", model=slow))
        with pytest.raises(AnswerFailed, match="not within 5 s"):
            await s.ask("x", timeout=5)
        s.stop()
        task = asyncio.get_running_loop().create_task(s.ask("y"))
        await asyncio.sleep(1)
        s.stop()
        with pytest.raises(AnswerFailed, match="stopped"):
            await task

    in_room(main)


def test_drain_waits_until_every_session_is_at_rest() -> None:
    async def main(room: Room) -> None:
        pair(room, mail_scope="all", wake_on=["user", "peer"])
        room.send("ann", "bob hello")
        assert (await room.drain()).quiet
        assert len(room.session("bob").mail()) > 10

    in_room(main)


def test_m15_a_send_from_a_thread_gets_its_receipt_while_the_loop_is_blocked() -> None:
    """M-15: accepted in the caller's thread; delivered when the loop moves again."""
    with open_room() as room:

        async def main() -> list[str]:
            s = room.spawn("echo")
            receipts: list[str] = []
            sender = threading.Thread(target=lambda: receipts.append(str(s.send("from a thread"))))
            sender.start()
            sender.join(timeout=10)  # the loop stands still here, as under a blocking cell
            assert receipts == ["m-0001 → echo #1 (idle)"]
            await s.wait(timeout=10)
            return said(s)

        assert asyncio.run(main()) == ["echo: from a thread"]


def test_a_room_belongs_to_one_loop_and_says_so_on_another() -> None:
    with open_room() as room:

        async def first() -> None:
            room.spawn("echo")
            loop = asyncio.new_event_loop()

            async def second() -> None:
                with pytest.raises(PostroomError, match="another event loop"):
                    await room.wait()

            thread = threading.Thread(target=lambda: loop.run_until_complete(second()))
            thread.start()
            thread.join()
            loop.close()

        asyncio.run(first())


def test_a_room_used_from_plain_python_lives_on_each_loop_that_runs() -> None:
    room = open_room()
    s = room.spawn("echo", "hi")
    asyncio.run(s.wait())
    s.send("again")
    asyncio.run(s.wait())
    assert said(s) == ["echo: hi", "echo: again"]
    room.close()
    with pytest.raises(PostroomError, match="is closed"):
        room.spawn("echo")


def test_events_come_stored_first_then_live_without_gap_or_repeat() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", "hi")
        await s.wait()
        seen: list[str] = []
        stored = [e.seq for e in s.history()]

        async def follow() -> None:
            async for event in s.events():
                seen.append(f"{event.kind} {event.seq}")
                if event.kind == "run.stopped" and event.seq > stored[-1]:
                    return

        task = asyncio.get_running_loop().create_task(follow())
        await ticks()
        s.send("more")
        await task
        expected = [e.seq for e in s.history()]
        numbers = [int(line.split()[1]) for line in seen if "text.delta" not in line]
        assert numbers == expected[: len(numbers)]
        assert any("text.delta" in line for line in seen)
        later = [e async for e in _until_stop(s, numbers[-2])]
        assert [e.seq for e in later] == expected[expected.index(numbers[-2]) + 1 :][: len(later)]

    async def _until_stop(s: Session, since: int) -> AsyncIterator[Event]:
        async for event in s.events(since=since):
            yield event
            if event.kind == "run.stopped":
                return

    in_room(main)


def test_an_uncaught_refusal_of_a_knob_names_it() -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match="the policy will not do: rules"):
            room.define(Agent("a", policy={"rules": [{"tool": "x"}]}))
        with pytest.raises(ConfigError, match="toolbox names 'send-mail'"):
            room.define(Agent("a", toolbox=["send-mail"]))
        with pytest.raises(ConfigError, match="Postroom's own"):
            room.define(Agent("a", tools=[_named_like_ours()]))

    in_room(main)


def _named_like_ours() -> Callable[[], str]:
    def f() -> str:
        """Do."""
        return ""

    f.__name__ = "send-message"
    return f
