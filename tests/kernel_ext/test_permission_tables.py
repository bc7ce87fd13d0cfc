"""What is told of standing permissions."""

from dataclasses import replace

from postroom.grid_text import plain
from postroom.permission_tables import permission_grid
from postroom_runtime.contracts.permission import Allow, Permission

PERMISSION = Permission(
    id="pm-0001",
    allow=Allow.ARGS,
    agent="coder",
    session="s-0002",
    session_name="ann",
    tool="deploy",
    arguments={"target": "staging"},
    approval="ap-0003",
    granted_by="%approve",
)


def test_permissions_are_listed_with_how_far_they_reach_and_what_they_came_with() -> None:
    tool = replace(PERMISSION, id="pm-0002", allow=Allow.TOOL, arguments=None)
    agent = replace(tool, id="pm-0003", allow=Allow.AGENT, granted_by="view")

    assert plain(permission_grid([PERMISSION, tool, agent])) == (
        "id       runs unasked              in            given with\n"
        'pm-0001  deploy(target="staging")  ann           ap-0003 by %approve\n'
        "pm-0002  deploy(…)                 ann           ap-0003 by %approve\n"
        "pm-0003  deploy(…)                 all of coder  ap-0003 by view"
    )


def test_where_nothing_runs_unasked_it_says_how_to_allow_something() -> None:
    assert plain(permission_grid([])) == (
        "Nothing runs unasked. Allow something: %approve ID --always"
    )
