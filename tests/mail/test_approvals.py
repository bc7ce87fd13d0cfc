"""The approval desk: one question, one answer, told by mail in the same transaction (M-97, M-114, I-30)."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest

from contracts.envelopes import clock, record
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    ContinuationResult,
    Control,
    Envelope,
    FromSystem,
    Outgoing,
    Priority,
    Release,
)
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError, StoreFailed
from postroom_runtime.contracts.journal import Record, Row
from postroom_runtime.mail.approvals import ApprovalDesk
from postroom_runtime.storage.memory_storage import MemoryStorage
from postroom_runtime.storage.pending import Refused
from postroom_runtime.storage.protocol import Committed, Pending


class Store(MemoryStorage):
    """A store whose commits can be held up, or fail."""

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        super().__init__(now=clock, rows=rows)
        self.fails = False
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while an answer is being stored."""

    def commit(self, session: str, **given: Any) -> Pending[Committed]:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if self.fails:
            return Refused(StoreFailed("nothing was stored", "disk full"))
        return super().commit(session, **given)


class Bench:
    """A desk over a store with one open session, ``s-0001``."""

    def __init__(self) -> None:
        self.storage = Store()
        self.storage.commit("s-0001", epoch=1, version=0, rows=(record(),)).result()
        self.storage.claim("s-0001", "kernel")
        self.desk = ApprovalDesk(self.storage, clock)

    def ask(self, call: str = "call_0001", target: str = "prod") -> Approval:
        """Ask, as a session does: the question is stored, then it is open."""
        approval = self.desk.ask(
            "s-0001", "reviewer", call, "deploy", {"target": target}, f"to {target}?"
        )
        self.storage.commit("s-0001", epoch=1, version=None, rows=(approval,)).result()
        self.desk.asked(approval)
        return approval

    def stored(self) -> dict[str, Approval]:
        return {
            row.record.id: row.record
            for row in self.storage.rows()
            if isinstance(row.record, Approval)
        }

    def mail(self) -> list[Envelope]:
        return self.storage.fetch({"s-0001": 0})["s-0001"]


def ended(approval: Approval, result: str = "by hand") -> Call:
    return Call(
        id=approval.call,
        session="s-0001",
        tool=approval.tool,
        arguments=approval.arguments,
        state=CallState.COMPLETED,
        result=result,
        token=approval.token,
    )


# ── Asking ──


def test_a_question_has_an_id_a_token_and_what_is_asked() -> None:
    bench = Bench()

    first, second = bench.ask(), bench.ask("call_0002", "test")

    assert first == Approval(
        id="ap-0001",
        token="t-0001",
        session="s-0001",
        agent="reviewer",
        call="call_0001",
        tool="deploy",
        arguments={"target": "prod"},
        reason="to prod?",
        asked_at=clock(),
    )
    assert (second.id, second.token) == ("ap-0002", "t-0002")
    assert bench.desk.all() == [first, second]


def test_a_question_is_open_when_it_is_stored_and_not_before() -> None:
    """M-114: two that are asked in one breath have two ids all the same."""
    desk = Bench().desk
    asked = [desk.ask("s-0001", "a", f"call_{n}", "t", {}, "") for n in range(2)]

    assert [each.id for each in asked] == ["ap-0001", "ap-0002"]
    assert desk.all(None) == []
    with pytest.raises(ConfigError, match="no approval 'ap-0001'; open: none"):
        desk.find("ap-0001")


def test_it_is_found_by_id_token_or_call_and_an_unknown_one_names_those_that_are_open() -> None:
    bench = Bench()
    first, second = bench.ask(), bench.ask("call_0002")

    assert [bench.desk.find(key) for key in ("ap-0001", "t-0001", "call_0001")] == [first] * 3
    assert (bench.desk.by_token("t-0002"), bench.desk.by_token("t-9")) == (second, None)
    with pytest.raises(ConfigError, match="no approval 'ap-0009'; open: ap-0001, ap-0002"):
        bench.desk.answer("ap-0009", ApprovalState.APPROVED, by="api")


# ── Answering ──


def test_a_yes_and_the_mail_that_tells_it_are_one_transaction() -> None:
    """M-97."""
    bench = Bench()
    bench.ask()
    groups: list[list[str]] = []
    bench.storage.bells(lambda rows: groups.append([type(each.record).__name__ for each in rows]))

    approval = bench.desk.answer("ap-0001", ApprovalState.APPROVED, by="%approve")

    assert groups == [["Approval", "Envelope"]]
    assert (approval.state, approval.answered_by) == (ApprovalState.APPROVED, "%approve")
    assert bench.stored()["ap-0001"] == approval == bench.desk.find("ap-0001")
    (mail,) = bench.mail()
    assert (mail.id, mail.sender, mail.priority) == (
        "answer-ap-0001",
        FromSystem("approvals"),
        Priority.INTERRUPT,
    )
    assert mail.body == Control(Release("t-0001", "approved", None, ""))
    assert bench.desk.all() == []
    assert bench.desk.all(ApprovalState.APPROVED) == [approval]


