from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postroom_runtime.storage.protocol import Storage
from storage.stores import make, make_again, open_sessions


@pytest.fixture(params=["memory", "disk"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, tmp_path: Path) -> Iterator[Storage]:
    """Each kind of store in turn, with the sessions s-0001 and s-0002 in it."""
    made = make(kind, tmp_path)
    open_sessions(made, "s-0001", "s-0002")
    yield made
    made.close()


@pytest.fixture
def again(kind: str, tmp_path: Path) -> Iterator[Callable[[Storage], Storage]]:
    """How to close a store and open the same room again."""
    opened: list[Storage] = []

    def open_again(store: Storage) -> Storage:
        opened.append(make_again(kind, tmp_path, store))
        return opened[-1]

    yield open_again
    for each in opened:
        each.close()
