"""Step mode: mail is held, each step lets one letter through, and nothing else changes."""

import asyncio
import random
from typing import Any

import pytest

from calls.bench import Disk
from contracts.envelopes import call_ended, envelope, from_session, from_user, order, record
from office.rooms import Talk, in_room, lives, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    CancelCalls,
    Envelope,
    FromSession,
    Pause,
    Priority,
    Release,
    Resume,
    StopRun,
)
from postroom_runtime.contracts.errors import (
    AnswerFailed,
    PostroomError,
    UnknownRecipient,
    WaitTimedOut,
)
from postroom_runtime.contracts.results import WokenBy
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.office.stepping import HELD, Preview, Reader, Standing, StepResult, preview
from postroom_runtime.storage.clock import utc_now
from postroom_runtime.testing import run_virtual


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


@script
def reader(turn: ScriptTurn) -> str:
    return f"read {turn.text}"


@script
def napper(turn: ScriptTurn) -> Talk:
    """Naps when told how long, waits when told so, and says what it reads."""
    told = turn.text.split("\n")[0].split()
    if told[0] == "nap":
        got = yield [call("nap", seconds=float(s)) for s in told[1:]]
        return f"got {got}"
    if told[0] == "wait":
        got = yield call("wait", **{"for": told[1], "timeout_seconds": 60})
        return f"woken by {got.get('woken_by')}; {turn.text}"
    return f"read {turn.text}"


def attach(seconds: float) -> dict[str, Any]:
    rule = {"tool": "nap", "disposition": {"tag": "runAsync", "attachSeconds": seconds}}
    return {"rules": [rule]}


def agent(name: str = "ann", model: Any = reader, **knobs: Any) -> Agent:
    return Agent(name, model=model, **knobs)


def nappers(**knobs: Any) -> Agent:
    return agent(model=napper, tools=[nap], **knobs)


# ── one letter at a time ──


def test_each_letter_waits_for_a_step_and_starts_a_run_of_its_own() -> None:
    """M-93: only what is let through is a reason to run; all of it shows as unread."""

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(), "one")
        receipt = ann.send("two")
        await ann.asend("three")
        await ticks()

        assert (said(ann), ann.idle, ann.unread, room.held) == ([], True, 3, 3)
        assert [e.text for e in ann.mail(unread=True)] == ["one", "two", "three"]
        assert receipt.note == HELD
        assert str(receipt).endswith("(idle; held: %step lets it through)")

        done = await room.astep()

        assert said(ann) == ["read one"]
        assert done.mail is not None
        assert (done.mail.text, done.effect, done.held) == ("one", "starts a run of ann", 2)
        assert done.next is not None
        assert done.next.mail.text == "two"

        await room.astep()
        last = await room.astep()

        assert read(ann) == ["one", "two", "three"]
        assert (last.next, last.held, last.note) == (None, 0, "nothing waits")
        assert (await room.astep()).let_through is None

    in_room(main)


def test_a_step_takes_the_oldest_letter_of_the_room_or_of_one_session() -> None:
    """Decision of order: the order of acceptance over the room, not of mailboxes."""

    async def main(room: Room) -> None:
        room.step_mode()
        ann, bob = room.spawn(agent()), room.spawn(agent("bob"))
        bob.send("1")
        ann.send("2")
        bob.send("3")
        ann.send("4")

        assert [room.step(look=True).next.mail.text for _ in range(2)] == ["1", "1"]  # type: ignore[union-attr]
        assert (await room.astep(ann)).mail == ann.mail()[0]
        order = [(await room.astep()).mail for _ in range(3)]

        assert [mail.text for mail in order if mail] == ["1", "3", "4"]
        nothing = await room.astep("bob")
        assert (nothing.of, nothing.note) == ("bob", "nothing waits for bob")
        with pytest.raises(UnknownRecipient):
            room.step("anne")

    in_room(main)


