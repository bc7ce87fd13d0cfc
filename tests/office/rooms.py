"""What the tests of rooms share: a memory room on a virtual clock, and short words for what it did."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

from postroom_runtime.contracts.turn import Role
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.storage.clock import utc_now
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.testing import run_virtual

T = TypeVar("T")

Act: TypeAlias = Callable[[Room], Awaitable[None]]
"""What happens in one life of a kernel."""

Talk: TypeAlias = Generator[Any, Any, str]
"""What a generator script is."""


def in_room(main: Callable[[Room], Awaitable[T]]) -> T:
    """Run ``main(room)`` in a fresh memory room on a loop whose clock jumps."""

    async def opened() -> T:
        async with open_room() as room:
            return await main(room)

    return run_virtual(opened())


def lives(*acts: Act) -> None:
    """Run each act in a kernel life of its own, over one journal."""
    storage = MemoryStorage()
    for act in acts:
        storage = MemoryStorage(rows=storage.rows())
        room = Room(storage, name="memory", now=utc_now)

        async def life(room: Room = room, act: Act = act) -> None:
            room.attach()
            await act(room)

        run_virtual(life())


def said(session: Session) -> list[str]:
    """Return what the session's model said, turn by turn."""
    return [turn.text for turn in session.transcript() if turn.role is Role.MODEL]


def read(session: Session) -> list[str]:
    """Return what the session's model read, turn by turn."""
    return [turn.text for turn in session.transcript() if turn.role is Role.USER]


async def ticks(count: int = 20) -> None:
    """Let everything that is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)
