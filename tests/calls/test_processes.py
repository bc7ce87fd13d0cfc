"""Programs as tools: no shell, a process group of their own, and none left behind (M-68, M-134)."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from calls.bench import Bench
from postroom_runtime.calls import processes
from postroom_runtime.calls.policy import read_policy
from postroom_runtime.calls.processes import ProcessFailed, Said, command, run_process
from postroom_runtime.calls.tool import BadArguments, Tool
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.errors import ConfigError
from process_table import gone

PYTHON = (sys.executable, "-S")


def called(tool: Tool, **arguments: Any) -> Call:
    """Call it as a model does, on a real loop."""

    async def main() -> Call:
        bench = Bench()
        bench.tools[tool.name] = tool
        (call,) = await bench.ended(await bench.call(tool.name, **arguments))
        return call

    return asyncio.run(main())


def python(text: str, *parameters: str, **options: Any) -> Tool:
    return command("work", [*PYTHON, "-c", text, *parameters], "Work.", **options)


# ── Parameters ──


def test_each_word_in_braces_is_a_text_parameter_in_the_order_they_appear() -> None:
    tool = command("grep", "grep -n {pattern} {path}/{pattern}.txt", "Search a file.")

    assert tool.spec.name == "grep"
    assert tool.spec.description == "Search a file."
    assert tool.spec.parameters == {
        "additionalProperties": False,
        "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
        "required": ["pattern", "path"],
        "type": "object",
    }


def test_what_a_model_gives_is_one_argument_and_no_shell_reads_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    tool = python("import sys; print(sys.argv[1:])", "{a}", "--b={b}", "x y")
    evil = f"$(touch {marker}); `touch {marker}` | > {marker} * ~ 'q\" \\"

    call = called(tool, a=evil, b="--help {a}")

    assert call.result == f"{[evil, '--b=--help {a}', 'x y']}\n"
    assert not marker.exists()


def test_braces_themselves_are_doubled() -> None:
    assert called(python("print('{{}}', '{{a}}')")).result == "{} {a}\n"
    doubled = python("import sys; print(sys.argv[1], '{{x}}')", "{x}")
    assert called(doubled, x="{{y}}").result == "{{y}} {x}\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ("", "the command line is empty"),
        ([], "the command line is empty"),
        ("echo 'x", "No closing quotation"),
        ("echo {a-b}", "{a-b} is no parameter name"),
        ("echo {a.b}", "{a.b} is no parameter name"),
        ("echo {0}", "{0} is no parameter name"),
        ("echo {}", "{} is no parameter name"),
        ("echo {for}", "{for} is no parameter name"),
        ("echo {", "a brace itself is {{ or }}"),
        (["echo", "}"], "a brace itself is {{ or }}"),
    ],
)
def test_a_command_line_that_will_not_do_is_told_when_it_is_defined(argv: Any, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        command("work", argv, "Work.")

    assert words in str(refused.value)


def test_arguments_that_do_not_fit_are_told_and_nothing_is_started(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    tool = python(f"open({str(marker)!r}, 'w')", "{a}")

    for wrong in ({}, {"a": 1}, {"a": "x", "b": "y"}):
        call = called(tool, **wrong)
        assert call.state is CallState.FAILED
        assert "work was not called" in str(call.result)
    assert not marker.exists()
    with pytest.raises(BadArguments):
        tool.arguments({"a": None})


# ── What it says ──


def test_its_output_is_the_result_and_its_errors_are_not() -> None:
    tool = python("import sys; print('out é'); print('err', file=sys.stderr)")

    assert (called(tool).state, called(tool).result) == (CallState.COMPLETED, "out é\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys; print('out'); sys.exit('err')", "exit code 1: err"),
        ("import sys; print('out'); sys.exit(7)", "exit code 7: out"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit code -9: "),
    ],
)
def test_a_failing_exit_is_a_failure_in_its_own_words(text: str, words: str) -> None:
    call = called(python(text))

    assert (call.state, call.result) == (CallState.FAILED, words)


def test_a_failing_program_is_tried_again_where_the_policy_says_so(tmp_path: Path) -> None:
    """M-118: its exit code is an exception."""
    tries = tmp_path / "tries"
    tool = python(
        f"import sys; f = open({str(tries)!r}, 'a'); f.write('x'); f.close()\n"
        f"sys.exit(open({str(tries)!r}).read() != 'xxx')"
    )

    async def main() -> Call:
        bench = Bench()
        bench.tools["work"] = tool
        tag = {"tag": "retries", "count": 2}
        bench.desk.rules = read_policy({"wrappers": [{"decorators": [tag]}]})
        (call,) = await bench.ended(await bench.call("work"))
        return call

    assert asyncio.run(main()).state is CallState.COMPLETED
    assert tries.read_text() == "xxx"


def test_a_program_that_is_not_there_is_a_failure_that_names_it(tmp_path: Path) -> None:
    for argv in ([str(tmp_path / "none")], [str(tmp_path)]):
        call = called(command("work", argv, "Work."))
        assert call.state is CallState.FAILED
        assert f"{argv[0]} cannot be started" in str(call.result)


def test_a_nul_in_an_argument_is_a_failure_of_the_call() -> None:
    call = called(python("pass", "{a}"), a="x\0y")

    assert call.state is CallState.FAILED
    assert "cannot be started" in str(call.result)


def test_it_runs_where_and_with_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSTROOM_KEPT", "kept")
    monkeypatch.setenv("POSTROOM_CHANGED", "before")
    tool = python(
        "import os; print(os.getcwd(), os.environ['POSTROOM_KEPT'], os.environ['POSTROOM_CHANGED'])",
        cwd=str(tmp_path),
        env={"POSTROOM_CHANGED": "after"},
    )

    assert called(tool).result == f"{tmp_path.resolve()} kept after\n"
    assert os.environ["POSTROOM_CHANGED"] == "before"


def test_a_large_output_is_whole_on_both_streams() -> None:
    """Both are read while it runs, or it would wait for ever on a full pipe."""
    text = "import sys\nfor _ in range(64): sys.stderr.write('e' * 65536); sys.stdout.write('o' * 65536)"

    said = asyncio.run(run_process([*PYTHON, "-c", text]))

    assert (said.returncode, len(said.stdout), len(said.stderr)) == (0, 1 << 22, 1 << 22)


def test_bytes_that_are_no_text_do_not_lose_the_result() -> None:
    tool = python(r"import sys; sys.stdout.buffer.write(b'a\xffb')")

    assert called(tool).result == "a\ufffdb"


@pytest.mark.parametrize(
    "text",
    [
        "print('done')",
        "import os; os.close(0); print('done')",
        "import os, time; os.close(0); time.sleep(0.2); print('done')",
        "import sys; sys.stdin.read(1); print('done')",
    ],
)
def test_a_program_need_not_read_what_it_is_given(text: str) -> None:
    said = asyncio.run(run_process([*PYTHON, "-c", text], stdin="x" * 10_000_000))

    assert (said.returncode, said.stdout) == (0, "done\n")


def test_a_program_without_input_finds_its_end() -> None:
    assert asyncio.run(
        run_process([*PYTHON, "-c", "import sys; print(repr(sys.stdin.read()))"])
    ) == (Said(0, "''\n", ""))


def test_a_program_that_cannot_be_started_raises() -> None:
    with pytest.raises(ProcessFailed, match="cannot be started"):
        asyncio.run(run_process(["/nowhere/at/all"]))


# ── Ending it ──

FAMILY = """
import os, signal, subprocess, sys, time
{first}
depth = int(sys.argv[2])
with open(sys.argv[1], 'a') as pids:
    pids.write(f'{{os.getpid()}} ')
