"""The one way mail between people and sessions takes (M-11, M-16, M-19, M-45, M-74, M-89, M-105…M-110)."""

import asyncio
import threading
from typing import Any

import pytest

from contracts.envelopes import AT
from mail.people import Office, Person
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    FromSystem,
    FromUser,
    Outgoing,
    Priority,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.errors import (
    ConfigError,
    InboxReadOnly,
    MailRefused,
    PostroomError,
    UnknownRecipient,
)
from postroom_runtime.mail.router import Letter


def letter(text: str = "hello", **more: Any) -> Letter:
    return Letter(text=text, **more)


@pytest.fixture
def office() -> Office:
    return Office()


# ── From the owner ──


def test_the_owner_writes_as_a_person_at_hop_0_to_anybody(office: Office) -> None:
    """M-11, M-110."""
    ann = office.person("ann")

    receipt = office.router.post("ann", letter("hi", expects_reply=True)).result()

    (mail,) = office.mail(ann)
    assert (mail.sender, mail.hops, mail.priority) == (FromUser(), 0, Priority.NORMAL)
    assert mail.body == UserMessage("hi", None, True)
    assert mail.accepted_at == AT
    assert (receipt.id, receipt.seq, receipt.session) == ("m-0001", 1, ann.id)


def test_the_receipt_names_the_recipient_and_says_how_it_is(office: Office) -> None:
    """M-17, M-99."""
    office.person("ann", status="paused")

    receipt = office.router.post("ann", letter()).result()

    assert str(receipt) == "m-0001 → ann #1 (paused)"
    assert receipt.recipient_status == "paused"


def test_the_owner_may_always_interrupt(office: Office) -> None:
    """M-74."""
    ann = office.person("ann")

    receipt = office.router.post("ann", letter(interrupt=True)).result()

    assert (receipt.priority, receipt.lowered) == (Priority.INTERRUPT, False)
    assert office.mail(ann)[0].priority is Priority.INTERRUPT


def test_a_receipt_may_be_waited_for_on_a_loop(office: Office) -> None:
    office.person("ann")

    async def main() -> str:
        return str(await office.router.post("ann", letter()))

    assert asyncio.run(main()) == "m-0001 → ann #1 (idle)"


def test_mail_is_taken_from_any_thread_while_nothing_runs_a_loop(office: Office) -> None:
    """M-15, M-18: one order per mailbox, no gap and no repeat."""
    ann = office.person("ann")

    def send(sender: int) -> None:
        for number in range(25):
            office.router.post("ann", letter(f"{sender}: {number}")).result()

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    mail = office.mail(ann)
    assert [each.seq for each in mail] == list(range(1, 101))
    for sender in range(4):
        mine = [each.text for each in mail if each.text.startswith(f"{sender}:")]
        assert mine == [f"{sender}: {number}" for number in range(25)]


# ── Who it is for ──


@pytest.mark.parametrize("to", ["ann", "s-0001"])
def test_a_session_is_reached_by_its_name_and_by_its_id(office: Office, to: str) -> None:
    """M-87."""
    office.person("ann")

    assert office.router.post(to, letter()).result().session == "s-0001"


def test_an_unknown_recipient_is_refused_with_near_matches_and_who_is_there(
    office: Office,
) -> None:
    """M-16."""
    office.person("reviewer")
    office.person("zoe")

    with pytest.raises(UnknownRecipient, match=r"Did you mean 'reviewer'\?") as refused:
        office.router.post("reviwer", letter())

    assert refused.value.known == ("reviewer", "zoe")
    assert office.storage.head() == 2  # nothing was stored


def test_a_name_counts_its_case(office: Office) -> None:
    office.person("Ann")

    with pytest.raises(UnknownRecipient, match="Did you mean 'Ann'"):
        office.router.post("ann", letter())


