"""Which sessions the open calls of a view have made. Pure.

A sub-agent's session is stored before its call says of it, so while the call is attached only the
people of the room know.
"""

from dataclasses import replace

from postroom_widgets.view_rows import SPAWNS, People
from postroom_widgets.view_state import RowTable, ViewState


def with_children(state: ViewState, people: People) -> ViewState:
    """Return ``state`` with the sessions that its open calls work in, as far as the room knows them."""
    asked = {
        state.rows[key]["id"]: key
        for key in state.open_calls
        if not state.rows[key].get("child") and str(state.rows[key].get("tool")).startswith(SPAWNS)
    }
    if not asked:
        return state
    table = RowTable(state.rows, state.version)
    for person in people.values():
        if person.for_call in asked:
            table.put(asked[person.for_call], {"child": {"id": person.id, "name": person.name}})
    return replace(state, rows=table.rows, version=table.version)
