"""The open rooms of this process: closed in order at its end, let go of in a forked child."""

import atexit
import os
import weakref
from typing import Protocol


class Open(Protocol):
    """A store that holds a file."""

    def close(self) -> None:
        """Write what is pending and give the file up."""
        ...

    def abandon(self) -> None:
        """Be of no use in a forked child, and of no harm to the parent."""
        ...


_open: "weakref.WeakSet[Open]" = weakref.WeakSet()


def opened(store: Open) -> None:
    """Remember an open store."""
    if not _open:
        # What is registered last runs first: the rooms close while DuckDB, which the first of them
        # has loaded, still works. Closing twice is harmless, so one time too many is too.
        atexit.register(_close_all)
    _open.add(store)


def closed(store: Open) -> None:
    """Forget a store that was closed."""
    _open.discard(store)


def _close_all() -> None:
    for store in list(_open):
        store.close()


def _abandon_all() -> None:
    for store in list(_open):
        store.abandon()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
