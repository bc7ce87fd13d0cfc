"""The one place of the storage floor that reads the wall clock."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]
"""Returns the present moment, aware and in UTC."""


utc_now: Clock = partial(datetime.now, UTC)  # noqa: TID251 - the default; tests give their own
"""The present moment in UTC: what a store stamps mail with unless it is given another clock."""
