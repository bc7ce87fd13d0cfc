"""One step: receive, think, call; each part stored before the next (M-22, M-42, M-41, M-62b, M-85)."""

import asyncio
from dataclasses import replace

import pytest

from postroom_runtime.calls.executor import Work
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.envelope import StopRun
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.turn import Provenance, Role, Turn
from postroom_runtime.models.model import Emit, Prompt, Thought
from postroom_runtime.stepper.attending import attend
from postroom_runtime.stepper.folding import Folded, fold
from postroom_runtime.stepper.step import (
    Stopped,
    numbered,
    store_calling_turn,
    think,
    tool_messages,
    user_turn,
)
from postroom_runtime.testing import run_virtual
from stepper.host import FakeHost, FakeModel, ask, say, saying


def now() -> float:
    return asyncio.get_running_loop().time()


async def slow(seconds: float) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"after {seconds:g} s"


def folded(host: FakeHost) -> Folded:
    return fold(host.state.unread(), host.state.record, host.state.placeholders, running=True)


async def calling(host: FakeHost, *seconds: float) -> list[Work]:
    """Store a model turn that calls ``slow`` and start the calls; return them."""
    turn = Turn(
        index=host.state.next_index,
        role=Role.MODEL,
        text="",
        calls=numbered(host, [ask("slow", seconds=each) for each in seconds]),
    )
    return await store_calling_turn(host, turn, host.tools())


# ── Thinking ──


def test_the_model_is_asked_with_the_transcript_and_what_it_may_call() -> None:
    async def main() -> tuple[Thought, Prompt]:
        host = FakeHost(saying(say("fine")), slow, instructions="Be brief.")
        host.user("hi")
        rows, changes = user_turn(host, folded(host), ())
        await host.state.commit(*rows, cursor=1, **changes)
        return await think(host, host.fake, host.tools()), host.fake.prompts[0]

    thought, prompt = run_virtual(main())

    assert thought.text == "fine"
    assert (prompt.session, prompt.agent, prompt.instructions) == (
        "s-0001",
        "reviewer",
        "Be brief.",
    )
    assert [turn.text for turn in prompt.turns] == ["hi"]
    assert [spec.name for spec in prompt.tools] == ["slow"]


def test_what_the_model_streams_is_told_live() -> None:
    async def answer(prompt: Prompt, emit: Emit) -> Thought:
        emit("Hel")
        emit("lo")
        return say("Hello")

    async def main() -> list[tuple[EventKind, dict[str, object]]]:
        host = FakeHost(FakeModel(answer))
        await think(host, host.fake, {})
        return host.lived

    assert run_virtual(main()) == [
        (EventKind.TEXT_DELTA, {"text": "Hel"}),
        (EventKind.TEXT_DELTA, {"text": "lo"}),
    ]


def test_a_stop_ends_a_completion_at_once_and_what_was_streamed_is_void() -> None:
    """M-85."""
    ended: list[str] = []

    async def answer(prompt: Prompt, emit: Emit) -> Thought:
        emit("Hel")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return say("Hello")

    async def main() -> tuple[float, list[EventKind], list[str]]:
        host = FakeHost(FakeModel(answer))
        asyncio.get_running_loop().call_later(2, host.order, StopRun())
        with pytest.raises(Stopped):
            await think(host, host.fake, {})
        return now(), [kind for kind, _ in host.lived], list(ended)

    assert run_virtual(main()) == (
        2.0,
        [EventKind.TEXT_DELTA, EventKind.TEXT_DISCARDED],
        ["cancelled"],
    )


def test_mail_that_is_no_stop_leaves_a_completion_alone() -> None:
    """M-40, M-79: by default the request is never cancelled."""

    async def answer(prompt: Prompt, emit: Emit) -> Thought:
        await asyncio.sleep(5)
        return say("Hello")

    async def main() -> tuple[str, float, int]:
        host = FakeHost(FakeModel(answer))
        asyncio.get_running_loop().call_later(1, host.user, "hurry")
        thought = await think(host, host.fake, {})
        return thought.text, now(), len(host.state.unread())

    assert run_virtual(main()) == ("Hello", 5.0, 1)


