"""Timers: mail that comes when its time has, on a clock that jumps (M-1, M-94, M-110, A-30)."""

import asyncio
import threading
from typing import Any

import pytest

from office.rooms import in_room, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import FromSystem, UserMessage
from postroom_runtime.contracts.errors import ConfigError, UnknownRecipient
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.office.room import Room


def clock() -> float:
    return asyncio.get_running_loop().time()


def test_m1_after_sends_once_when_its_time_has_come() -> None:
    """M-1: a user-shaped word from the system, through the one mailbox."""

    async def main(room: Room) -> None:
        ann = room.spawn("echo", name="ann")
        timer = room.after(30, "ann", "look again")
        assert (timer.id, room.timers()) == ("t-0001", [timer])
        await asyncio.sleep(29.9)
        assert ann.mail() == []
        await asyncio.sleep(0.2)
        await ann.wait()
        (mail,) = ann.mail()
        assert (mail.sender, mail.body) == (FromSystem("timer:t-0001"), UserMessage("look again"))
        assert read(ann) == [f"[mail {mail.id} from system (timer t-0001)]\nlook again"]
        assert (timer.sent, timer.active, room.timers()) == (1, False, [])

    in_room(main)


def test_every_sends_by_the_clock_as_often_as_it_should() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn("echo", name="ann")
        three = room.every(10, ann, "tick", times=3)
        ever = room.every(7, ann, "tock")
        await asyncio.sleep(100)
        texts = [mail.text for mail in ann.mail()]
        assert (texts.count("tick"), texts.count("tock")) == (3, 14)
        assert (str(three), three.active) == ("t-0001 → ann every 10 s, 3 of 3 sent, over", False)
        assert room.timers() == [ever]
        assert ever.cancel()
        assert not ever.cancel()
        await asyncio.sleep(100)
        assert (ever.sent, room.timers(), len(ann.mail())) == (14, [], 17)

    in_room(main)


def test_a_loop_that_was_held_up_gets_one_letter_for_what_it_missed() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn("echo", name="ann")
        room.every(1, ann, "tick", times=100)
        loop: Any = asyncio.get_running_loop()
        loop._jumper.seconds += 10  # somebody held the loop for ten seconds
        await asyncio.sleep(0.5)
        assert len(ann.mail()) == 2
        await asyncio.sleep(5)
        assert len(ann.mail()) == 7

    in_room(main)


def test_m94_a_timer_wakes_as_tool() -> None:
    async def main(room: Room) -> None:
        deaf = room.spawn(Agent("deaf", model="echo", wake_on=("user", "parent")), name="deaf")
        hears = room.spawn(Agent("hears", model="echo", wake_on=("tool",)), name="hears")
        room.after(1, deaf, "tick")
        room.after(1, hears, "tick")
        await asyncio.sleep(2)
        assert (len(said(deaf)), deaf.unread, len(said(hears))) == (0, 1, 1)

    in_room(main)


def test_m110_a_timer_is_no_human_it_resets_neither_hops_nor_rounds() -> None:
    """M-110, A-30: and a session that only timers wake stops at its rounds."""

    async def main(room: Room) -> None:
        boss = room.spawn("echo", name="bea")
        ann = room.spawn(
            Agent("ann", model="echo", max_autonomous_rounds=3, mailbox_max_unread=2),
            name="ann",
            parent=boss,
        )
        room.send("ann", "hello", sender="bea")
        await room.wait()
        hops = ann.record.hops
        assert hops == 1
        timer = room.every(1, ann, "tick")
        await asyncio.sleep(20)
        assert (ann.status, ann.record.rounds_since_human) == (SessionStatus.CAPPED, 3)
        assert ann.record.hops == hops
        (entry,) = room.inbox("ann")
        assert "3 rounds with no word from you" in entry.text
        assert (timer.refused > 0, timer.active) == (True, True)
        assert "mailbox of" in timer.why_refused

        ann.send("go on")  # full too: the owner has to make room first
        await ticks()

    with pytest.raises(Exception, match="mailbox of"):
        in_room(main)


def test_refused_mail_is_counted_and_every_goes_on() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn(Agent("ann", model="echo", mailbox_max_unread=1), name="ann")
        ann.pause()
        await ticks()
        timer = room.every(1, ann, "tick")
        await asyncio.sleep(3.5)
        assert (timer.sent, timer.refused) == (1, 2)
        ann.resume()
        await asyncio.sleep(2)
        assert (timer.sent, timer.refused, timer.active) == (3, 2, True)

    in_room(main)


def test_a_timer_ends_with_its_session_and_with_the_room() -> None:
    async def main(room: Room) -> None:
        boss = room.spawn("echo", name="bea")
        ann = room.spawn("echo", name="ann", parent=boss)
        of_ann, of_bea = room.every(1, ann, "tick"), room.every(1, boss, "tick")
        other = room.after(5, room.spawn("echo", name="cat"), "tick")
        boss.close()  # its child goes with it
        assert room.timers() == [other]
        await asyncio.sleep(3)
        assert (of_ann.sent, of_bea.sent, of_ann.active) == (0, 0, False)
        room.close()
        assert (room.timers(), other.active) == ([], False)
        await asyncio.sleep(10)
        assert other.sent == 0

    in_room(main)


def test_a_timer_may_be_set_and_cancelled_from_any_thread() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn("echo", name="ann")

        def elsewhere() -> None:
            room.after(1, "ann", "yes")
            room.after(1, ann, "no").cancel()

        thread = threading.Thread(target=elsewhere)
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0)
        await asyncio.sleep(2)
        assert [mail.text for mail in ann.mail()] == ["yes"]

    in_room(main)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), True, "5", None, 1e12])
def test_seconds_that_will_not_do_are_refused(seconds: Any) -> None:
    async def main(room: Room) -> None:
        room.spawn("echo", name="ann")
        with pytest.raises(ConfigError, match=r"seconds=.*at least 0,"):
            room.after(seconds, "ann", "tick")
        with pytest.raises(ConfigError, match=r"seconds=.*at least 0\.01"):
            room.every(seconds, "ann", "tick")

    in_room(main)


def test_what_else_will_not_do_is_refused_and_sets_no_timer() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn("echo", name="ann")
        for times in (0, -1, 1.5, True, "3"):
            with pytest.raises(ConfigError, match="times="):
                room.every(1, ann, "tick", times=times)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"at least 0\.01"):
            room.every(0, ann, "tick")
        for text in ("", "  ", None):
            with pytest.raises(ConfigError, match="says something"):
                room.after(1, ann, text)  # type: ignore[arg-type]
        with pytest.raises(UnknownRecipient, match="Did you mean 'ann'"):
            room.after(1, "anne", "tick")
        ann.close()
        with pytest.raises(UnknownRecipient, match="is closed"):
            room.after(1, ann, "tick")
        assert room.timers() == []

    in_room(main)


def test_after_0_seconds_is_as_soon_as_the_loop_gets_to_it() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn("echo", name="ann")
        room.after(0, ann, "now")
        await ticks()
        assert (clock(), len(ann.mail())) == (0, 1)

    in_room(main)
