"""Runs the front end's own tests (vitest and happy-dom) over the unbuilt files."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "js"
NO_NETWORK = ("ENOTFOUND", "ETIMEDOUT", "ECONNREFUSED", "EAI_AGAIN", "ENETUNREACH")


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)


@pytest.mark.timeout(400)
def test_the_front_end_passes_its_own_tests() -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm on this machine")
    lock, installed = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        # Not `npm ci`: it refuses a lock file that another platform's optional packages are not in.
        install = run("npm", "install", "--no-audit", "--no-fund")
        if install.returncode and any(word in install.stderr for word in NO_NETWORK):
            pytest.skip(f"no way to npm's registry from here: {install.stderr[-300:]}")
        assert install.returncode == 0, install.stderr
    tests = run("npx", "vitest", "run")

    assert tests.returncode == 0, tests.stdout + tests.stderr
