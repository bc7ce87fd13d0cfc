"""Wrappers, hooks and approvals around calls, in whole sessions."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from office.rooms import Talk, in_room, read, said, ticks
from postroom_runtime.calls.processes import command
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.storage.clock import utc_now
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import run_virtual
from process_table import gone


async def deploy(target: str, version: str = "1") -> str:
    """Deploy."""
    ran.append((target, version))
    return f"deployed {version} to {target}"


async def fetch(url: str) -> str:
    """Fetch; fails twice, then works."""
    tries.append(url)
    if len(tries) < 3:
        raise ValueError("no route")
    return f"page {url}"


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


ran: list[tuple[str, str]] = []
tries: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()
    tries.clear()


def calling(*calls: Any) -> Any:
    @script
    def caller(turn: ScriptTurn) -> Talk:
        if turn.text != "go":
            return f"read: {turn.text}"
        got = yield list(calls)
        return json.dumps(got)

    return caller


def wrapped(*decorators: dict[str, Any], tool: str = "*") -> dict[str, Any]:
    return {"wrappers": [{"match": {"tool": tool}, "decorators": list(decorators)}]}


def before(hook: dict[str, Any]) -> dict[str, Any]:
    return {"tag": "before", "hook": hook}


def run(main: Callable[[Room], Any]) -> None:
    in_room(main)


async def answers(room: Room, *calls: Any, **knobs: Any) -> tuple[list[Any], Session]:
    s = room.spawn(Agent("a", model=calling(*calls), **knobs), "go")
    await s.wait()
    return json.loads(said(s)[1]), s


# ── wrappers ──


def test_m7_m118_a_timeout_on_everything_ends_a_slow_call() -> None:
    async def main(room: Room) -> None:
        policy = wrapped({"tag": "timeout", "seconds": 5})
        (got,), s = await answers(room, call("nap", seconds=60), tools=[nap], policy=policy)
        assert got == "timed out after 5s"
        assert [c.state for c in s.calls()] == [CallState.TIMED_OUT]

    run(main)


def test_m113_m118_retries_around_timeout_is_a_fresh_timeout_per_try() -> None:
    async def main(room: Room) -> None:
        retries = {"tag": "retries", "count": 2, "backoffMs": 500}
        timeout = {"tag": "timeout", "seconds": 1}
        loop = asyncio.get_running_loop()

        began = loop.time()
        await answers(room, call("nap", seconds=60), tools=[nap], policy=wrapped(retries, timeout))
        assert loop.time() - began == 1 + 0.5 + 1 + 0.5 + 1
        began = loop.time()
        room.session("a").close()
        await answers(room, call("nap", seconds=60), tools=[nap], policy=wrapped(timeout, retries))
        assert loop.time() - began == 1

    run(main)


def test_m118_retries_try_again_after_an_exception_and_report_it() -> None:
    async def main(room: Room) -> None:
        policy = wrapped({"tag": "retries", "count": 2, "backoffMs": 500})
        (got,), s = await answers(room, call("fetch", url="x"), tools=[fetch], policy=policy)
        assert (got, len(tries)) == ("page x", 3)
        texts = [p.text for p in s.calls()[0].progress]
        assert texts == [
            "retry 1 of 2 after ValueError: no route",
            "retry 2 of 2 after ValueError: no route",
        ]

    run(main)


def test_m118_cache_answers_the_same_call_once_and_keeps_no_failure() -> None:
    async def main(room: Room) -> None:
        policy = wrapped({"tag": "cache"})
        calls = [call("deploy", target="a"), call("deploy", target="b")]
        s = room.spawn(Agent("a", model=calling(*calls), tools=[deploy], policy=policy), "go")
        await s.wait()
        s.send("go")
        await s.wait()
        assert ran == [("a", "1"), ("b", "1")]
        assert "answered from the cache" in s.calls()[2].progress[-1].text

    run(main)


def test_m119_truncate_cuts_at_a_character_and_says_so() -> None:
    async def main(room: Room) -> None:
        async def long() -> str:
            """Say much."""
            return "é" * 100

        policy = wrapped({"tag": "truncate", "maxBytes": 11})
        (got,), _ = await answers(room, call("long"), tools=[long], policy=policy)
        assert got == "é" * 5 + "\n[truncated: result exceeded 11 bytes]"

    run(main)


def test_m116_what_wrapped_a_call_stands_on_it() -> None:
    async def main(room: Room) -> None:
        policy = {
            "rules": [{"tool": "dep*", "disposition": {"tag": "runAsync", "attachSeconds": 9}}],
            "wrappers": [
                {"match": {"tool": "*"}, "decorators": [{"tag": "label", "label": "outer"}]},
                {
                    "match": {"args": {"properties": {"target": {"const": "prod"}}}},
                    "decorators": [{"tag": "label", "label": "prod only"}],
                },
                {"match": {"toolbox": "mail"}, "decorators": [{"tag": "label", "label": "mail"}]},
            ],
        }
        calls = [call("deploy", target="prod"), call("deploy", target="test")]
        _, s = await answers(room, *calls, tools=[deploy], policy=policy)
        first, second = [c.policy for c in s.calls()]
        assert first is not None
        assert second is not None
        assert [d["label"] for d in first["decorators"]] == ["outer", "prod only"]
        assert [d["label"] for d in second["decorators"]] == ["outer"]
        assert first["disposition"] == {"tag": "runAsync", "attachSeconds": 9.0}

    run(main)


# ── hooks ──


def guard(answer: Any) -> Any:
    seen: list[dict[str, Any]] = []

    async def guard(tool: str, arguments: dict[str, Any], session_id: str, agent: str) -> Any:
        """Guard."""
        seen.append({"tool": tool, "arguments": arguments, "session": session_id, "agent": agent})
        if isinstance(answer, Exception):
            raise answer
        return answer

    guard.seen = seen  # type: ignore[attr-defined]
    return guard


@pytest.mark.parametrize(
    ("answer", "result", "runs"),
    [
        ({"action": "continue"}, "deployed 1 to prod", [("prod", "1")]),
        (
            {"action": "continue", "arguments": {"target": "test", "version": "2"}},
            "deployed 2 to test",
            [("test", "2")],
        ),
        ({"action": "deny", "message": "not on a Friday"}, "not on a Friday", []),
        ({"action": "answer", "result": {"ok": True}}, {"ok": True}, []),
        ({"action": "dance"}, "the guard guard failed, so deploy was not run", []),
        (ValueError("broken"), "the guard guard failed, so deploy was not run", []),
    ],
)
def test_m120_m124_what_a_before_hook_may_answer(answer: Any, result: Any, runs: Any) -> None:
    """M-120, M-124: a hook that fails in any way denies."""

    async def main(room: Room) -> None:
        ask = guard(answer)
        policy = wrapped(before({"tool": "guard"}), tool="deploy")
        (got,), s = await answers(
            room, call("deploy", target="prod"), tools=[deploy, ask], policy=policy
        )
        assert got == result if isinstance(result, dict) else got.startswith(result)
        assert ran == runs
        assert ask.seen == [
            {"tool": "deploy", "arguments": {"target": "prod"}, "session": s.id, "agent": "a"}
        ]

    run(main)


def test_m121_an_after_hook_annotates_rewrites_and_its_failure_changes_nothing() -> None:
    async def main(room: Room) -> None:
        seen: list[tuple[str, Any]] = []

        async def audit(tool: str, status: str, result: Any, duration_ms: int) -> Any:
            """Audit."""
            seen.append((status, result))
            return said_by_hook[0]

        after = {"tag": "after", "hook": {"tool": "audit"}}
        for answer, expected in [
            ({"action": "annotate", "text": "noted"}, "deployed 1 to x\nnoted"),
            ({"action": "continue", "result": "secret"}, "secret"),
            ("nonsense", "deployed 1 to x"),
        ]:
            said_by_hook: list[Any] = [answer]
            (got,), s = await answers(
                room,
                call("deploy", target="x"),
                tools=[deploy, audit],
                policy=wrapped(after, tool="deploy"),
            )
            assert got == expected
            s.close()
        assert seen == [("completed", "deployed 1 to x")] * 3
        said_by_hook = [None]
        (got,), _ = await answers(
            room, call("fetch", url="x"), tools=[fetch, audit], policy=wrapped(after, tool="fetch")
        )
        assert got == "ValueError: no route"
        assert seen[-1] == ("failed", "ValueError: no route")

    run(main)


def test_m122_a_guard_on_everything_never_guards_itself() -> None:
    async def main(room: Room) -> None:
        ask = guard({"action": "continue"})
        (got,), _ = await answers(
            room,
            call("deploy", target="x"),
            tools=[deploy, ask],
            policy=wrapped(before({"tool": "guard"})),
        )
        assert (got, len(ask.seen)) == ("deployed 1 to x", 1)

    run(main)


def test_m123_bound_values_never_reach_a_hook_and_a_rewrite_cannot_override_one() -> None:
    async def main(room: Room) -> None:
        got: list[str] = []

        async def push(target: str, key: str) -> str:
            """Push."""
            got.append(key)
            return "pushed"

        rewrite = {"action": "continue", "arguments": {"target": "x", "key": "forged"}}
        ask = guard(rewrite)
        policy = wrapped(before({"tool": "guard"}), tool="push")
        agent = Agent(
            "a", model=calling(call("push", target="x")), tools=[push, ask], policy=policy
        )
        s = room.spawn(agent, "go", bind={"key": "secret"})
        await s.wait()
        assert got == ["secret"]
        assert "secret" not in repr(ask.seen)

    run(main)


@pytest.mark.parametrize(
    ("yes", "result"),
    [
        (lambda name, arguments: arguments["target"] == "x", "deployed 1 to x"),
        (lambda name, arguments: False, "Tool 'deploy' was not approved."),
        (lambda name, arguments: 1 / 0, "Tool 'deploy' was not approved."),
    ],
)
def test_approve_asks_before_each_call_and_fails_closed(yes: Any, result: str) -> None:
    async def main() -> None:
        async with open_room() as room:
            (got,), _ = await answers(room, call("deploy", target="x"), tools=[deploy], approve=yes)
            assert got == result

    asyncio.run(main())


def test_approve_that_never_answers_is_a_no_after_two_minutes() -> None:
    async def main(room: Room) -> None:
        async def hang(name: str, arguments: Any) -> bool:
            await asyncio.sleep(10_000)
            return True

        (got,), _ = await answers(room, call("deploy", target="x"), tools=[deploy], approve=hang)
        assert got == "Tool 'deploy' was not approved."
        assert asyncio.get_running_loop().time() == 120

    run(main)


# ── programs ──


def test_m122_a_command_hook_reads_json_and_a_failing_one_denies(tmp_path: Path) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text(
        "import json, sys\n"
        "call = json.load(sys.stdin)\n"
        "if call['arguments']['target'] == 'boom': sys.exit(3)\n"
        "print(json.dumps({'action': 'deny', 'message': 'no ' + call['tool']}))\n"
    )

    async def main() -> None:
        async with open_room() as room:
            policy = wrapped(before({"command": f"{sys.executable} {hook}"}), tool="deploy")
            calls = [call("deploy", target="x"), call("deploy", target="boom")]
            (first, second), _ = await answers(room, *calls, tools=[deploy], policy=policy)
            assert first == "no deploy"
            assert "exit code 3" in second
            assert ran == []

    asyncio.run(main())


def test_m68_a_program_s_children_end_with_its_call(tmp_path: Path) -> None:
    """M-68, M-56: a subprocess tool has a process group of its own, which is killed whole."""
    pids = tmp_path / "pids"
    program = tmp_path / "parent.py"
    program.write_text(
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(60)\n"
    )

    async def main() -> None:
        async with open_room() as room:
            tool = command("work", [sys.executable, str(program)], "Work for a long time.")
            s = room.spawn(Agent("a", model=calling(call("work")), tools=[tool]), "go")
            while not pids.exists() or " " not in pids.read_text():
                await asyncio.sleep(0.05)
            s.cancel("call_0001")
            await s.wait(timeout=10)
            assert s.calls()[0].state is CallState.CANCELLED
            for pid in map(int, pids.read_text().split()):
                await _gone(pid)

    asyncio.run(main())


async def _gone(pid: int) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if gone(pid):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"process {pid} lives on")


# ── deferred calls and approvals ──

ASK = wrapped(before({"tool": "ask_owner"}), tool="deploy")


async def ask_owner(arguments: dict[str, Any]) -> Any:
    """Ask the owner."""
    return {"action": "defer", "reason": f"production? {arguments['target']}"}


def gated(*calls: Any) -> Agent:
    return Agent("a", model=calling(*calls), tools=[deploy, ask_owner], policy=ASK)


def test_m97_m114_a_gated_call_waits_as_a_row_and_runs_below_its_hook_when_approved() -> None:
    """M-97, M-114, M-9b: a wrapper answers with a result, or with a yield that parks the call."""

    async def main(room: Room) -> None:
        s = room.spawn(gated(call("deploy", target="prod")), "go")
        await s.wait()
        (approval,) = room.approvals()
        assert (approval.id, approval.tool, approval.reason) == (
            "ap-0001",
            "deploy",
            "production? prod",
        )
        (placeholder,) = s.transcript()[2].results
        assert (placeholder.value["status"], ran) == ("deferred", [])
        assert s.idle
        assert [e.body.type for e in room.inbox("a")] == ["approval"]  # type: ignore[union-attr]

        room.approve("ap-0001")
        await s.wait()
        assert ran == [("prod", "1")]
        (mail,) = s.transcript()[-2].mail
        assert read(s)[-1] == (
            f"[mail {mail.id}: deferred call call_0001 (deploy) completed]\ndeployed 1 to prod"
        )
        assert mail.id == f"cont-{approval.token}"
        with pytest.raises(AlreadyAnswered, match="already approved by api"):
            room.deny("ap-0001")
        assert room.approvals() == []
        assert [a.state for a in room.approvals(state=None)] == [ApprovalState.APPROVED]

    run(main)


def test_edited_arguments_run_instead_and_a_denial_tells_the_model_why() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(gated(call("deploy", target="a"), call("deploy", target="b")), "go")
        await s.wait()
        room.approve("ap-0001", args={"target": "test", "version": "9"})
        room.deny("ap-0002", "not today")
        await s.wait()
        assert ran == [("test", "9")]
        assert "Tool 'deploy' was not approved: not today" in "\n".join(read(s))
        assert {c.state for c in s.calls()} == {CallState.COMPLETED, CallState.FAILED}
        with pytest.raises(ConfigError, match="no approval 'ap-0009'"):
            room.approve("ap-0009")

    run(main)


def test_three_gated_calls_in_one_turn_are_answered_in_reverse_order() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(gated(*[call("deploy", target=t) for t in "abc"]), "go")
        await s.wait()
        assert [a.id for a in room.approvals()] == ["ap-0001", "ap-0002", "ap-0003"]
        for id in ("ap-0003", "ap-0002", "ap-0001"):
            room.approve(id)
            await s.wait()
        assert sorted(ran) == [("a", "1"), ("b", "1"), ("c", "1")]
        assert len(ran) == 3

    run(main)


def test_complete_gives_a_result_from_outside_once() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(gated(call("deploy", target="x")), "go")
        await s.wait()
        token = room.approvals()[0].token
        room.complete(token, {"by": "hand"})
        await s.wait()
        assert '{"by": "hand"}' in read(s)[-1]
        assert ran == []
        with pytest.raises(AlreadyAnswered):
            room.complete(token, "again")
        with pytest.raises(AlreadyAnswered):
            room.approve(token)

    run(main)


def test_the_disposition_defer_asks_before_anything_runs() -> None:
    async def main(room: Room) -> None:
        policy = {"rules": [{"tool": "deploy", "disposition": {"tag": "defer", "reason": "why?"}}]}
        s = room.spawn(
            Agent("a", model=calling(call("deploy", target="x")), tools=[deploy], policy=policy),
            "go",
        )
        await s.wait()
        assert [a.reason for a in room.approvals()] == ["why?"]
        room.approve("ap-0001")
        await s.wait()
        assert ran == [("x", "1")]

    run(main)


def test_stopping_a_session_closes_its_questions_and_an_answer_is_told_so() -> None:
    async def main(room: Room) -> None:
        agent = gated(call("deploy", target="x"), call("nap", seconds=50))
        s = room.spawn(
            Agent("a", model=agent.model, tools=[deploy, ask_owner, nap], policy=ASK), "go"
        )
        await ticks()
        assert len(room.approvals()) == 1
        s.stop()
        await s.wait()
        with pytest.raises(AlreadyAnswered, match="already cancelled"):
            room.approve("ap-0001")
        assert {m.state for m in s.transcript()[-1].results} == {CallState.CANCELLED}
        assert ran == []

    run(main)


def test_a_call_that_mails_its_own_session_and_a_gated_one_lose_nothing() -> None:
    async def main(room: Room) -> None:
        async def mail_me() -> str:
            """Mail the session itself."""
            await s.asend("from the tool")
            return "mailed"

        calls = [call("mail_me"), call("deploy", target="x")]
        s = room.spawn(
            Agent("a", model=calling(*calls), tools=[deploy, ask_owner, mail_me], policy=ASK)
        )
        s.send("go")
        await s.wait()
        assert "from the tool" in "\n".join(read(s))
        assert ran == []

    run(main)


def test_i30_an_approval_survives_a_restart_at_every_point() -> None:
    agent = gated(call("deploy", target="prod"))
    storage = MemoryStorage()

    def life(act: Callable[[Room], Any]) -> None:
        nonlocal storage
        storage = MemoryStorage(rows=storage.rows())
        room = Room(storage, name="memory", now=utc_now)

        async def main() -> None:
            room.attach()
            await act(room)

        run_virtual(main())

    async def asks(room: Room) -> None:
        await room.spawn(agent, "go").wait()

    async def approves_and_dies(room: Room) -> None:
        room.define(agent)
        room.approve("ap-0001")  # the kernel ends before the session reads the answer

    async def goes_on(room: Room) -> None:
        room.define(agent)
        s = room.session("a")
        await ticks()
        assert ran == []  # nothing runs by itself
        s.resume()
        await s.wait()
        assert ran == [("prod", "1")]
        assert "deployed 1 to prod" in read(s)[-1]

    async def is_done(room: Room) -> None:
        room.define(agent)
        room.session("a").resume()
        await room.wait()
        assert ran == [("prod", "1")]
        with pytest.raises(AlreadyAnswered):
            room.approve("ap-0001")

    for act in (asks, approves_and_dies, goes_on, is_done):
        life(act)
