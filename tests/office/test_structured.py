"""Structured turns: a question in, an object out; the inbox is not touched (A-11)."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from models.openai_server import Calls, OpenAIServer, Says
from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import AnswerFailed, ConfigError, MailRefused
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Provenance, Role
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.stepper.structured import AGAIN
from postroom_runtime.testing import story


class Verdict(BaseModel):
    """What a judge decides."""

    winner: str
    points: int = Field(ge=0, le=10)


SCHEMA = {
    "title": "a bid",
    "type": "object",
    "properties": {"price": {"type": "integer"}},
    "required": ["price"],
}


def answering(*answers: Any) -> Any:
    """Return a script that gives ``answers``, one per structured turn, and echoes mail."""
    left = list(answers)

    @script
    def judge(turn: ScriptTurn) -> Any:
        return left.pop(0) if turn.schema else f"read: {turn.text}"

    return judge


@pytest.mark.parametrize(
    "answer",
    [
        '{"winner": "ann", "points": 7}',
        '```json\n{"winner": "ann", "points": 7}\n```',
        {"winner": "ann", "points": 7},
        Verdict(winner="ann", points=7),
    ],
    ids=["json", "fenced", "dict", "object"],
)
def test_a11_a_structured_turn_gives_the_object_whatever_form_the_script_answers_in(
    answer: Any,
) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("judge", model=answering(answer)))
        handle = s.run("who won?", schema=Verdict)
        assert handle.receipt is None  # it is no mail
        result = await handle
        assert result.value == Verdict(winner="ann", points=7)
        assert Verdict.model_validate_json(result.text.strip("`json\n")) == result.value
        user, model = handle.transcript()
        assert (user.role, user.text, user.mail, user.provenance) == (
            Role.USER,
            "who won?",
            (),
            None,
        )
        assert (model.index, model.end_reason) == (result.turn, EndReason.ANSWER)
        assert s.mail() == []
        assert s.status is SessionStatus.IDLE
        assert story(s.history(), EventKind.RUN_STARTED, EventKind.RUN_STOPPED) == [
            "run.started",
            "run.stopped answer",
        ]

    in_room(main)


def test_a_generator_and_an_async_script_may_answer_with_an_object_too() -> None:
    async def main(room: Room) -> None:
        @script
        async def later(turn: ScriptTurn) -> Any:
            await asyncio.sleep(1)
            return Verdict(winner="bob", points=1)

        @script
        def generating(turn: ScriptTurn) -> Any:
            yield []
            return {"winner": "eve", "points": 2}

        for model, winner in ((later, "bob"), (generating, "eve")):
            s = room.spawn(Agent(winner, model=model))
            assert (await s.run("?", schema=Verdict)).value.winner == winner

    in_room(main)


def test_a_dataclass_and_a_json_schema_will_do_as_well() -> None:
    @dataclass
    class Bid:
        price: int

    async def main(room: Room) -> None:
        s = room.spawn(Agent("bidder", model=answering({"price": 3}, {"price": 4})))
        assert (await s.run("bid", schema=Bid)).value == Bid(3)
        assert (await s.run("bid", schema=SCHEMA)).value == {"price": 4}

    in_room(main)


def test_a11_unread_mail_is_left_unread_by_a_structured_turn() -> None:
    """A-11: a peer's letter that wakes nobody, and one that comes meanwhile, stay for the next run."""

    async def main(room: Room) -> None:
        @script
        async def judge(turn: ScriptTurn) -> Any:
            if turn.schema is None:
                return f"read: {turn.text}"
            assert turn.mail == ()
            assert turn.tools == ()
            await asyncio.sleep(2)
            return {"winner": "ann", "points": 7}

        s = room.spawn(Agent("judge", model=judge, wake_on=["user"]))
        peer = room.spawn(Agent("peer", mail_scope="all"))
        room.send(s, "psst", sender=peer)
        handle = s.run("who won?", schema=Verdict)
        await asyncio.sleep(1)
        assert s.running
        room.send(s, "pssst", sender=peer)
        assert (await handle).value.winner == "ann"

        assert (s.cursor, s.unread) == (0, 2)
        assert read(s) == ["who won?"]
        await s.ask("and now?")
        assert [e.text for e in s.transcript()[2].mail] == ["psst", "pssst", "and now?"]

    in_room(main)


def test_a_structured_turn_waits_for_the_run_under_way_and_they_keep_their_order() -> None:
    async def main(room: Room) -> None:
        answers = [{"winner": str(n), "points": n} for n in range(3)]
        s = room.spawn(Agent("judge", model=answering(*answers)), "hello")
        handles = [s.run(f"{n}?", schema=Verdict) for n in range(3)]
        assert not s.idle
        assert [(await handle).value.points for handle in handles] == [0, 1, 2]
        assert read(s) == ["hello", "0?", "1?", "2?"]

    in_room(main)