def test_step_mode_holds_only_what_comes_after_and_off_lets_all_through_at_once() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn(agent(), "before")
        room.step_mode()
        room.step_mode()
        await ann.wait()
        ann.send("one")
        ann.send("two")
        await ann.wait()
        assert read(ann) == ["before"]

        room.step_mode(False)
        room.step_mode(False)
        await ann.wait()

        assert read(ann) == ["before", "one\n\ntwo"]
        assert not room.stepping
        with pytest.raises(PostroomError, match="the room does not step"):
            room.step()
        room.step_mode()
        ann.send("three")
        assert (await room.astep()).effect == "starts a run of ann"

    in_room(main)


def test_a_letter_that_is_let_through_during_a_run_is_read_in_its_next_turn() -> None:
    """A-14, M-35: R1 reads what was let through, and the run ends with the rest held."""

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(), "nap 5")
        for text in ("two", "three"):
            ann.send(text)
        room.step()
        await ticks()
        looked = room.step(look=True)
        assert looked.next is not None
        assert looked.next.effect == (
            "is read in the next turn of the run under way, once call_0001 has ended"
        )
        room.step()
        await ann.wait()

        assert said(ann)[1:] == ["got ['slept 5']"]
        assert read(ann) == ["nap 5", "two"]
        assert room.held == 1

    in_room(main)


def test_children_made_while_the_room_steps_are_held_from_their_first_letter() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn(agent())
        room.step_mode()
        kid = room.spawn(agent("kid"), "first", parent=ann, hidden=True)
        await ticks()

        assert said(kid) == []
        assert (await room.astep()).effect == "starts a run of kid"
        assert said(kid) == ["read first"]

    in_room(main)


# ── receive points ──


def test_m75_a_held_interrupt_breaks_nothing_off_until_its_step() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(), "nap 20")
        room.step()
        await ticks()
        ann.interrupt("now")
        await asyncio.sleep(5)
        assert len(ann.transcript()) == 2

        done = room.step()
        await ticks()

        assert done.effect == (
            "breaks off the wait on call_0001 (detached, it goes on); is read in the next turn of "
            "the run under way"
        )
        assert [m.state for m in ann.transcript()[2].results] == ["running"]
        assert ann.transcript()[2].text == "now"

    in_room(main)


def test_m78_a_held_interrupt_cuts_no_completion_until_its_step() -> None:
    @script
    async def slow(turn: ScriptTurn) -> str:
        if "now" not in turn.text:
            await asyncio.sleep(10)
        return f"read {turn.text}"

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(model=slow, interrupt_completions=True), "think")
        room.step()
        await ticks()
        ann.interrupt("now")
        await asyncio.sleep(5)
        assert said(ann) == []
        done = room.step()
        await ticks()

        assert done.effect == "breaks off what the model is saying: it is asked again, with this"
        assert said(ann) == ["read think\n\nnow"]

    in_room(main)


def test_m65_wait_sees_a_letter_when_it_is_let_through() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(), "wait mail")
        room.step()
        await ticks()
        ann.send("hello")
        await asyncio.sleep(20)
        assert said(ann) == [""]

        began = asyncio.get_running_loop().time()
        waited = await room.wait()
        done = await room.astep()

        assert asyncio.get_running_loop().time() == began
        assert waited.woken_by is WokenBy.NOTHING
        assert waited.text == "not: ann (running); 1 letter held: %step lets one through"
        assert (
            done.effect
            == "ends the wait of call_0001; is read in the next turn of the run under way"
        )
        assert said(ann)[-1] == "woken by mail; hello"

    in_room(main)


def test_m65_wait_for_a_call_ends_when_its_result_is_let_through() -> None:
    """M-65: the result is read in the same turn, as always."""

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(policy=attach(0)), "nap 5")
        ann.send("wait any-call")
        room.step()
        await asyncio.sleep(1)
        room.step()
        await asyncio.sleep(20)
        assert [c.state for c in ann.calls()] == ["completed", "running"]

        await room.astep()

        assert said(ann)[-1].startswith("woken by call; [mail m-0003: tool call call_0001")
        assert read(ann)[-1].endswith("slept 5")

    in_room(main)


