"""Groups: write to many, and gather what they answer."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from office.rooms import Talk, in_room, read, said
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Priority
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.turn import no_reply
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import run_seeded


def five(room: Room, **knobs: Any) -> list[Session]:
    agent = room.define(Agent("voter", **knobs))
    return [room.spawn(agent.slug, name=name) for name in ("ann", "bob", "cat", "dan", "eve")]


def napping(**seconds: float) -> Any:
    """Return a script that answers after as many seconds as its session's name is given."""

    @script
    async def voter(turn: ScriptTurn) -> str:
        await asyncio.sleep(seconds[turn.name])
        return f"vote of {turn.name}"

    return voter


# ── Broadcast ──


def test_a_broadcast_to_five_with_two_closed_reports_three_delivered_and_two_refused() -> None:
    async def main(room: Room) -> None:
        voters = five(room)
        voters[1].close()
        voters[3].close()
        result = room.broadcast(voters, "vote now", interrupt=True, expects_reply=True)

        assert [r.name for r in result.delivered] == ["ann", "cat", "eve"]
        assert [r.priority for r in result.delivered] == [Priority.INTERRUPT] * 3
        assert [r.name for r in result.refused] == ["bob", "dan"]
        assert all("is closed and takes no mail" in r.why for r in result.refused)
        assert str(result).startswith("3 delivered, 2 refused\n  bob: session")
        await room.drain()
        assert [said(s) for s in voters] == [
            ["echo: vote now"],
            [],
            ["echo: vote now"],
            [],
            ["echo: vote now"],
        ]

    in_room(main)


def test_a_broadcast_names_whom_it_cannot_find_and_writes_to_each_once() -> None:
    async def main(room: Room) -> None:
        ann, *_ = five(room)
        result = room.broadcast(["ann", ann, ann.id, "nobody", "inbox"], "hello")
        assert [r.name for r in result.delivered] == ["ann"]
        assert [r.name for r in result.refused] == ["nobody", "inbox"]
        assert "read-only" in result.refused[1].why
        with pytest.raises(ConfigError, match="'ann' is one name: give a list"):
            room.broadcast("ann", "hello")
        await room.drain()

    in_room(main)


def test_a_session_s_broadcast_reaches_as_far_as_its_scope_and_recipients_learn_nothing_of_others() -> (
    None
):
    """M-105: hidden audiences by scope."""

    async def main(room: Room) -> None:
        boss = room.spawn(Agent("boss", mail_scope="children"))
        mine = [room.spawn("echo", name=name, parent=boss) for name in ("ann", "bob")]
        other = room.spawn("echo", name="other")
        result = room.broadcast([*mine, other], "to my people", sender="boss")

        assert [r.name for r in result.delivered] == ["ann", "bob"]
        [refusal] = result.refused
        assert refusal.name == "other"
        assert "its mail_scope is 'children'" in refusal.why
        await room.drain()
        assert other.mail() == []
        for session, stranger in ((mine[0], "bob"), (mine[1], "ann")):
            [letter] = session.mail()
            assert letter.sender.id == boss.id
            assert stranger not in read(session)[0]
            assert "other" not in read(session)[0]
        assert len({s.mail()[0].id for s in mine}) == 2

    in_room(main)


def test_a_full_mailbox_refuses_its_own_letter_alone() -> None:
    async def main(room: Room) -> None:
        voters = five(room, mailbox_max_unread=1)
        voters[2].pause()
        await room.drain()
        voters[2].send("one")
        result = room.broadcast(voters, "two")
        assert [r.name for r in result.refused] == ["cat"]
        assert "full" in result.refused[0].why
        assert len(result.delivered) == 4

    in_room(main)


# ── Gather ──


