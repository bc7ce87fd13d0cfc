"""Sessions that always answer stop by rule; an answer that meets a stop is never silent (M-108…M-111)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from office.rooms import Talk, in_room
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import BodyKind, Envelope, Notification
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.models.script import Script, ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import run_seeded


def polite(*, replying: bool) -> Script:
    """A script that answers every letter, and begins with one to ``bob`` when its owner writes."""

    @script
    def answers(turn: ScriptTurn) -> Talk:
        letter = turn.mail[-1]
        more: dict[str, Any] = {"in_reply_to": letter.id} if replying else {}
        if letter.sender.kind == "user":
            to, more = "bob", {}
        else:
            to = str(letter.sender.id)
        _ = yield call("send-message", to=to, text="and a good day to you", **more)
        return "sent"

    return answers


def pair(room: Room, model: Any, **knobs: Any) -> tuple[Session, Session]:
    """Two sessions, the second under the first."""
    agent = Agent("polite", model=model, max_iterations=100, **knobs)
    ann = room.spawn(agent, name="ann")
    return ann, room.spawn(agent, name="bob", parent=ann)


def letters(*sessions: Session) -> list[Envelope]:
    """The letters between them, as they were accepted."""
    found = [e for s in sessions for e in s.mail() if e.body.kind is BodyKind.AGENT_MESSAGE]
    return sorted(found, key=lambda envelope: envelope.id)


def entries(room: Room, type: str) -> list[Notification]:
    """What the owner inbox says of ``type``."""
    bodies = [entry.body for entry in room.inbox("polite")]
    return [body for body in bodies if isinstance(body, Notification) and body.type == type]


@pytest.mark.parametrize("replying", [True, False])
def test_m108_m109_two_polite_sessions_write_exactly_seventeen_letters(replying: bool) -> None:
    """Hops 0 to 16 are accepted and 17 is refused, whether or not they say what they answer."""

    async def main(room: Room) -> None:
        ann, bob = pair(room, polite(replying=replying))
        ann.send("go")
        assert (await room.drain()).quiet

        assert sorted(e.hops for e in letters(ann, bob)) == list(range(17))
        assert [e.hops for e in letters(bob)] == list(range(0, 17, 2))
        last = bob.calls()[-1]
        assert (last.state, "17 hops" in str(last.result)) == (CallState.FAILED, True)
        (entry,) = entries(room, "hops")
        assert "bob was refused a letter to" in entry.content
        assert "limit 16" in entry.content
        assert (ann.status, bob.status) == ("idle", "idle")

    in_room(main)


@pytest.mark.parametrize("replying", [True, False])
def test_m110_a_word_of_the_owner_starts_at_no_hops_again(replying: bool) -> None:
    """In the session it is for; who has heard nobody since is still refused, and told so."""

    async def main(room: Room) -> None:
        ann, bob = pair(room, polite(replying=replying), max_mail_hops=4)
        ann.send("go")
        await room.drain()
        ann.send("go")
        await room.drain()
        assert sorted(e.hops for e in letters(ann, bob)) == [0, *range(5)]
        assert len(entries(room, "hops")) == 2

        assert bob.record.hops == 5
        before = len(letters(ann))
        bob.send("go")
        await asyncio.sleep(0)
        ann.send("go")
        await room.drain()
        assert len(letters(ann)) > before  # it may answer again

    in_room(main)


def test_m111_many_eager_sessions_come_to_rest() -> None:
    """Each answers whoever wrote, and everybody writes to everybody first."""

    @script
    def eager(turn: ScriptTurn) -> Any:
        to: list[str] = []
        for letter in turn.mail:
            if letter.sender.kind == "user":
                to += [f"p{n}" for n in range(4)]
            elif letter.sender.kind == "session":
                to.append(str(letter.sender.id))
        return [call("send-message", to=name, text="hello") for name in to] or "sent"

    async def main(room: Room) -> None:
        knobs: dict[str, Any] = {"mail_scope": "all", "wake_on": ["user", "peer", "tool"]}
        agent = Agent("polite", model=eager, max_iterations=1000, **knobs)
        everybody = [room.spawn(agent, name=f"p{n}") for n in range(4)]
        for session in everybody:
            session.send("go")
        assert (await room.drain(timeout=None)).quiet
        assert {str(session.status) for session in everybody} == {"idle"}
        assert max(e.hops for e in letters(*everybody)) == 16
        assert all(session.unread == 0 for session in everybody)
        assert entries(room, "hops")

    in_room(main)


Ends = Callable[[Session], Any]


@pytest.mark.parametrize(
    ("end", "status"),
    [(Session.stop, SessionStatus.IDLE), (Session.close, SessionStatus.CLOSED)],
    ids=["stop", "close"],
)
def test_a_reply_that_meets_a_stop_is_read_or_waits_or_is_refused(
    end: Ends, status: SessionStatus
) -> None:
    """Over many orders of the same moment: never a letter that nobody can find."""
    seen: set[str] = set()

    async def main(seed: int) -> None:
        async with open_room() as room:

            @script
            def asks(turn: ScriptTurn) -> Talk:
                if turn.mail[-1].sender.kind == "user" and turn.mail[-1].text == "go":
                    _ = yield call("send-message", to="bob", text="well?", expects_reply=True)
                    _ = yield call("wait", timeout_seconds=100)
                return "read"

            @script
            def replies(turn: ScriptTurn) -> Talk:
                to = str(turn.mail[-1].sender.id)
                _ = yield call("send-message", to=to, text="here you are")
                return "sent"

            ann = room.spawn(Agent("asks", model=asks))
            room.define(Agent("replies", model=replies, wake_on=["parent"]))
            bob = room.spawn("replies", name="bob", parent=ann)
            ann.send("go")
            for _ in range(seed % 40):
                await asyncio.sleep(0)
            end(ann)
            await room.drain()
            await asyncio.sleep(200)

            assert ann.status is status
            sent = [c for c in bob.calls() if c.tool == "send-message"]
            arrived = [e for e in ann.mail() if e.text == "here you are"]
            for each in sent:
                assert each.state.final
                if each.state is CallState.COMPLETED:
                    assert len(arrived) == 1
                    in_turns = [e for turn in ann.transcript() for e in turn.mail]
                    read = arrived[0] in in_turns
                    waits = arrived[0] in ann.mail(unread=True)
                    assert read is not waits
                    told = each.result
                    assert isinstance(told, dict)
                    if waits and status is SessionStatus.IDLE:
                        # It is read with the next word of the owner.
                        ann.send("what came?")
                        await ann.wait()
                        assert ann.unread == 0
                        assert arrived[0] in [e for t in ann.transcript() for e in t.mail]
                    seen.add("read" if read else f"waits, {status}")
                else:
                    assert not arrived
                    assert each.result, "it says why"
                    seen.add("refused")
            if not sent:
                seen.add("never sent")

    for seed in range(150):
        run_seeded(main(seed), seed)
    assert len(seen) >= 3, seen


def test_letters_that_a_closed_session_never_read_are_told_to_the_owner() -> None:
    """Their writers had receipts; after the close nobody is accepted any more."""

    async def main(room: Room) -> None:
        ann = room.spawn(Agent("polite", model="echo", mail_scope="all"), name="ann")
        bob = room.spawn("polite", name="bob")
        for n in range(7):
            assert room.send("bob", f"letter {n}", sender=ann).note.startswith("waits: wake_on")
        bob.close()
        (entry,) = entries(room, "unread")
        assert entry.content == (
            "bob was closed with letters it had not read: m-0001 from s-0001, m-0002 from s-0001, "
            "m-0003 from s-0001, m-0004 from s-0001, m-0005 from s-0001 and 2 more."
        )
        ann.close()  # nothing to tell
        assert len(entries(room, "unread")) == 1

    in_room(main)
