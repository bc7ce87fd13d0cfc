"""Every call and its state; an end and its mail are one (M-62b, M-71, M-73)."""

import asyncio
from dataclasses import replace

import pytest

from calls.bench import Bench
from contracts.envelopes import AT
from postroom_runtime.calls.table import CallTable
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    Envelope,
    FromToolCall,
    ToolCallFinished,
)
from postroom_runtime.contracts.errors import StoreFailed
from postroom_runtime.contracts.journal import RowKind, kind_of
from postroom_runtime.testing import run_virtual


async def opened(bench: Bench, tool: str = "run_tests", *, running: bool = True) -> str:
    """A call that is stored and entered, and that nothing runs."""
    call = bench.table.opened(bench.request(tool, suite="fast"), None, running=running)
    await bench.storage.commit("s-0001", epoch=1, version=None, rows=(call,))
    bench.table.enter(call)
    return call.id


# ── Opening ──


def test_a_new_call_is_running_since_now_or_waits_to_run() -> None:
    async def main() -> list[Call]:
        bench = Bench()
        return [
            bench.table.opened(bench.request("t", a=1), {"decorators": []}, running=running)
            for running in (True, False)
        ]

    running, waiting = run_virtual(main())

    assert running == Call(
        id="call_0001",
        session="s-0001",
        tool="t",
        arguments={"a": 1},
        state=CallState.RUNNING,
        policy={"decorators": []},
        started_at=AT,
    )
    assert (waiting.state, waiting.started_at) == (CallState.PENDING, None)


def test_a_call_is_there_once_it_is_entered_oldest_first() -> None:
    async def main() -> tuple[list[str], Call | None, Call | None]:
        bench = Bench()
        ids = [await opened(bench) for _ in range(3)]
        assert [call.id for call in bench.table.all()] == ids
        return ids, bench.table.get(ids[0]), bench.table.get("call_9999")

    ids, known, unknown = run_virtual(main())

    assert known is not None
    assert (known.id, unknown) == (ids[0], None)


def test_a_pending_call_that_starts_is_stored_as_running_once() -> None:
    async def main() -> tuple[Call, list[CallState]]:
        bench = Bench()
        id = await opened(bench, running=False)
        await bench.table.start(id)
        await bench.table.start(id)
        return bench.get(id), list(bench.stored()[id])

    call, states = run_virtual(main())

    assert (call.state, call.started_at) == (CallState.RUNNING, AT)
    assert states == [CallState.PENDING, CallState.RUNNING]


def test_open_calls_are_those_that_run_or_wait_to_run() -> None:
    """Deferred ones do not count: they wait for a person (api.md, idle)."""

    async def main() -> list[str]:
        bench = Bench()
        _, waiting, deferred, ended = [await opened(bench) for _ in range(4)]
        bench.table.enter(replace(bench.get(waiting), state=CallState.PENDING))
        bench.table.enter(replace(bench.get(deferred), state=CallState.DEFERRED))
        await bench.table.end(ended, CallState.COMPLETED, "ok")
        return [call.id for call in bench.table.open_calls()]

    assert run_virtual(main()) == ["call_0001", "call_0002"]


def test_stored_calls_are_taken_in_their_latest_state() -> None:
    async def main() -> list[Call]:
        bench = Bench()
        await bench.table.end(await opened(bench), CallState.COMPLETED, "ok")
        table = CallTable("s-0001", bench.storage, 2, lambda: AT)
        table.load([r.record for r in bench.storage.rows() if isinstance(r.record, Call)])
        assert table.all() == bench.table.all()
        return table.all()

    assert [call.state for call in run_virtual(main())] == [CallState.COMPLETED]


# ── Ending ──


def test_an_end_and_its_mail_are_one_transaction() -> None:
    """M-62b: published in one group, the call first."""

    async def main() -> tuple[Call, list[str], Envelope]:
        bench = Bench()
        id = await opened(bench)
        assert await bench.table.end(id, CallState.COMPLETED, {"passed": 42})
        kinds = [kind_of(row.session, row.record) for row in bench.groups[-1]]
        (mail,) = bench.mail()
        return bench.get(id), list(kinds), mail

    call, kinds, mail = run_virtual(main())

    assert kinds == [RowKind.CALL, RowKind.MAIL]
    assert (call.state, call.result, call.ended_at) == (CallState.COMPLETED, {"passed": 42}, AT)
    assert mail.sender == FromToolCall(call.id)
    assert mail.body == ToolCallFinished(call.id, "run_tests", "completed", {"passed": 42})


def test_nobody_sees_an_end_before_its_mail_is_stored() -> None:
    """M-62b: the table tells of it when the store has acknowledged both."""

    async def main() -> list[tuple[float, bool, int]]:
        bench = Bench()
        id = await opened(bench)
        bench.storage.seconds = 1.0
        ending = asyncio.create_task(bench.table.end(id, CallState.COMPLETED, "ok"))
        seen = []
        for _ in range(3):
            await asyncio.sleep(0.4)
            now = asyncio.get_running_loop().time()
            seen.append((round(now, 1), bench.state(id).final, len(bench.mail())))
        assert await ending
        return seen

    seen = run_virtual(main())

    assert [(at, final) for at, final, _ in seen] == [(0.4, False), (0.8, False), (1.2, True)]
    assert all(mails == 1 for _, final, mails in seen if final)


