"""What every test runs under: no blocking call on a loop, and short property runs by default."""

import os
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

from inbox_guard import guarded

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("full", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long soak tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--soak"):
        for item in items:
            if item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.skip(reason="long run: give --soak"))


@pytest.fixture(autouse=True)
def _no_blocking_call_on_a_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test whose loop is blocked: it would be the user's kernel."""
    with blockbuster_ctx("postroom_runtime") as blockbuster:
        _allow_the_store(blockbuster)
        yield


@pytest.fixture(autouse=True)
def _no_entry_of_an_owner_inbox_before_a_model(
    request: pytest.FixtureRequest,
) -> Iterator[None]:
    """Fail a test in which a model reads what is for the owner alone (I-2)."""
    with guarded() as guard:
        yield
    if not request.node.get_closest_marker("reads_inbox"):
        assert guard.leaked == [], "a model request contains an owner-inbox entry"


class _Everything:
    """Every function of a file."""

    def __contains__(self, name: object) -> bool:
        return True


def _allow_the_store(blockbuster: BlockBuster) -> None:
    # Opening, the side file's lock and the wait for a receipt are the store's to block for.
    for function in blockbuster.functions.values():
        for module in ("front", "pending", "duckdb_storage", "disk", "locking"):
            function.can_block_functions.append(
                (f"postroom_runtime/storage/{module}.py", _Everything())  # type: ignore[arg-type]
            )
