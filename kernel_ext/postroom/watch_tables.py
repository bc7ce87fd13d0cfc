"""What is told of watches: records in, a table out. Pure."""

from collections.abc import Sequence

from postroom.grids import Column, Grid
from postroom_runtime.mail.watches import Watch


def watch_grid(watches: Sequence[Watch]) -> Grid:
    """Return the listing of watches, oldest first."""
    rows = tuple(
        (
            watch.id,
            watch.session_name,
            watch.into_name,
            watch.kinds,
            watch.tool or "",
            f"{watch.ttl:g} s",
            str(watch.forwarded),
            str(watch.dropped),
            watch.why_dropped,
        )
        for watch in watches
    )
    columns = (
        Column("id"),
        Column("of"),
        Column("into"),
        Column("events", text=True),
        Column("tools"),
        Column("for", number=True),
        Column("forwarded", number=True),
        Column("dropped", number=True),
        Column("last refusal", text=True),
    )
    # Two columns that are mostly empty are shown where they say something.
    shown = [at for at in range(len(columns)) if at not in (4, 8) or any(row[at] for row in rows)]
    return Grid(
        tuple(columns[at] for at in shown),
        tuple(tuple(row[at] for at in shown) for row in rows),
        empty="No watch is under way. Begin one: %watch NAME --into=OTHER",
        more="watches = %watch",
    )
