"""Every magic: its grammar and its help, in the order people meet them."""

from typing import Final

from postroom.approval_grammar import APPROVE, DENY, PERMISSIONS, REVOKE
from postroom.grammar import Magic, Names, Option, Tail, Value
from postroom.room_grammar import MAILSQL, POSTROOM, STEP
from postroom.watch_grammar import UNWATCH, WATCH

_MODEL = Option(
    name="model",
    value=Value.TEXT,
    spaced=True,
    shown="M",
    names=Names.MODEL,
    help="echo, a script of this notebook, or provider:name such as openai:gpt-5",
)
_TOOLS = Option(
    name="tools",
    value=Value.LIST,
    spaced=True,
    shown="a,b",
    names=Names.TOOL,
    help="typed functions of this notebook, by name",
)


def _knob(name: str, value: Value, shown: str, help: str, names: Names = Names.NOTHING) -> Option:
    spaced = value in (Value.TEXT, Value.LIST)
    return Option(name=name, value=value, spaced=spaced, shown=shown, help=help, names=names)


AGENT: Final = Magic(
    name="agent",
    summary="Define an agent; the body of the cell is its instructions.",
    head="SLUG",
    head_names=Names.AGENT,
    options=(
        _MODEL,
        _TOOLS,
        _knob("helpers", Value.LIST, "x,y", "agents it may ask or start, by slug", Names.AGENT),
        _knob("toolbox", Value.LIST, "a,b", "which of Postroom's own tools it has; default all"),
        _knob("wake-on", Value.LIST, "a,b", "whose mail starts it: user,tool,parent,child,peer"),
        _knob("mail-scope", Value.TEXT, "S", "whom it may write to: own, children, subtree, all"),
        _knob("interrupt-scope", Value.TEXT, "S", "whom it may interrupt; as mail-scope"),
        _knob("policy", Value.TEXT, "NAME", "a variable with its call policy", Names.VARIABLE),
        _knob("approve", Value.TEXT, "NAME", "a function asked before each call", Names.VARIABLE),
        _knob("max-iterations", Value.COUNT, "N", "model turns of a run"),
        _knob("max-autonomous-rounds", Value.COUNT, "N", "model turns without a word of yours"),
        _knob("max-requests", Value.COUNT, "N", "model requests of a session in its life"),
        _knob("max-tokens", Value.COUNT, "N", "tokens of a session in its life"),
        _knob("max-cost", Value.NUMBER, "USD", "US dollars of a session in its life"),
        _knob("max-concurrency", Value.COUNT, "N", "calls that run at the same time"),
        _knob("mailbox-max-unread", Value.COUNT, "N", "unread mail before it is refused"),
        _knob("max-mail-hops", Value.COUNT, "N", "letters between agents without you"),
        _knob("max-wait-seconds", Value.NUMBER, "S", "the longest wait of its own"),
        _knob("async-call-timeout-seconds", Value.NUMBER, "S", "time limit of a call"),
        Option(name="interrupt-completions", help="an interrupt cuts what the model is saying"),
        Option(name="pause-cancels-calls", help="a pause cancels detached calls"),
        Option(name="resume-on-any-mail", help="mail that would wake it also un-pauses it"),
    ),
    line=False,
    body="instructions",
    details=(
        "Running the cell again defines it anew: its sessions use it from their next turn.\n"
        "Every other knob stands in pr.AgentConfig."
    ),
    example="%%agent reviewer --model openai:gpt-5 --tools run_tests\nYou review changes. Be brief.",
)

SPAWN: Final = Magic(
    name="spawn",
    summary="Start a session of an agent and show its view.",
    head="SLUG",
    head_names=Names.AGENT,
    options=(
        _knob("as", Value.TEXT, "NAME", "its name; default the slug"),
        _knob("parent", Value.TEXT, "NAME", "the session it is a child of", Names.SESSION),
        _MODEL,
        _TOOLS,
        Option(name="hidden", help="show no view and leave it out of the lists"),
        Option(name="again", help="send the message again to a session that exists"),
    ),
    tail=Tail.TEXT,
    tail_shown="[MESSAGE …]",
    body="first message",
    details=(
        "The same NAME and agent again is the same session: its options are taken over from its\n"
        "next turn, the message is not sent again unless --again. An unknown SLUG with --model\n"
        "makes an agent on the spot; echo is built in."
    ),
    example="%spawn echo --as ann Hello, are you there?\ns = %spawn reviewer --as rev",
)

SEND: Final = Magic(
    name="send",
    summary="Send mail; returns the receipt, a list of them for several recipients.",
    head="TO[,TO…]",
    head_names=Names.SESSION,
    head_list=True,
    options=(
        Option(name="interrupt", short="i", help="read before the calls it waits for are done"),
        Option(name="expects-reply", short="e", help="tell the reader that you want an answer"),
        Option(name="reply-to", value=Value.TEXT, shown="ID", help="the mail this answers"),
        Option(
            name="from",
            value=Value.TEXT,
            shown="NAME",
            names=Names.SESSION,
            help="send as that session, under its permissions: for teaching",
        ),
        Option(
            name="wait",
            value=Value.NUMBER,
            bare=True,
            shown="SECONDS",
            help="then wait for the answer, 300 s at most",
        ),
    ),
    tail=Tail.TEXT,
    tail_shown="TEXT",
    body="message",
    details=(
        "Options stand between TO and the text; -- ends them. The text goes as typed, question\n"
        "marks too; only {expr} is replaced, where it has a value. A body is sent verbatim."
    ),
    example="%send ann are you there?\n%send ann,bob -i stop what you do\n%send rev --wait=60 Go on.",
)