def test_a_gather_returns_every_answer_in_the_order_of_the_asked() -> None:
    async def main(room: Room) -> None:
        voters = five(room, model=napping(ann=5, bob=4, cat=3, dan=2, eve=1))
        result = await room.gather(["eve", *voters[:4]], "vote")
        assert list(result.texts.items()) == [
            (name, f"vote of {name}") for name in ("eve", "ann", "bob", "cat", "dan")
        ]
        assert (result.late, result.silent, result.failed, result.refused) == ((), (), (), ())
        assert str(result).startswith("eve: vote of eve\nann:")

    in_room(main)


def test_a_gather_with_a_quorum_of_three_and_a_deadline_names_the_late_two() -> None:
    """Whose answers do no harm later: they answer nobody, and the next question gets its own."""

    async def main(room: Room) -> None:
        voters = five(room, model=napping(ann=1, bob=90, cat=2, dan=95, eve=3))
        result = await room.gather(voters, "first", quorum=3, timeout=30)
        assert result.texts == {n: f"vote of {n}" for n in ("ann", "cat", "eve")}
        assert result.late == ("bob", "dan")
        assert asyncio.get_running_loop().time() == 3  # it did not wait for the deadline

        # The late ones are asked again while they still work on the first.
        second = await room.gather(voters, "second", timeout=None)
        assert len(second.answers) == 5
        for name in ("bob", "dan"):
            assert [e.text for e in second.answers[name].mail] == ["second"]
        assert said(voters[1]) == ["vote of bob"] * 2
        assert [s.life.questions.open for s in voters] == [[]] * 5

    in_room(main)


def test_a_gather_that_misses_its_quorum_returns_at_the_deadline_what_there_is() -> None:
    async def main(room: Room) -> None:
        voters = five(room, model=napping(ann=1, bob=90, cat=2, dan=95, eve=99))
        result = await room.gather(voters, "vote", quorum=3, timeout=30)
        assert list(result.answers) == ["ann", "cat"]
        assert result.late == ("bob", "dan", "eve")
        await room.drain(None)

    in_room(main)


def test_a_gather_tells_silent_failed_and_refused_from_late() -> None:
    async def main(room: Room) -> None:
        @script
        def voter(turn: ScriptTurn) -> str:
            match turn.name:
                case "ann":
                    return no_reply
                case "bob":
                    raise ValueError("boom")
                case name:
                    return f"vote of {name}"

        voters = five(room, model=voter)
        voters[2].close()
        voters[3].pause()
        await room.drain()
        result = await room.gather([*voters, "nobody"], "vote")
        assert list(result.answers) == ["eve"]
        assert result.silent == ("ann",)
        assert [(r.name, r.why.split(";")[0]) for r in result.failed] == [
            ("bob", "its run ended with failed: ValueError: boom"),
            ("dan", "it is paused"),
        ]
        assert [r.name for r in result.refused] == ["cat", "nobody"]
        assert result.late == ()
        assert asyncio.get_running_loop().time() == 0  # nobody was left to wait for
        assert "silent: ann" in str(result)

    in_room(main)


@pytest.mark.parametrize("quorum", [0, 6, -1])
def test_a_quorum_that_cannot_be_is_refused_before_anything_is_sent(quorum: int) -> None:
    async def main(room: Room) -> None:
        voters = five(room)
        with pytest.raises(ConfigError, match="of 5 asked will not do"):
            await room.gather(voters, "vote", quorum=quorum)
        assert all(s.mail() == [] for s in voters)

    in_room(main)


def test_a_gather_of_nobody_is_over_at_once() -> None:
    async def main(room: Room) -> None:
        assert str(await room.gather([], "vote")) == "nobody was asked"

    in_room(main)