@pytest.mark.parametrize(
    ("schema", "wrong", "fault"),
    [
        (Verdict, "ann, of course", "Invalid JSON"),
        (Verdict, {"winner": "ann", "points": 11}, "points: Input should be less than or equal"),
        (Verdict, {"points": 1}, "winner: Field required"),
        (SCHEMA, {"price": "much"}, r"\$.price: 'much' is not of type 'integer'"),
        (SCHEMA, "much", "not JSON"),
        (Verdict, call("nap"), "it called nap, but a structured turn has no tools"),
        (Verdict, "", "Invalid JSON"),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_for_once_more_and_then_fails_by_name(
    schema: Any, wrong: Any, fault: str
) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("judge", model=answering(wrong, wrong)))
        handle = s.run("who won?", schema=schema)
        with pytest.raises(AnswerFailed, match=f"does not fit .*: .*{fault}"):
            await handle
        turns = handle.transcript()
        assert [t.role for t in turns] == [Role.USER, Role.MODEL] * 2
        assert turns[2].provenance is Provenance.CONTINUATION
        assert turns[2].text.startswith(AGAIN.split("{", 1)[0])
        assert s.status is SessionStatus.IDLE  # the session is none the worse for it
        assert (await s.ask("hi")).text == "read: hi"

    in_room(main)


def test_a_second_answer_that_fits_is_taken() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(Agent("judge", model=answering("ann", {"winner": "ann", "points": 1})))
        answer = await s.run("who won?", schema=Verdict)
        assert answer.value.points == 1
        assert answer.usage.requests == 2

    in_room(main)


@pytest.mark.parametrize(
    "schema", ["Verdict", 3, int, list, {"type": "string"}, {"type": "object", "required": 1}]
)
def test_a_schema_that_is_none_is_refused_at_the_call(schema: Any) -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        with pytest.raises(ConfigError, match=r"will not do.*give a pydantic model class"):
            s.run("x", schema=schema)
        assert s.idle

    in_room(main)


def test_a_structured_turn_of_no_words_or_of_a_closed_session_is_refused() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo")
        with pytest.raises(ConfigError, match="asks nothing"):
            s.run("  ", schema=Verdict)
        s.close()
        with pytest.raises(MailRefused, match="closed"):
            s.run("x", schema=Verdict)

    in_room(main)


def test_a_structured_turn_of_a_paused_session_waits_for_resume() -> None:
    """M-82: a pause holds it back as it holds back mail."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("judge", model=answering({"winner": "ann", "points": 7})))
        s.pause()
        await ticks()
        handle = s.run("who won?", schema=Verdict)
        with pytest.raises(AnswerFailed, match="it is paused"):
            await handle
        s.resume()
        assert (await handle).value.winner == "ann"

    in_room(main)


def test_a_script_that_raises_in_a_structured_turn_fails_the_session_and_says_so() -> None:
    async def main(room: Room) -> None:
        @script
        def bad(turn: ScriptTurn) -> str:
            raise ValueError("boom")

        s = room.spawn(Agent("bad", model=bad))
        with pytest.raises(AnswerFailed, match="its turn ended with failed: ValueError: boom"):
            await s.run("x", schema=Verdict)
        assert s.status is SessionStatus.FAILED

    in_room(main)


def test_a_structured_turn_is_taken_back_before_it_is_asked_and_stopped_after() -> None:
    async def main(room: Room) -> None:
        @script
        async def slow(turn: ScriptTurn) -> str:
            await asyncio.sleep(5)
            return "done"

        s = room.spawn(Agent("slow", model=slow), "busy")
        await ticks()
        waiting = s.run("x", schema=Verdict)
        assert waiting.cancel() is None
        with pytest.raises(AnswerFailed, match="taken back"):
            await waiting
        await s.wait()
        assert read(s) == ["busy"]

        handle = s.run("y", schema=Verdict)
        await asyncio.sleep(1)
        assert handle.cancel("turn") is None  # one turn: it finishes
        handle.cancel("now")
        with pytest.raises(AnswerFailed, match="its turn ended with stopped"):
            await handle
        assert said(s) == ["done"]
        assert [t.text for t in handle.transcript()] == ["y"]
        assert (await s.ask("z")).text == "done"

    in_room(main)


def test_calls_that_were_left_open_are_answered_in_the_structured_turn() -> None:
    """M-42: the head turn called something and failed there; no call stays without its message."""

    async def main(room: Room) -> None:
        @script
        def judge(turn: ScriptTurn) -> Any:
            return {"winner": "ann", "points": 7} if turn.schema else call("nothing")

        s = room.spawn(Agent("judge", model=judge, max_iterations=1), "go")
        await s.wait()
        assert (await s.run("who won?", schema=Verdict)).value.winner == "ann"
        made = [c.id for t in s.transcript() for c in t.calls]
        assert made == [m.call for t in s.transcript() for m in t.results]

    in_room(main)


def test_the_end_of_a_structured_turn_answers_no_question_that_came_by_mail() -> None:
    async def main(room: Room) -> None:
        failing = True

        @script
        def judge(turn: ScriptTurn) -> Any:
            if turn.schema:
                return {"winner": "ann", "points": 7}
            if failing:
                raise ValueError("boom")
            return f"read: {turn.text}"

        s = room.spawn(Agent("judge", model=judge))
        question = s.run("by mail")
        with pytest.raises(AnswerFailed, match="boom"):
            await question
        await s.run("who won?", schema=Verdict)
        failing = False
        s.send("again")
        assert (await question).text == "read: again"

    in_room(main)


# ── Providers ──


def asked(server: OpenAIServer, **knobs: Any) -> Any:
    """Ask a judge that the server plays; return what the handle gives."""

    async def main() -> Any:
        async with open_room() as room:
            s = room.spawn(Agent("judge", model=server.model, instructions="be fair", **knobs))
            try:
                return await s.run("who won?", schema=Verdict, timeout=60)
            finally:
                await s.wait()

    return asyncio.run(main())


def test_a_provider_is_asked_with_the_schema_and_without_tools() -> None:
    with OpenAIServer(Says(('{"winner": "ann", ', '"points": 7}'), usage=(30, 9))) as server:
        answer = asked(server)

    assert answer.value == Verdict(winner="ann", points=7)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (30, 9)
    [received] = server.requests
    shape = received.body["response_format"]["json_schema"]
    assert shape["name"] == "Verdict"
    assert shape["description"] == "What a judge decides."
    assert set(shape["schema"]["properties"]) == {"winner", "points"}
    assert "tools" not in received.body
    assert received.messages == [
        {"role": "system", "content": "be fair"},
        {"role": "user", "content": "who won?"},
    ]


def test_a_provider_s_wrong_answer_is_sent_back_to_it_once_with_the_fault() -> None:
    with OpenAIServer(
        Says(('{"winner": "ann", "points": 70}',)), Says(('{"winner": "ann", "points": 7}',))
    ) as server:
        assert asked(server).value.points == 7

    second = server.requests[1].messages
    assert [m["role"] for m in second] == ["system", "user", "assistant", "user"]
    assert "points: Input should be less than or equal to 10" in second[-1]["content"]
    assert "response_format" in server.requests[1].body


def test_a_model_without_a_json_mode_answers_as_the_arguments_of_a_call() -> None:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    said = Calls("final_result", '{"winner": "bob", "points": 3}')
    with OpenAIServer(Says((), calls=(said,)), Says(("hello",))) as server:

        async def main() -> None:
            model = OpenAIChatModel(
                "test",
                provider=OpenAIProvider(base_url=server.url, api_key="none"),
                profile=OpenAIModelProfile(supports_json_schema_output=False),
            )
            async with open_room() as room:
                s = room.spawn(Agent("judge", model=model))
                answer = await s.run("who won?", schema=Verdict)
                assert answer.value == Verdict(winner="bob", points=3)
                assert json.loads(answer.text) == {"winner": "bob", "points": 3}
                await s.ask("hi")  # the strict server takes the history: the answer went as words

        asyncio.run(main())

    first, second = server.requests
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["final_result"]
    assert first.body["tool_choice"] == "required"
    assert [m["role"] for m in second.messages] == ["user", "assistant", "user"]
    assert json.loads(second.messages[1]["content"]) == {"winner": "bob", "points": 3}


def test_a_generator_that_calls_in_a_structured_turn_is_told_that_it_has_no_tools() -> None:
    async def main(room: Room) -> None:
        @script
        def caller(turn: ScriptTurn) -> Talk:
            while True:
                yield call("send-message", to="x", text="y")

        with pytest.raises(AnswerFailed, match="it called send-message"):
            await room.spawn(Agent("caller", model=caller)).run("x", schema=Verdict)

    in_room(main)


def test_a_spending_cap_holds_for_structured_turns_and_says_so() -> None:
    """``max_requests`` lets no further request out, of whatever kind; raised, it goes on."""

    async def main(room: Room) -> None:
        good = {"winner": "ann", "points": 7}
        s = room.spawn(Agent("judge", model=answering(good, "wrong", good), max_requests=2))
        assert (await s.run("one", schema=Verdict)).value.points == 7
        with pytest.raises(AnswerFailed, match="its turn ended with capped"):
            await s.run("two", schema=Verdict)
        assert s.usage.requests == 2
        assert s.status is SessionStatus.CAPPED

        room.define(Agent("judge", model=answering(good), max_requests=9))
        assert (await s.run("three", schema=Verdict)).value.points == 7

    in_room(main)
