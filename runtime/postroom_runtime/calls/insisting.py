"""Store what must not be lost, again and again while the disk refuses."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from postroom_runtime.contracts.errors import StoreFailed

_RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0)
"""Between tries to store a result that the disk refused: a result is never dropped."""


async def insist(store: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
    """Return what ``store`` does, tried again while the disk refuses.

    Raises:
        StoreFailed: The disk refused for the last time, some eight seconds after the first.
    """
    for seconds in _RETRY_SECONDS:
        try:
            return await store()
        except StoreFailed:
            await asyncio.sleep(seconds)
    return await store()
