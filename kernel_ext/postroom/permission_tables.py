"""What is told of standing permissions: records in, a table out. Pure."""

from collections.abc import Sequence

from postroom.display import arguments_text
from postroom.grids import Column, Grid
from postroom_runtime.contracts.permission import Allow, Permission


def permission_grid(permissions: Sequence[Permission]) -> Grid:
    """Return the listing of standing permissions, oldest first."""
    rows = tuple(
        (
            each.id,
            f"{each.tool}({'…' if each.arguments is None else arguments_text(each.arguments)})",
            f"all of {each.agent}" if each.allow is Allow.AGENT else each.session_name,
            f"{each.approval} by {each.granted_by}",
        )
        for each in permissions
    )
    return Grid(
        (Column("id"), Column("runs unasked", text=True), Column("in"), Column("given with")),
        rows,
        empty="Nothing runs unasked. Allow something: %approve ID --always",
        more="permissions = %permissions",
    )
