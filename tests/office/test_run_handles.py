"""Run handles, and ``ask``: redirect a run, extend it, end it, let it go on (A-1, A-25)."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import BodyKind
from postroom_runtime.contracts.errors import AnswerFailed, ConfigError, MailRefused
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role, no_reply
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import run_seeded, story


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


@script
def digging(turn: ScriptTurn) -> Talk:
    """Nap three times, and follow what it is told meanwhile."""
    task = turn.text
    for _ in range(3):
        yield call("nap", seconds=1)
        task = turn.text or task
    return f"did: {task}"


@script
def endless(turn: ScriptTurn) -> Talk:
    """Nap for ever; without tools, say how long."""
    naps = 0
    while turn.tools:
        yield call("nap", seconds=1)
        naps += 1
    return f"{naps} naps"


@script
async def slow(turn: ScriptTurn) -> str:
    """Answer after ten seconds."""
    await asyncio.sleep(10)
    return f"done: {turn.text}"


def digger(room: Room, model: object = digging, **knobs: object) -> Session:
    return room.spawn(Agent("digger", model=model, tools=[nap], **knobs))  # type: ignore[arg-type]


# ── Handles ──


def test_a_handle_gives_the_receipt_at_once_and_the_answer_when_awaited_as_often_as_one_likes() -> (
    None
):
    async def main(room: Room) -> None:
        s = digger(room)
        handle = s.run("look at prod")

        assert handle.receipt is not None
        assert (handle.receipt.seq, handle.receipt.name) == (1, "digger")
        assert not handle.done
        with pytest.raises(AnswerFailed, match=r"not answered yet\. Await the handle"):
            handle.result()

        answer = await handle
        assert answer.text == "did: look at prod"
        assert handle.done
        assert handle.result() == await handle == answer
        assert [turn.role for turn in handle.transcript()] == [Role.USER, Role.MODEL] * 4
        assert answer.usage.requests == 4
        assert "answered" in repr(handle)

    in_room(main)


def test_a1_a_run_is_redirected_mid_way_and_answers_for_the_new_course() -> None:
    """A-1, A-12: told after round 1, followed from round 2 on."""

    async def main(room: Room) -> None:
        s = digger(room)
        handle = s.run("look at prod")
        await asyncio.sleep(0.5)
        handle.send("look at staging instead")
        answer = await handle

        assert answer.text == "did: look at staging instead"
        assert read(s)[:2] == ["look at prod", "look at staging instead"]
        assert [e.text for e in answer.mail] == ["look at prod", "look at staging instead"]
        assert story(s.history(), EventKind.RUN_STARTED) == ["run.started"]  # one run all along

    in_room(main)


def test_a25_a_word_extends_the_budget_of_a_run_and_the_cap_ends_it_with_what_it_has() -> None:
    """A-24, A-25: three rounds, three more from the message on, then a forced answer."""

    async def main(room: Room) -> None:
        s = digger(room, endless, max_iterations=3)
        assert (await s.run("go")).text == "3 naps"

        handle = s.run("go on")
        await asyncio.sleep(1.5)
        handle.send("take your time")
        assert (await handle).text == "5 naps"
        assert s.status is SessionStatus.CAPPED
        assert s.end_reason is EndReason.BUDGET

    in_room(main)


def test_cancel_turn_pauses_at_the_next_receive_point_and_resume_goes_on() -> None:
    """Decision 6: the turn under way ends, its results are kept, the history stays acceptable."""

    async def main(room: Room) -> None:
        s = digger(room)
        handle = s.run("dig")
        await asyncio.sleep(1.5)
        receipt = handle.cancel("turn")
        assert receipt is not None
        with pytest.raises(AnswerFailed, match="ended with paused") as caught:
            await handle
        assert caught.value.end == EndReason.PAUSED
        assert s.status is SessionStatus.PAUSED
        kept = handle.transcript()
        # Both calls are answered: the first in full, the second by a placeholder.
        assert [len(t.results) for t in kept if t.role is Role.USER] == [0, 1, 1]

        handle.resume()
        assert not handle.done
        answer = await handle
        assert answer.text.startswith("did:")
        assert handle.transcript()[: len(kept)] == kept
        assert handle.cancel() is None  # nothing is left to end
        assert str(s.status) == "idle"

    in_room(main)


def test_cancel_now_stops_calls_and_completion_and_leaves_an_acceptable_history() -> None:
    async def main(room: Room) -> None:
        s = digger(room)
        handle = s.run("dig")
        await asyncio.sleep(0.5)
        handle.cancel("now")
        with pytest.raises(AnswerFailed, match="ended with stopped"):
            await handle
        assert [c.state for c in s.calls()] == ["cancelled"]
        assert [m.state for t in s.transcript() for m in t.results] == ["cancelled"]
        assert s.status is SessionStatus.IDLE

        # Every call is answered exactly once, so the next run is asked with a whole history.
        assert (await s.run("again")).text.startswith("did:")
        made = [c.id for t in s.transcript() for c in t.calls]
        assert made == [m.call for t in s.transcript() for m in t.results]

    in_room(main)


def test_cancel_now_in_a_completion_keeps_the_question_and_resume_answers_it() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("slow", model=slow))
        handle = s.run("think")
        await asyncio.sleep(1)
        handle.cancel("now")
        with pytest.raises(AnswerFailed, match="stopped"):
            await handle
        assert [t.text for t in handle.transcript()] == ["think"]
        handle.resume()
        assert (await handle).text == "done: think"

    in_room(main)


def test_an_await_that_is_under_way_hears_of_a_cancel() -> None:
    async def main(room: Room) -> None:
        handle = room.spawn(Agent("slow", model=slow)).run("x")

        async def wait() -> str:
            return (await handle).text

        waiting = asyncio.get_running_loop().create_task(wait())
        await asyncio.sleep(1)
        handle.cancel("now")
        with pytest.raises(AnswerFailed, match="stopped"):
            await waiting

    in_room(main)


def test_a_cancel_that_is_no_mode_is_refused_by_name() -> None:
    async def main(room: Room) -> None:
        handle = room.spawn("echo").run("x")
        with pytest.raises(ConfigError, match="mode='later' is none: give one of turn, now"):
            handle.cancel("later")  # type: ignore[arg-type]
        await handle

    in_room(main)


def test_a_handle_waits_no_longer_than_its_timeout_and_the_run_goes_on() -> None:
    async def main(room: Room) -> None:
        handle = room.spawn(Agent("slow", model=slow)).run("x", timeout=3)
        with pytest.raises(AnswerFailed, match="not within 3 s"):
            await handle
        await asyncio.sleep(8)
        assert handle.done
        assert handle.result().text == "done: x"

    in_room(main)


def test_a_run_of_a_closed_session_is_refused_at_the_call() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        s.close()
        with pytest.raises(MailRefused, match="closed"):
            s.run("x")
        assert s.life.questions.open == []

    in_room(main)


def test_a_handle_can_be_made_in_another_thread() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        made: list[object] = []
        thread = threading.Thread(target=lambda: made.append(s.run("from a thread")))
        thread.start()
        await asyncio.to_thread(thread.join)
        [handle] = made
        assert (await handle).text == "echo: from a thread"  # type: ignore[misc]

    # A real loop: the virtual clock would jump over the thread.
    async def opened() -> None:
        async with open_room() as room:
            await main(room)

    asyncio.run(opened())


def test_a_cancel_of_what_was_not_read_yet_takes_it_back_and_ends_no_other_run() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("slow", model=slow))
        first = s.run("first")
        await asyncio.sleep(1)
        second = s.run("second")
        waiting = s.run("third")
        second.cancel("now")
        with pytest.raises(AnswerFailed, match="the question was taken back"):
            await second
        assert (await first).text == (await waiting).text == "done: third"
        assert read(s) == ["first", "third"]
        with pytest.raises(AnswerFailed, match="the question was taken back"):
            second.result()

        # Nothing runs: what is taken back at once never starts anything.
        last = s.run("fourth")
        last.cancel()
        with pytest.raises(AnswerFailed, match="taken back"):
            await last
        await s.wait()
        assert read(s) == ["first", "third"]

    in_room(main)


# ── An inbox for one run ──


class Box:
    """An inbox that gives one of its texts each time it is asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.readers: list[str | None] = []

    def reader(self, agent: str | None = None) -> Callable[[], list[str]]:
        self.readers.append(agent)
        return lambda: [self.texts.pop(0)] if self.texts else []


