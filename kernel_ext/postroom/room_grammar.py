"""The magics about the room as a whole: their grammar and their help."""

from typing import Final

from postroom.grammar import Magic, Names, Option, Tail, Value

POSTROOM: Final = Magic(
    name="postroom",
    summary="The room: what is in it, which file it is, and how to change that.",
    head="status|open|fresh|step|close|help",
    head_names=Names.WORD,
    head_optional=True,
    words=("status", "open", "fresh", "step", "close", "help"),
    tail=Tail.TEXT,
    tail_shown="[PATH|on|off]",
    details=(
        "status (or nothing) tells the file, the sessions, unread mail and running calls;\n"
        "open PATH goes on with another room, :memory: for one without a file;\n"
        "fresh puts this notebook's file aside under a dated name and begins an empty one;\n"
        "step on holds mail until a %step lets it through, step off lets all of it through;\n"
        "close ends the room; what was accepted stays in its file; help lists the magics."
    ),
    example="%postroom\n%postroom open lab.mail.duckdb\n%postroom fresh",
)

STEP: Final = Magic(
    name="step",
    summary="Let one letter through, and say what it does: with %postroom step on.",
    options=(Option(name="look", help="let nothing through; only say what would be next"),),
    tail=Tail.NAMES,
    tail_shown="[NAME]",
    tail_names=Names.SESSION,
    details=(
        "The oldest letter that is held in the room, or in the mailbox of NAME. Then sessions run\n"
        "until each is at rest or needs another step. Mail that says nothing to a model passes by\n"
        "itself, and an order of yours (%stop, %pause, %approve …) lets through what came before it."
    ),
    example="%postroom step on\n%step --look\n%step\n%step bob",
)

MAILSQL: Final = Magic(
    name="mailsql",
    summary="Ask the room in SQL: one SELECT, shown as a table.",
    options=(
        Option(
            name="o",
            value=Value.TEXT,
            spaced=True,
            shown="NAME",
            help="keep the result in this variable; .df() makes it a pandas frame",
        ),
    ),
    tail=Tail.TEXT,
    tail_shown="QUERY",
    body="the query",
    details=(
        "Views: mail, sessions, turns, calls, events, approvals, inbox, usage. Nothing can be\n"
        "changed: the query sees a copy."
    ),
    example="%mailsql select sender, count(*) from mail group by all",
)
