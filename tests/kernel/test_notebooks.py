"""A notebook run without a browser, as nbclient, nbval and papermill run it."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

v4: Any = import_module("nbformat.v4")  # untyped

pytestmark = pytest.mark.kernel


def run(folder: Path, *cells: str) -> list[list[dict[str, object]]]:
    """Run a notebook of these cells; return the outputs of each."""
    notebook = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def test_what_is_saved_of_a_view_is_its_end_not_its_beginning(tmp_path: Path) -> None:
    outputs = run(
        tmp_path,
        "%load_ext postroom",
        "%spawn echo --as ann are you there?",
        "result = %wait\nresult",
        "%send ann --wait and now?",
    )

    live, kept = (output["data"] for output in outputs[1])
    assert isinstance(live, dict)
    assert isinstance(kept, dict)
    assert live["text/plain"] == ""
    assert "echo: are you there?" in kept["text/plain"]
    assert "echo: and now?" in kept["text/plain"]
    assert "echo: and now?" in kept["text/html"]
    assert outputs[2][0]["data"] == {"text/plain": "ann is idle"}


def test_a_mistake_ends_the_run_of_a_notebook(tmp_path: Path) -> None:
    with pytest.raises(CellExecutionError, match="UnknownRecipient: no session 'ann'"):
        run(tmp_path, "%load_ext postroom", "%send ann hi")
    with pytest.raises(CellExecutionError, match="CannotWait"):
        run(tmp_path, "%load_ext postroom", "%%capture\n%wait")
    with pytest.raises(CellExecutionError, match="UsageError"):
        run(tmp_path, "%load_ext postroom", "%send ann --wiat hi")
