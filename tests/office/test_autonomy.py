"""Rounds without a person: what stops the loops that neither hops nor a run's budget see (trap 8)."""

import asyncio

import pytest

from office.rooms import Talk, in_room, lives, ticks
from office.test_guards import left, nap, runs, told
from postroom_runtime.contracts.config import Agent
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room

AT_ONCE = {"tool": "nap", "disposition": {"tag": "runAsync", "attachSeconds": 0}}


@pytest.mark.parametrize("rounds", [7, 30])
def test_a_session_that_lives_on_ends_of_its_own_calls_is_stopped(rounds: int) -> None:
    """Trap 8: a script that always starts a detached call and answers; no hop, no budget sees it."""

    @script
    def restless(turn: ScriptTurn) -> Talk:
        while True:
            _ = yield call("nap", seconds=60)
            _ = yield "I will see."

    async def main(room: Room) -> None:
        agent = Agent(
            "bob",
            model=restless,
            tools=[nap],
            policy={"rules": [AT_ONCE]},
            max_iterations=10_000,
            max_autonomous_rounds=rounds,
        )
        s = room.spawn(agent, "go")
        await asyncio.sleep(100_000)
        assert (s.status, s.end_reason) == ("capped", "capped")
        assert s.record.rounds_since_human == rounds
        (entry,) = told(room, "bob")
        assert (entry.metadata["knob"], entry.metadata["limit"]) == (
            "max_autonomous_rounds",
            rounds,
        )
        # A resume is no word: it is told so again, once, and does not spin.
        before = runs(s)
        s.resume()
        await s.wait()
        await ticks()
        assert (s.status, runs(s) <= before + 1) == ("capped", True)
        s.send("go on")
        await asyncio.sleep(100_000)
        assert s.record.rounds_since_human == rounds

    in_room(main)


def test_two_that_answer_each_other_with_the_owner_in_between_are_stopped() -> None:
    """Hops start at 0 with each word of the owner to one; the other never hears a person."""

    @script
    def polite(turn: ScriptTurn) -> Talk:
        letter = turn.mail[-1]
        to = "kid" if letter.sender.kind == "user" else str(letter.sender.id)
        _ = yield call("send-message", to=to, text="and you?")
        return "sent"

    async def main(room: Room) -> None:
        top = room.spawn(Agent("top", model=polite, max_autonomous_rounds=20))
        kid = room.spawn(Agent("kid", model=polite, max_autonomous_rounds=20), parent=top)
        for _ in range(40):
            top.send("carry on")
            await asyncio.sleep(1)
            if kid.status == "capped":
                break
        await room.drain()
        assert kid.status == "capped"
        assert kid.record.rounds_since_human == 20
        assert [entry.metadata["knob"] for entry in told(room, "kid")] == ["max_autonomous_rounds"]
        # The owner's words alone go on; what waits is read when the owner writes to it.
        waiting = len(left(kid))
        await top.ask("carry on")
        assert len(left(kid)) == waiting + 1
        note = kid.send("well?").note
        assert note == ""
        await room.drain()
        assert left(kid) == []

    in_room(main)


def test_rounds_without_a_person_are_counted_over_restarts() -> None:
    @script
    def restless(turn: ScriptTurn) -> Talk:
        while True:
            _ = yield call("nap", seconds=60)
            _ = yield "I will see."

    agent = Agent(
        "bob",
        model=restless,
        tools=[nap],
        policy={"rules": [AT_ONCE]},
        max_iterations=10_000,
        max_autonomous_rounds=12,
    )
    counted: list[int] = []

    async def first(room: Room) -> None:
        s = room.spawn(agent, "go")
        await asyncio.sleep(150)
        counted.append(s.record.rounds_since_human)

    async def later(room: Room) -> None:
        room.define(agent)
        s = room.session("bob")
        assert s.record.rounds_since_human == counted[-1]
        s.resume()
        await asyncio.sleep(150)
        counted.append(s.record.rounds_since_human)

    async def last(room: Room) -> None:
        room.define(agent)
        s = room.session("bob")
        assert (s.status, s.record.rounds_since_human) == ("capped", 12)

    lives(first, later, later, later, last)
    assert counted == sorted(counted)
    assert 0 < counted[0] < counted[1] <= 12
