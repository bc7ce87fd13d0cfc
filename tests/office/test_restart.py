"""A kernel ends and a room is reopened: everything is there, and nothing runs by itself."""

import asyncio

import pytest

from office.rooms import Talk, lives, read, said, ticks
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import BodyKind
from postroom_runtime.contracts.errors import AnswerFailed, ConfigError
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.testing import story


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


@script
def napping(turn: ScriptTurn) -> Talk:
    if turn.text == "go":
        yield call("nap", seconds=1000)
    return f"read: {turn.text}"


def test_m91_stored_sessions_are_ready_and_none_runs_by_itself() -> None:
    """M-4, M-91: mail and transcript are back; the owner's next word is answered with all mail."""

    async def first(room: Room) -> None:
        await room.spawn("echo", "hi", name="a").wait()
        lazy = room.spawn(Agent("lazy", wake_on=["peer"]))
        lazy.send("waits")

    async def second(room: Room) -> None:
        a, lazy = room.session("a"), room.session("lazy")
        await ticks()
        assert (a.status, lazy.status) == (SessionStatus.READY, SessionStatus.READY)
        assert said(a) == ["echo: hi"]
        assert [e.text for e in a.mail()] == ["hi"]
        assert lazy.unread == 1
        assert a.idle
        assert (await a.ask("still you?")).text == "echo: still you?"
        assert read(a) == ["hi", "still you?"]

    lives(first, second)


def test_a_stored_session_needs_its_agent_and_says_which_cell_to_run() -> None:
    agent = Agent("poet", model="echo")

    async def first(room: Room) -> None:
        await room.spawn(agent, "hi").wait()

    async def second(room: Room) -> None:
        s = room.session("poet")
        receipt = s.send("hello again")
        assert receipt.recipient_status == "ready (needs agent poet)"
        result = await s.wait(timeout=5)
        assert "poet is ready but needs agent poet: run the cell that defines it" in result.text
        with pytest.raises(AnswerFailed, match="needs agent poet"):
            await s.ask("hm?")
        room.define(agent)
        await s.wait()
        assert read(s)[-1] == "hello again\n\nhm?"

    lives(first, second)


def test_owner_mail_left_unread_by_the_last_kernel_waits_for_a_word_in_this_one() -> None:
    agent = Agent("poet", model="echo")

    async def first(room: Room) -> None:
        room.spawn(agent)

    async def second(room: Room) -> None:
        room.session("poet").send("unread by anyone")

    async def third(room: Room) -> None:
        room.define(agent)
        s = room.session("poet")
        await ticks()
        assert (s.unread, s.transcript()) == (1, [])
        room.spawn("poet")  # the same name and agent: its owner's word
        await s.wait()
        assert read(s) == ["unread by anyone"]

    lives(first, second, third)


def test_resume_runs_a_stored_session_with_its_unread_mail() -> None:
    async def first(room: Room) -> None:
        peer = room.spawn(Agent("peer", mail_scope="all"))
        room.spawn("echo", "hi", name="a")
        await room.wait()
        room.send("a", "psst", sender=peer)

    async def second(room: Room) -> None:
        a = room.session("a")
        a.resume()
        await a.wait()
        assert "psst" in read(a)[-1]

    lives(first, second)


def test_m71_a_call_that_the_kernel_s_end_cut_short_is_told_as_orphaned() -> None:
    """M-71: each once, with a history that every provider accepts."""
    agent = Agent("napper", model=napping, tools=[nap])

    async def first(room: Room) -> None:
        room.spawn(agent, "go")
        await ticks()
        assert room.session("napper").status is SessionStatus.RUNNING

    async def second(room: Room) -> None:
        s = room.session("napper")
        assert (s.status, s.end_reason) == (SessionStatus.READY, EndReason.INTERRUPTED)
        assert story(s.history(), EventKind.RUN_STOPPED) == ["run.stopped interrupted"]
        assert [c.state for c in s.calls()] == [CallState.ORPHANED]
        room.define(agent)
        await ticks()
        assert s.transcript()[-1].role == "model"  # nothing ran
        await s.ask("what happened?")
        (message,) = s.transcript()[2].results
        assert (message.call, message.state) == ("call_0001", CallState.ORPHANED)
        assert "orphaned" in message.content
        assert said(s)[-1] == "read: what happened?"
        ended = [e for e in s.mail() if e.body.kind is BodyKind.TOOL_CALL_FINISHED]
        assert [e.id for e in ended] == ["orphan-call_0001"]

    async def third(room: Room) -> None:
        room.define(agent)
        s = room.session("napper")
        assert [c.state for c in s.calls()] == [CallState.ORPHANED]
        await s.ask("go", timeout=None)  # ids go on where they were
        assert s.calls()[-1].id == "call_0002"

    lives(first, second, third)


def test_m23_mail_read_into_a_turn_that_was_never_answered_is_read_once_only() -> None:
    async def first(room: Room) -> None:
        @script
        async def hanging(turn: ScriptTurn) -> str:
            await asyncio.sleep(1000)
            return ""

        room.spawn(Agent("poet", model=hanging), "think")
        await ticks()

    async def second(room: Room) -> None:
        room.define(Agent("poet", model="echo"))
        s = room.session("poet")
        s.resume()
        await s.wait()
        assert read(s) == ["think"]
        assert said(s) == ["echo: think"]

    lives(first, second)


def test_bound_values_and_model_objects_are_asked_for_again_after_a_restart() -> None:
    async def fetch(url: str, token: str) -> str:
        """Fetch."""
        return url

    agent = Agent("f", model="echo", tools=[fetch])

    async def first(room: Room) -> None:
        await room.spawn(agent, "hi", bind={"token": "secret"}).wait()

    async def second(room: Room) -> None:
        room.define(agent)
        s = room.session("f")
        with pytest.raises(AnswerFailed, match="the value of token"):
            await s.ask("x")
        room.spawn(agent, bind={"token": "secret"})
        assert (await s.ask("y")).text.endswith("y")

    lives(first, second)


def test_a_closed_session_stays_closed_and_its_name_is_free() -> None:
    async def first(room: Room) -> None:
        s = room.spawn("echo", "hi", name="a")
        await s.wait()
        s.close()

    async def second(room: Room) -> None:
        assert room.sessions() == []
        s = room.spawn("echo", name="a")
        assert s.id == "s-0002"
        with pytest.raises(ConfigError):
            room.spawn("nobody")

    lives(first, second)


def test_a_failed_and_a_capped_session_stay_so_over_a_restart() -> None:
    async def first(room: Room) -> None:
        @script
        def bad(turn: ScriptTurn) -> str:
            raise ValueError("boom")

        await room.spawn(Agent("bad", model=bad), "x").wait()

    async def second(room: Room) -> None:
        room.define(Agent("bad", model="echo"))
        s = room.session("bad")
        await ticks()
        assert s.status is SessionStatus.FAILED
        assert "boom" in s.error
        s.resume()
        await s.wait()
        assert said(s) == ["echo: x"]

    lives(first, second)
