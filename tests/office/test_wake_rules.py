"""Which mail starts a run, which waits, and what a receipt says of it (M-93…M-98, M-130)."""

import asyncio
from typing import Any

import pytest

from office.rooms import Talk, in_room, lives, read, said, ticks
from postroom_runtime.contracts.config import WAKE_KINDS, Agent
from postroom_runtime.contracts.envelope import FromSystem, Outgoing, UserMessage, WatchedEvent
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session

WORDS = {
    "the owner": "user",
    "a parent": "parent",
    "a grandparent": "parent",
    "a child": "child",
    "a grandchild": "child",
    "a sibling": "peer",
    "a stranger": "peer",
    "itself": "tool",
    "a timer": "tool",
    "an event of a child": "child",
    "an event of a stranger": "peer",
    "a result from outside": "tool",
}
"""M-94: the word of ``wake_on`` for each kind of mail, by its body, then its sender."""


async def deploy(target: str) -> str:
    """Deploy."""
    return target


@script
def once(turn: ScriptTurn) -> Talk:
    """Asks for a deployment when told to, and answers what it reads."""
    if turn.text == "deploy":
        _ = yield call("deploy", target="x")
    return f"read: {turn.text}"


def household(room: Room, wake_on: list[str]) -> Session:
    """Spawn two generations above and below the one that is looked at, which has deployed."""
    writer = Agent("writer", model="echo", mail_scope="all", wake_on=[])
    top = room.spawn(writer, name="grandparent")
    parent = room.spawn(writer, name="parent", parent=top)
    agent = Agent(
        "me",
        model=once,
        tools=[deploy],
        mail_scope="all",
        policy={"rules": [{"tool": "deploy", "disposition": {"tag": "defer", "reason": "ok?"}}]},
        wake_on=[*wake_on],
    )
    me = room.spawn(agent, name="me", parent=parent)
    room.spawn(writer, name="sibling", parent=parent)
    child = room.spawn(writer, name="child", parent=me)
    room.spawn(writer, name="grandchild", parent=child)
    room.spawn(writer, name="stranger")
    return me


def write(room: Room, me: Session, kind: str) -> str:
    """Let mail of ``kind`` arrive; return what its receipt says."""
    system: dict[str, Any] = {"session": me.id, "sender": FromSystem("timer:t-0001")}
    match kind.split():
        case ["the", "owner"]:
            return me.send("ping").note
        case ["itself"]:
            return room.send("me", "ping", sender="me").note
        case [_, "timer"]:
            return room.router.deliver(Outgoing(**system, body=UserMessage("ping"))).result().note
        case [_, "event", "of", _, whose]:
            event = WatchedEvent(room.session(whose).id, "run.stopped", {"reason": "ping"})
            return room.router.deliver(Outgoing(**system, body=event)).result().note
        case [_, "result", *_]:
            room.complete(room.approvals()[0].token, "ping")
            return ""
        case [_, whose]:
            return room.send("me", "ping", sender=whose).note
    raise AssertionError(kind)


@pytest.mark.parametrize("word", WAKE_KINDS)
@pytest.mark.parametrize("kind", WORDS)
def test_m94_mail_wakes_where_its_word_is_in_wake_on_and_nowhere_else(kind: str, word: str) -> None:
    """And where it does not, the receipt says so; M-96: it is there all the same, unread."""

    async def main(room: Room) -> None:
        me = household(room, ["user"])
        await me.ask("deploy")
        room.define(Agent("me", model=once, wake_on=[word], mail_scope="all", tools=[deploy]))
        before = me.record.turns
        note = write(room, me, kind)
        await asyncio.sleep(3600)
        woke = WORDS[kind] == word
        assert (me.record.turns > before) is woke
        assert me.unread == (not woke)
        if kind != "a result from outside":
            assert note == ("" if woke else f"waits: wake_on of me has no {WORDS[kind]!r}")

    in_room(main)


def test_m95_by_default_all_but_peers_wake() -> None:
    assert Agent("a").wake_on == ("user", "tool", "parent", "child")


def test_m96_what_does_not_wake_is_read_in_order_with_what_does() -> None:
    """Decision: one order, that of acceptance; the owner's mail does not overtake."""

    async def main(room: Room) -> None:
        me = household(room, ["user"])
        for n, whose in enumerate(["stranger", "child", "sibling", "parent"]):
            assert room.send("me", f"letter {n}", sender=whose).note.startswith("waits: wake_on")
        await asyncio.sleep(100)
        assert (me.record.turns, me.unread) == (0, 4)
        me.send("and the owner", interrupt=True)
        await me.wait()
        (only,) = (turn for turn in me.transcript() if turn.mail)
        assert [e.seq for e in only.mail] == [1, 2, 3, 4, 5]
        places = [only.text.index(f"letter {n}") for n in range(4)]
        assert [*places, only.text.index("and the owner")] == sorted(
            [*places, only.text.index("and the owner")]
        )

    in_room(main)


