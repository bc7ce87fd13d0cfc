"""The magics in plain IPython and in ``jupyter console``, driven through a terminal."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kernel.terminal import Terminal, console, ipython, prompting_ipython

pytestmark = pytest.mark.kernel


def until(look: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def quiet(words: str) -> bool:
    """Tell whether a program ended without complaint."""
    return not any(word in words for word in ("Traceback", "never", "destroyed", "Error"))


Open = Callable[[Path], AbstractContextManager[Terminal]]


@pytest.mark.parametrize("program", [ipython, console])
def test_sessions_live_in_a_terminal(program: Open, tmp_path: Path) -> None:
    with program(tmp_path) as terminal:
        assert ":memory:" in terminal.run("%load_ext postroom")
        assert "ann" in terminal.run("%spawn echo --as ann are you there?")
        assert "Out[" not in terminal.run("x = %wait")
        assert "ann is idle" in terminal.run("x")

        asked = terminal.run("%send ann --wait=20 don't you?")
        assert "m-0002 → ann #2 (idle)" in asked
        assert "echo: don't you?" in asked

        listing = terminal.run("%mail ann")
        assert "#  id      from  kind     text" in listing
        assert "1  m-0001  you   message  are you there?" in listing
        refused = terminal.run("%send anne hi")
        assert "UnknownRecipient: no session 'anne'. Did you mean 'ann'?" in refused
        assert "Traceback" not in refused
        assert "%send TO[,TO…]" in terminal.run("%send?")

        assert quiet(terminal.leave())


SLOW = (
    "import asyncio, pathlib, postroom as pr",
    "mark = pathlib.Path('begun').touch",
    "slow = pr.script(lambda turn: mark() or asyncio.sleep(600, 'done'))",
)
"""A script that leaves a file behind when it runs, and takes its time."""


@pytest.mark.parametrize("program", [ipython, console])
def test_an_interrupt_in_a_terminal_ends_the_wait_and_not_the_session(
    program: Open, tmp_path: Path
) -> None:
    with program(tmp_path) as terminal:
        for line in ("%load_ext postroom", *SLOW, "%spawn echo --as ann"):
            terminal.run(line)
        terminal.run("%spawn s --model slow --as sam")
        terminal.type("%send sam --wait go")  # the session runs only when the cell awaits
        until((tmp_path / "begun").exists)

        stopped = terminal.press_interrupt()
        after = terminal.run("%send ann --wait still there?")

        assert "WaitInterrupted: stopped waiting; the sessions live on." in stopped
        assert "Still working: sam." in stopped
        assert "Traceback" not in stopped
        assert "echo: still there?" in after
        assert "running" in terminal.run("%sessions")
        assert quiet(terminal.leave())


def test_an_interrupted_cell_of_plain_ipython_does_not_go_on_later(tmp_path: Path) -> None:
    with ipython(tmp_path) as terminal:
        for line in ("%load_ext postroom", *SLOW, "%spawn echo --as ann"):
            terminal.run(line)
        terminal.run("%spawn s --model slow --as sam go")
        terminal.type("if True:", "    %wait sam", "    print('nev' + 'er')", "")
        until((tmp_path / "begun").exists)

        stopped = terminal.press_interrupt()
        after = terminal.run("%send ann --wait still there?")

        assert "echo: still there?" in after
        assert "never" not in stopped + after


def test_beside_the_prompt_sessions_run_by_gui_asyncio(tmp_path: Path) -> None:
    with prompting_ipython(tmp_path) as terminal:
        terminal.run("%load_ext postroom")
        terminal.run("%gui asyncio")
        terminal.run("%spawn echo --as ann hi")

        until(lambda: "echo: hi" in terminal.run("%transcript ann"))
