"""A terminal to test with: IPython or jupyter console, of a fixed size, driven by its prompt."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect

ROWS, COLUMNS = 40, 100

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])|\r|\x08")


class Terminal:
    """A program at its ``In [n]:`` prompt.

    Args:
        folder: Its working directory.
        arguments: What stands behind ``python``.
    """

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        private = folder / ".private"
        private.mkdir(exist_ok=True)
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("JPY_SESSION_NAME", "POSTROOM_ROOM", "PYTEST_CURRENT_TEST")
        }
        environment |= {
            "IPYTHONDIR": str(private / "ipython"),
            "JUPYTER_CONFIG_DIR": str(private / "config"),
            "JUPYTER_DATA_DIR": str(private / "data"),
            "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
            "TERM": "xterm",
            "NO_COLOR": "1",
            "PYTHONWARNINGS": "ignore",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self._child: Any = pexpect.spawn(
            sys.executable,
            list(arguments),
            env=environment,
            cwd=str(folder),
            dimensions=(ROWS, COLUMNS),
            encoding="utf-8",
            timeout=60,
        )
        self._number = 0
        self._next_prompt()

    def _next_prompt(self) -> str:
        self._number += 1
        style = r"(?:\x1b\[[0-9;]*m)*"
        self._child.expect(rf"In \[{style}{self._number}{style}\]: ")
        return plain(self._child.before)

    def run(self, line: str) -> str:
        """Run a line; return what the terminal showed until the next prompt."""
        self.type(line)
        return self._next_prompt()

    def type(self, *lines: str) -> None:
        """Type lines, each with Enter."""
        self._child.send("".join(f"{line}\r" for line in lines))

    def press_interrupt(self) -> str:
        """Press ^C; return what the terminal showed until the next prompt."""
        self._child.sendintr()
        return self._next_prompt()

    def expect(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        self._child.expect_exact(text)

    def leave(self) -> str:
        """End the program in order; return its last words."""
        self._child.send("exit()\r")
        self._child.expect(pexpect.EOF)
        return plain(self._child.before)

    def close(self) -> None:
        """See to it that the program is gone."""
        self._child.close(force=True)


def plain(text: str) -> str:
    """Return a piece of a terminal's output without what only moves the cursor."""
    return _ESCAPES.sub("", text)


@contextmanager
def ipython(folder: Path) -> Iterator[Terminal]:
    """Start plain IPython for the length of a ``with``."""
    yield from _open(
        folder, ["-m", "IPython", "--no-banner", "--simple-prompt", "--no-confirm-exit"]
    )


@contextmanager
def prompting_ipython(folder: Path) -> Iterator[Terminal]:
    """Start plain IPython with its own prompt, beside which a loop can run."""
    yield from _open(folder, ["-m", "IPython", "--no-banner", "--no-confirm-exit"])


@contextmanager
def console(folder: Path) -> Iterator[Terminal]:
    """Start ``jupyter console`` for the length of a ``with``."""
    yield from _open(
        folder,
        ["-m", "jupyter_console", "--simple-prompt", "--ZMQTerminalInteractiveShell.banner=''"],
    )


def _open(folder: Path, arguments: Sequence[str]) -> Iterator[Terminal]:
    terminal = Terminal(folder, arguments)
    try:
        yield terminal
    finally:
        terminal.close()