def test_a8_an_inbox_given_with_a_run_steers_that_run_alone() -> None:
    """A-8: the override wins for its run; the next run has the agent's own again."""

    async def main(room: Room) -> None:
        own, other = Box(), Box("look at staging instead")
        s = digger(room, inbox=own)
        assert (await s.run("look at prod", inbox=other)).text == "did: look at staging instead"
        assert (other.readers, own.readers) == (["digger"], [])
        await s.run("again")
        assert (other.readers, own.readers) == (["digger"], ["digger"])

    in_room(main)


def test_a8_none_turns_the_agent_s_inbox_off_for_that_run() -> None:
    async def main(room: Room) -> None:
        own = Box("later")
        s = digger(room, inbox=own)
        assert (await s.run("dig", inbox=None)).text == "did: dig"
        assert own.readers == []
        assert (await s.run("dig")).text == "did: later"

    in_room(main)


def test_a47_an_inbox_that_is_none_is_refused_before_anything_is_sent() -> None:
    """A-35, A-47."""

    class Wrong:
        def reader(self) -> Callable[[], list[str]]:
            return list

    async def main(room: Room) -> None:
        s = digger(room)
        with pytest.raises(ConfigError, match="inbox='x' will not do"):
            s.run("dig", inbox="x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"Wrong\.reader.* cannot be called"):
            s.run("dig", inbox=Wrong())  # type: ignore[arg-type]
        assert s.mail() == []

    in_room(main)


def test_a11_a_structured_turn_does_not_open_an_inbox() -> None:
    async def main(room: Room) -> None:
        own = Box("later")

        @script
        def judge(turn: ScriptTurn) -> dict[str, int]:
            return {"points": 1}

        s = digger(room, judge, inbox=own)
        schema = {"type": "object", "required": ["points"]}
        assert (await s.run("points?", schema=schema)).value == {"points": 1}
        assert own.readers == []

    in_room(main)


# ── Asking, exactly ──


def test_an_answer_that_comes_before_the_asker_waits_is_not_lost() -> None:
    """However many runs end in between: each question keeps the end of its own run."""

    async def main(room: Room) -> None:
        s = room.spawn("echo")
        handles = []
        for number in range(300):
            handles.append(s.run(f"q{number}"))
            await s.wait()
        assert [(await handle).text for handle in handles] == [f"echo: q{n}" for n in range(300)]
        assert s.life.questions.open == []  # nobody is remembered who has an answer

    in_room(main)


def test_two_questions_in_one_batch_get_the_answer_of_the_run_that_read_both() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        first, second = s.run("one"), s.run("two")
        one, two = await first, await second
        assert one.text == two.text == "echo: one\n\ntwo"
        assert [e.text for e in one.mail] == ["one", "two"]
        assert [e.text for e in two.mail] == ["two"]

    in_room(main)


def test_a_question_asked_during_a_run_is_answered_by_that_run_s_last_word() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("slow", model=slow), "first")
        await asyncio.sleep(5)
        answer = await s.ask("second")
        assert answer.text == "done: second"
        assert said(s) == ["done: first", "done: second"]
        assert answer.usage.requests == 1  # from the question on

    in_room(main)


