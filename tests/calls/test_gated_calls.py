"""A call that waits for the owner: asked once, ended once, gone on with below its hook (M-97, M-114)."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from calls.bench import Bench
from postroom_runtime.calls.policy import Policy, RunAsync, RunSync, read_policy
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import ContinuationResult
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.testing import run_virtual

ran: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()


async def deploy(target: str, count: int = 1) -> str:
    ran.append({"target": target, "count": count})
    return f"deployed {target}"


async def ask(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"action": "defer", "reason": f"to {arguments['target']}?"}


async def twice(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"action": "continue", "arguments": {**arguments, "count": 2}}


def hook(tool: str) -> dict[str, Any]:
    return {"tag": "before", "hook": {"tool": tool}}


def policy(*decorators: dict[str, Any]) -> Policy:
    return read_policy({"wrappers": [{"match": {"tool": "deploy"}, "decorators": decorators}]})


GATED = policy(hook("ask"))


def gated(rules: Policy = GATED) -> Bench:
    bench = Bench()
    bench.desk.rules = rules
    for tool in (deploy, ask, twice):
        bench.tool(tool)
    return bench


async def deferred(bench: Bench, target: str = "prod") -> Call:
    """Call ``deploy`` and let it come to wait for the owner."""
    id = await bench.call("deploy", target=target)
    while bench.state(id) is not CallState.DEFERRED or bench.executor.busy:
        await asyncio.sleep(0.01)
    return bench.get(id)


def approvals(bench: Bench) -> list[Approval]:
    """What is stored of questions, in order."""
    rows = bench.storage.rows("s-0001")
    return [row.record for row in rows if isinstance(row.record, Approval)]


def continued(bench: Bench) -> list[tuple[str, str, Any]]:
    return [
        (mail.id, mail.body.state, mail.body.response)
        for mail in bench.mail()
        if isinstance(mail.body, ContinuationResult)
    ]


def release(bench: Bench, call: Call, decision: str = "approved", **more: Any) -> None:
    given = {"arguments": None, "reason": "", **more}
    bench.executor.release(call.id, bench.tools, decision, **given)


# ── Asking ──


def test_a_deferred_call_and_its_question_are_one_transaction_and_take_no_place() -> None:
    async def main() -> None:
        bench = gated()
        call = await deferred(bench)
        assert [type(row.record).__name__ for row in bench.groups[-1]] == ["Call", "Approval"]
        assert (call.token, call.reason, call.below) == ("t-0001", "to prod?", 1)
        assert (bench.desk.put, bench.mail(), ran) == (["ap-0001"], [], [])
        assert bench.executor.free() == bench.executor.max_concurrency
        assert (bench.table.open_calls(), bench.table.deferred()) == ([], [call])

    run_virtual(main())


def test_a_question_that_could_not_be_stored_is_not_put_before_anybody() -> None:
    async def main() -> None:
        bench = gated()
        id = await bench.call("deploy", target="prod")
        bench.storage.failures = 99
        await bench.ended(id)
        assert isinstance(bench.failures[0], StoreFailed)
        assert (bench.desk.put, bench.state(id)) == ([], CallState.RUNNING)

    run_virtual(main())


# ── Answers ──


def test_an_approved_call_goes_on_below_the_hook_with_what_the_hook_saw() -> None:
    """M-114."""

    async def main() -> None:
        bench = gated(policy(hook("twice"), hook("ask"), {"tag": "truncate", "maxBytes": 10}))
        call = await deferred(bench)
        assert call.arguments == {"target": "prod", "count": 2}
        release(bench, call)
        await bench.ended(call.id)
        assert ran == [{"target": "prod", "count": 2}]
        cut = "deployed p\n[truncated: result exceeded 10 bytes]"
        assert continued(bench) == [("cont-t-0001", "completed", cut)]
        assert len(bench.mail()) == 1  # no other end

    run_virtual(main())


def test_what_stands_above_the_hook_and_is_no_hook_before_wraps_an_approved_call_too() -> None:
    """M-112, M-118, M-119, M-121: a cut for everything is listed first, and must not be lost."""
    seen: list[Any] = []

    async def audit(status: str, result: Any) -> None:
        seen.append((status, result))

    async def main() -> None:
        cut = {"tag": "truncate", "maxBytes": 10}
        after = {"tag": "after", "hook": {"tool": "audit"}}
        tries = {"tag": "retries", "count": 1}
        bench = gated(policy(hook("ask"), cut, after, tries, hook("ask")))
        bench.tool(audit)
        call = await deferred(bench)
        release(bench, call)
        again = await deferred_again(bench, call)
        assert seen == []
        release(bench, again)
        await bench.ended(call.id)
        assert bench.get(call.id).result == "deployed p\n[truncated: result exceeded 10 bytes]"
        assert (seen, bench.desk.put) == ([("completed", "deployed prod")], ["ap-0001", "ap-0002"])

    run_virtual(main())


def test_an_approved_call_has_the_time_limit_that_stands_above_its_hook() -> None:
    """M-118: from when it goes on."""

    async def slow() -> None:
        await asyncio.sleep(100)

    async def main() -> None:
        bench = gated()
        limit = {"tag": "timeout", "seconds": 5}
        bench.desk.rules = read_policy(
            {"default": {"tag": "defer"}, "wrappers": [{"decorators": [limit]}]}
        )
        id = await bench.call(bench.tool(slow))
        await asyncio.sleep(60)
        release(bench, bench.get(id))
        await bench.ended(id)
        assert bench.state(id) is CallState.TIMED_OUT
        assert asyncio.get_running_loop().time() == pytest.approx(65)

    run_virtual(main())


def test_edited_arguments_run_instead() -> None:
    async def main() -> None:
        bench = gated()
        release(bench, call := await deferred(bench), arguments={"target": "test"})
        await bench.ended(call.id)
        assert ran == [{"target": "test", "count": 1}]

    run_virtual(main())


def test_what_wrapped_a_call_when_it_was_asked_for_wraps_it_when_it_goes_on() -> None:
    """M-116."""

    async def main() -> None:
        bench = gated(policy(hook("ask"), {"tag": "truncate", "maxBytes": 3}))
        call = await deferred(bench)
        bench.desk.rules = policy(hook("ask"), hook("ask"))
        release(bench, call)
        await bench.ended(call.id)
        assert str(bench.get(call.id).result).startswith("dep\n[truncated")

    run_virtual(main())


def test_a_second_hook_below_may_ask_again_under_a_token_of_its_own() -> None:
    """M-114."""

    async def main() -> None:
        bench = gated(policy(hook("ask"), hook("ask")))
        call = await deferred(bench)
        release(bench, call)
        again = await deferred_again(bench, call)
        assert (again.token, again.below) == ("t-0002", 2)
        release(bench, again)
        await bench.ended(call.id)
        assert continued(bench) == [("cont-t-0002", "completed", "deployed prod")]
        assert len(ran) == 1

    run_virtual(main())


async def deferred_again(bench: Bench, call: Call) -> Call:
    while bench.get(call.id).token == call.token:
        await asyncio.sleep(0.01)
    return bench.get(call.id)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", "Tool 'deploy' was not approved."),
        ("not today", "Tool 'deploy' was not approved: not today"),
    ],
)
def test_a_denied_call_ends_with_the_refusal(reason: str, words: str) -> None:
    async def main() -> None:
        bench = gated()
        release(bench, call := await deferred(bench), "denied", reason=reason)
        await bench.ended(call.id)
        assert (bench.state(call.id), ran) == (CallState.FAILED, [])
        assert continued(bench) == [("cont-t-0001", "failed", words)]

    run_virtual(main())


def test_an_answer_that_is_told_twice_or_too_late_changes_nothing() -> None:
    async def main() -> None:
        bench = gated()
        call = await deferred(bench)
        release(bench, call)
        release(bench, call)
        release(bench, call, "denied")
        await bench.ended(call.id)
        release(bench, call)
        await asyncio.sleep(1)
        bench.executor.release("call_0099", bench.tools, "approved", None, "")
        assert (len(ran), len(bench.mail())) == (1, 1)

    run_virtual(main())


def test_an_approved_call_whose_tool_is_gone_fails_in_words() -> None:
    async def main() -> None:
        bench = gated()
        call = await deferred(bench)
        bench.executor.release(call.id, {}, "approved", None, "")
        await bench.ended(call.id)
        assert "there is no tool 'deploy'" in str(bench.get(call.id).result)

    run_virtual(main())


def test_the_disposition_defer_asks_after_every_hook_and_runs_when_approved() -> None:
    async def main() -> None:
        rules = read_policy(
            {
                "default": {"tag": "defer", "reason": "always"},
                "wrappers": [{"decorators": [hook("twice")]}],
            }
        )
        bench = gated(rules)
        call = await deferred(bench)
        assert (call.reason, call.arguments["count"]) == ("always", 2)
        release(bench, call)
        await bench.ended(call.id)
        assert ran == [{"target": "prod", "count": 2}]

    run_virtual(main())


# ── Ending it from outside ──


def test_a_cancelled_question_is_closed_in_the_transaction_of_the_end() -> None:
    async def main() -> None:
        bench = gated()
        call = await deferred(bench)
        assert await bench.executor.cancel(call.id)
        assert [type(row.record).__name__ for row in bench.groups[-1]] == [
            "Call",
            "Approval",
            "Envelope",
        ]
        assert [each.state for each in approvals(bench)] == [
            ApprovalState.PENDING,
            ApprovalState.CANCELLED,
        ]
        release(bench, call)
        await asyncio.sleep(1)
        assert (bench.state(call.id), ran) == (CallState.CANCELLED, [])

    run_virtual(main())


def test_a_cancel_while_the_question_is_being_stored_closes_it_too() -> None:
    """The end waits until the question is stored: or it would stay open for a call that has ended."""

    async def main() -> None:
        bench = gated()
        bench.storage.seconds = 1
        id = await bench.call("deploy", target="prod")
        await asyncio.sleep(0.5)
        assert bench.state(id) is CallState.RUNNING
        assert await bench.executor.cancel(id)
        assert [each.state for each in approvals(bench)] == [
            ApprovalState.PENDING,
            ApprovalState.CANCELLED,
        ]
        assert continued(bench)[0][:2] == ("cont-t-0001", "cancelled")
        assert (len(bench.mail()), bench.state(id)) == (1, CallState.CANCELLED)

    run_virtual(main())


def test_a_call_that_ended_before_it_could_ask_is_not_asked_for() -> None:
    async def main() -> None:
        bench = gated()
        bench.storage.seconds = 1
        ids, cancelling = list[str](), list[asyncio.Task[bool]]()

        async def ask_late(arguments: dict[str, Any]) -> dict[str, Any]:
            cancelling.append(asyncio.create_task(bench.executor.cancel(ids[0])))
            await asyncio.sleep(0)
            return {"action": "defer"}

        bench.tool(ask_late)
        bench.desk.rules = policy(hook("ask_late"))
        request = bench.request("deploy", target="prod")
        ids.append(request.id)
        await bench.open(request)
        await bench.ended(request.id)
        await asyncio.sleep(5)
        assert (approvals(bench), bench.desk.put) == ([], [])
        assert bench.state(request.id) is CallState.CANCELLED

    run_virtual(main())


def test_a_call_that_has_its_result_from_outside_is_not_ended_again() -> None:
    """M-73, M-97."""

    async def main() -> None:
        bench = gated()
        call = await deferred(bench)
        bench.desk.cancelled = lambda token: None  # type: ignore[method-assign]
        assert not await bench.executor.cancel(call.id)
        assert (bench.mail(), bench.state(call.id)) == ([], CallState.DEFERRED)

    run_virtual(main())


# ── The agent's own approve ──


@pytest.mark.parametrize(
    ("answer", "runs"), [(True, True), (False, False), (None, False), ("", False)]
)
@pytest.mark.parametrize("kind", ["plain", "coroutine", "around a coroutine", "object"])
def test_approve_may_be_anything_that_can_be_called_and_its_answer_is_waited_for(
    kind: str, answer: Any, runs: bool
) -> None:
    """What a lambda around a coroutine function returns is no yes."""

    async def later(name: str, arguments: Any) -> Any:
        await asyncio.sleep(0)
        return answer

    class Gate:
        async def __call__(self, name: str, arguments: Any) -> Any:
            return await later(name, arguments)

    kinds: dict[str, Callable[..., Any]] = {
        "plain": lambda name, arguments: answer,
        "coroutine": later,
        "around a coroutine": lambda name, arguments: later(name, arguments),
        "object": Gate(),
    }

    async def main() -> CallState:
        bench = Bench()
        bench.tool(deploy)
        bench.desk.gate = kinds[kind]
        (call,) = await bench.ended(await bench.call("deploy", target="x"))
        return call.state

    state = asyncio.run(main())
    assert (state, bool(ran)) == (CallState.COMPLETED if runs else CallState.FAILED, runs)


def test_an_approve_that_hangs_in_a_thread_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom_runtime.calls.executor.REALTIME_SECONDS", 0.1)
    go = threading.Event()

    async def main() -> Call:
        bench = Bench()
        bench.tool(deploy)
        bench.desk.gate = lambda name, arguments: go.wait(30)
        (call,) = await bench.ended(await bench.call("deploy", target="x"))
        return call

    call = asyncio.run(main())
    go.set()
    assert (call.result, ran) == ("Tool 'deploy' was not approved.", [])


# ── Time limits ──


def test_the_agent_s_time_limit_holds_where_the_call_has_none_of_its_own() -> None:
    """M-118."""

    async def main() -> list[Any]:
        bench = Bench()
        bench.desk.limit = 5

        async def slow(seconds: float) -> str:
            await asyncio.sleep(seconds)
            return "done"

        tool = bench.tool(slow)
        got = []
        for decorators in ([], [{"tag": "timeout", "seconds": 20}]):
            bench.desk.rules = read_policy({"wrappers": [{"decorators": decorators}]})
            (call,) = await bench.ended(await bench.call(tool, seconds=10))
            got.append((call.state, call.result))
        return got

    assert run_virtual(main()) == [
        (CallState.TIMED_OUT, "timed out after 5s"),
        (CallState.COMPLETED, "done"),
    ]


def test_our_own_tools_take_no_place_from_those_that_work() -> None:
    """M-68: a call that holds the last place can be looked at and cancelled."""

    async def main() -> None:
        bench = Bench(max_concurrency=1)

        async def slow() -> None:
            await asyncio.sleep(1000)

        async def look() -> str:
            return "seen"

        slow_call, other = await bench.open(
            bench.request(bench.tool(slow)), bench.request(bench.tool(look, toolbox="calls"))
        )
        await bench.ended(other)
        assert bench.state(slow_call) is CallState.RUNNING
        assert bench.stored()[other] == [
            CallState.PENDING,
            CallState.RUNNING,
            CallState.COMPLETED,
        ]
        await bench.executor.cancel_all()

    run_virtual(main())


def test_a_tool_s_own_attach_time_is_its_first_rule() -> None:
    async def main() -> list[Any]:
        bench = Bench()
        mine = bench.tool(deploy, attach_seconds=3)
        other = bench.tool(ask)
        works = [bench.executor.work(bench.request(t), bench.tools) for t in (mine, other, "none")]
        return [work.applied.disposition for work in works]

    assert run_virtual(main()) == [RunAsync(attach_seconds=3), RunSync(), RunSync()]