if depth:
    subprocess.Popen([sys.executable, '-S', *sys.argv[:2], str(depth - 1)])
{then}
"""
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
HANG = "time.sleep(600)"


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "pids"
    path.touch()
    yield path
    for pid in map(int, path.read_text().split()):
        if not gone(pid):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)


def family(tmp_path: Path, pids: Path, first: str, then: str) -> list[str]:
    """The command line of a program with a child and a grandchild."""
    script = tmp_path / "family.py"
    script.write_text(FAMILY.format(first=first, then=then))
    return [*PYTHON, str(script), str(pids), "2"]


async def born(pids: Path) -> list[int]:
    deadline = time.monotonic() + 20
    while len(found := pids.read_text().split()) < 3:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    return [int(each) for each in found]


async def all_gone(numbers: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while not all(map(gone, numbers)):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


@pytest.mark.parametrize("first", ["", STUBBORN], ids=["willing", "stubborn"])
@pytest.mark.parametrize("how", ["cancelled", "timed out", "abandoned"])
def test_a_call_that_ends_takes_its_program_its_child_and_its_grandchild_along(
    tmp_path: Path, pids: Path, first: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M-68, M-118, M-134: asked first, killed when they will not."""
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.2)

    async def main() -> None:
        bench = Bench()
        bench.tools["work"] = command("work", family(tmp_path, pids, first, HANG), "Work.")
        if how == "timed out":
            bench.desk.limit = 3
        id = await bench.call("work")
        numbers = await born(pids)
        if how == "cancelled":
            assert await bench.executor.cancel(id)
        elif how == "abandoned":
            bench.executor.abandon()
        assert await all_gone(numbers)
        states = {
            "cancelled": CallState.CANCELLED,
            "timed out": CallState.TIMED_OUT,
            "abandoned": CallState.RUNNING,
        }
        if how == "timed out":
            await bench.ended(id)
        assert bench.state(id) is states[how]

    asyncio.run(main())


def test_children_that_outlive_their_program_end_with_the_call(tmp_path: Path, pids: Path) -> None:
    """M-68: they hold its output, so the call goes on; the group is there though its leader is not."""

    async def main() -> None:
        bench = Bench()
        bench.tools["work"] = command(
            "work", family(tmp_path, pids, "", "if depth < 2: time.sleep(600)"), "Work."
        )
        id = await bench.call("work")
        numbers = await born(pids)
        while not gone(numbers[0]):
            await asyncio.sleep(0.01)
        assert bench.state(id) is CallState.RUNNING
        await bench.executor.cancel(id)
        assert await all_gone(numbers)

    asyncio.run(main())


def test_the_group_of_a_program_is_not_ours() -> None:
    """Or its end would be the kernel's."""
    said = asyncio.run(
        run_process([*PYTHON, "-c", "import os; print(os.getpgid(0), os.getsid(0))"])
    )
    group, session = map(int, said.stdout.split())

    assert (group != os.getpgid(0), session != os.getsid(0)) == (True, True)
