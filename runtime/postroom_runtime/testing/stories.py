"""What happened in a room, in forms that a test compares and prints."""

from collections.abc import Iterable

from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.journal import Row
from postroom_runtime.storage.codec import dumps


def journal(rows: Iterable[Row]) -> list[str]:
    """Return rows as text, one each: number, session and the record's JSON.

    Two runs did the same when these are equal; the times in the records too, where the room's clock
    was ``virtual_now``.

    Args:
        rows: As ``room.storage.rows()`` gives them.
    """
    return [f"{row.n} {row.session} {dumps(row.record)}" for row in rows]


def story(events: Iterable[Event], *kinds: EventKind | str) -> list[str]:
    """Return what happened, in order, as short words: what an assertion compares and prints.

    Args:
        events: As ``s.history()`` gives them.
        kinds: Only these; none for all.
    """
    return [_words(event) for event in events if not kinds or event.kind in kinds]


def _words(event: Event) -> str:
    data = event.data
    match event.kind:
        case EventKind.RUN_STOPPED:
            return f"{event.kind} {data['reason']}"
        case EventKind.INBOX:
            return f"{event.kind} {','.join(map(str, data['mail']))}"
        case EventKind.SESSION_UPDATED if "turn" in data:
            return f"turn {data['turn']['index']} {data['turn']['role']}"
        case EventKind.SESSION_UPDATED:
            return f"status {data['session'].get('status', 'ready')}"
        case EventKind.TOOL_STARTED | EventKind.TOOL_COMPLETED:
            return f"{event.kind} {data['call']['tool']} {data['call']['state']}"
        case _:
            return str(event.kind)