def test_m72_m37_a_run_stays_alive_for_a_result_that_is_held_and_reads_it_once() -> None:
    """M-37, M-72: whatever ``wake_on`` says, the run that called reads it."""

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(policy=attach(1), wake_on=("user",)), "nap 5")
        await room.astep()
        await asyncio.sleep(10)

        assert ann.status is SessionStatus.WAITING
        assert room.still()
        assert not ann.idle
        began = asyncio.get_running_loop().time()
        waited = await ann.wait()
        assert not (await room.drain()).quiet
        assert asyncio.get_running_loop().time() == began
        assert "1 letter held" in waited.text

        done = await room.astep()

        assert str(done.let_through).startswith("m-0002  call_0001 → ann  nap completed: slept 5")
        assert (ann.idle, ann.end_reason) == (True, EndReason.ANSWER)
        assert sum("slept 5" in text for text in read(ann)) == 1
        assert len(ann.transcript()) == 6

    in_room(main)


def test_m60_a_call_that_is_detached_at_once_comes_back_by_a_step_not_in_the_same_turn() -> None:
    async def instant() -> str:
        """Say so."""
        return "at once"

    @script
    def caller(turn: ScriptTurn) -> Talk:
        if turn.text == "go":
            got = yield call("instant")
            return str(got["status"])
        return f"read {turn.text}"

    rule = {"tool": "instant", "disposition": {"tag": "runAsync", "attachSeconds": 0}}

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(model=caller, tools=[instant], policy={"rules": [rule]}), "go")
        await room.astep()

        assert said(ann) == ["", "running"]
        assert room.held == 1
        await room.astep()
        assert said(ann)[-1].endswith("at once")
        assert room.held == 0

    in_room(main)


def test_m64_ends_of_attached_calls_pass_by_themselves() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(), "nap 1 1.5")
        await room.astep()

        assert said(ann)[-1] == "got ['slept 1', 'slept 1.5']"
        assert (room.held, ann.unread, ann.idle) == (0, 0, True)
        assert ann.cursor == 3

    in_room(main)


def test_a_result_that_is_polled_counts_although_its_mail_is_held() -> None:
    """M-67: who looks at a call sees how it is."""

    @script
    def poller(turn: ScriptTurn) -> Talk:
        if turn.text != "go":
            return f"read {turn.text}"
        started = yield call("nap", seconds=3)
        status = yield call(
            "get-tool-call-status", tool_call_id=started["tool_call_id"], wait_for_completion=True
        )
        return str(status["result"])

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(model=poller, tools=[nap], policy=attach(1)), "go")
        await room.astep()
        await asyncio.sleep(5)

        assert said(ann)[-1] == "slept 3"
        assert asyncio.get_running_loop().time() < 10

    in_room(main)


def test_m103_a_helper_that_is_asked_waits_for_its_step_and_its_caller_with_it() -> None:
    """M-103, M-104: the caller's call goes on waiting; no wait of the owner hangs on it."""

    @script
    def boss(turn: ScriptTurn) -> Talk:
        got = yield call("prompt-agent-kid", message="help")
        return f"kid says {got}"

    async def main(room: Room) -> None:
        room.define(agent("kid"))
        room.step_mode()
        ann = room.spawn(agent(model=boss, helpers=["kid"]), "go")
        first = await room.astep()
        began = asyncio.get_running_loop().time()
        waited = await room.wait()

        assert first.next is not None
        assert (first.next.reader, first.working) == ("kid", ())
        assert "1 letter held" in waited.text
        assert asyncio.get_running_loop().time() == began

        await room.astep()

        assert said(ann)[-1].endswith('(agent "ann")]\nhelp')
        assert ann.idle

    in_room(main)