def test_asking_a_paused_session_says_so_and_its_answer_comes_with_resume() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        s.pause()
        await ticks()
        handle = s.run("hello?")
        with pytest.raises(AnswerFailed, match="it is paused; the question waits for %resume"):
            await handle
        assert s.unread == 1
        s.resume()
        assert (await handle).text == "echo: hello?"

    in_room(main)


def test_a_question_that_a_pause_takes_in_at_rest_is_answered_after_resume() -> None:
    """M-86: the pause stores the words before it in a turn; no run has read them by then."""

    async def main(room: Room) -> None:
        s = room.spawn("echo")
        handle = s.run("hello?")
        s.pause()
        with pytest.raises(AnswerFailed, match="paused"):
            await handle
        assert s.unread == 0
        s.resume()
        assert (await handle).text == "echo: hello?"

    in_room(main)


def test_asking_a_failed_session_lets_it_try_again() -> None:
    async def main(room: Room) -> None:
        tries: list[str] = []

        @script
        def shaky(turn: ScriptTurn) -> str:
            tries.append(turn.text)
            if len(tries) == 1:
                raise ValueError("boom")
            return "fine"

        s = room.spawn(Agent("shaky", model=shaky))
        first = s.run("one")
        with pytest.raises(AnswerFailed, match="ended with failed: ValueError: boom") as caught:
            await first
        assert caught.value.end == EndReason.FAILED
        assert (await s.ask("two")).text == "fine"
        # The turn that failed still waited for an answer: the same run gave it.
        assert (await first).text == "fine"

    in_room(main)


def test_asking_a_capped_session_is_the_word_that_lets_it_go_on() -> None:
    async def main(room: Room) -> None:
        s = digger(room, endless, max_iterations=2)
        await s.ask("go")
        assert s.status is SessionStatus.CAPPED
        assert (await s.ask("go on")).text == "2 naps"

    in_room(main)


def test_asking_one_whose_wake_on_has_no_user_says_that_the_question_waits() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("deaf", wake_on=["peer"]))
        with pytest.raises(AnswerFailed, match="only peer; the question waits"):
            await s.ask("hello?")

    in_room(main)


