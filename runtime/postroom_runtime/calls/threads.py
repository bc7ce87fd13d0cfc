"""Run a plain function off the loop."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio.to_thread


async def in_thread(function: Callable[..., Any], kwargs: Mapping[str, Any], *args: Any) -> Any:
    """Return ``function(*args, **kwargs)`` from a worker thread, in the caller's context.

    A cancelled caller goes on at once; the thread cannot be stopped and its result is dropped (M-73).
    """
    return await anyio.to_thread.run_sync(
        partial(function, *args, **kwargs), abandon_on_cancel=True
    )