def test_a_question_that_a_tool_asks_waits_for_its_step() -> None:
    async def main(room: Room) -> None:
        async def consult() -> str:
            """Ask bob."""
            return (await room.session("bob").ask("well?")).text

        @script
        def asker(turn: ScriptTurn) -> Talk:
            return str((yield call("consult")))

        room.spawn(agent("bob"))
        room.step_mode()
        ann = room.spawn(agent(model=asker, tools=[consult]), "go")
        await room.astep()
        assert (room.still(), room.held, ann.idle) == (True, 1, False)
        await room.astep()

        assert said(ann)[-1] == "read well?"

    in_room(main)


# ── orders ──


@pytest.mark.parametrize(
    ("act", "status"),
    [(Session.pause, SessionStatus.PAUSED), (Session.stop, SessionStatus.IDLE)],
)
def test_m82_m85_an_order_works_at_once_and_lets_through_what_came_before_it(
    act: Any, status: SessionStatus
) -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(), "nap 20")
        room.step()
        await ticks()
        ann.send("before")
        act(ann)
        ann.send("after")
        await ticks()

        assert ann.status is status
        assert read(ann) == ["nap 20", "before"]
        assert [e.text for e in ann.life.state.held()] == ["after"]

    in_room(main)


def test_m84_a_cancel_works_while_letters_are_held() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(), "nap 20")
        room.step()
        await ticks()
        ann.send("held")
        ann.cancel("call_0001")
        await ticks()

        assert ann.calls()[0].state == "cancelled"
        assert read(ann)[-1] == "held"

    in_room(main)


def test_m97_an_approval_works_at_once_and_its_result_waits_for_a_step() -> None:
    rule = {"tool": "nap", "disposition": {"tag": "defer", "reason": "ask"}}

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(nappers(policy={"rules": [rule]}), "nap 1")
        await room.astep()
        room.approve(room.approvals()[0].id)
        await asyncio.sleep(3)

        assert ann.calls()[0].state == "completed"
        assert room.held == 1
        assert "slept 1" not in "".join(said(ann))
        await room.astep()
        assert "slept 1" in read(ann)[-1]

    in_room(main)


def test_a_resume_lets_a_paused_session_read_what_was_held() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent())
        ann.pause()
        ann.send("one")
        await ticks()
        looked = room.step(look=True)
        assert looked.next is not None
        assert looked.next.effect == "only waits: ann is paused; %resume ann lets it go on"
        ann.resume()
        await ann.wait()

        assert read(ann) == ["one"]

    in_room(main)


def test_a_letter_that_is_withdrawn_while_it_is_held_says_nothing_and_passes() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent())
        first = ann.send("one")
        ann.send("two")
        room.withdraw(first.id)
        await ticks()

        assert (room.held, said(ann)) == (1, [])
        await room.astep()
        assert read(ann) == ["two"]

    in_room(main)


# ── failures ──


@script
def touchy(turn: ScriptTurn) -> Talk:
    if turn.text.startswith("nap"):
        yield call("nap", seconds=20)
        raise ValueError("no more")
    if turn.text == "fail":
        raise ValueError(turn.text)
    return f"read {turn.text}"


def test_m93_a_letter_that_is_let_through_after_a_failure_is_news() -> None:
    """M-93: it had not arrived, as far as the failed run could tell."""

    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(model=touchy), "fail")
        ann.send("go on")
        await room.astep()
        assert ann.error.startswith("ValueError: fail")

        assert (await room.astep()).effect == "starts a run of ann"
        assert (ann.status, ann.error) == (SessionStatus.IDLE, "")
        assert "go on" in said(ann)[-1]

    in_room(main)


def test_m93_what_a_failure_cancelled_does_not_start_the_failed_session_again() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(model=touchy, tools=[nap], policy=attach(1)), "nap")
        await room.astep()
        assert ann.status is SessionStatus.FAILED
        turns = len(ann.transcript())

        done = await room.astep()

        assert done.effect == "only waits: ann is failed until newer mail or %resume ann"
        assert (ann.status, len(ann.transcript())) == (SessionStatus.FAILED, turns)

    in_room(main)


