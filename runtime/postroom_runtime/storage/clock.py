"""The one place of the storage floor that reads the wall clock."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Returns the present moment, aware and in UTC."""


def utc_now() -> datetime:
    """Return the present moment in UTC: what a store stamps mail with unless it is given a clock."""
    return datetime.now(UTC)  # noqa: TID251 - the default clock itself; tests and replays pass theirs
