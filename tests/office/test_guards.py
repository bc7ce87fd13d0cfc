"""What bounds a room that nobody watches: what a session and a room may spend (trap 8)."""

import asyncio
from typing import Any

import pytest

from office.reckoner import Reckoner
from office.rooms import in_room, lives, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Notification
from postroom_runtime.contracts.errors import AnswerFailed, ConfigError
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


def told(room: Room, agent: str) -> list[Notification]:
    """What the owner inbox of an agent says of budgets."""
    entries = [entry.body for entry in room.inbox(agent)]
    return [e for e in entries if isinstance(e, Notification) and e.type == "budget"]


def left(session: Session) -> list[str]:
    """What it has not read."""
    return [envelope.text for envelope in session.mail(unread=True)]


def runs(session: Session) -> int:
    """How many runs of it ended."""
    return sum(event.kind == "run.stopped" for event in session.history())


# ── caps of a session ──


def test_a_session_that_used_its_requests_reads_nothing_more_and_says_why() -> None:
    """Decision of trap 8: capped before the request, mail unread, one entry, no hot loop."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("bob", model="echo", max_requests=2))
        await s.ask("one")
        await s.ask("two")
        assert s.status == "idle"
        receipt = s.send("three")
        why = (
            "waits: bob is capped: max_requests=2, 2 used; "
            "raise max_requests of agent bob (%%agent bob), then %resume bob"
        )
        assert receipt.note == why
        await s.wait()

        assert (s.status, s.end_reason) == (SessionStatus.CAPPED, EndReason.CAPPED)
        assert (left(s), s.usage.requests) == (["three"], 2)
        (entry,) = told(room, "bob")
        assert entry.content == f"{why.removeprefix('waits: ')}. What it has not read waits."
        facts = {name: entry.metadata[name] for name in ("knob", "limit", "used")}
        assert facts == {"knob": "max_requests", "limit": 2, "used": 2}

        ended = runs(s)
        await asyncio.sleep(3600)
        await ticks()
        assert runs(s) == ended  # it does not try by itself

    in_room(main)


def test_each_word_of_the_owner_runs_into_the_cap_once_and_its_receipt_says_so() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("bob", model="echo", max_requests=1), "one")
        await s.wait()
        for n in range(3):
            before = runs(s)
            assert "waits: bob is capped: max_requests=1, 1 used" in s.send(f"more {n}").note
            result = await s.wait()
            assert (s.status, runs(s)) == ("capped", before + 1)
            assert "bob is capped: max_requests=1, 1 used" in result.text
        assert left(s) == ["more 0", "more 1", "more 2"]
        assert len(told(room, "bob")) == 1  # the receipts have said the rest
        with pytest.raises(AnswerFailed, match=r"max_requests=1, 1 used.*the question waits"):
            await s.ask("and?")
        # A word of another session does not even try.
        before = runs(s)
        note = room.send("bob", "hi", sender=room.spawn(Agent("al", mail_scope="all"))).note
        assert note.startswith("waits: bob is capped: max_requests=1")
        await ticks()
        assert runs(s) == before

    in_room(main)


@pytest.mark.parametrize("word", ["resume", "send"])
def test_a_raised_cap_and_a_resume_or_a_new_word_go_on_with_all_that_waits(word: str) -> None:
    async def main(room: Room) -> None:
        agent = Agent("bob", model="echo", max_requests=1)
        s = room.spawn(agent, "one")
        await s.wait()
        s.send("two")
        await s.wait()
        before = runs(s)
        assert s.resume().note.startswith("waits: bob is capped")  # not raised yet
        await s.wait()
        assert (s.status, left(s), runs(s)) == ("capped", ["two"], before + 1)

        room.define(Agent("bob", model="echo", max_requests=5))
        await ticks()
        assert s.status == "capped"  # raising alone starts nothing
        receipt = s.resume() if word == "resume" else s.send("three")
        assert receipt.note == ""
        await s.wait()
        assert (s.status, left(s), s.usage.requests) == ("idle", [], 2)
        assert "two" in said(s)[-1]

    in_room(main)


def test_tokens_are_capped_before_the_request_that_follows_the_one_that_used_them_up() -> None:
    async def main(room: Room) -> None:
        model = Reckoner(tokens=60)
        s = room.spawn(Agent("bob", model=model, max_tokens=100), "one")
        await s.wait()
        await s.ask("two")  # begins below the cap, and may go over it
        s.send("three")
        await s.wait()
        assert (model.asked, s.status, left(s)) == (2, "capped", ["three"])
        assert "max_tokens=100, 120 used" in told(room, "bob")[0].content

    in_room(main)


def test_money_is_capped_as_tokens_are_and_said_in_dollars() -> None:
    async def main(room: Room) -> None:
        model = Reckoner(cost=0.03)
        s = room.spawn(Agent("bob", model=model, max_cost=0.05), "one")
        await s.wait()
        await s.ask("two")  # begins below the cap, and may go over it
        assert s.send("three").note == (
            "waits: bob is capped: max_cost=$0.050, $0.060 used; "
            "raise max_cost of agent bob (%%agent bob), then %resume bob"
        )
        await s.wait()
        assert (model.asked, s.status, left(s)) == (2, "capped", ["three"])
        facts = {k: told(room, "bob")[0].metadata[k] for k in ("knob", "limit", "used")}
        assert facts == {"knob": "max_cost", "limit": 0.05, "used": 0.06}

        room.define(Agent("bob", model=model, max_cost=0.5))
        s.resume()
        await s.wait()
        assert (s.status, left(s)) == ("idle", [])

    in_room(main)


def test_what_has_no_price_is_not_capped_by_money() -> None:
    async def main(room: Room) -> None:
        room.max_cost = 0.01
        s = room.spawn(Agent("bob", model="echo", max_cost=0.01), "one")
        await s.wait()
        await s.ask("two")
        assert (s.status, s.usage.requests, s.usage.cost, room.usage.cost) == (
            "idle",
            2,
            None,
            None,
        )

    in_room(main)


def test_a_cap_in_the_middle_of_a_run_keeps_the_results_of_its_calls() -> None:
    """The turn after the calls is not asked for; what they gave is read when it goes on."""

    @script
    def works(turn: ScriptTurn) -> Any:
        return "it is done" if turn.results else call("nap", seconds=5)

    async def main(room: Room) -> None:
        def agent(limit: int) -> Agent:
            return Agent("bob", model=works, tools=[nap], max_requests=limit)

        s = room.spawn(agent(1), "go")
        await asyncio.sleep(1)
        s.send("still there?")
        await s.wait()
        assert (s.status, left(s)) == ("capped", ["still there?"])
        room.define(agent(3))
        s.resume()
        await s.wait()
        results = [m.content for turn in s.transcript() for m in turn.results]
        assert (results, read(s)[-1]) == (["slept"], "still there?")
        assert s.status == "idle"

    in_room(main)


def test_the_forced_last_answer_is_a_request_too() -> None:
    @script
    def busy(turn: ScriptTurn) -> Any:
        return call("nap", seconds=1) if "nap" in turn.tools else "that is it"

    async def main(room: Room) -> None:
        agent = Agent("bob", model=busy, tools=[nap], max_iterations=2, max_requests=2)
        s = room.spawn(agent, "go")
        await s.wait()
        assert (s.status, s.end_reason, s.usage.requests) == ("capped", "capped", 2)
        assert "that is it" not in said(s)

    in_room(main)


def test_m78_every_amended_request_counts_and_the_cap_ends_it_with_the_word_unread() -> None:
    async def main(room: Room) -> None:
        model = script(slow)
        s = room.spawn(
            Agent("bob", model=model, interrupt_completions=True, max_requests=3), "word 0"
        )
        for n in range(1, 5):
            await asyncio.sleep(1)
            s.send(f"word {n}", interrupt=True)
        await s.wait()
        # Asked with 0, with 0 to 1 and with 0 to 2; the third was cut, and not asked again.
        assert (s.status, s.end_reason, s.usage.requests) == ("capped", "capped", 3)
        assert (read(s), left(s)) == (["word 0\n\nword 1\n\nword 2"], ["word 3", "word 4"])

    in_room(main)


async def slow(turn: ScriptTurn) -> str:
    """Think for a minute."""
    await asyncio.sleep(60)
    return "done"


# ── caps of a room ──


def test_a_room_s_cap_counts_every_session_the_closed_ones_and_the_children_too() -> None:
    async def main(room: Room) -> None:
        room.max_requests = 4
        boss = room.spawn(Agent("boss", model="echo"), "one")
        await boss.wait()
        child = room.spawn("echo", "two", name="child", parent=boss)
        await child.wait()
        child.close()
        hidden = room.spawn("echo", "three", name="hidden", hidden=True)
        await hidden.wait()
        await boss.ask("four")
        assert room.usage.requests == 4

        receipt = boss.send("five")
        assert receipt.note == (
            "waits: boss is capped: room.max_requests=4, 4 used; "
            "raise room.max_requests, then %resume boss"
        )
        await boss.wait()
        assert (boss.status, left(boss)) == ("capped", ["five"])
        assert told(room, "boss")[0].metadata["knob"] == "room.max_requests"

        room.max_requests = 5
        boss.resume()
        await boss.wait()
        assert (boss.status, left(boss), room.usage.requests) == ("idle", [], 5)

        room.max_requests = None
        await boss.ask("no cap, no end")

    in_room(main)


def test_sessions_that_ask_at_the_same_time_never_spend_more_than_the_room_has() -> None:
    async def main(room: Room) -> None:
        room.max_requests = 3
        model = Reckoner(seconds=10)
        several = [room.spawn(Agent(f"a{n}", model=model), "go") for n in range(8)]
        await room.wait(several)
        assert (model.asked, room.usage.requests) == (3, 3)
        states = sorted(str(s.status) for s in several)
        assert states == ["capped"] * 5 + ["idle"] * 3

    in_room(main)


def test_a_room_s_tokens_are_capped_and_what_is_used_shows() -> None:
    async def main(room: Room) -> None:
        room.max_tokens = 100
        a = room.spawn(Agent("a", model=Reckoner(tokens=150)), "go")
        await a.wait()
        b = room.spawn(Agent("b", model=Reckoner(tokens=1)), "go")
        await b.wait()
        assert (a.status, b.status, left(b)) == ("idle", "capped", ["go"])
        assert "room.max_tokens=100, 150 used" in told(room, "b")[0].content
        assert (room.describe()["requests"], room.describe()["tokens"]) == (1, 150)

    in_room(main)


def test_spending_survives_a_restart_that_of_closed_sessions_too() -> None:
    agent = Agent("bob", model="echo", max_requests=2)

    async def first(room: Room) -> None:
        s = room.spawn(agent, "one")
        await s.wait()
        gone = room.spawn("echo", "bye", name="gone")
        await gone.wait()
        gone.close()

    async def second(room: Room) -> None:
        room.define(agent)
        room.max_requests = 3
        assert room.usage.requests == 2
        s = room.session("bob")
        await s.ask("two")
        assert s.usage.requests == 2
        s.send("three")
        await s.wait()
        assert "max_requests=2, 2 used" in told(room, "bob")[0].content
        other = room.spawn("echo", "four", name="other")
        await other.wait()
        assert (other.status, left(other)) == ("capped", ["four"])

    async def third(room: Room) -> None:
        room.define(agent)
        s = room.session("bob")
        assert (s.status, left(s)) == ("capped", ["three"])
        s.resume()
        await s.wait()
        assert (s.status, left(s), s.usage.requests) == ("capped", ["three"], 2)

    lives(first, second, third)


def test_a_room_s_money_is_capped_over_its_sessions_and_its_lives() -> None:
    async def first(room: Room) -> None:
        room.max_cost = 0.5
        for name in ("a", "b"):
            await room.spawn(Agent(name, model=Reckoner(cost=0.25)), "go").wait()
        assert room.describe()["cost"] == 0.5
        b = room.session("b")
        b.send("more")
        await b.wait()
        assert (b.status, left(b)) == ("capped", ["more"])
        assert "room.max_cost=$0.50, $0.50 used; raise room.max_cost" in told(room, "b")[0].content
        room.session("a").close()

    async def second(room: Room) -> None:
        assert (room.usage.cost, room.max_cost) == (0.5, None)

    lives(first, second)


@pytest.mark.parametrize("value", [0, -1, True, "1", float("nan"), float("inf")])
def test_a_cap_of_money_that_is_no_amount_is_refused_where_it_is_given(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"max_cost=.*US dollars.*a number above 0, or None"):
        Agent("bob", max_cost=value)
    with pytest.raises(ConfigError, match="max_cost="):
        open_room(max_cost=value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "10", True])
@pytest.mark.parametrize("knob", ["max_requests", "max_tokens"])
def test_a_cap_that_is_no_whole_number_is_refused_where_it_is_given(knob: str, value: Any) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match=f"room.{knob}=.* will not do: give a whole number"):
            setattr(room, knob, value)
        assert getattr(room, knob) is None
        with pytest.raises(ConfigError, match=f"{knob}="):
            open_room(**{knob: value})

    in_room(main)


def test_a_room_is_opened_with_its_caps_and_opening_it_again_leaves_them(tmp_path: Any) -> None:
    path = tmp_path / "r.duckdb"
    room = open_room(path, max_requests=3, max_tokens=1000, max_cost=2)
    try:
        assert (room.max_requests, room.max_tokens) == (3, 1000)
        assert open_room(path) is room
        assert (room.max_requests, room.max_tokens) == (3, 1000)
        assert open_room(path, max_requests=9).max_requests == 9
        assert (room.max_tokens, room.max_cost) == (1000, 2)
    finally:
        room.close()