def test_a_session_gathers_by_letters_that_reply_to_its_question_or_by_final_texts() -> None:
    """Matched by the mail they answer: an unasked letter of the same session is no answer."""

    async def main(room: Room) -> None:
        @script
        def voter(turn: ScriptTurn) -> Talk:
            name, asked = turn.name, turn.mail[0]
            if name == "ann":
                yield call("send-message", to=asked.sender.id, text="by the way")
                yield call(
                    "send-message", to=asked.sender.id, text="by letter", in_reply_to=asked.id
                )
                return "sent"
            return "by word"

        ann, bob, *_ = five(room, model=voter, wake_on=["user", "peer"])
        boss = room.spawn(Agent("boss", mail_scope="all", wake_on=["user"]))
        stranger = room.spawn(Agent("stranger", mail_scope="own"))
        result = await room.gather([ann, bob], "vote", sender=boss)
        assert result.texts == {"ann": "by letter", "bob": "by word"}
        assert result.answers["ann"].mail[0].sender.id == ann.id

        refused = await room.gather([ann], "vote", sender=stranger)
        assert [r.name for r in refused.refused] == ["ann"]
        assert ann.life.questions.open == []  # what did not reach her is not waited for

    in_room(main)


class Vote(BaseModel):
    """A vote."""

    yes: bool


def test_a_gather_with_a_schema_gathers_objects() -> None:
    async def main(room: Room) -> None:
        @script
        def voter(turn: ScriptTurn) -> Any:
            return {"yes": turn.name != "bob"} if turn.schema else "?"

        voters = five(room, model=voter)
        gone = room.spawn("echo", name="gone")
        gone.close()
        result = await room.gather([*voters, gone], "agreed?", schema=Vote)
        assert [r.name for r in result.refused] == ["gone"]
        assert {n: v.yes for n, v in result.values.items()} == {
            "ann": True,
            "bob": False,
            "cat": True,
            "dan": True,
            "eve": True,
        }
        with pytest.raises(ConfigError, match="leave sender out"):
            await room.gather(voters, "agreed?", schema=Vote, sender="ann")

    in_room(main)


def test_a_gather_that_is_cancelled_takes_back_what_was_not_asked_yet() -> None:
    async def main(room: Room) -> None:
        voters = five(room, model=napping(ann=9, bob=9, cat=9, dan=9, eve=9))
        room.broadcast(voters, "work")
        await asyncio.sleep(1)
        gathering = asyncio.get_running_loop().create_task(
            room.gather(voters, "agreed?", schema=Vote)
        )
        await asyncio.sleep(1)
        gathering.cancel()
        await asyncio.wait([gathering])
        await room.drain(None)
        assert [read(s) for s in voters] == [["work"]] * 5
        assert [s.life.requests for s in voters] == [[]] * 5

    in_room(main)


# ── A debate ──

DEBATERS = ("ann", "bob", "cat", "dan", "eve", "fay")


async def debate(room: Room) -> list[dict[str, str]]:
    """Six debaters, three rounds: each hears what all said in the round before."""

    @script
    def debater(turn: ScriptTurn) -> str:
        rounds = sum(1 for t in turn.history if t.text) // 2
        heard = sum(line.startswith("say") for line in turn.text.splitlines())
        return f"say {turn.session} round {rounds} heard {heard}: {hash_of(turn.text)}"

    room.define(Agent("debater", model=debater))
    people = [room.spawn("debater", name=name) for name in DEBATERS]
    said, word = [], "Is it?"
    for _ in range(3):
        result = await room.gather(people, word)
        said.append(result.texts)
        word = "\n".join(result.texts.values())
    return said


def hash_of(text: str) -> int:
    """Return a number that any other order of the same words changes."""
    number = 7
    for letter in text:
        number = (number * 31 + ord(letter)) % 1_000_003
    return number


@pytest.mark.parametrize("seed", range(40))
def test_a_debate_of_six_over_three_rounds_says_the_same_whatever_the_order_of_delivery(
    seed: int,
) -> None:
    async def main() -> list[dict[str, str]]:
        async with open_room() as room:
            return await debate(room)

    told = run_seeded(main(), seed)
    assert told == in_room(debate)
    assert [list(round) for round in told] == [list(DEBATERS)] * 3
    assert all("round 2 heard 6" in text for text in told[2].values())