def test_mail_is_read_in_the_order_it_was_accepted_the_owner_s_and_interrupts_too() -> None:
    """M-51: while a run works, too; nobody's mail is re-ordered, urgency is what wakes."""

    @script
    def slow(turn: ScriptTurn) -> Talk:
        if turn.text == "go":
            _ = yield call("nap")
        return "read"

    async def nap() -> str:
        """Sleep."""
        await asyncio.sleep(10)
        return "slept"

    async def main(room: Room) -> None:
        room.spawn(Agent("ann", model="echo", mail_scope="all"))
        s = room.spawn(Agent("bob", model=slow, tools=[nap], max_iterations=20), "go")
        await asyncio.sleep(1)
        accepted = [room.send("bob", "a1", sender="ann"), s.send("o1")]
        accepted += [room.send("bob", "a2", sender="ann"), s.send("o2", interrupt=True)]
        accepted += [room.send("bob", "a3", sender="ann")]
        await s.wait()
        order = [e.seq for turn in s.transcript() for e in turn.mail]
        assert [receipt.seq for receipt in accepted] == [2, 3, 4, 5, 6]
        assert order == [1, 2, 3, 4, 5, 6, 7]  # the last one is what the interrupt detached

    in_room(main)


# ── M-93: what never restarts by itself ──


@script
def moody(turn: ScriptTurn) -> str:
    """Fails when told to."""
    if "fail" in turn.text:
        raise RuntimeError("as told")
    return "ok"


def put(s: Session, status: str) -> None:
    """Bring a session to a state."""
    match status:
        case "paused":
            s.pause()
        case "stopped":
            s.stop()
        case "failed":
            s.send("fail")
        case "capped":
            s.send("use it up")
        case "closed":
            s.close()


@pytest.mark.parametrize("status", ["paused", "failed", "capped"])
def test_m93_a_session_at_rest_for_a_reason_never_starts_by_itself(status: str) -> None:
    """Nor by what agents write to it, but a failed one, which runs on newer mail that wakes it."""

    async def main(room: Room) -> None:
        top = room.spawn(Agent("top", model="echo", mail_scope="all"))
        limit = 1 if status == "capped" else None
        s = room.spawn(Agent("bob", model=moody, max_requests=limit), "hi", parent=top)
        await s.wait()
        put(s, status)
        await ticks()
        if status == "capped":
            s.send("one more")
            await s.wait()
        assert s.status == status
        events = len(s.history())
        await asyncio.sleep(100_000)
        assert len(s.history()) == events

        note = room.send("bob", "from above", sender=top).note
        await asyncio.sleep(100)
        if status == "failed":
            assert (note, s.status) == ("", "idle")
        else:
            assert f"bob is {status}" in note
            assert (s.status, s.unread >= 1) == (status, True)

    in_room(main)


def test_what_receipts_say_of_sessions_that_do_not_run() -> None:
    """Decision 11: the reason and the way on, for the owner and for others."""

    async def main(room: Room) -> None:
        top = room.spawn(Agent("top", model="echo", mail_scope="all"))
        s = room.spawn(Agent("bob", model="echo"), "hi", parent=top)
        await s.wait()
        assert room.send("bob", "you?", sender=top).note == ""
        await s.wait()
        s.pause()
        await ticks()
        assert s.send("a").note == "waits: bob is paused; %resume bob lets it go on"
        s.resume()
        await s.wait()
        assert s.send("b").note == ""
        await s.wait()
        assert s.send("").note == ""  # it says nothing, and is read silently

        # A run under way reads it, whatever wake_on says.
        @script
        def naps(turn: ScriptTurn) -> Talk:
            _ = yield call("wait", timeout_seconds=50)
            return "ok"

        busy = room.spawn(Agent("busy", model=naps, wake_on=["user"]), "go", parent=top)
        await asyncio.sleep(1)
        assert room.send("busy", "now?", sender=top).note == ""
        await busy.wait()
        assert (
            room.send("busy", "now?", sender=top).note == "waits: wake_on of busy has no 'parent'"
        )
        # With what wakes it on the way too, it is read with that.
        busy.send("wake up")
        assert room.send("busy", "and me", sender=top).note == ""

        s.stop()
        busy.stop()
        await room.drain()

    in_room(main)


