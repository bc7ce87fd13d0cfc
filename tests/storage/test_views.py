"""The SQL of a room, the same in memory and on disk."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from postroom_runtime.contracts.call import Call, CallState, ToolMessage, ToolRequest
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Control,
    FromSession,
    FromSystem,
    FromToolCall,
    FromUser,
    Notification,
    Pause,
    Priority,
    ToolCallFinished,
    UnknownBody,
    UserMessage,
)
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import inbox_key
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role, Turn, Usage
from postroom_runtime.storage.protocol import Storage
from storage.stores import SECONDS, commit, mail, make, open_sessions, record, send

COLUMNS = {
    "mail": "session session_name seq id sender_kind sender priority hops kind text in_reply_to "
    "expects_reply body accepted_at consumed_in_turn",
    "sessions": "id name agent parent status cursor unread created_at",
    "turns": "session session_name index role text calls results input_tokens output_tokens "
    "end_reason at cost",
    "calls": "id session session_name tool arguments state result started_at ended_at",
    "events": "seq session session_name kind data at",
    "approvals": "id token session agent tool arguments reason state asked_at",
    "inbox": "agent seq id type content metadata at",
    "usage": "session session_name agent requests input_tokens output_tokens cost",
}


@pytest.fixture(scope="module", params=["memory", "disk"])
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Storage]:
    """A room with one mail, for many queries that change nothing."""
    made = make(request.param, tmp_path_factory.mktemp("room"))
    open_sessions(made, "s-0001")
    send(made)
    yield made
    made.close()


def ask(store: Storage, query: str) -> list[tuple[Any, ...]]:
    """Answer a query as plain rows."""
    rows: list[tuple[Any, ...]] = store.sql(query).fetchall()
    return rows


@pytest.mark.parametrize("view", COLUMNS)
def test_every_view_has_the_columns_it_is_documented_with_M27(room: Storage, view: str) -> None:
    assert room.sql(f"FROM {view}").columns == COLUMNS[view].split()


def test_mail_shows_who_wrote_what_to_whom(store: Storage) -> None:
    letters = [
        mail(body=UserMessage("hello", in_reply_to="m-0009", expects_reply=True)),
        mail(body="hi", sender=FromUser("ann"), id="given"),
        mail(body=AgentMessage("yes"), sender=FromSession("s-0002", "echo"), hops=3),
        mail(body=AgentMessage("lost"), sender=FromSession("s-0099")),
        mail(body=ToolCallFinished("c-1", "t", "completed", "42"), sender=FromToolCall("c-1")),
        mail(
            body=ToolCallFinished("c-2", "t", "completed", {"text": 1}), sender=FromToolCall("c-2")
        ),
        mail(body=Control(Pause()), sender=FromSystem("timer:tea")),
        mail(body=UnknownBody("poem", {"lines": []})),
    ]
    for each in store.accept(letters):
        each.result(SECONDS)

    assert ask(
        store,
        "SELECT seq, id, sender_kind, sender, priority, hops, kind, text, in_reply_to, "
        "expects_reply FROM mail WHERE session_name = 'n-s-0001' ORDER BY seq",
    ) == [
        (1, "m-0001", "user", "user", "normal", 0, "user_message", "hello", "m-0009", True),
        (2, "given", "user", "ann", "normal", 0, "user_message", "hi", None, False),
        (3, "m-0003", "session", "n-s-0002", "normal", 3, "agent_message", "yes", None, False),
        (4, "m-0004", "session", "s-0099", "normal", 0, "agent_message", "lost", None, False),
        (5, "m-0005", "tool", "c-1", "normal", 0, "tool_call_finished", "42", None, False),
        (6, "m-0006", "tool", "c-2", "normal", 0, "tool_call_finished", "", None, False),
        (7, "m-0007", "system", "timer:tea", "interrupt", 0, "control", "", None, False),
        (8, "m-0008", "user", "user", "normal", 0, "poem", "", None, False),
    ]
    assert ask(store, "SELECT body->>'$.response.text' FROM mail WHERE seq = 6") == [("1",)]


def test_mail_names_the_first_user_turn_whose_cursor_reaches_it_M24(
    store: Storage, again: Callable[[Storage], Storage]
) -> None:
    for _ in range(5):
        send(store)
    user, model = Role.USER, Role.MODEL
    steps = [(1, user, 2), (2, model, 2), (3, user, 2), (4, model, 3), (5, user, 4)]
    for version, (index, role, cursor) in enumerate(steps, start=1):
        turn = Turn(index=index, role=role, text="")
        commit(store, version, cursor=cursor, rows=[turn], fields={"turns": index}).result(SECONDS)

    query = "SELECT seq, consumed_in_turn FROM mail ORDER BY seq"
    expected = [(1, 1), (2, 1), (3, 5), (4, 5), (5, None)]
    assert ask(store, query) == expected
    assert ask(again(store), query) == expected


def test_entries_are_in_the_inbox_and_never_in_mail(store: Storage) -> None:
    open_sessions(store, inbox_key("echo"), max_unread=None)
    entry = Notification("disk almost full", "alarm", {"actions": ["ok"]})
    send(store, inbox_key("echo"), entry, sender=FromSystem("runtime"))
    send(store, inbox_key("echo"), Notification("bye"), sender=FromSystem("runtime"))

    assert ask(store, "SELECT count(*) FROM mail") == [(0,)]
    assert ask(
        store,
        "SELECT agent, seq, id, type, content, metadata->>'$.actions[0]' FROM inbox ORDER BY seq",
    ) == [
        ("echo", 1, "m-0001", "alarm", "disk almost full", "ok"),
        ("echo", 2, "m-0002", "notification", "bye", None),
    ]
    assert ask(store, "SELECT id FROM sessions ORDER BY id") == [("s-0001",), ("s-0002",)]
    assert ask(store, "SELECT count(*) FROM usage") == [(2,)]


def test_sessions_turns_calls_events_and_usage_show_the_last_word(store: Storage) -> None:
    at = store.rows()[0].at
    naive = at.replace(tzinfo=None)
    send(store)
    send(store)
    call = Call(
        id="c-1",
        session="s-0001",
        tool="slow",
        arguments={"n": 1},
        state=CallState.RUNNING,
        started_at=at,
    )
    turn = Turn(
        index=1,
        role=Role.MODEL,
        text="wait",
        calls=(ToolRequest(tool="slow", arguments={"n": 1}, id="c-1"),),
        usage=Usage(requests=1, input_tokens=7, output_tokens=2, cost=0.00001),
        end_reason=EndReason.ANSWER,
    )
    reply = Turn(
        index=2,
        role=Role.USER,
        text="so",
        results=(ToolMessage(call="c-1", tool="slow", content="3", state=CallState.COMPLETED),),
    )
    event = Event(
        kind=EventKind.RUN_STOPPED, seq=0, session="s-0001", at=at, data={"reason": "answer"}
    )
    commit(
        store,
        1,
        cursor=1,
        rows=[turn, reply, call, event],
        fields={
            "name": "ann",
            "parent": "s-0002",
            "status": SessionStatus.IDLE,
            "created_at": at,
            "usage": Usage(requests=2, input_tokens=9, output_tokens=3, cost=2e-05),
        },
    ).result(SECONDS)
    ended = Call(
        id="c-1",
        session="s-0001",
        tool="slow",
        arguments={"n": 1},
        state=CallState.COMPLETED,
        result=[1, 2],
        started_at=at,
        ended_at=at + timedelta(seconds=90),
    )
    bare = Event(kind="moon.rose", seq=0, session="s-0002", at=at)
    store.commit("s-0001", epoch=1, version=None, rows=[ended, bare]).result(SECONDS)

    assert ask(store, "SELECT * FROM sessions ORDER BY id") == [
        ("s-0001", "ann", "echo", "s-0002", "idle", 1, 1, naive),
        ("s-0002", "n-s-0002", "echo", None, "ready", 0, 0, None),
    ]
    assert ask(
        store,
        "SELECT session_name, index, role, text, calls->>'$[0].tool', results->>'$[0].content', "
        "input_tokens, output_tokens, end_reason, cost FROM turns ORDER BY index",
    ) == [
        ("ann", 1, "model", "wait", "slow", None, 7, 2, "answer", 1e-05),
        ("ann", 2, "user", "so", None, "3", 0, 0, None, None),
    ]
    assert ask(store, "SELECT * FROM calls") == [
        (
            "c-1",
            "s-0001",
            "ann",
            "slow",
            '{"n":1}',
            "completed",
            "[1,2]",
            naive,
            naive + timedelta(seconds=90),
        )
    ]
    assert ask(store, "SELECT * FROM events") == [
        (8, "s-0001", "ann", "run.stopped", '{"reason":"answer"}', naive),
        (11, "s-0002", "n-s-0002", "moon.rose", "{}", naive),
    ]
    assert ask(store, "SELECT * FROM usage ORDER BY 1") == [
        ("s-0001", "ann", "echo", 2, 9, 3, 2e-05),
        ("s-0002", "n-s-0002", "echo", 0, 0, 0, None),
    ]
    assert ask(store, "SELECT * FROM approvals") == []


def test_what_is_no_text_breaks_neither_storing_nor_sql(
    store: Storage, again: Callable[[Storage], Storage]
) -> None:
    texts = ["a\x00b", "half \ud83d", "\udcff.txt", "whole 😀", '\\ud800 "quoted"']
    for text in texts:
        send(store, body=text)
    for each in range(5):
        send(store, "s-0002", body=f"{each}\udc00")  # a group of more than three goes another way

    shown = ["a\x00b", "half �", "�.txt", "whole 😀", '\\ud800 "quoted"']
    query = "SELECT text FROM mail WHERE session = 's-0001' ORDER BY seq"
    assert [text for (text,) in ask(store, query)] == shown
    opened = again(store)
    assert [each.text for each in opened.fetch({"s-0001": 0})["s-0001"]] == texts
    assert [text for (text,) in ask(opened, query)] == shown


def test_in_memory_what_is_no_json_is_shown_in_words() -> None:
    from postroom_runtime.storage.memory_storage import MemoryStorage

    store = MemoryStorage()
    open_sessions(store, "s-0001")
    send(store, body=ToolCallFinished("c", "t", "completed", {"when": [complex(1, 2)]}))

    assert ask(store, "SELECT body->>'$.response.when[0]' FROM mail") == [("(1+2j)",)]


def test_each_query_sees_what_was_published_until_then(store: Storage) -> None:
    for number in range(1, 4):
        send(store)
        assert ask(
            store, "SELECT count(*), max(accepted_at) < now() + INTERVAL 200 YEAR FROM mail"
        ) == [(number, True)]


# ── asking ──


def test_an_answer_is_an_ordinary_relation_with_its_types(store: Storage) -> None:
    send(store)

    answer = store.sql(
        "SELECT session, seq, accepted_at, body, [1, 2] AS l, {'a': 1} AS s, sum(seq) OVER () AS h, "
        "1.5::DECIMAL(9,2) AS d, NULL AS nothing FROM mail"
    )

    assert [str(each) for each in answer.types] == [
        "VARCHAR",
        "BIGINT",
        "TIMESTAMP",
        "JSON",
        "INTEGER[]",
        "STRUCT(a INTEGER)",
        "HUGEINT",
        "DECIMAL(9,2)",
        '"NULL"',
    ]
    assert answer.filter("seq = 1").project("session").fetchall() == [("s-0001",)]
    assert isinstance(answer.fetchall()[0][2], datetime)
    assert "s-0001" in str(answer)


def test_an_answer_becomes_a_data_frame(store: Storage) -> None:
    pytest.importorskip("pandas", reason="needs pandas (extra lab)")
    send(store)

    frame = store.sql("SELECT sender, count(*) AS n FROM mail GROUP BY ALL").df()

    assert frame.to_dict("records") == [{"sender": "user", "n": 1}]


def test_an_answer_is_a_copy_that_neither_changes_nor_writes_nor_holds_the_room(
    store: Storage,
) -> None:
    send(store)
    answer = store.sql("SELECT * FROM mail")
    send(store)

    assert len(answer.fetchall()) == 1
    answer.insert_into("result")
    assert ask(store, "SELECT count(*) FROM mail") == [(2,)]
    half_read = store.sql("SELECT * FROM journal")
    assert len(half_read.limit(1).fetchall()) == 1
    assert send(store).seq == 3
    store.close()
    assert len(half_read.fetchall()) > 0


@pytest.mark.parametrize(
    "query",
    [
        "EXPLAIN SELECT * FROM mail",
        "DESCRIBE mail",
        "SUMMARIZE mail",
        "FROM mail SELECT count(*)",
        "VALUES (1), (2)",
        "SHOW TABLES",
        "WITH x AS (SELECT 1 AS one) SELECT one FROM x;",
        "SELECT 1 -- and a word on it",
    ],
)
def test_whatever_only_reads_is_answered(room: Storage, query: str) -> None:
    assert room.sql(query).fetchall()


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("DELETE FROM journal", "this is DELETE"),
        ("INSERT INTO journal SELECT * FROM journal", "this is INSERT"),
        ("UPDATE meta SET v = '9'", "this is UPDATE"),
        ("DROP VIEW mail", "this is DROP"),
        ("CREATE TABLE t(n INT)", "this is CREATE"),
        ("COPY mail TO '/tmp/postroom-out.csv'", "this is COPY"),
        ("ATTACH '/tmp/postroom-other.db' AS o", "this is ATTACH"),
        ("INSTALL httpfs", "this is LOAD"),
        ("SET threads = 1", "this is SET"),
        ("CHECKPOINT", "this is"),
        ("BEGIN", "this is TRANSACTION"),
        ("CALL force_checkpoint()", "this is CALL"),
        ("SELECT 1; SELECT 2", "this is SELECT and SELECT"),
        ("SELECT 1; DELETE FROM journal", "this is SELECT and DELETE"),
        ("", "this is nothing"),
        ("-- nothing", "this is nothing"),
        ("WITH x AS (DELETE FROM journal RETURNING *) SELECT * FROM x", "read-only"),
        ("EXPLAIN ANALYZE DELETE FROM journal", "read-only"),
        ("SELECT * FROM force_checkpoint()", "CHECKPOINT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "sees the room and nothing else"),
        ("SELECT * FROM read_text('/etc/passwd')", "sees the room and nothing else"),
        ("SELECT * FROM glob('/etc/*')", "sees the room and nothing else"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("SELECT * FROM query", "does not exist"),
        ("SELECT * FROM source", "does not exist"),
        ("SELECT nope FROM mail", '"nope" not found'),
        ("SELECT * FROM mial", 'Did you mean "mail"'),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT seq, at FROM events", '"at", in double quotes'),
        ("SELECT CAST(id AS INT) FROM mail", "Could not convert"),
        ("SELECT error('boom') FROM mail", "boom"),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(
    room: Storage, query: str, fault: str
) -> None:
    before = room.rows()

    with pytest.raises(ConfigError) as caught:
        room.sql(query)

    assert fault in str(caught.value)
    assert caught.value.value == query
    assert "\n" not in str(caught.value)
    assert room.rows() == before
    assert ask(room, "SELECT count(*) FROM mail") == [(1,)]


def test_a_room_takes_mail_after_every_refused_query(store: Storage) -> None:
    for query in (
        "DELETE FROM journal",
        "SELECT error('boom')",
        "SELECT * FROM force_checkpoint()",
    ):
        with pytest.raises(ConfigError):
            store.sql(query)

    assert send(store).seq == 1


@pytest.mark.parametrize("query", [None, 7, b"SELECT 1"])
def test_what_is_no_text_is_no_query(room: Storage, query: Any) -> None:
    with pytest.raises(ConfigError, match="is no query"):
        room.sql(query)


def test_a_record_of_a_session_needs_no_turn_to_be_shown(store: Storage) -> None:
    session: SessionRecord = record("s-0003", name="zoe", status=SessionStatus.PAUSED)
    store.commit("s-0003", epoch=1, version=0, rows=[session]).result(SECONDS)
    send(store, "s-0003", priority=Priority.INTERRUPT)

    assert ask(store, "SELECT name, status, unread FROM sessions WHERE id = 's-0003'") == [
        ("zoe", "paused", 1)
    ]