def test_a_closed_session_takes_no_mail_and_is_not_told_as_reachable(office: Office) -> None:
    """M-89."""
    ann = office.person("ann")
    office.person("bob")
    office.close(ann)

    with pytest.raises(UnknownRecipient, match="'ann' is closed") as refused:
        office.router.post("ann", letter())

    assert refused.value.closed
    assert refused.value.known == ("bob",)
    assert office.router.find("ann", closed=True) is ann


def test_a_session_that_closes_on_the_way_refuses_with_the_receipt(office: Office) -> None:
    ann = office.person("ann")
    office.close(ann)
    ann.closed = False  # the router has not heard of it yet

    with pytest.raises(UnknownRecipient):
        office.router.post("ann", letter()).result()


@pytest.mark.parametrize("to", [5, None, b"ann", ["ann"], Person("s-0001", "ann")])
def test_what_is_no_text_is_no_address(office: Office, to: Any) -> None:
    office.person("ann")

    with pytest.raises(ConfigError, match="give a session's name or id"):
        office.router.post(to, letter())


@pytest.mark.parametrize("to", ["inbox", "Inbox", "INBOX", "inbox@reviewer"])
@pytest.mark.parametrize("scope", [None, "own", "all"], ids=["owner", "own", "all"])
def test_nobody_writes_to_an_owner_inbox_whatever_their_scope(
    office: Office, to: str, scope: str | None
) -> None:
    """I-10, I-13: with its own code, which invites no wider scope."""
    sender = office.person("rev", mail_scope=scope) if scope else None

    with pytest.raises(InboxReadOnly) as refused:
        office.router.post(to, letter(), sender)

    assert (refused.value.code, refused.value.status) == ("inbox_read_only", 403)
    assert not isinstance(refused.value, MailRefused)


def test_who_is_taken_out_is_unknown(office: Office) -> None:
    """M-89."""
    ann = Person("s-0001", "ann")
    unregister = office.router.register(ann)
    assert office.router.members() == [ann]

    unregister()
    unregister()

    assert office.router.members() == []
    for to in ("ann", "s-0001"):
        with pytest.raises(UnknownRecipient):
            office.router.find(to)


def test_a_name_that_became_free_is_the_new_sessions_and_stays_so(office: Office) -> None:
    old, new = Person("s-0001", "ann", closed=True), Person("s-0002", "ann")
    leave = office.router.register(old)
    office.router.register(new)
    assert office.router.find("ann") is new
    assert office.router.lookup("s-0001") is old

    leave()

    assert office.router.find("ann") is new


def test_an_id_is_that_of_its_session_whatever_others_are_called(office: Office) -> None:
    """A letter is answered to the id in its header; a name must not intercept that."""
    ann = office.person("ann")
    office.person("s-0001")

    assert office.router.post("s-0001", letter()).result().session == ann.id
    assert office.router.named("s-0001") is office.router.find("s-0002")
    assert office.router.named("s-0002") is None


# ── Ids ──


def test_a_given_id_makes_sending_again_harmless(office: Office) -> None:
    """M-19: the first receipt, one envelope, its words unchanged."""
    ann = office.person("ann")
    first = office.router.post("ann", letter("one", id="order 7")).result()

    again = office.router.post("ann", letter("two", id="order 7")).result()

    assert (first.id, first.duplicate) == ("order 7", False)
    assert (again.id, again.seq, again.duplicate) == ("order 7", first.seq, True)
    assert "sent before, not stored again" in str(again)
    assert [mail.text for mail in office.mail(ann)] == ["one"]


def test_the_same_id_to_two_sessions_is_two_letters(office: Office) -> None:
    """M-19: unique per session and id, or a broadcast would vanish for the second."""
    office.person("ann")
    office.person("bob")

    receipts = [office.router.post(to, letter(id="x")).result() for to in ("ann", "bob")]

    assert [receipt.duplicate for receipt in receipts] == [False, False]


