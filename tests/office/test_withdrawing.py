"""Mail that is taken back before it is read: its reader never sees it, and the log keeps both."""

import asyncio

import pytest

from office.rooms import in_room, lives, read, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Control, Withdraw
from postroom_runtime.contracts.errors import AlreadyRead, ConfigError, MailRefused
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room

LAZY = Agent("lazy", wake_on=["peer"], mail_scope="all")


def test_withdrawn_mail_is_never_read_and_what_stands_around_it_is() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(LAZY)
        s.send("one")
        gone = s.send("two")
        s.send("three")
        receipt = room.withdraw(gone.id)
        assert [mail.text for mail in s.mail(unread=True)] == ["one", "three"]
        assert (receipt.session, receipt.seq) == (s.id, 4)
        room.define(Agent("lazy"))
        await s.wait()
        assert read(s) == ["one\n\nthree"]
        # The log keeps both.
        assert [mail.text for mail in s.mail()] == ["one", "two", "three", ""]
        assert isinstance(body := s.mail()[3].body, Control)
        assert body.message == Withdraw(gone.id, 2)
        assert s.cursor == 4

    in_room(main)


def test_what_was_read_cannot_be_withdrawn_and_nothing_is_stored() -> None:
    async def main(room: Room) -> None:
        s = room.spawn("echo", "read me")
        await s.wait()
        (mail,) = s.mail()
        with pytest.raises(AlreadyRead, match=f"{mail.id} cannot be withdrawn: echo has read it"):
            room.withdraw(mail.id)
        assert len(s.mail()) == 1

    in_room(main)


def test_only_its_sender_or_the_owner_withdraws_a_message() -> None:
    async def main(room: Room) -> None:
        ann, bob, cy = (room.spawn(LAZY, name=name) for name in ("ann", "bob", "cy"))
        letter = room.send(cy, "hello", sender=ann)
        with pytest.raises(MailRefused, match=f"{letter.id} is not bob's to withdraw"):
            room.withdraw(letter.id, sender=bob)
        assert [mail.text for mail in cy.mail(unread=True)] == ["hello"]
        room.withdraw(letter.id, sender="ann")
        again = room.withdraw(letter.id)
        assert again.duplicate
        assert cy.mail(unread=True) == []

    in_room(main)


@pytest.mark.parametrize("id", ["m-9999", "nonsense"])
def test_what_is_no_mail_is_refused_by_name(id: str) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match=f"there is no mail '{id}' to withdraw"):
            room.withdraw(id)

    in_room(main)


def test_results_and_orders_cannot_be_withdrawn() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(LAZY)
        order = s.pause()
        with pytest.raises(ConfigError, match="only messages can be withdrawn"):
            room.withdraw(order.id)

    in_room(main)


def test_a_withdrawn_interrupt_breaks_nothing_and_a_withdrawal_wakes_nobody() -> None:
    async def main(room: Room) -> None:
        @script
        def waits(turn: ScriptTurn):  # type: ignore[no-untyped-def]
            woken = yield call("wait", timeout_seconds=10)
            return f"{woken['woken_by']} {turn.text}"

        s = room.spawn(Agent("waits", model=waits), "go")
        await ticks()
        await s.asend("  ")  # the wait goes on
        gone = s.send("stop it")
        room.withdraw(gone.id)
        await ticks()
        await s.wait()
        # Woken in the same breath or not, it never reads the words.
        assert "stop it" not in "".join(read(s))
        idle = room.spawn(LAZY)
        letter = idle.send("x")
        room.withdraw(letter.id)
        await ticks()
        assert idle.record.turns == 0
        await asyncio.sleep(1)
        assert idle.idle

    in_room(main)


def test_a_withdrawal_holds_over_a_restart() -> None:
    async def first(room: Room) -> None:
        s = room.spawn(LAZY)
        room.withdraw(s.send("gone").id)
        s.send("kept")

    async def second(room: Room) -> None:
        s = room.session("lazy")
        assert [mail.text for mail in s.mail(unread=True)] == ["kept"]
        room.define(Agent("lazy"))
        s.send("now")
        await s.wait()
        assert read(s) == ["kept\n\nnow"]

    lives(first, second)
