"""Where suspended calls get difficult: ends, words and orders that meet in one breath (M-8…M-114)."""

import asyncio
import threading
import time
from typing import Any

import pytest

from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import ContinuationResult, ToolCallFinished
from postroom_runtime.contracts.turn import EndReason, Role
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from walks.prompts import faults

AT_ONCE = {"rules": [{"tool": "held", "disposition": {"tag": "runAsync", "attachSeconds": 1}}]}
ASK = {"rules": [{"tool": "deploy", "disposition": {"tag": "defer", "reason": "sure?"}}]}


def calling(*calls: Any) -> Any:
    """Return a script that makes these calls when told to go, and says what else it reads."""

    @script
    def caller(turn: ScriptTurn) -> Talk:
        if turn.text != "go":
            return f"read: {turn.text}"
        yield list(calls)
        return "asked"

    return caller


class Held:
    """A tool whose calls end when they are told to, and that counts them."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self._ends: dict[int, asyncio.Event] = {}

    async def held(self, n: int) -> str:
        """Wait to be let go."""
        self.began.append(n)
        self._ends[n] = asyncio.Event()
        await self._ends[n].wait()
        return f"<<{n}>>"

    def let_go(self, *numbers: int) -> None:
        for n in numbers:
            self._ends[n].set()


def spawned(room: Room, tool: Held, count: int) -> Session:
    calls = [call("held", n=n) for n in range(1, count + 1)]
    agent = Agent(
        "h", model=calling(*calls), tools=[tool.held], policy=AT_ONCE, max_concurrency=count
    )
    return room.spawn(agent, "go")


def ends(s: Session) -> list[str]:
    """Return the calls whose end is in the mailbox, in order."""
    return [
        e.body.call for e in s.mail() if isinstance(e.body, (ToolCallFinished, ContinuationResult))
    ]


def last_request(s: Session) -> list[str]:
    """Return what a provider would have against the last request."""
    turns = s.transcript()
    last = max(n for n, turn in enumerate(turns) if turn.role is Role.USER)
    return faults(turns[: last + 1])


def test_m8_six_results_in_one_tick_come_once_each_in_the_order_in_which_they_ended() -> None:
    """M-8, M-62: which is not the order in which they were asked for."""

    async def main(room: Room) -> None:
        tool = Held()
        s = spawned(room, tool, 6)
        await asyncio.sleep(5)
        tool.let_go(4, 6, 1, 5, 3, 2)
        await s.wait()
        order = [f"call_000{n}" for n in (4, 6, 1, 5, 3, 2)]
        assert ends(s) == order
        told = [e.body.call for t in s.transcript() for e in t.mail if hasattr(e.body, "call")]
        assert told == order
        words = "\n".join(read(s))
        at = [words.index(f"<<{n}>>") for n in (4, 6, 1, 5, 3, 2)]
        assert at == sorted(at)
        assert [words.count(f"<<{n}>>") for n in range(1, 7)] == [1] * 6
        assert (tool.began, s.unread) == ([1, 2, 3, 4, 5, 6], 0)

    in_room(main)


def test_one_completion_never_runs_the_other_calls_again() -> None:
    """M-61, M-62: each is begun once, however often the model is asked meanwhile."""

    async def main(room: Room) -> None:
        tool = Held()
        s = spawned(room, tool, 3)
        await asyncio.sleep(5)
        for n in (2, 3, 1):
            tool.let_go(n)
            await asyncio.sleep(1)
            assert tool.began == [1, 2, 3]
            assert said(s)[-1].endswith(f"<<{n}>>")
        assert [c.state for c in s.calls()] == [CallState.COMPLETED] * 3
        assert ends(s) == ["call_0002", "call_0003", "call_0001"]

    in_room(main)


def test_m25_mail_between_the_look_that_finds_nothing_and_the_sleep_wakes_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """M-25: it is sent by another thread, in the one moment in which nobody listens."""

    async def main(room: Room) -> None:
        s = room.spawn("echo")
        look, sent = s.life._due, list[str]()

        def due() -> str | None:
            found = look()
            if found is None and not sent:
                sent.append("in between")
                sender = threading.Thread(target=s.send, args=("in between",))
                sender.start()
                until = time.monotonic() + 10
                while sender.is_alive():  # a join would be blocking, which no loop may
                    assert time.monotonic() < until
            return found

        monkeypatch.setattr(s.life, "_due", due)
        await s.wait("mail", timeout=1)
        async with asyncio.timeout(10):
            while not said(s):
                await asyncio.sleep(0.01)
        assert (sent, said(s)) == (["in between"], ["echo: in between"])

    in_room(main)


def test_m85_a_stop_in_the_first_tool_leaves_a_history_that_any_provider_takes() -> None:
    """M-42, M-85."""

    async def main(room: Room) -> None:
        tool = Held()
        agent = Agent("h", model=calling(call("held", n=1), call("held", n=2)), tools=[tool.held])
        s = room.spawn(agent, "go")
        await ticks()
        assert tool.began == [1, 2]
        s.stop()
        await s.wait()
        assert s.end_reason is EndReason.STOPPED
        states = [(m.call, m.state) for m in s.transcript()[2].results]
        assert states == [
            ("call_0001", CallState.CANCELLED),
            ("call_0002", CallState.CANCELLED),
        ]
        s.send("go on")
        await s.wait()
        assert said(s)[-1] == "read: go on"
        assert last_request(s) == []
        assert tool.began == [1, 2]

    in_room(main)


def test_m97_three_questions_answered_in_reverse_order_let_each_its_own_call_run() -> None:
    """M-97, M-114: three approvals, three tokens, and none lets another call go."""
    ran: list[str] = []

    async def deploy(target: str) -> str:
        """Deploy."""
        ran.append(target)
        return f"on {target}"

    async def main(room: Room) -> None:
        calls = [call("deploy", target=target) for target in "abc"]
        s = room.spawn(Agent("a", model=calling(*calls), tools=[deploy], policy=ASK), "go")
        await s.wait()
        asked = room.approvals()
        assert [a.arguments for a in asked] == [{"target": t} for t in "abc"]
        assert len({a.id for a in asked}) == len({a.token for a in asked}) == 3
        for approval in reversed(asked):
            room.approve(approval.id)
            await s.wait()
            assert said(s)[-1].endswith(f"on {approval.arguments['target']}")
        assert ran == ["c", "b", "a"]
        assert ends(s) == ["call_0003", "call_0002", "call_0001"]
        assert last_request(s) == []

    in_room(main)


def test_m114_a_rejected_call_leaves_nothing_behind() -> None:
    """M-97, M-114, M-42: no open call, no open question, no unread mail, one end."""
    ran: list[str] = []

    async def deploy(target: str) -> str:
        """Deploy."""
        ran.append(target)
        return "done"

    async def main(room: Room) -> None:
        agent = Agent("a", model=calling(call("deploy", target="x")), tools=[deploy], policy=ASK)
        s = room.spawn(agent, "go")
        await s.wait()
        room.deny("ap-0001", "not today")
        await s.wait()
        (ended,) = s.calls()
        assert (ended.state, ended.result) == (
            CallState.FAILED,
            "Tool 'deploy' was not approved: not today",
        )
        table = s.life.table
        assert (table.open_calls(), table.deferred(), s.life.executor.busy) == ([], [], False)
        assert [a.state for a in room.approvals(state=None)] == [ApprovalState.DENIED]
        assert (ends(s), s.unread, s.idle, ran) == (["call_0001"], 0, True, [])
        assert said(s)[-1].endswith("not today")
        assert last_request(s) == []
        assert (await room.drain(1)).quiet

    in_room(main)
