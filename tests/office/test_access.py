"""A room as others may see it: for users and guests owner inboxes do not exist (I-6, I-8)."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from office.deploying import deployer
from office.rooms import in_room, read
from postroom_runtime.contracts.errors import (
    ConfigError,
    InboxReadOnly,
    OwnerOnly,
    UnknownRecipient,
)
from postroom_runtime.contracts.principal import Principal
from postroom_runtime.office.access import Access
from postroom_runtime.office.room import Room

OUTSIDE = [Principal("ada", "user"), Principal("gus", "guest"), "user", "guest"]


def refusal(act: Callable[[], Any]) -> tuple[type[Exception], str]:
    with pytest.raises(UnknownRecipient) as refused:
        act()
    return type(refused.value), str(refused.value).replace(refused.value.to, "X")


@pytest.mark.parametrize("who", OUTSIDE)
def test_i6_for_users_and_guests_an_inbox_is_a_session_that_does_not_exist(who: Any) -> None:
    """I-6: list, subscribe and read are refused, with the same answer as for a missing session."""

    async def main(room: Room) -> None:
        room.spawn("echo", name="ann")
        room.notify("echo", "secret")
        access = room.as_(who)
        missing = refusal(lambda: access.mail("zzzz"))
        for act in (
            lambda: access.inbox("echo"),
            lambda: access.inbox("nobody"),
            lambda: access.inbox(),
            lambda: access.mail("inbox"),
            lambda: access.mail("INBOX@echo"),
            lambda: access.transcript("inbox@echo"),
            lambda: access.mail("inbox@nobody"),
        ):
            assert refusal(act) == missing
        assert [r.name for r in access.sessions(inbox=True)] == ["ann"]

    in_room(main)


@pytest.mark.parametrize("who", [*OUTSIDE, "admin", "owner"])
def test_i10_whoever_writes_to_an_inbox_is_told_that_it_is_read_only(who: Any) -> None:
    async def main(room: Room) -> None:
        for to in ("inbox", "inbox@echo"):
            with pytest.raises(InboxReadOnly) as refused:
                room.as_(who).send(to, "hi")
            assert (refused.value.code, refused.value.status) == ("inbox_read_only", 403)
        assert len(room.inbox()) == 0

    in_room(main)


@pytest.mark.parametrize("who", OUTSIDE)
def test_approvals_are_neither_seen_nor_answered_by_users_and_guests(who: Any) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(deployer(), "go")
        await s.wait()
        access = room.as_(who)
        assert access.approvals() == access.approvals(None) == []
        for act in (access.approve, access.deny):
            with pytest.raises(ConfigError) as refused:
                act("ap-0001")
            missing = str(refused.value).replace("ap-0001", "X")
            with pytest.raises(ConfigError) as refused:
                act("ap-9999")
            assert str(refused.value).replace("ap-9999", "X") == missing
        assert [a.state for a in room.approvals()] == ["pending"]

    in_room(main)


def test_i8_an_admin_reads_which_is_logged_and_answers_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(deployer(), "go")
        await s.wait()
        admin = room.as_(Principal("root", "admin"))
        assert [e.session for e in admin.inbox("coder")] == ["inbox@coder"]
        assert [a.id for a in admin.approvals()] == ["ap-0001"]
        assert any(r.name == "inbox" for r in admin.sessions(inbox=True))
        admin.inbox().mark_read()
        assert room.inbox().unread == 1  # the owner's own cursor is another
        for act in (admin.approve, admin.deny):
            with pytest.raises(OwnerOnly, match="root may not answer ap-0001: an admin reads"):
                act("ap-0001")
        assert [a.state for a in room.approvals()] == ["pending"]

    with caplog.at_level(logging.INFO, "postroom"):
        in_room(main)
    assert "admin root reads the inbox of coder" in caplog.messages
    assert "admin root lists the owner inboxes" in caplog.messages


def test_the_owner_as_a_principal_may_do_all_that_the_room_may() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(deployer(), "go")
        await s.wait()
        owner = room.as_("owner")
        owner.inbox("coder").mark_read()
        assert room.inbox("coder").unread == 0
        assert owner.approve("ap-0001").answered_by == "owner"
        owner.send("coder", "thanks")
        assert s.mail()[-1].sender.id is None

    in_room(main)


def test_mail_of_a_person_carries_their_name() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", name="ann")
        ada = room.as_(Principal("ada"))
        receipt = ada.send("ann", "hello", id="once")
        assert ada.send("ann", "hello", id="once").duplicate
        await s.wait()
        assert (s.mail()[0].sender.kind, s.mail()[0].sender.id) == ("user", "ada")
        assert read(s) == [f"[mail {receipt.id} from user ada]\nhello"]
        assert [mail.text for mail in ada.mail("ann")] == ["hello"]
        assert repr(ada).endswith("as user ada")

    in_room(main)


def test_what_tools_got_and_gave_is_not_for_users_and_guests() -> None:
    async def main(room: Room) -> None:
        room.spawn(deployer(), "go", name="ann", hidden=True)
        s = room.spawn(deployer(), "go", name="bob")
        await room.drain()
        turns = room.as_("guest").transcript("bob")
        assert [turn.text for turn in turns] == [turn.text for turn in s.transcript()]
        assert all((turn.calls, turn.results, turn.opaque) == ((), (), None) for turn in turns)
        assert room.as_("admin").transcript("bob") == s.transcript()
        with pytest.raises(UnknownRecipient):
            room.as_("guest").mail("ann")  # hidden
        assert [r.name for r in room.as_("guest").sessions(hidden=True)] == ["bob"]
        assert len(room.as_("admin").sessions(hidden=True)) == 2

    in_room(main)


@pytest.mark.parametrize("who", ["root", "", None, 5])
def test_nobody_else_is_anybody(who: Any) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match="is nobody"):
            room.as_(who)

    in_room(main)


@pytest.mark.parametrize(("name", "role"), [("", "user"), ("a\nb", "user"), ("ada", "king")])
def test_a_principal_has_a_name_and_a_role(name: str, role: str) -> None:
    with pytest.raises(ConfigError):
        Principal(name, role)


def test_an_access_gives_no_live_session_away() -> None:
    public = {name for name in vars(Access) if not name.startswith("_")}
    assert public == {
        "sessions", "mail", "transcript", "inbox", "approvals", "send", "approve", "deny",
    }  # fmt: skip