def test_what_receipts_say_of_a_stopped_a_stored_and_an_undefined_session() -> None:
    agents = [Agent("top", model="echo", mail_scope="all"), Agent("bob", model="echo")]

    @script
    def asleep(turn: ScriptTurn) -> Talk:
        _ = yield call("wait", timeout_seconds=200)
        return "ok"

    async def first(room: Room) -> None:
        top = room.spawn(agents[0])
        bob = room.spawn(agents[1], "hi", parent=top)
        kim = room.spawn(Agent("kim", model=asleep), "hi", parent=top)
        await bob.wait()
        await asyncio.sleep(1)
        kim.stop()
        await kim.wait()
        assert room.send("kim", "hm", sender=top).note == (
            "waits: kim was stopped; a word from its owner lets it go on (%resume kim)"
        )

    async def second(room: Room) -> None:
        room.define(agents[0])
        needs = room.send("bob", "hi", sender="top").note
        assert needs == "waits: bob needs agent bob: run its cell"
        room.define(agents[1])
        stored = "waits: bob is stored; it runs when its owner writes to it (%resume bob)"
        assert room.send("bob", "hi", sender="top").note == stored
        assert room.session("bob").send("go").note == ""
        await room.session("bob").wait()
        assert room.session("bob").unread == 0

    lives(first, second)


# ── M-130, M-37 ──


def test_m130_a_run_never_lingers_for_a_reply_which_wakes_it_later() -> None:
    """D11: ``expects_reply`` is a hint to the reader, and holds nobody up."""

    @script
    def asker(turn: ScriptTurn) -> Talk:
        if turn.mail[-1].sender.kind == "user":
            _ = yield call("send-message", to="kid", text="well?", expects_reply=True)
            return "asked"
        return f"it says {turn.mail[-1].text}"

    @script
    def answers(turn: ScriptTurn) -> Talk:
        asked = str(turn.mail[-1].sender.id)
        _ = yield call("nap")
        _ = yield call("send-message", to=asked, text="forty-two")
        return "told"

    async def nap() -> str:
        """Sleep."""
        await asyncio.sleep(1000)
        return "slept"

    async def main(room: Room) -> None:
        a = room.spawn(Agent("a", model=asker))
        kid = room.spawn(Agent("kid", model=answers, tools=[nap]), parent=a)
        await a.ask("go")
        assert (a.status, a.end_reason, said(a)[-1]) == ("idle", "answer", "asked")
        assert asyncio.get_running_loop().time() < 1000
        assert kid.status == "running"
        await room.drain(timeout=None)
        assert said(a)[-1] == "it says forty-two"
        assert sum(event.kind == "run.started" for event in a.history()) == 2

    in_room(main)


def test_m37_m72_a_run_that_waits_for_its_calls_is_woken_by_any_mail() -> None:
    """R2 with a run alive: ``wake_on`` is for sessions at rest."""

    @script
    def starter(turn: ScriptTurn) -> Any:
        return call("nap") if turn.text == "go" else f"ok: {turn.text[-5:]}"

    async def nap() -> str:
        """Sleep."""
        await asyncio.sleep(100)
        return "slept"

    async def main(room: Room) -> None:
        room.spawn(Agent("peer", model="echo", mail_scope="all"))
        rules = [{"tool": "nap", "disposition": {"tag": "runAsync", "attachSeconds": 0}}]
        agent = Agent("a", model=starter, tools=[nap], policy={"rules": rules}, wake_on=["user"])
        a = room.spawn(agent, "go")
        await asyncio.sleep(1)
        assert a.status == "waiting"
        assert room.send("a", "hello", sender="peer").note == ""
        await asyncio.sleep(1)
        assert (a.status, said(a)[-1]) == ("waiting", "ok: hello")
        await a.wait()
        assert len(read(a)) == 4
        assert sum(event.kind == "run.started" for event in a.history()) == 1

    in_room(main)


def test_m98_m9_the_owner_s_word_to_a_running_session_is_accepted_and_joins_its_run() -> None:
    async def main(room: Room) -> None:
        @script
        def waits(turn: ScriptTurn) -> Talk:
            _ = yield call("wait", timeout_seconds=50)
            return "ok"

        s = room.spawn(Agent("a", model=waits), "go")
        await asyncio.sleep(1)
        receipt = s.send("more")
        assert (receipt.recipient_status, receipt.note) == ("running", "")
        await s.wait()
        assert sum(event.kind == "run.started" for event in s.history()) == 1

    in_room(main)