def test_a_completion_that_is_there_when_the_stop_comes_is_kept() -> None:
    """M-40: it is paid for."""

    async def main() -> str:
        host = FakeHost()

        async def answer(prompt: Prompt, emit: Emit) -> Thought:
            host.order(StopRun())
            return say("in time")

        return (await think(host, FakeModel(answer), {})).text

    assert run_virtual(main()) == "in time"


def test_what_a_model_raises_reaches_the_run() -> None:
    async def answer(prompt: Prompt, emit: Emit) -> Thought:
        raise ZeroDivisionError("in a script")

    async def main() -> None:
        host = FakeHost(FakeModel(answer))
        await think(host, host.fake, {})

    with pytest.raises(ZeroDivisionError):
        run_virtual(main())


def test_a_cancelled_run_takes_its_completion_with_it() -> None:
    ended: list[str] = []

    async def answer(prompt: Prompt, emit: Emit) -> Thought:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("let go")
        return say("never")

    async def main() -> bool:
        host = FakeHost(FakeModel(answer))
        thinking = asyncio.create_task(think(host, host.fake, {}))
        await asyncio.sleep(1)
        thinking.cancel()
        await asyncio.wait([thinking])
        return thinking.cancelled() and ended == ["let go"]

    assert run_virtual(main())


# ── Calling ──


def test_calls_have_ids_of_ours_whatever_the_provider_called_them() -> None:
    """Trap 10."""

    async def main() -> list[str]:
        host = FakeHost()
        requests = [replace(ask("slow"), id="call_0") for _ in range(2)]
        return [each.id for each in (*numbered(host, requests), *numbered(host, requests))]

    assert run_virtual(main()) == ["call_0001", "call_0002", "call_0003", "call_0004"]


def test_a_model_turn_and_its_calls_are_stored_before_any_of_them_runs() -> None:
    """M-22, M-62b."""

    async def main() -> tuple[list[str], int]:
        host = FakeHost(None, slow)
        groups: list[list[str]] = []
        host.storage.bells(lambda rows: groups.append([type(row.record).__name__ for row in rows]))
        works = await calling(host, 1, 1)
        await attend(host, works)
        return groups[0], host.state.record.calls

    assert run_virtual(main()) == (["Turn", "Call", "Call", "SessionRecord"], 2)


def test_calls_that_could_not_be_stored_do_not_run() -> None:
    """M-22."""

    async def main() -> tuple[int, int]:
        host = FakeHost(None, slow)
        host.storage.failures = 1
        with pytest.raises(StoreFailed):
            await calling(host, 1)
        await asyncio.sleep(5)
        return len(host.table.all()), len(host.state.unread())

    assert run_virtual(main()) == (0, 0)


def test_a_turn_is_attended_until_all_its_calls_have_ended() -> None:
    """M-57."""

    async def main() -> tuple[float, list[CallState]]:
        host = FakeHost(None, slow)
        works = await calling(host, 3, 1, 2)
        await attend(host, works)
        return now(), [call.state for call in host.table.all()]

    assert run_virtual(main()) == (3.0, [CallState.COMPLETED] * 3)


def test_mail_does_not_end_the_attending() -> None:
    """M-81: a normal letter waits for the calls."""

    async def main() -> float:
        host = FakeHost(None, slow)
        works = await calling(host, 10)
        asyncio.get_running_loop().call_later(1, host.user, "and?")
        await attend(host, works)
        return now()

    assert run_virtual(main()) == 10.0


def test_a_stop_ends_the_attending_and_cancels_what_runs_and_what_waits_to_run() -> None:
    """M-85."""

    async def main() -> tuple[float, list[CallState]]:
        host = FakeHost(None, slow, max_concurrency=2)
        works = await calling(host, 1, 60, 60)
        asyncio.get_running_loop().call_later(2, host.order, StopRun())
        with pytest.raises(Stopped):
            await attend(host, works)
        return now(), [call.state for call in host.table.all()]

    assert run_virtual(main()) == (
        2.0,
        [CallState.COMPLETED, CallState.CANCELLED, CallState.CANCELLED],
    )


