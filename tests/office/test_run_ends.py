"""What the end of a run says for itself: how many rounds of how many, and what capped it."""

import asyncio
from typing import Any

from office.rooms import Talk, in_room
from office.test_guards import nap
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session


@script
def naps(turn: ScriptTurn) -> Talk:
    """Naps until its model is no longer given a tool, or has napped as often as it was told."""
    for _ in range(int(turn.mail[0].text)):
        _ = yield call("nap", seconds=9)
    return "rested"


def ends(session: Session) -> list[dict[str, Any]]:
    """What the ends of its runs say, but where they stand."""
    stops = [e.data for e in session.history() if e.kind == EventKind.RUN_STOPPED]
    return [{k: v for k, v in data.items() if k != "turn"} for data in stops]


def napper(room: Room, mail: str, **knobs: Any) -> Session:
    return room.spawn(Agent("bob", model=naps, tools=[nap], **knobs), mail)


def test_an_end_says_how_many_rounds_of_how_many_it_took() -> None:
    """A-24."""

    async def main(room: Room) -> None:
        s = napper(room, "2")
        await s.wait()
        assert ends(s) == [{"reason": "answer", "rounds": 3, "allowed": 10}]

    in_room(main)


def test_a_word_from_its_owner_counts_in_what_it_was_allowed() -> None:
    """A-26."""

    async def main(room: Room) -> None:
        s = napper(room, "3")
        await asyncio.sleep(13)
        s.send("how far?")
        await s.wait()
        (end,) = ends(s)
        assert (end["rounds"], end["extended"]) == (4, 1)
        assert end["allowed"] == 10 + 2

    in_room(main)


def test_a_last_answer_is_one_round_more_than_allowed() -> None:
    """A-28."""

    async def main(room: Room) -> None:
        s = napper(room, "9", max_iterations=2)
        await s.wait()
        assert ends(s) == [{"reason": "budget", "rounds": 3, "allowed": 2}]

    in_room(main)


def test_a_cap_is_named_by_its_knob() -> None:
    async def main(room: Room) -> None:
        s = napper(room, "9", max_requests=2)
        await s.wait()
        assert ends(s) == [{"reason": "capped", "rounds": 2, "allowed": 10, "cap": "max_requests"}]

    in_room(main)


def test_a_run_that_ends_because_its_session_is_closed_is_not_said_to_be_stopped() -> None:
    async def main(room: Room) -> None:
        s = napper(room, "9")
        await asyncio.sleep(5)
        s.stop()
        await s.wait()
        s.send("9")
        await asyncio.sleep(5)
        s.close()
        await asyncio.sleep(1)
        assert [end.get("closing", False) for end in ends(s)] == [False, True]

    in_room(main)
