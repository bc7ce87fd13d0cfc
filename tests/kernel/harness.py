"""A kernel to test with, driven as a notebook drives it: over the wire, by public messages only."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

_ANSI = re.compile(r"\x1b\[[0-9;]*m")

Message = Mapping[str, Any]


@dataclass
class Cell:
    """What one cell came to."""

    status: str = ""
    ename: str = ""
    evalue: str = ""
    traceback: str = ""
    streams: str = ""
    shown: list[Mapping[str, Any]] = field(default_factory=list)
    """The mime bundles it displayed, its value too, in order."""
    value: Mapping[str, Any] | None = None
    """The mime bundle of its last expression."""
    updates: list[Mapping[str, Any]] = field(default_factory=list)
    payload: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that is to be read below the cell."""
        plain = [str(data.get("text/plain", "")) for data in self.shown]
        return "\n".join(filter(None, [self.streams, *plain, self.traceback]))


class Kernel:
    """A running kernel and one client.

    Args:
        folder: Its working directory; its own files for IPython and Jupyter are kept below it.
        notebook: Which notebook it belongs to, as a Jupyter server would say it.
        room: What ``POSTROOM_ROOM`` says.
        profile: The configuration of IPython, as Python.
    """

    def __init__(
        self, folder: Path, *, notebook: str = "", room: str = "", profile: str = ""
    ) -> None:
        private = folder / ".private"
        private.mkdir(exist_ok=True)
        if profile:
            default = private / "ipython" / "profile_default"
            default.mkdir(parents=True, exist_ok=True)
            (default / "ipython_config.py").write_text(profile)
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
        }
        environment |= {"JPY_SESSION_NAME": notebook} if notebook else {}
        environment |= {"POSTROOM_ROOM": room} if room else {}
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(env=environment, cwd=str(folder))
        self._client = self._manager.blocking_client()
        self._connect()

    def _connect(self) -> None:
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)
        self._cells: dict[str, Cell] = {}
        self._idle: set[str] = set()
        self._replies: dict[str, Message] = {}
        self.comms: dict[str, list[Mapping[str, Any]]] = {}
        """What the kernel said on each comm, by its id, in order."""
        self.strays: list[tuple[str, str]] = []
        """Outputs that belong to no cell of this client: the parent's id, '' for none; the text."""

    # ── Cells ──

    def run(self, code: str, *, timeout: float = 60) -> Cell:
        """Run a cell to its end."""
        return self.finish(self.start(code), timeout=timeout)

    def good(self, code: str) -> Cell:
        """Run a cell that must succeed."""
        cell = self.run(code)
        assert cell.status == "ok", f"{code!r} failed: {cell.text}"
        return cell

    def start(self, code: str) -> str:
        """Send a cell off; return its id."""
        sent: str = self._client.execute(code, stop_on_error=False)
        self._cells[sent] = Cell()
        return sent

    def finish(self, sent: str, *, timeout: float = 60) -> Cell:
        """Wait for the end of a cell."""
        self.until(lambda: sent in self._idle and sent in self._replies, timeout)
        cell = self._cells[sent]
        content = self._replies[sent]["content"]
        cell.status = content["status"]
        cell.payload = content.get("payload", [])
        cell.ename = cell.ename or content.get("ename", "")
        cell.evalue = cell.evalue or content.get("evalue", "")
        return cell

    def cell(self, sent: str) -> Cell:
        """Return a cell as it looks now."""
        self.listen(0)
        return self._cells[sent]

    def until(self, look: Any, timeout: float = 60) -> None:
        """Listen until ``look()`` is true."""
        deadline = time.monotonic() + timeout
        while not look():
            assert time.monotonic() < deadline, f"waited {timeout} s in vain"
            self.listen(0.05)

    def listen(self, timeout: float) -> None:
        """Take in what the kernel said."""
        for get in (self._client.get_iopub_msg, self._client.get_shell_msg):
            while True:
                try:
                    message = get(timeout=timeout)
                except Empty:
                    break
                self._hear(message)

    def _hear(self, message: Message) -> None:
        parent = message["parent_header"].get("msg_id", "")
        kind, content = message["msg_type"], message["content"]
        if kind.endswith("_reply"):
            self._replies[parent] = message
        elif kind == "status":
            if content["execution_state"] == "idle":
                self._idle.add(parent)
        elif kind.startswith("comm_"):
            self.comms.setdefault(content["comm_id"], []).append({"kind": kind, **content})
        elif kind in ("stream", "display_data", "execute_result", "update_display_data", "error"):
            self._output(parent, kind, content)

    def _output(self, parent: str, kind: str, content: Mapping[str, Any]) -> None:
        cell = self._cells.get(parent)
        if cell is None:
            self.strays.append((parent, json.dumps(content)))
            return
        match kind:
            case "stream":
                cell.streams += content["text"]
            case "update_display_data":
                cell.updates.append(content["data"])
            case "error":
                cell.ename, cell.evalue = content["ename"], content["evalue"]
                cell.traceback = _ANSI.sub("", "\n".join(content["traceback"]))
            case _:
                cell.shown.append(content["data"])
                if kind == "execute_result":
                    cell.value = content["data"]

    # ── The rest of a notebook ──

    def interrupt(self) -> None:
        """Press the stop button."""
        self._manager.interrupt_kernel()

    def restart(self) -> None:
        """Press the restart button: the process ends in order and a new one begins."""
        self._client.stop_channels()
        self._manager.restart_kernel(now=False)
        self._client = self._manager.blocking_client()
        self._connect()

    def complete(self, code: str) -> list[str]:
        """Press Tab at the end of ``code``; return what is offered."""
        sent = self._client.complete(code, len(code))
        self.until(lambda: sent in self._replies)
        matches: list[str] = self._replies[sent]["content"]["matches"]
        return matches

    def inspect(self, code: str) -> str:
        """Press Shift-Tab at the end of ``code``; return the text of the tooltip."""
        sent = self._client.inspect(code, len(code))
        self.until(lambda: sent in self._replies)
        return _ANSI.sub("", self._replies[sent]["content"]["data"].get("text/plain", ""))

    def tell_widget(self, comm: str, content: Mapping[str, Any]) -> None:
        """Say something as the front end of a widget would."""
        data = {"method": "custom", "content": content}
        message = self._client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        self._client.shell_channel.send(message)

    def close(self) -> None:
        """End the kernel in order."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=False)
        self._manager.cleanup_resources()

    def kill(self) -> None:
        """End the kernel without a word."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


@contextmanager
def kernel(folder: Path, **settings: str) -> Iterator[Kernel]:
    """Start a kernel for the length of a ``with``."""
    started = Kernel(folder, **settings)
    try:
        yield started
    finally:
        started.close()
