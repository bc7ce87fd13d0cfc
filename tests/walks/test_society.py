"""Two hundred sessions that write, spawn, watch, interrupt, stop and close, as seeds have it.

No mail is lost, none is read twice, cursors only grow, whoever is closed gets nothing, and all of it
ends (M-18, M-21…M-24, M-93…M-111, M-125…M-127, trap 8); a seed gives one journal in every process.

More of them, for a soak: ``SOCIETIES=200 pytest tests/walks/test_society.py``.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from walks.society import letters, lived

SOCIETIES = int(os.environ.get("SOCIETIES", "4"))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SOCIETIES))
def test_two_hundred_sessions_keep_every_law_and_come_to_rest(seed: int) -> None:
    society = lived(seed)
    assert society.faults == []
    assert len(society.room.people()) >= 200
    assert letters(society) > 1000
    # All of it was really tried.
    for called in ("send-message", "spawn-session", "watch-session", "wait", "work"):
        assert society.tried[called] > 5, society.tried
    assert any(called.startswith("prompt-agent-") for called in society.tried)
    for deed in (
        "send",
        "spawn",
        "interrupt",
        "stop",
        "close",
        "watch",
        "timer",
        "letter",
        "withdraw",
    ):
        assert society.did[deed] > 0, society.did


@pytest.mark.timeout(600)
def test_the_same_seed_gives_the_same_journal_in_two_processes() -> None:
    def told(hashes: str) -> str:
        tests = Path(__file__).parent.parent
        paths = [str(tests), *filter(None, sys.path)]
        return subprocess.run(
            [sys.executable, "-m", "walks.society", "3", "60"],
            env={**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    first, second = told("1"), told("2")
    assert first == second
    assert first.split()[2] == "0"
