"""Which file a notebook's room is in. Pure: an environment in, a path out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEMORY: Final = ":memory:"
SUFFIX: Final = ".mail.duckdb"


@dataclass(frozen=True, slots=True)
class Choice:
    """A path, and what people should know of why it is that one."""

    path: str
    note: str = ""


def choose(
    environment: Mapping[str, str],
    folder: Path,
    exists: Callable[[Path], bool] = Path.exists,
) -> Choice:
    """Return where the room of a notebook is kept.

    Args:
        environment: ``POSTROOM_ROOM`` wins, a path or ``:memory:``; else the notebook's name from
            ``JPY_SESSION_NAME``, and the room stands beside it.
        folder: The kernel's working directory.
        exists: Whether a notebook is there. Some servers give its path from their own root; its
            folder is then the working directory.
    """
    if given := environment.get("POSTROOM_ROOM"):
        return Choice(given if given == MEMORY else str(folder / Path(given).expanduser()))
    name = environment.get("JPY_SESSION_NAME", "")
    notebook = Path(name)
    if not notebook.suffix:
        # A console has a session name too, but no notebook that its mail could belong to.
        return Choice(MEMORY, "no notebook name known")
    if not notebook.is_absolute():
        beside = folder / notebook
        notebook = beside if exists(beside) else folder / notebook.name
    return Choice(str(notebook.with_name(notebook.stem + SUFFIX)))


def shown(path: str, folder: Path) -> str:
    """Return a path as people read it: relative to the working directory where it is below it."""
    if path == MEMORY:
        return path
    try:
        return str(Path(path).relative_to(folder))
    except ValueError:
        return path


def set_aside(path: Path, stamp: str, exists: Callable[[Path], bool] = Path.exists) -> Path:
    """Return a free name for a room that is put aside.

    Args:
        path: ``lab.mail.duckdb``.
        stamp: The date and time to put in it.
        exists: Whether a name is taken.

    Returns:
        ``lab.2026-01-31-120000.mail.duckdb``, with a number behind the stamp if that is taken.
    """
    suffix = SUFFIX if path.name.endswith(SUFFIX) else path.suffix
    stem = path.name.removesuffix(suffix)
    number = 1
    while True:
        extra = f"-{number}" if number > 1 else ""
        wanted = path.with_name(f"{stem}.{stamp}{extra}{suffix}")
        if not exists(wanted):
            return wanted
        number += 1
