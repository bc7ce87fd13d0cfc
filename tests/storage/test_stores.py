"""What every store does, in memory or on disk; the laws have the rest."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Body,
    ContinuationResult,
    Control,
    FromSession,
    FromSystem,
    FromToolCall,
    Notification,
    Outgoing,
    Pause,
    Priority,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.errors import (
    ConfigError,
    MailboxFull,
    StaleRecord,
    StoreFailed,
    TooManyHops,
    UnknownRecipient,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import inbox_key
from postroom_runtime.contracts.journal import Row, RowKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.storage.protocol import Storage
from storage.stores import SECONDS, commit, mail, open_sessions, record, send

Again = Callable[[Storage], Storage]


def before_and_after(store: Storage, again: Again) -> Iterator[Storage]:
    """The store as it is, then the same room opened again."""
    yield store
    yield again(store)


def test_a_thousand_sends_from_eight_threads_get_seqs_1_to_1000_M18(store: Storage) -> None:
    open_sessions(store, "s-0003", max_unread=None)
    seqs: list[int] = []

    def sender() -> None:
        seqs.extend(send(store, "s-0003").seq for _ in range(125))

    threads = [threading.Thread(target=sender) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(seqs) == [*range(1, 1001)]
    assert [each.seq for each in store.fetch({"s-0003": 0})["s-0003"]] == [*range(1, 1001)]


def test_a_thread_gets_a_receipt_while_the_loop_is_blocked_M15(store: Storage) -> None:
    seqs: list[int] = []

    async def main() -> None:
        thread = threading.Thread(target=lambda: seqs.append(send(store).seq))
        thread.start()
        thread.join()  # the loop cannot turn until the receipt is there

    asyncio.run(main())

    assert seqs == [1]


def test_a_receipt_can_be_awaited_and_asked_again(store: Storage) -> None:
    async def main() -> None:
        (outcome,) = store.accept([mail(note="told")])
        receipt = await outcome
        assert (receipt.id, receipt.seq, receipt.note) == ("m-0001", 1, "told")
        assert await outcome == receipt
        assert outcome.done()
        assert outcome.result(0) == receipt

    asyncio.run(main())


def test_a_refusal_can_be_awaited_and_raised_again(store: Storage) -> None:
    async def main() -> None:
        (outcome,) = store.accept([mail("s-0009")])
        for _ in range(2):
            with pytest.raises(UnknownRecipient, match=r"no session 's-0009'.*s-0001"):
                await outcome
        assert outcome.done()

    asyncio.run(main())


def test_refusals_come_in_the_order_unknown_duplicate_hops_full_M16(store: Storage) -> None:
    open_sessions(store, "s-0003", max_unread=1)
    first = send(store, "s-0003", id="job")
    too_far: dict[str, Any] = {"hops": 17, "max_hops": 16}

    with pytest.raises(UnknownRecipient):
        send(store, "s-0009", id="job", **too_far)
    assert send(store, "s-0003", "changed", id="job", **too_far) == replace(first, duplicate=True)
    with pytest.raises(TooManyHops):
        send(store, "s-0003", **too_far)
    with pytest.raises(MailboxFull):
        send(store, "s-0003", hops=16, max_hops=16)


def test_a_closed_session_takes_no_mail(store: Storage) -> None:
    send(store, id="job")
    commit(store, 1, fields={"status": SessionStatus.CLOSED}).result(SECONDS)

    with pytest.raises(UnknownRecipient, match="is closed") as caught:
        send(store, id="job")

    assert caught.value.closed


def test_a_resent_id_gets_the_first_receipt_and_the_first_body_stays_M19(
    store: Storage, again: Again
) -> None:
    first = send(
        store, body=AgentMessage("one"), id="job", priority=Priority.INTERRUPT, note="be patient"
    )
    lowered = send(store, id="low", lowered=True)
    assert commit(store, 1, cursor=2).result(SECONDS).version == 2
    store.trim({"s-0001": 2})
    for each in before_and_after(store, again):
        assert send(each, body="two", id="job") == replace(first, duplicate=True, note="")
        assert send(each, id="low", note="new") == replace(lowered, duplicate=True, note="new")
        assert [mail.text for mail in each.fetch({"s-0001": 0})["s-0001"]] == ["one", "hello"]


def test_the_same_id_reaches_two_sessions_M19(store: Storage) -> None:
    assert send(store, "s-0001", id="all").seq == 1
    there = send(store, "s-0002", id="all")

    assert (there.seq, there.duplicate) == (1, False)
    assert send(store, "s-0002", id="all").duplicate


def test_ids_are_counted_out_over_all_mailboxes_and_entries(store: Storage, again: Again) -> None:
    open_sessions(store, inbox_key("echo"), max_unread=None)
    ids = [
        send(store, "s-0001").id,
        send(store, "s-0002", id="given").id,
        send(store, inbox_key("echo"), Notification("look"), sender=FromSystem("runtime")).id,
        send(store, "s-0001").id,
    ]

    assert ids == ["m-0001", "given", "m-0003", "m-0004"]
    assert send(again(store)).id == "m-0005"


def test_counted_ids_skip_given_ones_also_after_opening_again(store: Storage, again: Again) -> None:
    for given in ("m-0003", "m-0005", "m-00006", "m-9"):
        send(store, id=given)

    assert [send(store, "s-0002").id for _ in range(3)] == ["m-0006", "m-0007", "m-0008"]
    assert send(again(store), "s-0002").id == "m-0009"


def test_a_counted_id_never_names_a_second_mail_of_the_room(store: Storage, again: Again) -> None:
    counted = send(store, "s-0001")
    for each in before_and_after(store, again):
        with pytest.raises(ConfigError, match=r"'m-0001' is the number of another mail, in s-0001"):
            send(each, "s-0002", id="m-0001")
        assert send(each, "s-0001", id="m-0001") == replace(counted, duplicate=True)


@pytest.mark.parametrize("id", ["", " ", "x" * 129, "a\nb", "\udcff"])
def test_a_bad_id_is_refused_alone(store: Storage, id: str) -> None:
    bad, good = store.accept([mail(id=id), mail()])

    with pytest.raises(ConfigError, match="cannot be a mail id"):
        bad.result(SECONDS)
    assert good.result(SECONDS).seq == 1


def test_the_257th_unread_mail_is_refused_until_the_cursor_moves_M31(store: Storage) -> None:
    receipts = [each.result(SECONDS) for each in store.accept([mail()] * 256)]
    assert receipts[-1].seq == 256

    with pytest.raises(MailboxFull, match="256 unread, limit 256"):
        send(store)

    commit(store, 1, cursor=1).result(SECONDS)
    assert send(store).seq == 257
    with pytest.raises(MailboxFull):
        send(store)


def test_the_bound_survives_opening_again_and_follows_the_latest_record_M31(
    store: Storage, again: Again
) -> None:
    commit(store, 1, fields={"max_unread": 1}).result(SECONDS)
    send(store)
    opened = again(store)
    with pytest.raises(MailboxFull):
        send(opened)

    commit(opened, 2, fields={"max_unread": None}).result(SECONDS)

    assert send(opened).seq == 2


def test_controls_and_call_ends_enter_a_full_mailbox_and_do_not_fill_it_M32(store: Storage) -> None:
    open_sessions(store, "s-0003", max_unread=1)
    exempt: list[Body] = [
        Control(Pause()),
        ToolCallFinished("c", "t", "completed"),
        Notification("note"),
    ]
    for body in exempt * 2:
        send(store, "s-0003", body)
    assert send(store, "s-0003").seq == 7
    for body in exempt:
        send(store, "s-0003", body)
    bound: list[Body] = [
        UserMessage("x"),
        AgentMessage("x"),
        ContinuationResult("k", "c", "t", "completed"),
        WatchedEvent("s-0001", "run.stopped"),
    ]
    for body in bound:
        with pytest.raises(MailboxFull):
            send(store, "s-0003", body)


def test_a_control_is_an_interrupt_whatever_was_asked_M82(store: Storage) -> None:
    assert send(store, body=Control(Pause())).priority is Priority.INTERRUPT
    assert send(store).priority is Priority.NORMAL
    assert [each.priority for each in store.fetch({"s-0001": 0})["s-0001"]] == [
        Priority.INTERRUPT,
        Priority.NORMAL,
    ]


def test_reading_consumes_nothing_and_trimming_only_memory_M20_M33(store: Storage) -> None:
    for text in "abc":
        send(store, body=text)
    commit(store, 1, cursor=1).result(SECONDS)
    everything = store.fetch({"s-0001": 0})

    store.trim({"s-0001": 3, "s-0009": 1})

    assert store.fetch({"s-0001": 0}) == store.fetch({"s-0001": 0}) == everything
    assert [mail.text for mail in store.fetch({"s-0001": 1})["s-0001"]] == ["b", "c"]
    assert store.fetch({"s-0001": 3, "s-0009": 0}) == {"s-0001": [], "s-0009": []}
    found = store.find("s-0001", "m-0001")
    assert found is not None
    assert found.text == "a"


def test_mail_is_found_by_its_id_in_one_mailbox_or_in_the_room(
    store: Storage, again: Again
) -> None:
    send(store, "s-0001", "first", id="all")
    send(store, "s-0002", "second", id="all")
    for each in before_and_after(store, again):
        found = each.find("s-0002", "all")
        anywhere = each.find_mail("all")
        assert (found and found.text, anywhere and anywhere.text) == ("second", "first")
        assert each.find("s-0001", "nope") is each.find_mail("nope") is None


def test_a_commit_stores_its_rows_then_its_mail_and_moves_the_cursor_M22(store: Storage) -> None:
    send(store, body="read me")
    turn = Turn(index=1, role=Role.USER, text="read me")
    event = Event(kind=EventKind.INBOX, seq=0, session="s-0001", at=store.rows()[0].at)

    done = commit(
        store,
        1,
        cursor=1,
        rows=[turn, event],
        mail=[mail("s-0002", AgentMessage("yes"), sender=FromSession("s-0001"))],
    ).result(SECONDS)

    assert done.version == 2
    assert [(each.session, each.seq) for each in done.receipts] == [("s-0002", 1)]
    rows = store.rows(after=3)
    assert [row.n for row in rows] == [4, 5, 6, 7]
    assert rows[0].record == turn
    assert rows[1].record == replace(event, seq=5)
    assert store.records()["s-0001"] == rows[2].record
    assert store.fetch({"s-0002": 0})["s-0002"] == [rows[3].record]
    assert len({row.at for row in rows}) == 1


def test_a_stale_commit_stores_nothing(store: Storage) -> None:
    before = store.rows()

    outcome = commit(store, 7, mail=[mail("s-0002")])

    with pytest.raises(StaleRecord, match="at version 1, not 7"):
        outcome.result(SECONDS)
    assert store.rows() == before
    assert store.fetch({"s-0002": 0})["s-0002"] == []


def test_refused_mail_refuses_the_whole_commit_and_gives_its_numbers_back(store: Storage) -> None:
    before = store.head()
    outcome = commit(store, 1, mail=[mail("s-0002", id="m-0007"), mail("s-0002"), mail("s-0009")])

    with pytest.raises(UnknownRecipient):
        outcome.result(SECONDS)

    assert store.head() == before
    assert store.records()["s-0001"].version == 1
    assert commit(store, 1).result(SECONDS).version == 2
    first = send(store, "s-0002")
    assert (first.id, first.seq) == ("m-0001", 1)
    assert not send(store, "s-0002", id="m-0007").duplicate


def test_a_refused_first_commit_leaves_no_mailbox_behind(store: Storage) -> None:
    outcome = store.commit("s-0003", epoch=1, version=0, rows=[record("s-0003")], mail=[mail("no")])
    with pytest.raises(UnknownRecipient):
        outcome.result(SECONDS)

    with pytest.raises(UnknownRecipient):
        send(store, "s-0003")
    open_sessions(store, "s-0003")


def test_a_first_commit_may_bring_the_sessions_first_mail(store: Storage) -> None:
    done = store.commit(
        "s-0003",
        epoch=1,
        version=0,
        rows=[record("s-0003")],
        mail=[mail("s-0003", "go", id="k"), mail("s-0003", "again", id="k")],
    ).result(SECONDS)

    assert [(each.seq, each.duplicate) for each in done.receipts] == [(1, False), (1, True)]


def test_the_end_of_a_call_and_its_mail_are_published_together_M62b(store: Storage) -> None:
    seen: list[tuple[CallState, int]] = []
    heard = threading.Event()

    def listener(rows: list[Row]) -> None:
        states = [row.record.state for row in rows if isinstance(row.record, Call)]
        letters = [
            row for row in rows if row.session == "s-0001" and not isinstance(row.record, Call)
        ]
        seen.extend((state, len(letters)) for state in states)
        heard.set()

    store.bells(listener)  # type: ignore[arg-type]
    call = Call(id="c", session="s-0001", tool="t", arguments={}, state=CallState.COMPLETED)
    ended = Outgoing(
        session="s-0001",
        sender=FromToolCall("c"),
        body=ToolCallFinished("c", "t", "completed", "ok"),
    )

    done = store.commit("s-0001", epoch=1, version=None, rows=[call], mail=[ended]).result(SECONDS)

    assert heard.wait(SECONDS)
    assert seen == [(CallState.COMPLETED, 1)]
    assert done.version == 1


def test_calls_and_events_stand_under_the_session_they_name(store: Storage) -> None:
    call = Call(id="c", session="s-0002", tool="t", arguments={}, state=CallState.RUNNING)

    store.commit("s-0001", epoch=1, version=None, rows=[call]).result(SECONDS)

    assert [row.record for row in store.rows("s-0002", [RowKind.CALL])] == [call]


def test_rows_are_chosen_by_session_kind_and_place(store: Storage) -> None:
    for each in ("s-0001", "s-0002", "s-0001"):
        send(store, each)

    assert [row.n for row in store.rows("s-0001")] == [1, 3, 5]
    assert [row.n for row in store.rows("s-0001", [RowKind.MAIL], after=3)] == [5]
    assert [row.n for row in store.rows(kinds=[RowKind.SESSION])] == [1, 2]
    assert store.rows(after=5) == store.rows("s-0009") == store.rows(kinds=[]) == []
    assert store.count(RowKind.MAIL) == 3
    assert store.head() == 5


def test_a_listener_hears_until_it_is_stopped_and_cannot_break_the_store(
    store: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[int] = []

    def broken(rows: object) -> None:
        raise RuntimeError("no bell")

    stop_broken = store.bells(broken)
    stop = store.bells(lambda rows: heard.extend(row.n for row in rows))
    assert send(store).seq == 1
    stop_broken()
    stop()
    assert send(store).seq == 2

    assert heard == [3]
    assert "no bell" in caplog.text


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"version": 1, "rows": []}, "exactly one session record"),
        ({"version": 1, "rows": [record(version=2), record(version=2)]}, "exactly one"),
        ({"version": 1, "rows": [record(version=3)]}, "at version 2"),
        ({"version": 1, "rows": [record("s-0002", 2)]}, "of s-0001"),
        ({"version": None, "rows": [record(version=2)]}, "rows only"),
        ({"version": None, "cursor": 1}, "rows only"),
        ({"version": 1, "cursor": 1, "rows": [record(version=2, cursor=1)]}, "last mail"),
        ({"version": 1, "cursor": 0, "rows": [record(version=2, cursor=1)]}, "carry the cursor 0"),
    ],
)
def test_a_commit_that_contradicts_itself_is_a_mistake_at_the_call(
    store: Storage, given: dict[str, object], rule: str
) -> None:
    with pytest.raises(ValueError, match=rule):
        store.commit("s-0001", epoch=1, **given)  # type: ignore[arg-type]
    assert commit(store, 1).result(SECONDS).version == 2


def test_a_cursor_never_goes_back(store: Storage) -> None:
    send(store)
    commit(store, 1, cursor=1).result(SECONDS)

    with pytest.raises(ValueError, match="between the stored one"):
        commit(store, 2, cursor=0)
    with pytest.raises(ValueError, match="carry the cursor 1"):
        commit(store, 2)
    assert commit(store, 2, cursor=1).result(SECONDS).version == 3


def test_an_envelope_is_no_row_of_a_commit(store: Storage) -> None:
    send(store)
    (row,) = store.rows(kinds=[RowKind.MAIL])

    with pytest.raises(ValueError, match="sent with `mail`"):
        store.commit("s-0001", epoch=1, version=None, rows=[row.record])


def test_a_one_process_room_says_yes_to_every_claim(store: Storage) -> None:
    epoch = store.claim("s-0001", "kernel")

    assert store.renew("s-0001", epoch)
    store.release("s-0001", epoch)
    assert store.claim("s-0001", "other") == epoch


def test_a_closed_room_refuses_and_says_so(store: Storage) -> None:
    store.close()
    store.close()

    with pytest.raises(StoreFailed, match="is closed"):
        send(store)
    with pytest.raises(StoreFailed, match="is closed"):
        commit(store, 1).result(SECONDS)


def test_a_room_opened_again_is_the_room_it_was(store: Storage, again: Again) -> None:
    for text in ("a", "b\x00", "c 😀"):
        send(store, body=text)
    commit(store, 1, cursor=2, rows=[Turn(index=1, role=Role.USER, text="a b")]).result(SECONDS)
    rows, records, fetched = store.rows(), store.records(), store.fetch({"s-0001": 0, "s-0002": 0})

    opened = again(store)

    assert opened.rows() == rows
    assert opened.records() == records
    assert opened.fetch({"s-0001": 0, "s-0002": 0}) == fetched
    assert opened.head() == len(rows)
    assert {kind: opened.count(kind) for kind in RowKind} == {
        kind: store.count(kind) for kind in RowKind
    }
    assert commit(opened, 2, cursor=2).result(SECONDS).version == 3


def test_the_status_line_of_a_room(store: Storage, kind: str) -> None:
    told = store.describe()

    assert told["rows"] == 2
    assert (told["path"] == ":memory:") is (kind == "memory")
    assert (told["bytes"] == 0) is (kind == "memory")
