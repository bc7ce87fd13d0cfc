"""What errors say: the value, the rule and the remedy (api.md §4; M-16, I-10, I-30)."""

import inspect

import pytest

from postroom_runtime.contracts import errors
from postroom_runtime.contracts.errors import (
    AlreadyAnswered,
    AlreadyRead,
    AnswerFailed,
    ConfigError,
    InboxReadOnly,
    MailboxFull,
    MailRefused,
    ModelError,
    NameTaken,
    NotPermitted,
    NotReadable,
    OwnerOnly,
    PostroomError,
    RoomLocked,
    StaleRecord,
    StoreFailed,
    TooManyHops,
    TooManySessions,
    UnknownRecipient,
    WaitCycle,
    WaitInterrupted,
    WaitTimedOut,
)

SAID: dict[str, tuple[PostroomError, list[str], dict[str, object]]] = {
    "a near match": (
        UnknownRecipient("bib", ["ann", "bob"]),
        ["no session 'bib'", "Did you mean 'bob'?", "Reachable: ann, bob."],
        {"to": "bib", "known": ("ann", "bob"), "near": ("bob",), "closed": False},
    ),
    "two near matches": (
        UnknownRecipient("rev", ["review", "rev1"]),
        ["Did you mean 'rev1' or 'review'?"],
        {"near": ("rev1", "review")},
    ),
    "no near match": (
        UnknownRecipient("zoe", ["ann"]),
        ["no session 'zoe'. Reachable: ann."],
        {"near": ()},
    ),
    "nobody there": (
        UnknownRecipient("zoe"),
        ["no session 'zoe'", "No session is open yet"],
        {"known": ()},
    ),
    "closed": (
        UnknownRecipient("ann", ["bob"], closed=True),
        ["session 'ann' is closed and takes no mail", "Reachable: bob."],
        {"closed": True},
    ),
    "among many": (
        UnknownRecipient("s", [f"name{n}" for n in range(1, 301)]),
        ["name11, name12 and 288 more."],
        {"known": tuple(f"name{n}" for n in range(1, 301))},
    ),
    "not permitted": (
        NotPermitted("rev", "zoe", "subtree", "stranger"),
        [
            "rev may not write to zoe, a stranger to it",
            "mail_scope is 'subtree'",
            "It may answer mail from zoe and write to its parent; the owner can widen mail_scope",
        ],
        {"sender": "rev", "to": "zoe", "scope": "subtree", "relation": "stranger"},
    ),
    "not readable": (
        NotReadable("kid", "root", "subtree", "parent"),
        ["kid may not read root, its parent", "mail_scope is 'subtree'", "owner can widen"],
        {"reader": "kid", "session": "root", "scope": "subtree", "relation": "parent"},
    ),
    "too many sessions": (
        TooManySessions(1000, 1000),
        ["1000 sessions are open, limit 1000", "Close some, or raise room.max_sessions"],
        {"open": 1000, "limit": 1000},
    ),
    "wait cycle": (
        WaitCycle(["ann", "bob", "ann"]),
        ["would never end: ann → bob → ann", "End the turn instead of waiting"],
        {"names": ("ann", "bob", "ann")},
    ),
    "hops": (
        TooManyHops(17, 16),
        ["17 hops", "limit 16", "end your turn", "from the owner starts again at 0"],
        {"hops": 17, "limit": 16},
    ),
    "full": (
        MailboxFull("rev", 256, 256),
        ["mailbox of rev is full: 256 unread, limit 256", "Wait for rev", "mailbox_max_unread"],
        {"session": "rev", "unread": 256, "limit": 256},
    ),
    "inbox": (
        InboxReadOnly("Inbox"),
        ["'Inbox' is the owner inbox and read-only (inbox_read_only, 403)", "room.notify"],
        {"to": "Inbox", "status": 403},
    ),
    "name taken": (
        NameTaken("rev", "reviewer", "writer"),
        ["'rev' is a session of agent 'reviewer', not of 'writer'", "--as", "%close rev"],
        {"name": "rev", "agent": "reviewer", "wanted": "writer"},
    ),
    "answered": (
        AlreadyAnswered("ap-0001", "approved", "owner"),
        ["ap-0001 was already approved by owner", "that stands"],
        {"what": "ap-0001", "state": "approved", "by": "owner"},
    ),
    "answered by nobody known": (
        AlreadyAnswered("ap-0001", "denied"),
        ["ap-0001 was already denied; that stands."],
        {"by": None},
    ),
    "no answer": (
        AnswerFailed("rev", "it was stopped", "Write to it again."),
        ["rev gave no answer: it was stopped. Write to it again."],
        {"session": "rev", "reason": "it was stopped"},
    ),
    "owner only": (
        OwnerOnly("root", "admin", "answer ap-0001"),
        ["root may not answer ap-0001", "an admin reads and decides nothing", "Ask the owner"],
        {"name": "root", "role": "admin", "what": "answer ap-0001"},
    ),
    "stale": (
        StaleRecord("rev", 3, 5),
        ["session rev is at version 5, not 3", "Read it again before you store"],
        {"session": "rev", "expected": 3, "found": 5},
    ),
    "locked": (
        RoomLocked("lab.duckdb", 4711, "laptop"),
        [
            "lab.duckdb is open in process 4711 on laptop",
            "%postroom open OTHER.duckdb",
            "%postroom open :memory:",
        ],
        {"path": "lab.duckdb", "pid": 4711, "host": "laptop"},
    ),
    "locked by nobody known": (
        RoomLocked("lab.duckdb", None, None),
        ["lab.duckdb is open in another process"],
        {"pid": None, "host": None},
    ),
    "store": (
        StoreFailed("nothing was stored", "disk full", "Free some space."),
        ["nothing was stored: disk full. Free some space."],
        {"what": "nothing was stored", "cause": "disk full"},
    ),
    "already read": (
        AlreadyRead("m-0001", "ann"),
        ["m-0001 cannot be withdrawn", "ann has read it", "write again"],
        {"mail": "m-0001", "session": "ann"},
    ),
    "config": (ConfigError("x=1 will not do.", value=1), ["x=1 will not do."], {"value": 1}),
    "model": (
        ModelError("refused.", model="openai:gpt", status=401),
        ["refused."],
        {"model": "openai:gpt", "status": 401},
    ),
    "interrupted": (
        WaitInterrupted(["ann", "bob"]),
        ["stopped waiting; the sessions live on", "Still working: ann, bob."],
        {"left": ("ann", "bob")},
    ),
    "timed out": (WaitTimedOut("after 5 s", ["ann"]), ["after 5 s"], {"left": ("ann",)}),
}


