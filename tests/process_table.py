"""Which processes live, as the system tells it."""

from pathlib import Path


def gone(pid: int) -> bool:
    """Return whether a process is dead, though whoever became its parent has yet to ask for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    # It may end before its file is opened, and between opening and reading.
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