WITHDRAW: Final = Magic(
    name="withdraw",
    summary="Take back a message that its reader has not read yet; the log keeps both.",
    head="ID",
    head_names=Names.UNREAD_MAIL,
    options=(
        Option(
            name="from",
            value=Value.TEXT,
            shown="NAME",
            names=Names.SESSION,
            help="take it back as the session that wrote it: for teaching",
        ),
    ),
    details="What waits, and in which order it will be read: %mail NAME --unread",
    example="%withdraw m-0003",
)

WAIT: Final = Magic(
    name="wait",
    summary="Let the kernel's loop run until sessions are idle, or something has happened.",
    options=(
        Option(
            name="for",
            value=Value.TEXT,
            shown="idle|answer|mail|CALL|EVENT",
            names=Names.UNTIL,
            words=("idle", "answer", "mail"),
            help="what to wait for; default idle",
        ),
        Option(name="any", help="one of the sessions is enough"),
        Option(
            name="timeout",
            value=Value.NUMBER,
            shown="SECONDS",
            help="then return and say what still works; default 300",
        ),
        Option(name="strict", help="raise an error instead, when the time is over"),
    ),
    tail=Tail.NAMES,
    tail_shown="[NAME …]",
    tail_names=Names.SESSION,
    details=(
        "Without names it waits for all. A kernel interrupt ends the wait, never the sessions.\n"
        "It works in if, for, try and async def; elsewhere use `await session.wait()`."
    ),
    example="%wait\nresult = %wait ann bob --any --timeout=60\n%wait ann --for=answer",
)

INTERRUPT: Final = Magic(
    name="interrupt",
    summary="Send mail that is read before the calls a session waits for are done.",
    head="NAME",
    head_names=Names.SESSION,
    tail=Tail.TEXT,
    tail_shown="TEXT",
    example="%interrupt rev Use the staging data instead.",
)

PAUSE: Final = Magic(
    name="pause",
    summary="Stop the run of sessions at the next receive point; mail is kept, calls go on.",
    tail=Tail.NAMES,
    tail_shown="NAME …",
    tail_names=Names.SESSION,
    details="Calls that the run waits for are detached: their results come as mail. Then %resume.",
    example="%pause rev",
)

STOP: Final = Magic(
    name="stop",
    summary="End the run of sessions now, their calls too; they take mail as before.",
    tail=Tail.NAMES,
    tail_shown="NAME …",
    tail_names=Names.SESSION,
    example="%stop rev",
)

RESUME: Final = Magic(
    name="resume",
    summary="Let sessions run here: a stored, stopped, failed or paused one goes on; it says which.",
    tail=Tail.NAMES,
    tail_shown="NAME …",
    tail_names=Names.SESSION,
    example="%resume rev",
)

CLOSE: Final = Magic(
    name="close",
    summary="Close sessions for good: they take no mail, and their names are free again.",
    tail=Tail.NAMES,
    tail_shown="NAME …",
    tail_names=Names.SESSION,
    example="%close rev",
)

SESSIONS: Final = Magic(
    name="sessions",
    summary="List the sessions of the room; returns them as a list.",
    options=(Option(name="hidden", help="those that were started hidden too"),),
    example="%sessions\nopen = %sessions",
)

MAIL: Final = Magic(
    name="mail",
    summary="List the mail of a session, in the order it was accepted; returns the envelopes.",
    head="NAME",
    head_names=Names.SESSION,
    options=(Option(name="unread", help="only what its model has not read yet"),),
    example="%mail ann --unread\nletters = %mail ann",
)

TRANSCRIPT: Final = Magic(
    name="transcript",
    summary="Show what a session's model read and said, turn by turn; returns the turns.",
    head="NAME",
    head_names=Names.SESSION,
    options=(Option(name="last", value=Value.COUNT, shown="N", help="only the last N turns"),),
    example="%transcript ann --last=4",
)

CALLS: Final = Magic(
    name="calls",
    summary="List the tool calls of one session or of all; returns them as a list.",
    head="NAME",
    head_names=Names.SESSION,
    head_optional=True,
    example="%calls rev",
)

CANCEL: Final = Magic(
    name="cancel",
    summary="Cancel tool calls, whichever sessions made them; a call that has ended stays as it is.",
    tail=Tail.NAMES,
    tail_shown="CALL …",
    tail_names=Names.OPEN_CALL,
    details="The session reads of it as of any other end of a call. Ids: %calls",
    example="%cancel call_0003",
)

INBOX: Final = Magic(
    name="inbox",
    summary="Show what the runtime wants you to look at, of one agent or of all, and answer it.",
    head="AGENT",
    head_names=Names.AGENT,
    head_optional=True,
    details=(
        "A live view in a notebook, a table in a terminal; assigned, it gives the entries. Nobody\n"
        "writes there but the runtime, and looking changes nothing."
    ),
    example="%inbox\n%inbox reviewer\nentries = %inbox",
)

MAGICS: Final = (
    POSTROOM,
    AGENT,
    SPAWN,
    SEND,
    WITHDRAW,
    WAIT,
    STEP,
    INTERRUPT,
    WATCH,
    UNWATCH,
    PAUSE,
    STOP,
    RESUME,
    CLOSE,
    SESSIONS,
    MAIL,
    TRANSCRIPT,
    CALLS,
    CANCEL,
    APPROVE,
    DENY,
    PERMISSIONS,
    REVOKE,
    INBOX,
    MAILSQL,
)

BY_NAME: Final = {magic.name: magic for magic in MAGICS}
