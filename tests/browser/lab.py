"""Drives JupyterLab in Chromium: one server, one page, any number of notebooks in it.

A second page costs eight seconds, a second notebook one and a half: so tests share the page and
each opens notebooks of its own. Nothing outside the given folder is read or written.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import nbformat
from playwright.sync_api import ConsoleMessage, Locator, Page, sync_playwright

CHROMIUM: Final = os.environ.get("POSTROOM_CHROMIUM", "/usr/bin/chromium")
AXE: Final = (
    Path(__file__).parents[1] / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"
)
SERVER_SECONDS: Final = 90
CELL_SECONDS: Final = 60
ABORT_MILLISECONDS: Final = 500
"""After an interrupted cell the kernel aborts, for a moment, whatever else is asked of it."""

_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


class LabServer:
    """A JupyterLab server of its own, on a free port, with its own folders and no token.

    Args:
        folder: An empty folder; notebooks lie in ``folder / "notebooks"``.
        path: Folders the kernels can import from.
    """

    def __init__(self, folder: Path, path: Sequence[Path] = ()) -> None:
        self.folder, self.notebooks = folder, folder / "notebooks"
        self.url = f"http://127.0.0.1:{_free_port()}"
        self._log = folder / "server.log"
        self.notebooks.mkdir(parents=True)
        for name, values in _SETTINGS.items():
            file = folder / "settings" / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command(), env=self._environment(path), stdout=log, stderr=subprocess.STDOUT
            )
        self._wait()

    def close(self) -> None:
        """Stop the server, which stops its kernels."""
        self._process.terminate()
        self._process.wait(20)

    def _command(self) -> list[str]:
        port = self.url.rpartition(":")[2]
        return [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            f"--ServerApp.root_dir={self.notebooks}",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.extension_manager=readonly",
            "--LabApp.news_url=None",
        ]

    def _environment(self, path: Sequence[Path]) -> dict[str, str]:
        stub = self.folder / "stub"
        stub.mkdir()
        # jsonschema imports this grammar if it can, five seconds in each process, and goes on
        # without it if it cannot.
        (stub / "rfc3987_syntax.py").write_text("raise ImportError('not needed here')\n")
        dirs = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        found = os.pathsep.join(str(p) for p in (stub, *path))
        return (
            os.environ | {"PYTHONPATH": found} | {k: str(self.folder / v) for k, v in dirs.items()}
        )

    def _wait(self) -> None:
        until = time.monotonic() + SERVER_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            try:
                urllib.request.urlopen(self.url + "/api/status", timeout=2)
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{self._log.read_text()}")


class Lab:
    """JupyterLab in a browser page.

    ``errors`` collects what the page complained of; a test clears it first and reads it last.
    """

    def __init__(self, server: LabServer, page: Page) -> None:
        self.server, self.page = server, page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._hear)
        self.reload()

    def notebook(self, name: str, cells: Sequence[str]) -> "Notebook":
        """Write a notebook of code cells and open it with a kernel. Its name must be new."""
        # What JupyterLab has open under a name it does not read again.
        assert not (self.server.notebooks / name).exists(), f"another test has {name}"
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        content = nbformat.v4.new_notebook(  # type: ignore[no-untyped-call]
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],  # type: ignore[no-untyped-call]
            metadata={"kernelspec": kernel},
        )
        nbformat.write(content, self.server.notebooks / name)  # type: ignore[no-untyped-call]
        return self.open(name)

    def open(self, name: str, *, wait: bool = True) -> "Notebook":
        """Open a notebook of the server's folder; ``wait`` until its kernel answers."""
        self.page.evaluate(_OPEN, [name, wait])
        return Notebook(self, name)

    def reload(self) -> None:
        """Load the page anew; notebooks have to be opened again, their kernels live on."""
        # Without what the workspace remembers, which may be a notebook that was closed since.
        self.page.goto(f"{self.server.url}/lab?reset", wait_until="domcontentloaded")
        self._ready()

    def theme(self, name: Literal["Light", "Dark"]) -> None:
        """Switch to a theme of JupyterLab's own."""
        self.command("apputils:change-theme", theme=f"JupyterLab {name}")
        light = str(name == "Light").lower()
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")

    def command(self, name: str, **arguments: Any) -> None:
        """Run one of JupyterLab's commands to its end."""
        call = "([name, args]) => jupyterapp.commands.execute(name, args).then(() => undefined)"
        self.page.evaluate(call, [name, arguments])

    def _ready(self) -> None:
        self.page.wait_for_function("() => window.jupyterapp", timeout=SERVER_SECONDS * 1000)
        self.page.evaluate("() => jupyterapp.restored.then(() => undefined)")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)


