"""Runs the front end's own tests (vitest and happy-dom) over the unbuilt files."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "js"


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)


@pytest.mark.timeout(400)
def test_the_front_end_passes_its_own_tests() -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine")
    lock, installed = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        install = run("npm", "ci", "--no-audit", "--no-fund")
        if install.returncode:
            pytest.skip(f"npm cannot install the test tools here: {install.stderr[-300:]}")
    tests = run("npx", "vitest", "run")

    assert tests.returncode == 0, tests.stdout + tests.stderr