@pytest.mark.parametrize("case", SAID)
def test_an_error_says_value_rule_and_remedy_and_carries_them(case: str) -> None:
    error, words, values = SAID[case]

    for part in words:
        assert part in str(error)
    assert {name: getattr(error, name) for name in values} == values


def test_every_error_is_tried_here() -> None:
    tried = {type(error) for error, _, _ in SAID.values()}
    defined = {
        each
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, PostroomError)
    }

    assert defined - tried == {PostroomError, MailRefused}


def test_there_are_exactly_four_refusals_of_mail_each_with_its_code() -> None:
    """M-16."""
    assert {refusal: refusal.code for refusal in MailRefused.__subclasses__()} == {
        UnknownRecipient: "unknown_recipient",
        NotPermitted: "not_permitted",
        TooManyHops: "too_many_hops",
        MailboxFull: "mailbox_full",
    }


def test_an_owner_inbox_refuses_with_its_own_code_and_not_as_mail_refused() -> None:
    """I-10: as a matter of scope it would invite a wider scope."""
    assert (InboxReadOnly.code, InboxReadOnly.status) == ("inbox_read_only", 403)
    assert not issubclass(InboxReadOnly, MailRefused)


def test_errors_are_also_what_python_would_call_them() -> None:
    assert issubclass(ConfigError, ValueError)
    assert issubclass(WaitInterrupted, KeyboardInterrupt)
    assert issubclass(WaitTimedOut, TimeoutError)


def test_a_notebook_shows_one_line_of_an_error() -> None:
    assert TooManyHops(17, 16)._render_traceback_() == [f"TooManyHops: {TooManyHops(17, 16)}"]
