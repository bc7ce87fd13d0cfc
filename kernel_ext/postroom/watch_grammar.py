"""The grammars of ``%watch`` and ``%unwatch``."""

from typing import Final

from postroom.grammar import Magic, Names, Option, Tail, Value

WATCH: Final = Magic(
    name="watch",
    summary="Show a live view of a session here; or let another session be told what happens in it.",
    options=(
        Option(name="all", help="show the switchboard: every session in one view"),
        Option(
            name="into",
            value=Value.TEXT,
            shown="OTHER",
            names=Names.SESSION,
            help="forward its events into another session's mailbox instead",
        ),
        Option(
            name="events",
            value=Value.LIST,
            shown="a,b",
            names=Names.EVENT,
            help="with --into: which events; default all",
        ),
        Option(
            name="tool",
            value=Value.TEXT,
            shown="GLOB",
            names=Names.TOOL,
            help="with --into: of tool.started and tool.completed only those of such tools",
        ),
        Option(
            name="ttl",
            value=Value.NUMBER,
            shown="SECONDS",
            help="with --into: for how long; default 600",
        ),
    ),
    tail=Tail.NAMES,
    tail_shown="[NAME …]",
    tail_names=Names.SESSION,
    details=(
        "With --into it returns the watch, which ends with its time, with either session or with\n"
        "%unwatch. Each event is mail, and wakes OTHER as a letter of NAME would (wake_on). Without\n"
        "a NAME it lists the watches under way.\n"
        "With --all: the sessions as a tree and their mail as a diagram that grows (room.view())."
    ),
    example="%watch rev\n%watch --all\n%watch rev --into=boss --events=tool.completed --tool=deploy_*\n%watch",
)

UNWATCH: Final = Magic(
    name="unwatch",
    summary="End watches; says what each has forwarded.",
    tail=Tail.NAMES,
    tail_shown="ID …",
    tail_names=Names.WATCH,
    details="Those under way: %watch",
    example="%unwatch w-0001",
)
