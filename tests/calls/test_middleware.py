"""Decorators around the running of a call (M-112, M-113, M-114, M-118, M-119)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_runtime.calls.hooks import Annotate, AskOwner, Deny, GoOn, Instead, Keep
from postroom_runtime.calls.middleware import (
    CallInput,
    Done,
    Outcome,
    Surroundings,
    TimedOut,
    Yielded,
    compose,
    truncated,
)
from postroom_runtime.calls.policy import (
    After,
    Before,
    Cache,
    Label,
    Retries,
    Timeout,
    ToolTarget,
    Truncate,
)
from postroom_runtime.contracts.extra import Json
from postroom_runtime.testing import run_virtual

CALL = CallInput(
    session="s-0001", call="call_0001", agent="reviewer", tool="run_tests", arguments={"n": 1}
)
HOOK = ToolTarget(tool="guard")


class Around:
    """A session as its middleware sees it, and a tool that does one thing after the other.

    Args:
        does: What the tool does at each try: an outcome, or an exception that it raises.
        said: What each hook answers, in the order they are asked.
        seconds: How long each try takes.
    """

    def __init__(
        self,
        *does: Outcome | BaseException,
        said: Sequence[Any] = (),
        seconds: float = 0,
    ) -> None:
        self.does, self.said, self.seconds = iter(does), iter(said), seconds
        self.tries: list[CallInput] = []
        self.told: list[str] = []
        self.asked: list[Any] = []
        self.kept: dict[str, Json] = {}

    async def tool(self, call: CallInput) -> Outcome:
        self.tries.append(call)
        await asyncio.sleep(self.seconds)
        done = next(self.does)
        if isinstance(done, BaseException):
            raise done
        return done

    async def before(self, own: Before, call: CallInput) -> Any:
        self.asked.append(("before", call.arguments))
        return next(self.said)

    async def after(
        self, own: After, call: CallInput, status: str, result: Json, passed: float
    ) -> Any:
        self.asked.append((status, result, passed))
        return next(self.said)

    def chain(self, *decorators: Any) -> Callable[[CallInput], Awaitable[Outcome]]:
        around = Surroundings(
            progress=lambda call, words: self.told.append(words),
            cache=self.kept,
            before=self.before,
            after=self.after,
        )
        return compose(decorators, self.tool, around)

    def run(self, *decorators: Any, call: CallInput = CALL) -> Outcome:
        return run_virtual(self._run(decorators, call))

    async def _run(self, decorators: Sequence[Any], call: CallInput) -> Outcome:
        return await self.chain(*decorators)(call)


OK = Done("ok")
BROKEN = ValueError("broken")
YIELDED = Yielded("sure?", {"n": 1}, 1)


def seconds(around: Around, *decorators: Any) -> float:
    """Run it and return how long it took, whatever became of it."""

    async def main() -> float:
        try:
            await around.chain(*decorators)(CALL)
        except (TimedOut, ValueError):
            pass
        return asyncio.get_running_loop().time()

    return run_virtual(main())


# ── Order ──


def test_without_decorators_the_call_is_what_the_tool_does() -> None:
    """M-112."""
    assert Around(OK).run() == OK


def test_the_first_decorator_is_outermost() -> None:
    """M-113: retries around a time limit give each try its own; the other way round there is one."""
    retries, limit = Retries(count=2, backoff_ms=500), Timeout(seconds=1)

    assert seconds(Around(OK, OK, OK, seconds=60), retries, limit) == 1 + 0.5 + 1 + 0.5 + 1
    assert seconds(Around(OK, OK, OK, seconds=60), limit, retries) == 1


def test_every_decorator_sees_a_call_once_and_in_order() -> None:
    """M-112."""
    around = Around(
        OK, said=[GoOn(arguments={"n": 2}), GoOn(arguments={"n": 3}), Keep(), Keep(result="kept")]
    )

    outcome = around.run(
        Before(hook=HOOK),
        After(hook=HOOK),
        Label(label="x"),
        Before(hook=HOOK),
        After(hook=HOOK),
    )

    assert [call.arguments for call in around.tries] == [{"n": 3}]
    assert around.asked[:2] == [("before", {"n": 1}), ("before", {"n": 2})]
    # The inner hook answers first, and the outer one sees what it made of the result.
    assert [each[:2] for each in around.asked[2:]] == [("completed", "ok"), ("completed", "ok")]
    assert outcome == Done("kept")


# ── Timeout ──


def test_a_call_within_its_time_keeps_its_result_and_one_beyond_is_timed_out() -> None:
    """M-118."""
    assert Around(OK, seconds=4.9).run(Timeout(seconds=5)) == OK
    with pytest.raises(TimedOut, match="timed out after 5s"):
        Around(OK, seconds=5.1).run(Timeout(seconds=5))


def test_what_the_tool_raises_within_its_time_is_no_timeout() -> None:
    with pytest.raises(TimeoutError, match="the tool's own"):
        Around(TimeoutError("the tool's own")).run(Timeout(seconds=5))


# ── Retries ──


def test_retries_are_tries_after_the_first_with_the_same_wait_between() -> None:
    """M-118: count 2 is three tries; every one is reported."""
    around = Around(BROKEN, KeyError("k"), OK)

    assert seconds(around, Retries(count=2, backoff_ms=500)) == 1.0
    assert len(around.tries) == 3
    assert around.told == [
        "retry 1 of 2 after ValueError: broken",
        "retry 2 of 2 after KeyError: 'k'",
    ]


def test_the_last_failure_is_the_failure() -> None:
    around = Around(KeyError("first"), BROKEN)

    with pytest.raises(ValueError, match="broken"):
        around.run(Retries(count=1))
    assert len(around.tries) == 2


def test_a_result_that_only_looks_like_a_failure_is_not_tried_again() -> None:
    """M-118."""
    around = Around(Done("Error: broken"))

    assert around.run(Retries(count=3)) == Done("Error: broken")


@pytest.mark.parametrize("outcome", [YIELDED, Done("no", denied=True)])
def test_a_call_that_yields_or_is_denied_is_not_tried_again(outcome: Outcome) -> None:
    """M-118."""
    around = Around(outcome)

    assert around.run(Retries(count=3)) == outcome
    assert len(around.tries) == 1


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1)])
def test_what_is_no_failure_of_the_tool_is_not_tried_again(error: BaseException) -> None:
    """M-118."""
    around = Around(error)

    async def main() -> bool:
        try:
            await around.chain(Retries(count=3), Cache(), After(hook=HOOK))(CALL)
        except BaseException as raised:
            return raised is error
        return False

    assert run_virtual(main())
    assert (len(around.tries), around.asked, around.kept) == (1, [], {})


EVERYTHING = [
    Timeout(seconds=100),
    Retries(count=3, backoff_ms=10_000),
    Cache(),
    Label(label="x"),
    Truncate(max_bytes=10),
    Before(hook=HOOK),
    After(hook=HOOK),
]


@given(st.permutations(EVERYTHING))
def test_a_cancellation_passes_through_everything_at_once(decorators: list[Any]) -> None:
    """M-118, M-124: whatever the order."""
    around = Around(OK, seconds=50, said=[GoOn()])

    async def main() -> tuple[bool, float]:
        task = asyncio.create_task(around._run(decorators, CALL))
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), asyncio.get_running_loop().time()

    assert run_virtual(main()) == (True, 5.0)
    assert (len(around.tries), around.kept, around.told) == (1, {}, [])
    assert around.asked == [("before", {"n": 1})]


def test_a_cancellation_between_two_tries_passes_too() -> None:
    """M-118."""
    around = Around(BROKEN, OK)

    async def main() -> bool:
        task = asyncio.create_task(around._run([Retries(count=1, backoff_ms=60_000)], CALL))
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run_virtual(main())
    assert len(around.tries) == 1


# ── Cache ──


def test_the_same_call_with_the_same_arguments_is_answered_from_the_first() -> None:
    """M-118: the order of the arguments does not count, their values do, and so does the tool."""
    around = Around(Done("one"), Done("two"), Done("three"))

    async def main() -> list[Json]:
        chain = around.chain(Cache())
        results = []
        for tool, arguments in [
            ("t", {"a": 1, "b": [2]}),
            ("t", {"b": [2], "a": 1}),
            ("t", {"a": 1, "b": [3]}),
            ("u", {"a": 1, "b": [2]}),
        ]:
            outcome = await chain(
                CallInput(session="s", call="c", agent="a", tool=tool, arguments=arguments)
            )
            assert isinstance(outcome, Done)
            results.append(outcome.result)
        return results

    assert run_virtual(main()) == ["one", "one", "two", "three"]
    assert around.told == ["answered from the cache"]


@pytest.mark.parametrize("first", [BROKEN, YIELDED, Done("no", denied=True, kept=False)])
def test_a_failure_a_yield_and_a_denial_are_not_kept(first: Outcome | BaseException) -> None:
    """M-118."""
    around = Around(first, OK)

    async def main() -> Outcome:
        chain = around.chain(Cache())
        try:
            await chain(CALL)
        except ValueError:
            pass
        return await chain(CALL)

    assert run_virtual(main()) == OK
    assert len(around.tries) == 2


@pytest.mark.parametrize("said", [Deny(message="no"), Instead(result="instead"), AskOwner()])
def test_what_a_hook_below_answers_instead_of_the_tool_is_not_kept(said: Any) -> None:
    """M-118: the hook is asked each time."""
    around = Around(said=[said, said])

    async def main() -> None:
        chain = around.chain(Cache(), Before(hook=HOOK))
        assert await chain(CALL) == await chain(CALL)

    run_virtual(main())
    assert (len(around.asked), around.kept) == (2, {})


# ── Truncate ──


@pytest.mark.parametrize(
    ("result", "most", "shown"),
    [
        ("short", 5, "short"),
        ("longer", 5, "longe\n[truncated: result exceeded 5 bytes]"),
        ("é" * 3, 6, "é" * 3),
        ("é" * 3, 5, "éé\n[truncated: result exceeded 5 bytes]"),
        ("😀", 3, "\n[truncated: result exceeded 3 bytes]"),
        ({"a": 1}, 8, {"a": 1}),
        ({"a": 1}, 7, '{"a": 1\n[truncated: result exceeded 7 bytes]'),
        (["ü"], 6, ["ü"]),
        (12345, 3, "123\n[truncated: result exceeded 3 bytes]"),
        (None, 4, None),
    ],
)
def test_a_result_is_cut_at_a_character_and_the_model_is_told(
    result: Json, most: int, shown: Json
) -> None:
    """M-119."""
    assert Around(Done(result)).run(Truncate(max_bytes=most)) == Done(shown)


@given(st.text(), st.integers(1, 40))
def test_what_is_left_of_a_cut_result_begins_like_it_and_fits(text: str, most: int) -> None:
    """M-119."""
    shown = truncated(text, most)

    assert isinstance(shown, str)
    if shown == text:
        assert len(text.encode()) <= most
    else:
        left = shown.removesuffix(f"\n[truncated: result exceeded {most} bytes]")
        assert text.startswith(left)
        assert most - 4 < len(left.encode()) <= most


def test_a_yield_and_a_denial_pass_a_cut() -> None:
    assert Around(YIELDED).run(Truncate(max_bytes=1)) == YIELDED
    denied = Around(Done("no", denied=True)).run(Truncate(max_bytes=1))
    assert isinstance(denied, Done)
    assert denied.denied


# ── Hooks in the chain ──


def test_a_before_hook_denies_answers_defers_or_lets_it_run() -> None:
    """M-114, M-120."""
    before = Before(hook=HOOK)

    assert Around(OK, said=[GoOn()]).run(before) == OK
    assert Around(said=[Deny(message="no")]).run(before) == Done("no", denied=True, kept=False)
    assert Around(said=[Instead(result=[1])]).run(before) == Done([1], kept=False)
    assert Around(said=[AskOwner(reason="sure?")]).run(before) == Yielded("sure?", {"n": 1}, 1)


def test_a_deferred_call_knows_where_to_go_on_and_with_what() -> None:
    """M-114: below the hook that deferred it, with the arguments as they stood there."""
    said = [GoOn(arguments={"n": 2}), AskOwner(reason="sure?")]
    decorators = [Label(label="x"), Before(hook=HOOK), Before(hook=HOOK), Truncate(max_bytes=9)]
    around = Around(said=said)

    assert around.run(*decorators) == Yielded("sure?", {"n": 2}, 3)


def test_an_after_hook_sees_how_it_went_and_how_long_it_took() -> None:
    """M-121."""
    around = Around(OK, seconds=1.5, said=[Keep()])
    assert around.run(After(hook=HOOK)) == OK
    assert around.asked == [("completed", "ok", 1500)]

    around = Around(BROKEN, seconds=2, said=[Keep(result="never")])
    with pytest.raises(ValueError, match="broken"):
        around.run(After(hook=HOOK))
    assert around.asked == [("failed", "ValueError: broken", 2000)]


def test_a_denial_is_no_success_to_an_after_hook_and_stays_a_denial() -> None:
    """M-121."""
    around = Around(said=[Deny(message="no"), Keep(result="maybe")])

    outcome = around.run(After(hook=HOOK), Before(hook=HOOK))

    assert [each[:2] for each in around.asked[1:]] == [("failed", "no")]
    assert outcome == Done("maybe", denied=True, kept=False)


@pytest.mark.parametrize(
    ("result", "shown"), [("ok", "ok\nnoted"), ({"é": 1}, '{"é": 1}\nnoted'), (None, "null\nnoted")]
)
def test_an_annotation_stands_under_the_result(result: Json, shown: str) -> None:
    """M-121."""
    annotated = Around(Done(result), said=[Annotate(text="noted")]).run(After(hook=HOOK))

    assert annotated == Done(shown)


def test_an_after_hook_is_not_asked_of_a_call_that_has_not_run_yet() -> None:
    """M-121."""
    around = Around(YIELDED)

    assert around.run(After(hook=HOOK)) == YIELDED
    assert around.asked == []


def test_a_cache_keys_on_what_it_sees_so_rewritten_arguments_below_do_not_count() -> None:
    """M-118, M-120."""
    around = Around(OK, said=[GoOn(arguments={"n": 2})])
    around.run(Cache(), Before(hook=HOOK))

    assert list(around.kept) == [json.dumps(["run_tests", {"n": 1}])]
