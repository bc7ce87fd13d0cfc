"""What a hook is asked, what it may answer, and what its failure does (M-120…M-124)."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from calls.bench import Bench
from postroom_runtime.calls.hooks import (
    HOOK_SECONDS,
    Annotate,
    AskOwner,
    Deny,
    GoOn,
    Hooks,
    Instead,
    Keep,
)
from postroom_runtime.calls.middleware import CallInput
from postroom_runtime.calls.policy import After, Before, CommandTarget, ToolTarget, read_policy
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.extra import Json
from postroom_runtime.testing import run_virtual
from process_table import gone

CALL = CallInput(
    session="s-0001",
    call="call_0001",
    agent="reviewer",
    tool="deploy",
    arguments={"target": "prod", "ü": [1]},
)
SEEN = {
    "tool": "deploy",
    "arguments": {"target": "prod", "ü": [1]},
    "session_id": "s-0001",
    "tool_call_id": "call_0001",
    "agent": "reviewer",
}
GUARD, AUDIT = Before(hook=ToolTarget(tool="guard")), After(hook=ToolTarget(tool="audit"))


class Asked:
    """Hooks whose tools answer one thing, or raise it."""

    def __init__(self, answer: Any, takes: float = 0) -> None:
        self.answer, self.takes = answer, takes
        self.seen: list[tuple[str, Mapping[str, Json]]] = []
        self.told: list[tuple[str, str]] = []
        self.hooks = Hooks(self.tool, lambda call, words: self.told.append((call, words)))

    async def tool(self, name: str, seen: Mapping[str, Json]) -> Any:
        self.seen.append((name, seen))
        await asyncio.sleep(self.takes)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def before(self) -> Any:
        return run_virtual(self.hooks.before(GUARD, CALL))

    def after(self, status: str = "completed", result: Json = "ok") -> Any:
        return run_virtual(self.hooks.after(AUDIT, CALL, status, result, 1234.5))


# ── What it sees ──


def test_a_before_hook_sees_the_call_and_nothing_else() -> None:
    """M-120."""
    asked = Asked(None)
    asked.before()

    assert asked.seen == [("guard", SEEN)]


def test_an_after_hook_sees_the_same_and_how_it_went() -> None:
    """M-121."""
    asked = Asked(None)
    asked.after("failed", "ValueError: broken")

    assert asked.seen == [
        ("audit", SEEN | {"result": "ValueError: broken", "status": "failed", "duration_ms": 1234})
    ]


# ── What it may answer ──

BEFORE = [
    (None, GoOn()),
    (True, GoOn()),
    ("", GoOn()),
    (" \n", GoOn()),
    ({"action": "continue"}, GoOn()),
    ('{"action": "continue"}\n', GoOn()),
    ({"action": "continue", "arguments": {"a": 1}}, GoOn(arguments={"a": 1})),
    (False, Deny(message="Tool 'deploy' was not approved.")),
    ({"action": "deny", "message": "not today"}, Deny(message="not today")),
    ({"action": "defer"}, AskOwner()),
    ({"action": "defer", "reason": "sure?"}, AskOwner(reason="sure?")),
    ({"action": "answer", "result": [1, None]}, Instead(result=[1, None])),
    ({"action": "answer", "result": None}, Instead(result=None)),
]


@pytest.mark.parametrize(("said", "answer"), BEFORE)
def test_what_a_before_hook_may_answer(said: Any, answer: Any) -> None:
    """M-120: as an object, or as the JSON of one."""
    asked = Asked(said)

    assert asked.before() == answer
    assert asked.told == []


WRONG = [
    {},
    {"arguments": {"a": 1}},
    {"message": "no"},
    {"result": 1},
    {"action": "dance"},
    {"action": "deny"},
    {"action": "answer"},
    {"action": "continue", "arguments": [1]},
    {"action": "continue", "argumets": {}},
    {"action": "continue", "result": 1},
    {"action": "annotate", "text": "x"},
    {"action": "Deny", "message": "x"},
    "nonsense",
    '{"action": "continue"',
    '{"action": "continue"} and more',
    "null",
    "true",
    "[]",
    b"\xff",
    [],
    7,
    object(),
]


@pytest.mark.parametrize("said", WRONG)
def test_any_other_answer_of_a_before_hook_denies_and_is_traced(said: Any) -> None:
    """M-124: fail closed."""
    asked = Asked(said)

    answer = asked.before()

    assert isinstance(answer, Deny)
    assert answer.message.startswith("the guard guard failed, so deploy was not run: it answered")
    assert asked.told == [("call_0001", answer.message)]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (None, Keep()),
        (True, Keep()),
        ("", Keep()),
        ({"action": "continue"}, Keep()),
        ({"action": "continue", "result": {"a": 1}}, Keep(result={"a": 1})),
        ({"action": "annotate", "text": "noted"}, Annotate(text="noted")),
        ('{"action": "annotate", "text": "noted"}', Annotate(text="noted")),
    ],
)
def test_what_an_after_hook_may_answer(said: Any, answer: Any) -> None:
    """M-121."""
    asked = Asked(said)

    assert asked.after() == answer
    assert asked.told == []


@pytest.mark.parametrize(
    "said",
    [
        False,
        {},
        {"action": "deny", "message": "no"},
        {"action": "defer"},
        {"action": "answer", "result": 1},
        {"action": "continue", "arguments": {}},
        {"action": "annotate"},
        "nonsense",
    ],
)
def test_any_other_answer_of_an_after_hook_changes_nothing_and_is_traced(said: Any) -> None:
    """M-121, M-124."""
    asked = Asked(said)

    assert asked.after() == Keep()
    ((call, words),) = asked.told
    assert (call, words.startswith("the hook audit failed: it answered")) == ("call_0001", True)


# ── How it may fail ──


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("broken"), "ValueError: broken"),
        (LookupError("there is no tool 'guard'"), "LookupError: there is no tool 'guard'"),
        (TimeoutError("its own"), "TimeoutError: its own"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_a_hook_that_crashes_denies_before_and_changes_nothing_after(
    error: BaseException, words: str
) -> None:
    """M-124: both leave a trace."""
    asked = Asked(error)

    assert asked.before() == Deny(message=f"the guard guard failed, so deploy was not run: {words}")
    assert asked.after() == Keep()
    assert [told for _, told in asked.told] == [
        f"the guard guard failed, so deploy was not run: {words}",
        f"the hook audit failed: {words}",
    ]


def test_a_hook_has_thirty_seconds() -> None:
    """M-124."""

    async def main() -> list[float]:
        loop, moments = asyncio.get_running_loop(), []
        asked = Asked({"action": "continue"}, takes=29.9)
        assert await asked.hooks.before(GUARD, CALL) == GoOn()
        moments.append(loop.time())
        asked = Asked({"action": "continue"}, takes=1000)
        denied = await asked.hooks.before(GUARD, CALL)
        assert isinstance(denied, Deny)
        assert denied.message.endswith("no answer within 30s")
        moments.append(loop.time())
        assert await asked.hooks.after(AUDIT, CALL, "completed", "ok", 1) == Keep()
        assert asked.told[-1] == ("call_0001", "the hook audit failed: no answer within 30s")
        moments.append(loop.time())
        return moments

    assert run_virtual(main()) == pytest.approx([29.9, 59.9, 89.9])
    assert HOOK_SECONDS == 30


@pytest.mark.parametrize("before", [True, False])
def test_a_cancellation_is_no_failure_of_a_hook(before: bool) -> None:
    """M-124."""

    async def main() -> tuple[bool, list[Any]]:
        asked = Asked(None, takes=20)
        hooks = asked.hooks
        asking: Any = (
            hooks.before(GUARD, CALL) if before else hooks.after(AUDIT, CALL, "completed", "ok", 1)
        )
        task = asyncio.create_task(asking)
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled(), asked.told

    assert run_virtual(main()) == (True, [])


# ── Programs ──


def program(tmp_path: Path, text: str) -> CommandTarget:
    path = tmp_path / "hook.py"
    path.write_text(text)
    return CommandTarget(command=(sys.executable, "-S", str(path)))


def ask(target: CommandTarget, seconds: float = 30) -> tuple[Any, Any, list[str]]:
    """Ask it before and after, on a real loop."""
    told: list[str] = []

    async def no_tool(name: str, seen: Mapping[str, Json]) -> Any:
        raise AssertionError("no tool was meant")

    async def main() -> tuple[Any, Any]:
        hooks = Hooks(no_tool, lambda call, words: told.append(words), seconds)
        before = await hooks.before(Before(hook=target), CALL)
        return before, await hooks.after(After(hook=target), CALL, "completed", "ok", 5)

    return *asyncio.run(main()), told


def test_a_program_reads_the_call_as_json_and_answers_as_json(tmp_path: Path) -> None:
    """M-122."""
    seen = tmp_path / "seen"
    target = program(
        tmp_path,
        "import json, sys\n"
        "call = json.load(sys.stdin)\n"
        f"open({str(seen)!r}, 'a').write(json.dumps(call) + '\\n')\n"
        "if 'status' in call: print(json.dumps({'action': 'annotate', 'text': call['status']}))\n"
        "else: print(json.dumps({'action': 'continue', 'arguments': {'target': 'test'}}))\n",
    )

    before, after, told = ask(target)

    assert (before, after) == (GoOn(arguments={"target": "test"}), Annotate(text="completed"))
    assert told == []
    assert [json.loads(line) for line in seen.read_text().splitlines()] == [
        SEEN,
        SEEN | {"result": "ok", "status": "completed", "duration_ms": 5},
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; sys.stderr.write('no key'); sys.exit(3)", "exit code 3: no key"),
        ("import sys; sys.exit(3)", "exit code 3"),
        (
            'import sys; print(\'{"action": "continue"}\'); sys.exit(1)',
            "exit code 1",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit code -9"),
        ("1/0", "ZeroDivisionError"),
        ("print('yes')", "it answered 'yes\\n', which is no hook answer"),
    ],
)
def test_a_program_that_fails_denies_before_and_is_ignored_after(
    tmp_path: Path, text: str, words: str
) -> None:
    """M-122, M-124."""
    before, after, told = ask(program(tmp_path, text))

    assert isinstance(before, Deny)
    assert words in before.message
    assert after == Keep()
    assert len(told) == 2
    assert words in told[1]


def test_a_program_that_is_not_there_denies(tmp_path: Path) -> None:
    """M-124."""
    for command in (str(tmp_path / "none"), str(tmp_path), "", "'unclosed"):
        before, after, told = ask(CommandTarget(command=command))
        assert isinstance(before, Deny)
        assert (after, len(told)) == (Keep(), 2)


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """M-124, M-68: also when it will not hear of it."""
    pids = tmp_path / "pids"
    target = program(
        tmp_path,
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} {{child.pid}} ')\n"
        "time.sleep(600)\n",
    )

    before, after, told = ask(target, seconds=1.5)

    assert isinstance(before, Deny)
    assert before.message.endswith("no answer within 1.5s")
    assert (after, len(told)) == (Keep(), 2)
    numbers = [int(each) for each in pids.read_text().split()]
    assert len(numbers) == 4
    deadline = time.monotonic() + 10
    while not all(map(gone, numbers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [pid for pid in numbers if not gone(pid)] == []
    assert os.getpid() not in numbers


# ── Over a whole call ──


def guarded(policy: dict[str, Any], *hooks: Any, **arguments: Any) -> Call:
    """Call ``deploy`` under a policy, with these functions offered as tools too."""

    async def main() -> Call:
        bench = Bench()
        bench.desk.rules = read_policy({"wrappers": [policy]})
        for hook in hooks:
            bench.tool(hook)

        async def deploy(target: str) -> str:
            return f"deployed {target}"

        (call,) = await bench.ended(await bench.call(bench.tool(deploy), **arguments))
        return call

    return run_virtual(main())


def test_the_trace_of_a_failing_hook_is_in_the_progress_of_its_call() -> None:
    """M-124."""

    async def guard(call: dict[str, Any]) -> None:
        raise ValueError("broken")

    tag = {"tag": "before", "hook": {"tool": "guard"}}
    denied = guarded({"decorators": [tag]}, guard, target="x")
    assert denied.state is CallState.FAILED
    assert [each.text for each in denied.progress] == [denied.result]

    tag = {"tag": "after", "hook": {"tool": "guard"}}
    kept = guarded({"decorators": [tag]}, guard, target="x")
    assert (kept.state, kept.result) == (CallState.COMPLETED, "deployed x")
    assert [each.text for each in kept.progress] == ["the hook guard failed: ValueError: broken"]


def test_a_hook_tool_takes_what_it_has_parameters_for() -> None:
    """M-122."""
    seen: list[Any] = []

    async def guard(tool: str, call: dict[str, Any]) -> None:
        seen.append((tool, sorted(call)))

    tag = {"tag": "before", "hook": {"tool": "guard"}}
    guarded({"decorators": [tag]}, guard, target="x")

    assert seen == [("deploy", ["agent", "arguments", "session_id", "tool", "tool_call_id"])]


def test_a_guard_on_everything_is_not_guarded_itself_and_a_missing_one_denies() -> None:
    """M-122, M-124."""
    asked: list[str] = []

    async def guard(tool: str) -> None:
        asked.append(tool)

    tag = {"tag": "before", "hook": {"tool": "guard"}}
    call = guarded({"match": {"tool": "*"}, "decorators": [tag, tag]}, guard, target="x")
    assert (call.state, asked) == (CallState.COMPLETED, ["deploy", "deploy"])

    missing = guarded({"decorators": [tag]}, target="x")
    assert missing.state is CallState.FAILED
    assert "there is no tool 'guard' to ask" in str(missing.result)


def test_a_rewrite_that_does_not_fit_the_tool_is_told_and_nothing_runs() -> None:
    """M-120."""

    async def guard() -> dict[str, Any]:
        return {"action": "continue", "arguments": {"aim": "x"}}

    tag = {"tag": "before", "hook": {"tool": "guard"}}
    call = guarded({"decorators": [tag]}, guard, target="x")

    assert call.state is CallState.FAILED
    assert "deploy was not called: target: Field required" in str(call.result)