@pytest.mark.parametrize(
    ("state", "more", "release"),
    [
        (ApprovalState.APPROVED, {"arguments": {"target": "test"}}, {"target": "test"}),
        (ApprovalState.APPROVED, {"arguments": {}}, {}),
        (ApprovalState.DENIED, {}, ""),
        (ApprovalState.DENIED, {"reason": "not today"}, "not today"),
    ],
)
def test_edited_arguments_and_reasons_are_kept_and_told(
    state: ApprovalState, more: dict[str, Any], release: Any
) -> None:
    bench = Bench()
    bench.ask()

    approval = bench.desk.answer("call_0001", state, by="api", **more)

    body = bench.mail()[0].body
    assert isinstance(body, Control)
    told = body.message
    assert isinstance(told, Release)
    said = told.arguments if state is ApprovalState.APPROVED else told.reason
    assert (told.decision, said) == (str(state), release)
    assert approval.decision == (release if release != "" else None)


def test_arguments_that_are_no_object_are_refused_and_the_question_stays() -> None:
    bench = Bench()
    bench.ask()
    arguments: Any = ["prod"]

    with pytest.raises(ConfigError, match=r"an object of names and values, not \['prod'\]"):
        bench.desk.answer("ap-0001", ApprovalState.APPROVED, by="api", arguments=arguments)
    assert len(bench.desk.all()) == 1


def approve(bench: Bench, by: str) -> Approval:
    return bench.desk.answer("ap-0001", ApprovalState.APPROVED, by=by)


def deny(bench: Bench, by: str) -> Approval:
    return bench.desk.answer("ap-0001", ApprovalState.DENIED, by=by)


def complete(bench: Bench, by: str) -> Approval:
    approval = bench.desk.find("ap-0001")
    return bench.desk.complete(approval, ended(approval), by)


Answer: TypeAlias = Callable[[Bench, str], Approval]
WAYS: list[Answer] = [approve, deny, complete]
SAID: dict[Answer, str] = {approve: "approved", deny: "denied", complete: "completed"}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_the_first_answer_stands_and_the_second_is_told_whose_it_was(
    first: Answer, second: Answer
) -> None:
    """I-30."""
    bench = Bench()
    bench.ask()
    settled = first(bench, "the view")
    head = bench.storage.head()

    with pytest.raises(AlreadyAnswered, match=f"already {SAID[first]} by the view"):
        second(bench, "api")

    assert bench.storage.head() == head
    assert bench.stored() == {"ap-0001": settled}


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", WAYS)
def test_an_answer_that_is_just_being_stored_is_the_first_already(
    first: Answer, second: Answer
) -> None:
    """I-30."""
    bench = Bench()
    bench.ask()
    refused: list[str] = []

    def meanwhile() -> None:
        with pytest.raises(AlreadyAnswered) as late:
            second(bench, "api")
        refused.append(str(late.value))

    bench.storage.meanwhile = meanwhile
    first(bench, "the view")

    assert refused == [f"ap-0001 was already {SAID[first]} by the view; that stands."]
    assert len(bench.mail()) == 1


def test_of_many_answers_from_many_threads_at_once_one_wins() -> None:
    """I-30."""
    for _ in range(40):
        bench = Bench()
        bench.ask()
        won, lost = _at_once(bench, 8)
        assert len(won) == 1
        assert lost == won * 7
        assert len(bench.mail()) == 1
        assert bench.stored()["ap-0001"].answered_by == won[0]