@pytest.mark.parametrize("state", [state for state in CallState if state.final])
def test_a_final_state_is_written_once(state: CallState) -> None:
    """M-73: what comes later is discarded and posts nothing."""

    async def main() -> tuple[bool, bool, Call, list[tuple[str, str]]]:
        bench = Bench()
        id = await opened(bench)
        first = await bench.table.end(id, state, "first")
        second = await bench.table.end(id, CallState.COMPLETED, "second")
        return first, second, bench.get(id), bench.finished()

    first, second, call, finished = run_virtual(main())

    assert (first, second) == (True, False)
    assert (call.state, call.result) == (state, "first")
    assert finished == [(call.id, state)]


def test_of_two_ends_at_the_same_time_one_wins_and_one_mail_is_posted() -> None:
    """M-73: the second comes while the first is being stored."""

    async def main() -> tuple[list[bool], CallState, list[tuple[str, str]]]:
        bench = Bench()
        id = await opened(bench)
        bench.storage.seconds = 1.0
        async with asyncio.TaskGroup() as group:
            ends = [
                group.create_task(bench.table.end(id, state, "x"))
                for state in (CallState.CANCELLED, CallState.COMPLETED)
            ]
        return [end.result() for end in ends], bench.state(id), bench.finished()

    won, state, finished = run_virtual(main())

    assert won == [True, False]
    assert state is CallState.CANCELLED
    assert finished == [("call_0001", "cancelled")]


def test_an_end_that_could_not_be_stored_leaves_the_call_open_for_another_try() -> None:
    """M-62b: as if nothing had happened, and the result is not lost."""

    async def main() -> tuple[CallState, int, bool, list[tuple[str, str]]]:
        bench = Bench()
        id = await opened(bench)
        bench.storage.failures = 1
        with pytest.raises(StoreFailed):
            await bench.table.end(id, CallState.COMPLETED, "ok")
        between = bench.state(id), len(bench.mail())
        again = await bench.table.end(id, CallState.COMPLETED, "ok")
        return *between, again, bench.finished()

    assert run_virtual(main()) == (CallState.RUNNING, 0, True, [("call_0001", "completed")])


def test_a_full_mailbox_does_not_keep_a_call_from_ending() -> None:
    """M-32: its session takes one unread mail, and call ends are exempt."""

    async def main() -> int:
        bench = Bench()
        for _ in range(5):
            await bench.table.end(await opened(bench), CallState.COMPLETED, "ok")
        return len(bench.finished())

    assert run_virtual(main()) == 5


def test_a_call_cannot_start_while_its_end_is_being_stored() -> None:
    """M-73: cancelled while it waited for its turn, it would come back to life."""

    async def main() -> tuple[CallState, list[CallState]]:
        bench = Bench()
        id = await opened(bench, running=False)
        bench.storage.seconds = 1.0
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.table.end(id, CallState.CANCELLED, "x"))
            await asyncio.sleep(0.5)
            group.create_task(bench.table.start(id))
        return bench.state(id), list(bench.stored()[id])

    assert run_virtual(main()) == (
        CallState.CANCELLED,
        [CallState.PENDING, CallState.CANCELLED],
    )


# ── Orphans ──


def test_an_orphan_ends_as_a_failure_in_words_under_an_id_of_its_own() -> None:
    """M-71: the id makes it one mail, however often a room is reopened."""

    async def main() -> tuple[Call, list[bool], list[Envelope]]:
        bench = Bench()
        call = bench.get(await opened(bench))
        ended, told = bench.table.orphan(call)
        duplicates = [bench.storage.accept((told,))[0].result().duplicate for _ in range(2)]
        return ended, duplicates, bench.mail()

    ended, duplicates, mail = run_virtual(main())

    assert (ended.state, ended.ended_at) == (CallState.ORPHANED, AT)
    assert ended.result == (
        "orphaned: the kernel ended while run_tests ran, started at 2026-03-02 10:00:00 UTC; whether "
        "it took effect is unknown. Arguments: {'suite': 'fast'}"
    )
    assert duplicates == [False, True]
    assert [each.id for each in mail] == ["orphan-call_0001"]
    assert mail[0].body == ToolCallFinished("call_0001", "run_tests", "orphaned", ended.result)


def test_whoever_waits_for_an_end_is_rung_when_the_table_knows_of_it() -> None:
    """M-62b: the store rings when it publishes, which may be before the table takes the end over."""
    heard: list[CallState] = []

    async def main() -> None:
        bench = Bench()
        table = CallTable(
            "s-0001", bench.storage, 1, lambda: AT, lambda: heard.append(table.all()[0].state)
        )
        call = table.opened(bench.request("t"), None, running=False)
        await bench.storage.commit("s-0001", epoch=1, version=None, rows=(call,))
        table.enter(call)

        await table.start(call.id)
        await table.end(call.id, CallState.COMPLETED, "done")

    run_virtual(main())
    assert heard == [CallState.PENDING, CallState.RUNNING, CallState.COMPLETED]