def test_a_session_that_could_not_store_its_end_tries_again_at_the_next_letter_let_through() -> (
    None
):
    async def main() -> None:
        storage = Disk()
        async with Room(storage, name="memory", now=utc_now) as room:
            room.step_mode()
            ann = room.spawn(agent(), "one")
            ann.send("two")
            storage.failures = 5
            room.step()
            await asyncio.sleep(1)
            assert ann.life.trouble
            storage.failures = 0
            await asyncio.sleep(1)
            assert said(ann) == []

            room.step()
            await ticks()

            assert read(ann) == ["one\n\ntwo"]

    run_virtual(main())


def test_m91_a_room_opened_again_does_not_step_and_has_all_its_mail() -> None:
    async def first(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(), "one")
        ann.send("two")
        await ticks()

    async def second(room: Room) -> None:
        room.define(agent())
        ann = room.session("ann")
        assert (room.stepping, ann.unread, ann.record.waterline) == (False, 2, 2)
        room.step_mode()
        ann.send("three")
        await ticks()
        assert said(ann) == []
        await room.astep()
        assert read(ann) == ["one\n\ntwo\n\nthree"]

    lives(first, second)


# ── waiting ──


def test_asking_in_step_mode_says_that_the_question_is_held_instead_of_hanging() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann, bob = room.spawn(agent()), room.spawn(nappers(), "nap 5", name="bob")
        room.step()
        with pytest.raises(AnswerFailed, match="the question is held: %step lets it through"):
            await ann.ask("well?", timeout=None)
        assert said(bob)[-1] == "got ['slept 5']"

        await room.astep()
        assert said(ann) == ["read well?"]

    in_room(main)


@pytest.mark.parametrize("until", ["answer", "call_0009", "run.started", "mail"])
def test_no_wait_hangs_when_all_that_is_left_is_held(until: str) -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann = room.spawn(agent(), "hello")

        result = await ann.wait(until, timeout=None)

        assert "1 letter held: %step lets one through" in result.text

    in_room(main)


def test_a_strict_wait_raises_when_only_a_step_helps() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        room.spawn(agent(), "hello")
        with pytest.raises(WaitTimedOut, match="1 letter held"):
            await room.wait(until="answer", timeout=None, strict=True)

    in_room(main)


def test_a_wait_goes_on_while_something_works() -> None:
    async def main(room: Room) -> None:
        room.step_mode()
        ann, bob = room.spawn(nappers(), "nap 7"), room.spawn(agent("bob"), "held")
        room.step(ann)
        result = await room.wait([ann, bob])

        assert asyncio.get_running_loop().time() == 7
        assert result.sessions == ("ann", "bob")

    in_room(main)


def test_a_step_waits_for_models_but_not_for_calls_that_take_long() -> None:
    @script
    async def slow(turn: ScriptTurn) -> str:
        await asyncio.sleep(9)
        return "thought"

    async def main(room: Room) -> None:
        room.step_mode()
        room.spawn(agent(model=slow), "think")
        thought = await room.astep()
        assert (thought.working, asyncio.get_running_loop().time()) == ((), 9)
        bob = room.spawn(nappers(), "nap 60", name="bob")

        napping = await room.astep()

        assert napping.working == ("bob",)
        assert napping.note == "nothing waits; still working: bob"
        assert asyncio.get_running_loop().time() == 11
        bob.stop()

    in_room(main)


# ── laws of a stepped room ──