def _at_once(bench: Bench, threads: int) -> tuple[list[str], list[str]]:
    """Answer from that many threads; return who won, and whom the others were told of."""
    won, lost, ready = list[str](), list[str](), threading.Barrier(threads)

    def answer(number: int) -> None:
        ready.wait()
        try:
            won.append(WAYS[number % 3](bench, str(number)).answered_by)
        except AlreadyAnswered as late:
            lost.append(late.by or "")

    started = [threading.Thread(target=answer, args=(n,)) for n in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    return won, lost


def test_the_list_may_be_read_from_any_thread_while_questions_are_asked() -> None:
    bench, over = Bench(), threading.Event()
    failed: list[BaseException] = []

    def look() -> None:
        try:
            while not over.is_set():
                bench.desk.all(None)
                bench.desk.by_token("t-0000")
        except BaseException as error:
            failed.append(error)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for each in lookers:
        each.start()
    for number in range(300):
        bench.ask(f"call_{number}")
    over.set()
    for each in lookers:
        each.join()
    assert failed == []


def test_an_answer_that_could_not_be_stored_leaves_the_question_open() -> None:
    """M-23."""
    bench = Bench()
    bench.ask()
    bench.storage.fails = True
    for way in WAYS:
        with pytest.raises(StoreFailed):
            way(bench, "api")
    assert [each.state for each in bench.desk.all()] == [ApprovalState.PENDING]

    bench.storage.fails = False
    assert approve(bench, "api").state is ApprovalState.APPROVED


# ── Results from outside ──


def test_a_result_from_outside_is_stored_with_the_end_of_its_call_and_its_mail() -> None:
    """M-97: one transaction, one envelope, named by the token."""
    bench = Bench()
    approval = bench.ask()
    groups: list[list[Record]] = []
    bench.storage.bells(lambda rows: groups.append([each.record for each in rows]))

    settled = complete(bench, "api")

    ((stored, call, mail),) = groups
    assert (stored, call) == (settled, ended(approval))
    assert isinstance(mail, Envelope)
    assert mail.id == "cont-t-0001"
    assert mail.body == ContinuationResult("t-0001", "call_0001", "deploy", "completed", "by hand")


# ── Cancelling ──


def test_a_cancelled_question_takes_no_answer_from_then_on_and_is_stored_with_the_end() -> None:
    bench = Bench()
    approval = bench.ask()

    rows = bench.desk.cancel(approval.token, "stop")

    assert rows is not None
    (cancelled,) = rows
    assert isinstance(cancelled, Approval)
    assert (cancelled.state, cancelled.answered_by) == (ApprovalState.CANCELLED, "stop")
    for way in WAYS:
        with pytest.raises(AlreadyAnswered, match="already cancelled by stop"):
            way(bench, "api")
    # The end could not be stored: who tries again stores it with it.
    assert bench.desk.cancel(approval.token, "stop") == (cancelled,)


def test_what_was_answered_needs_no_closing_and_a_call_with_a_result_is_not_to_be_ended() -> None:
    for way, rows in ((approve, ()), (deny, ()), (complete, None)):
        bench = Bench()
        approval = bench.ask()
        way(bench, "api")
        assert bench.desk.cancel(approval.token, "stop") == rows
        assert bench.desk.find("ap-0001").answered_by == "api"


@pytest.mark.parametrize(("way", "rows"), [(approve, ()), (deny, ()), (complete, None)])
def test_a_cancel_that_comes_while_an_answer_is_being_stored_leaves_it(
    way: Answer, rows: object
) -> None:
    bench, seen = Bench(), list[object]()
    bench.ask()
    bench.storage.meanwhile = lambda: seen.append(bench.desk.cancel("t-0001", "stop"))

    settled = way(bench, "api")

    assert (seen, bench.desk.find("ap-0001")) == ([rows], settled)


def test_an_unknown_token_has_nothing_to_close() -> None:
    assert Bench().desk.cancel("t-9", "stop") == ()


# ── Restart ──


def test_a_new_desk_knows_every_question_and_answer_and_counts_on() -> None:
    """I-30: also behind one that was never stored, whose number is not given twice."""
    bench = Bench()
    bench.ask()
    bench.desk.ask("s-0001", "reviewer", "call_0002", "deploy", {}, "")  # the kernel ends here
    third = bench.ask("call_0003")
    approve(bench, "api")

    again = Bench()
    again.storage = Store(rows=bench.storage.rows())
    again.desk = ApprovalDesk(again.storage, clock, bench.stored().values())

    assert again.desk.all() == [third]
    with pytest.raises(AlreadyAnswered, match="already approved by api"):
        deny(again, "api")
    assert again.ask("call_0004").token == "t-0004"
    again.desk.answer("ap-0003", ApprovalState.DENIED, by="view")
    assert [mail.id for mail in again.mail()] == ["answer-ap-0001", "answer-ap-0003"]


def test_mail_of_the_desk_has_one_id_per_question() -> None:
    """M-18: whoever posts it twice posts it once."""
    bench = Bench()
    bench.ask()
    approve(bench, "api")
    (mail,) = bench.mail()
    again = Outgoing(session="s-0001", sender=mail.sender, body=mail.body, id=mail.id)

    assert bench.storage.accept([again])[0].result().duplicate