def test_a_result_that_cannot_be_stored_ends_the_attending_with_the_failure_once() -> None:
    """M-62b."""

    async def main() -> BaseException | None:
        host = FakeHost(None, slow)
        works = await calling(host, 1)
        host.storage.failures = 99
        with pytest.raises(StoreFailed):
            await attend(host, works)
        return host.executor.failure

    assert run_virtual(main()) is None


# ── Tool messages ──


def test_the_calls_of_the_last_model_turn_are_due_a_message_each_in_order() -> None:
    """M-42."""

    async def main() -> list[tuple[str, str]]:
        host = FakeHost(None, slow)
        works = await calling(host, 2, 1)
        await attend(host, works)
        return [
            (message.call, message.content) for message in tool_messages(host, host.state.unread())
        ]

    assert run_virtual(main()) == [("call_0001", "after 2 s"), ("call_0002", "after 1 s")]


def test_messages_are_due_once_and_only_to_a_model_turn_that_called_something() -> None:
    """M-42."""

    async def main() -> list[int]:
        host, due = FakeHost(None, slow), list[int]()
        due.append(len(tool_messages(host, host.state.unread())))
        works = await calling(host, 1)
        await attend(host, works)
        due.append(len(tool_messages(host, host.state.unread())))
        rows, _ = user_turn(host, folded(host), tool_messages(host, host.state.unread()))
        await host.state.commit(*rows)
        due.append(len(tool_messages(host, host.state.unread())))
        answer = Turn(index=host.state.next_index, role=Role.MODEL, text="done")
        await host.state.commit(answer)
        due.append(len(tool_messages(host, host.state.unread())))
        return due

    assert run_virtual(main()) == [0, 1, 0, 0]


# ── The user turn ──


def test_a_user_turn_holds_the_mail_as_read_and_raw_and_says_what_changed() -> None:
    """M-36, M-47, M-105, M-108, A-17."""

    async def main() -> None:
        host = FakeHost(stored={"rounds_since_human": 7})
        host.letter("one", hops=2)
        host.user("two")
        reading = folded(host)
        (inbox, turn), changes = user_turn(host, reading, ())
        assert turn == Turn(
            index=1, role=Role.USER, text=reading.text, mail=tuple(host.state.unread())
        )
        assert getattr(inbox, "kind", None) == EventKind.INBOX
        assert getattr(inbox, "data", None) == {
            "text": reading.text,
            "mail": [1, 2],
            "turn": 1,
            "starts_run": False,
        }
        assert changes == {"hops": 0, "read_from": ("s-0002",), "rounds_since_human": 0}

    run_virtual(main())


def test_a_turn_in_which_no_person_speaks_leaves_the_count_of_rounds_alone() -> None:
    """Trap 8."""

    async def main() -> dict[str, object]:
        host = FakeHost()
        host.letter("one", hops=2)
        _, changes = user_turn(host, folded(host), ())
        return changes

    assert run_virtual(main()) == {"hops": 3, "read_from": ("s-0002",)}


def test_the_first_turn_of_a_run_begins_with_its_event() -> None:
    async def main() -> list[str]:
        host = FakeHost()
        host.user("hi")
        rows, _ = user_turn(host, folded(host), (), starts=True)
        return [str(getattr(row, "kind", "turn")) for row in rows]

    assert run_virtual(main()) == ["run.started", "inbox", "turn"]


def test_a_turn_without_mail_tells_of_no_delivery() -> None:
    """A-10, A-16."""

    async def main() -> list[str]:
        host = FakeHost()
        host.user("  ")
        rows, _ = user_turn(
            host, folded(host), (), injected="Go on.", provenance=Provenance.CONTINUATION
        )
        (turn,) = rows
        assert isinstance(turn, Turn)
        return [turn.text, str(turn.provenance)]

    assert run_virtual(main()) == ["Go on.", "continuation"]


def test_words_of_the_loop_stand_behind_the_mail() -> None:
    async def main() -> str:
        host = FakeHost()
        host.user("hi")
        *_, turn = user_turn(host, folded(host), (), injected="Answer now.")[0]
        assert isinstance(turn, Turn)
        return turn.text

    assert run_virtual(main()) == "hi\n\nAnswer now."