@pytest.mark.parametrize("seed", range(60))
def test_m42_m22_whatever_is_stepped_is_read_once_in_order_and_only_when_let_through(
    seed: int,
) -> None:
    """M-22, M-42, M-64: random letters, interrupts, steps and pauses between them."""
    chance = random.Random(seed)
    words = ["hello", "nap 1", "nap 0.5 3", "nap 4", "wait any-call", "wait mail", " "]
    policy = attach(chance.choice((0, 1, 2, 9)))
    wake_on = chance.choice((("user",), ("user", "tool")))

    async def main(room: Room) -> None:
        config = {"tools": [nap], "policy": policy, "wake_on": wake_on}
        both = [room.spawn(agent(name, napper, **config)) for name in ("ann", "bob")]
        room.step_mode()
        stepped: list[Envelope] = []
        for _ in range(20):
            match chance.randrange(5):
                case 0 | 1:
                    urgent = chance.random() < 0.3
                    chance.choice(both).send(chance.choice(words), interrupt=urgent)
                case 2 | 3:
                    one = chance.choice((None, *both))
                    done = room.step(one) if chance.random() < 0.5 else await room.astep(one)
                    stepped += [done.mail] if done.mail else []
                case _:
                    await asyncio.sleep(chance.choice((0, 0.75, 2)))
            for s in both:
                mail = [e for turn in s.transcript() for e in turn.mail]
                assert [e for e in mail if e not in stepped] == []
        while room.held or not room.still():
            done = await room.astep()
            stepped += [done.mail] if done.mail else []
            await asyncio.sleep(1)
        await room.wait()

        for s in both:
            assert s.status is SessionStatus.IDLE
            seqs = [e.seq for turn in s.transcript() for e in turn.mail]
            assert seqs == sorted(set(seqs))
            # What does not wake waits; the rest is read, and what is read is consumed.
            left = [e.seq for e in s.mail(unread=True)]
            assert [*seqs, *left] == [e.seq for e in stepped if e.session == s.id]
            assert not [e for e in s.mail(unread=True) if e.sender.kind == "user"]
            results = [m.call for turn in s.transcript() for m in turn.results]
            assert results == [r.id for turn in s.transcript() for r in turn.calls]
            for c in s.calls():
                shown = "\n".join(
                    [m.content for t in s.transcript() for m in t.results if m.call == c.id]
                    + [e.text for t in s.transcript() for e in t.mail if e.sender.id == c.id]
                )
                if c.tool == "nap" and not left:
                    assert shown.count("slept") == 1

    in_room(main)


def test_m108_m109_two_polite_agents_stop_by_rule_after_seventeen_letters_step_by_step() -> None:
    """M-108, M-109: hops 0 to 16, and the eighteenth is refused."""

    @script
    def polite(turn: ScriptTurn) -> Talk:
        to = turn.mail[-1].sender.id or "bob"
        yield call("send-message", to=to, text="thank you")
        return "answered"

    async def main(room: Room) -> None:
        room.step_mode()
        for name in ("ann", "bob"):
            room.spawn(agent(name, polite, wake_on=("user", "peer"), mail_scope="all"))
        room.send("ann", "begin")
        steps = []
        while (done := await room.astep()).mail is not None:
            steps.append(done)

        letters = [s.mail.hops for s in steps if isinstance(s.mail.body, AgentMessage)]  # type: ignore[union-attr]
        assert letters == list(range(17))
        assert [s.let_through.reader for s in steps if s.let_through][:3] == ["ann", "bob", "ann"]
        assert steps[3].let_through is not None
        assert steps[3].let_through.facts == "2 hops"

    in_room(main)


# ── in words ──


def stands(**more: Any) -> Reader:
    known: dict[str, Any] = {
        "record": record(),
        "standing": Standing.REST,
        "running": False,
        "placeholders": {"call_0002"},
        "unread": (),
        "wake_on": ("user", "tool", "parent", "child"),
        "kind_of": lambda _: "peer",
        "max_autonomous_rounds": 100,
    }
    return Reader(**{**known, **more})


URGENT = envelope(AgentMessage("now"), FromSession("s-0002", "writer"), priority=Priority.INTERRUPT)
IN_RUN: dict[str, Any] = {"running": True, "standing": Standing.CALLS}
NEXT = "the next turn of the run under way"