class Notebook:
    """A notebook open in the page. Cells go by their position, from 0."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab, self.page, self.name = lab, lab.page, name
        self._interrupted = False

    def activate(self) -> None:
        """Bring the notebook to the front."""
        self.page.evaluate(_ACTIVATE, self.name)

    def start(self, cell: int) -> None:
        """Start a cell and go on."""
        if self._interrupted:
            self._interrupted = False
            self.page.wait_for_timeout(ABORT_MILLISECONDS)
        self.page.evaluate(_START, [self.name, cell])

    def wait(self, cell: int, seconds: float = CELL_SECONDS) -> None:
        """Wait until a started cell has ended and all it sent has arrived."""
        self.page.wait_for_function(_ENDED, arg=[self.name, cell], timeout=seconds * 1000)
        self.page.evaluate(_ARRIVED, [self.name, cell])

    def run(self, cell: int, seconds: float = CELL_SECONDS) -> str:
        """Run a cell to its end; return the text of its output."""
        self.start(cell)
        self.wait(cell, seconds)
        return self.text(cell)

    def execute(self, code: str) -> None:
        """Run code in the kernel without a cell, and without moving the focus; wait for it.

        Raises:
            AssertionError: The code raised.
        """
        reply = self.page.evaluate(_EXECUTE, [self.name, code])
        assert reply["status"] == "ok", reply

    def busy(self, cell: int) -> bool:
        """Tell whether a cell is running or waits to run."""
        return bool(self.page.evaluate(_BUSY, [self.name, cell]))

    def text(self, cell: int) -> str:
        """Return the text of a cell's output as it is shown."""
        return str(self.page.evaluate(_TEXT, [self.name, cell]))

    def output(self, cell: int) -> Locator:
        """Return where a cell's output is shown."""
        panel = self.page.locator(f".jp-NotebookPanel[data-test-notebook='{self.name}']")
        self.page.evaluate(_TAG, self.name)
        return panel.locator(".jp-Cell").nth(cell).locator(".jp-OutputArea").first

    def cells(self) -> int:
        """Return how many cells there are now."""
        return int(self.page.evaluate(_COUNT, self.name))

    def interrupt(self) -> None:
        """Press the kernel's interrupt."""
        self._interrupted = True
        self.activate()
        self.lab.command("notebook:interrupt-kernel")

    def restart(self) -> None:
        """Restart the kernel, as the menu does after its question."""
        self.page.evaluate(_RESTART, self.name)

    def save(self) -> None:
        """Save the notebook to disk."""
        self.page.evaluate(_SAVE, self.name)

    def close(self) -> None:
        """Shut the kernel down and close the notebook without saving."""
        self.page.evaluate(_CLOSE, self.name)


@contextmanager
def driven(folder: Path, path: Sequence[Path] = ()) -> Iterator[Lab]:
    """Give a JupyterLab in a browser; both end with the block."""
    server = LabServer(folder, path)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=[
                    "--no-sandbox",
                    "--disable-background-networking",
                    "--disable-dev-shm-usage",
                    "--disable-gpu",
                ],
            )
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            yield Lab(server, page)
            browser.close()
    finally:
        server.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# Each script finds its notebook by name, so that it does not matter which one is in front.
_FIND = "const w = [...jupyterapp.shell.widgets('main')].find(w => w.context?.path === name);"
_CELL = f"([name, i]) => {{ {_FIND} const cell = w.content.widgets[i];"
_OPEN = """async ([name, wait]) => {
  const w = await jupyterapp.commands.execute('docmanager:open', { path: name });
  await w.revealed;
  if (wait) {
    await w.sessionContext.ready;
    await w.sessionContext.session.kernel.info;
  }
  jupyterapp.shell.activateById(w.id);
}"""
_ACTIVATE = f"name => {{ {_FIND} jupyterapp.shell.activateById(w.id); }}"
_START = f"""([name, i]) => {{
  {_FIND}
  jupyterapp.shell.activateById(w.id);
  w.content.activeCellIndex = i;
  w.content.deselectAll();
  jupyterapp.commands.execute('notebook:run-cell');
}}"""
# Not innerText: JupyterLab hides the cells that are scrolled out of sight, and hidden ones have none.
_PROMPT = "cell.inputArea.promptNode.textContent"
_BUSY = f"{_CELL} return {_PROMPT}.includes('*'); }}"
_ENDED = f"{_CELL} return cell.model.executionCount && !{_PROMPT}.includes('*'); }}"
_ARRIVED = f"async {_CELL} const f = cell.outputArea.future; if (f) await f.done; }}"
_TEXT = f"{_CELL} return cell.outputArea.node.innerText; }}"
_TAG = f"name => {{ {_FIND} w.node.dataset.testNotebook = name; }}"
_COUNT = f"name => {{ {_FIND} return w.content.widgets.length; }}"
_EXECUTE = f"""async ([name, code]) => {{
  {_FIND}
  const reply = await w.sessionContext.session.kernel.requestExecute({{ code }}).done;
  return {{ status: reply.content.status, value: reply.content.evalue ?? '' }};
}}"""
_RESTART = f"""async name => {{
  {_FIND}
  await w.sessionContext.restartKernel();
  await w.sessionContext.session.kernel.info;
}}"""
_SAVE = f"async name => {{ {_FIND} await w.context.save(); }}"
_CLOSE = f"""async name => {{
  {_FIND}
  if (!w) return;
  await w.sessionContext.shutdown();
  w.context.model.dirty = false;
  w.dispose();
}}"""
