"""The grammars of the magics that answer calls: ``%approve``, ``%deny``, ``%permissions``, ``%revoke``."""

from typing import Final

from postroom.grammar import Magic, Names, Option, Tail, Value

APPROVE: Final = Magic(
    name="approve",
    summary="Let a call that waits for you run; the first answer wins.",
    head="ID",
    head_names=Names.APPROVAL,
    options=(
        Option(
            name="args",
            value=Value.TEXT,
            shown="JSON",
            help="run it with these arguments instead, all of them",
        ),
        Option(
            name="always",
            value=Value.TEXT,
            bare=True,
            shown="args|tool|agent",
            names=Names.WORD,
            words=("args", "tool", "agent"),
            help="and do not ask again for these arguments, this tool, or this tool of its agent",
        ),
    ),
    details=(
        "ID is the approval's, its token's or its call's. What waits: %inbox, %calls\n"
        "--always alone is --always=tool. args and tool hold in the one session, agent in all\n"
        "sessions of its agent. What you have allowed: %permissions"
    ),
    example=(
        '%approve ap-0001\n%approve ap-0002 --args={"target": "staging"}\n'
        "%approve ap-0003 --always=args"
    ),
)

DENY: Final = Magic(
    name="deny",
    summary="Keep a call that waits for you from running; its agent reads the reason.",
    head="ID",
    head_names=Names.APPROVAL,
    tail=Tail.TEXT,
    tail_shown="[REASON]",
    example="%deny ap-0001 Not on a Friday.",
)

PERMISSIONS: Final = Magic(
    name="permissions",
    summary="List what you let run without being asked; returns the permissions.",
    details="They are given with %approve ID --always and end with %revoke, args and tool also with\n"
    "their session.",
    example="%permissions",
)

REVOKE: Final = Magic(
    name="revoke",
    summary="End standing permissions: you are asked again from now on.",
    tail=Tail.NAMES,
    tail_shown="ID …",
    tail_names=Names.PERMISSION,
    details="What a permission has let run, runs on. Those that stand: %permissions",
    example="%revoke pm-0001",
)