@pytest.mark.parametrize(
    ("mail", "reader", "effect"),
    [
        (from_user("hi"), stands(), "starts a run of rev"),
        (from_session("hi"), stands(), "only waits: wake_on of rev has no 'peer'"),
        (call_ended("call_0002"), stands(), "starts a run of rev"),
        (call_ended("call_0001"), stands(), "says nothing to the model"),
        (from_user("  "), stands(), "says nothing to the model"),
        (
            from_user("hi", 2),
            stands(unread=(from_user("before"),)),
            "is read with what was let through before, in a run of rev that is due",
        ),
        (
            from_user("hi"),
            stands(defined=False),
            "only waits: agent reviewer is not defined in this kernel: run its cell",
        ),
        (
            from_user("hi"),
            stands(record=record(SessionStatus.PAUSED)),
            "only waits: rev is paused; %resume rev lets it go on",
        ),
        (
            call_ended("call_0002"),
            stands(record=record(SessionStatus.CAPPED)),
            "only waits: rev is capped; a word from its owner lets it go on",
        ),
        (
            call_ended("call_0002"),
            stands(record=record(end_reason=EndReason.STOPPED)),
            "only waits: rev was stopped; a word from its owner lets it go on (%resume rev)",
        ),
        (
            from_user("hi"),
            stands(record=record(SessionStatus.FAILED, waterline=1)),
            "only waits: rev is failed until newer mail or %resume rev",
        ),
        (
            call_ended("call_0002"),
            stands(record=record(rounds_since_human=100)),
            "is not read: rev is capped after 100 rounds without a word of yours",
        ),
        (from_user("hi"), stands(record=record(rounds_since_human=100)), "starts a run of rev"),
        (from_session("hi"), stands(**IN_RUN), f"is read in {NEXT}"),
        (
            from_session("hi"),
            stands(**IN_RUN, attached=("call_0003", "call_0004")),
            f"is read in {NEXT}, once call_0003, call_0004 have ended",
        ),
        (
            URGENT,
            stands(**IN_RUN, attached=("call_0003",)),
            f"breaks off the wait on call_0003 (detached, it goes on); is read in {NEXT}",
        ),
        (URGENT, stands(running=True, standing=Standing.WORKS), f"is read in {NEXT}"),
        (
            URGENT,
            stands(running=True, standing=Standing.WORKS, interrupt_completions=True),
            "breaks off what the model is saying: it is asked again, with this",
        ),
        (
            from_user("hi"),
            stands(**IN_RUN, listening=("call_0005",)),
            f"ends the wait of call_0005; is read in {NEXT}",
        ),
        (order(StopRun()), stands(**IN_RUN), "orders a stop"),
        (order(Pause()), stands(), "orders a pause"),
        (order(Resume()), stands(), "lets it run again"),
        (order(CancelCalls(("call_0001",))), stands(), "cancels call_0001"),
        (order(Release("t-1", "denied")), stands(), "tells that an approval was denied"),
    ],
)
def test_a_preview_says_in_words_what_a_letter_would_do(
    mail: Envelope, reader: Reader, effect: str
) -> None:
    assert preview(mail, reader, {}).effect == effect


def test_a_step_shows_who_writes_to_whom_and_the_first_words_harmlessly() -> None:
    """M-133: text of others is escaped, kept on one line and cut."""
    text = "<script>alert(1)</script>\n\x1b[2J" + "and so on " * 40
    shown = preview(from_session(text, hops=1), stands(), {"s-0002": "ann"})

    plain, page = str(shown), step_of(shown)._repr_html_()

    assert plain.splitlines()[0].startswith("m-0001  ann → rev (1 hop)  <script>alert(1)</script> ")
    assert "\x1b" not in plain
    assert "\\x1b[2J" in plain
    assert shown.words.endswith("…")
    assert len(shown.words) < 70
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_what_a_step_says_when_more_is_held_and_somebody_works() -> None:
    shown = preview(from_user("hi"), stands(), {})
    step = StepResult(let_through=None, next=shown, held=3, working=("ann", "bob"))

    assert str(step).splitlines() == [
        "next: m-0001  you → rev  hi",
        "      starts a run of rev",
        "2 more letters held; still working: ann, bob",
    ]
    assert StepResult(let_through=None, next=None, held=0)._repr_html_() == "<p>nothing waits</p>"


def step_of(shown: Preview) -> StepResult:
    return StepResult(let_through=shown, next=None, held=0)
