"""One JupyterLab in one browser page for all tests that need one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.lab import CHROMIUM, Lab, driven

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab in Chromium; kernels can import what lies in ``tests``, and what we can."""
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"no browser at {CHROMIUM}: name one in POSTROOM_CHROMIUM")
    ours = map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    with driven(tmp_path_factory.mktemp("lab"), [TESTS, *ours]) as lab:
        yield lab