def test_asking_in_step_mode_waits_for_the_step_that_lets_the_question_through() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        room.step_mode(True)
        handle = s.run("hello?")
        with pytest.raises(AnswerFailed, match="the question is held: %step lets it through"):
            await handle
        await room.astep()
        assert (await handle).text == "echo: hello?"

    in_room(main)


def test_an_asker_who_gives_up_leaves_nothing_behind() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("slow", model=slow))
        with pytest.raises(AnswerFailed, match="not within 1 s"):
            await s.ask("x", timeout=1)
        assert s.life.questions.open == []
        asking = asyncio.get_running_loop().create_task(s.ask("y"))
        await ticks()
        asking.cancel()
        await asyncio.wait([asking])
        assert s.life.questions.open == []
        await s.wait()
        assert said(s) == ["done: x", "done: y"]

    in_room(main)


@pytest.mark.parametrize("seed", range(20))
def test_every_asker_gets_the_last_word_of_the_run_that_read_its_question(seed: int) -> None:
    """Twelve askers at one session, in any order of delivery and of waiting."""

    async def main() -> None:
        async with open_room() as room:
            s = room.spawn("echo")
            questions = [f"question {n}." for n in range(12)]
            answers = await asyncio.gather(*(s.ask(question) for question in questions))
            turns = s.transcript()
            for question, answer in zip(questions, answers, strict=True):
                assert answer.mail[0].text == question
                read_in = next(t for t in turns if answer.mail[0] in t.mail)
                ends = [t for t in turns if t.end_reason and t.index > read_in.index]
                assert (ends[0].index, ends[0].text) == (answer.turn, answer.text)

    run_seeded(main(), seed)


# ── Saying nothing ──


def test_no_reply_ends_the_run_without_a_word_or_a_nudge() -> None:
    async def main(room: Room) -> None:
        @script
        def shy(turn: ScriptTurn) -> str:
            return no_reply if "?" not in turn.text else "yes"

        parent = room.spawn("echo", name="parent")
        s = room.spawn(Agent("shy", model=shy), parent=parent)
        handle = s.run("just so you know")
        with pytest.raises(AnswerFailed, match="chose not to reply") as caught:
            await handle
        assert caught.value.end == s.end_reason == EndReason.NO_REPLY
        assert s.status is SessionStatus.IDLE
        assert len(s.transcript()) == 2  # no nudge
        assert s.transcript()[-1].end_reason is EndReason.NO_REPLY
        assert parent.transcript() == []
        assert parent.mail() == []
        assert story(s.history(), EventKind.RUN_STOPPED) == ["run.stopped no_reply"]
        assert (await s.ask("are you there?")).text == "yes"

    in_room(main)


def test_no_reply_with_mail_that_came_meanwhile_reads_that_first() -> None:
    """A-14: what extends a run extends this one too."""

    async def main(room: Room) -> None:
        @script
        async def shy(turn: ScriptTurn) -> str:
            await asyncio.sleep(1)
            return no_reply if "?" not in turn.text else "yes"

        s = room.spawn(Agent("shy", model=shy))
        first = s.run("fyi")
        await asyncio.sleep(0.5)
        second = s.run("and you?")
        assert (await first).text == (await second).text == "yes"

    in_room(main)


def test_no_reply_to_the_last_mail_of_a_run_takes_no_answer_from_the_mail_before() -> None:
    async def main(room: Room) -> None:
        @script
        async def shy(turn: ScriptTurn) -> str:
            await asyncio.sleep(1)
            return no_reply if "?" not in turn.text else "yes"

        s = room.spawn(Agent("shy", model=shy))
        first = s.run("and you?")
        await asyncio.sleep(0.5)
        second = s.run("fyi")
        assert (await first).text == "yes"
        with pytest.raises(AnswerFailed, match="chose not to reply"):
            await second

    in_room(main)


def test_no_reply_waits_for_calls_that_still_run() -> None:
    """M-72: the run lives on for its calls, and ends as it would have ended."""

    async def main(room: Room) -> None:
        @script
        def shy(turn: ScriptTurn) -> Talk:
            if turn.text == "go":
                yield call("nap", seconds=5)
            return no_reply

        policy = {"default": {"tag": "runAsync", "attachSeconds": 1}}
        s = digger(room, shy, policy=policy)
        with pytest.raises(AnswerFailed, match="chose not to reply"):
            await s.ask("go")
        assert [e.body.kind for e in s.mail()].count(BodyKind.TOOL_CALL_FINISHED) == 1

    in_room(main)