@pytest.mark.parametrize("id", ["", "  ", "a\nb", "x" * 129, 5])
def test_an_id_that_cannot_be_one_is_refused_at_the_call(office: Office, id: Any) -> None:
    office.person("ann")

    with pytest.raises(ConfigError, match="cannot be a mail id"):
        office.router.post("ann", letter(id=id))


# ── What it says and what it answers ──


@pytest.mark.parametrize("text", [None, b"hi", 5, {"text": "hi"}, ["hi"]])
def test_mail_carries_text_and_nothing_else(office: Office, text: Any) -> None:
    ann = office.person("ann")

    with pytest.raises(ConfigError, match="mail carries text") as refused:
        office.router.post("ann", letter(text))

    assert type(text).__name__ in str(refused.value)
    assert "files by path" in str(refused.value)
    assert office.mail(ann) == []


@pytest.mark.parametrize("text", ["", " \n", "x" * 100_000, "a\x00b", "émoji 🐙"])
def test_any_text_is_mail_also_a_blank_one(office: Office, text: str) -> None:
    """M-54: it is accepted and numbered."""
    ann = office.person("ann")

    office.router.post("ann", letter(text)).result()

    assert office.mail(ann)[0].text == text


def test_a_reply_names_the_mail_it_answers(office: Office) -> None:
    """M-45: a session quotes what is in its own mailbox, the owner anything in the room."""
    root = office.person("root")
    child = office.person("child", root)
    asked = office.router.post("child", letter("how far?"), root).result()

    answer = office.router.post("root", letter("done", in_reply_to=asked.id), child).result()
    praise = office.router.post("child", letter("good", in_reply_to=answer.id)).result()

    assert office.mail(root)[0].body == AgentMessage("done", asked.id)
    assert office.mail(child)[1].body == UserMessage("good", answer.id)
    assert (answer.note, praise.note) == ("", "")


def test_a_reply_to_mail_that_is_unknown_is_sent_as_fresh_and_the_receipt_says_so(
    office: Office,
) -> None:
    """M-45."""
    ann = office.person("ann")

    receipt = office.router.post("ann", letter("hm", in_reply_to="m-beef")).result()

    assert office.mail(ann)[0].body == UserMessage("hm", None)
    assert receipt.note == "no mail m-beef to reply to: sent as fresh mail"
    assert receipt.note in str(receipt)


def test_a_session_cannot_answer_mail_it_never_got(office: Office) -> None:
    """M-45: the id is known in the room, not in its mailbox."""
    root = office.person("root")
    child = office.person("child", root)
    private = office.router.post("root", letter("secret")).result()

    receipt = office.router.post("root", letter(in_reply_to=private.id), child).result()

    assert private.id in receipt.note
    assert office.mail(root)[1].body == AgentMessage("hello", None)


# ── The runtime's own ──


def test_the_runtime_delivers_what_it_stamped_itself(office: Office) -> None:
    """M-125: a watched event keeps its sender and its hops."""
    ann = office.person("ann", status="running")
    event = WatchedEvent("s-0002", "run.stopped", {"reason": "answer"})

    receipt = office.router.deliver(
        Outgoing(session=ann.id, sender=FromSystem("watch"), body=event, hops=3)
    ).result()

    (mail,) = office.mail(ann)
    assert (mail.sender, mail.body, mail.hops) == (FromSystem("watch"), event, 3)
    assert str(receipt) == "m-0001 → ann #1 (running)"


def test_a_refusal_is_one_of_ours_and_stores_nothing(office: Office) -> None:
    """M-16."""
    ann = office.person("ann")
    office.person("bob")
    before = office.storage.head()

    refused: list[tuple[str, Any, Person | None]] = [
        ("nobody", "hello", None),
        ("inbox", "hello", None),
        ("bob", "hello", ann),
        ("bob", 5, None),
    ]
    for to, text, sender in refused:
        with pytest.raises(PostroomError):
            office.router.post(to, letter(text), sender)

    assert office.storage.head() == before
