"""What a parent is told of its children, by mail."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from postroom_runtime.contracts.envelope import FromSystem, Outgoing, WatchedEvent
from postroom_runtime.contracts.errors import MailRefused
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.session_record import SessionRecord

if TYPE_CHECKING:
    from postroom_runtime.office.room import Room


def tell_parent(
    room: "Room", record: SessionRecord, error: str, report: Callable[[str, str], None]
) -> None:
    """Tell the parent of a session, if there is one to tell, that it failed.

    Args:
        room: The room.
        record: The session that failed.
        error: Why, in one line.
        report: Tells the owner when the parent could not be told.
    """
    parent = room.router.lookup(record.parent) if record.parent else None
    if parent is None or parent.closed:
        return
    data = {"name": record.name, "error": error}
    posted = room.router.deliver(
        Outgoing(
            session=parent.id,
            sender=FromSystem(f"session:{record.name}"),
            body=WatchedEvent(record.id, EventKind.SESSION_FAILED, data),
            hops=record.hops,
        )
    )
    told = parent.name

    async def tell() -> None:
        try:
            await posted
        except MailRefused as refusal:
            report("refused", f"{told} was not told that {record.name} failed: {refusal}")

    room.task(tell(), f"{record.name}:tell-parent")
