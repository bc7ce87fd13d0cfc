"""Who may write to whom, and interrupt whom: every scope and every kin, by both ways (M-105, M-106)."""

from typing import Any

import pytest

from office.rooms import Talk, in_room
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Priority
from postroom_runtime.contracts.errors import NotPermitted
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session

SCOPES = ("own", "children", "subtree", "all")
KIN = ("self", "parent", "child", "grandchild", "sibling", "stranger")

WRITES = {
    # Whom a scope lets a session write to first; its parent always.
    "own": {"self", "parent"},
    "children": {"self", "parent", "child"},
    "subtree": {"self", "parent", "child", "grandchild"},
    "all": set(KIN),
}
INTERRUPTS = {
    # Nobody upwards, however near; only ``all`` reaches peers.
    "own": {"self"},
    "children": {"self", "child"},
    "subtree": {"self", "child", "grandchild"},
    "all": set(KIN),
}
CALLED = {"grandchild": "descendant"}
"""What the rules call it."""

CELLS = [(scope, kin) for scope in SCOPES for kin in KIN]


@script
def tells(turn: ScriptTurn) -> Talk:
    """Sends one letter when its owner says so: ``NAME`` or ``NAME!`` for one that interrupts."""
    letter = turn.mail[-1]
    if letter.sender.kind == "user":
        to = letter.text
        _ = yield call("send-message", to=to.rstrip("!"), text="hello", interrupt=to.endswith("!"))
    return "done"


def family(room: Room, **knobs: Any) -> Session:
    """Spawn a parent, its two children, a grandchild, and a stranger; return the one that writes."""
    quiet = Agent("quiet", model="echo", wake_on=["user"])
    parent = room.spawn(quiet, name="parent")
    me = room.spawn(Agent("me", model=tells, **knobs), name="self", parent=parent)
    room.spawn(quiet, name="sibling", parent=parent)
    child = room.spawn(quiet, name="child", parent=me)
    room.spawn(quiet, name="grandchild", parent=child)
    room.spawn(quiet, name="stranger")
    return me


def letters(room: Room, kin: str) -> list[Priority]:
    """How each letter of a session to ``kin`` arrived."""
    return [e.priority for e in room.session(kin).mail() if e.sender.kind == "session"]


@pytest.mark.parametrize(("scope", "kin"), CELLS)
def test_m105_whom_a_session_may_write_to(scope: str, kin: str) -> None:
    """Through the model's tool the refusal is a failed call, through the API an error."""
    allowed = kin in WRITES[scope]

    async def main(room: Room) -> None:
        me = family(room, mail_scope=scope)
        await me.ask(kin)
        done = me.calls()[-1]
        assert done.state == ("completed" if allowed else "failed")
        if not allowed:
            assert f"self may not write to {kin}" in str(done.result)
            assert f"mail_scope is {scope!r}" in str(done.result)
        assert len(letters(room, kin)) == allowed

        if allowed:
            room.send(kin, "hello", sender="self")
        else:
            with pytest.raises(NotPermitted, match=f"self may not write to {kin}") as refused:
                room.send(kin, "hello", sender="self")
            assert refused.value.relation == CALLED.get(kin, kin)
        assert len(letters(room, kin)) == 2 * allowed

    in_room(main)


@pytest.mark.parametrize(("scope", "kin"), CELLS)
def test_m74_m106_whom_a_session_may_interrupt(scope: str, kin: str) -> None:
    """Elsewhere it arrives as normal mail, and the receipt says so and why, by both ways."""
    allowed = kin in INTERRUPTS[scope]
    why = (
        f"interrupt lowered: interrupt_scope {scope!r} of self does not reach {kin} "
        f"({CALLED.get(kin, kin)})"
    )

    async def main(room: Room) -> None:
        me = family(room, mail_scope="all", interrupt_scope=scope)
        await me.ask(f"{kin}!")
        told = me.calls()[-1].result
        assert isinstance(told, dict)
        assert (told["lowered"], told["priority"]) == (
            not allowed,
            "interrupt" if allowed else "normal",
        )
        assert (why in told["note"]) is not allowed

        receipt = room.send(kin, "hello", sender="self", interrupt=True)
        assert (receipt.lowered, why in receipt.note) == (not allowed, not allowed)
        assert str(receipt).count("interrupt lowered") == (not allowed)
        arrived = Priority.INTERRUPT if allowed else Priority.NORMAL
        assert letters(room, kin) == [arrived, arrived]
        assert all(e.lowered is not allowed for e in room.session(kin).mail()[-1:])

    in_room(main)


@pytest.mark.parametrize("kin", [kin for kin in KIN if kin not in WRITES["own"]])
def test_m105_a_reply_is_always_allowed_once_the_letter_was_read(kin: str) -> None:
    """Also where the scope reaches nobody; and a reply may not interrupt for that (trap 4)."""

    async def main(room: Room) -> None:
        me = family(room, mail_scope="own", interrupt_scope="own")
        room.define(Agent("quiet", model="echo", mail_scope="all", wake_on=["user"]))
        first = room.send("self", "who are you?", sender=kin)
        with pytest.raises(NotPermitted):
            room.send(kin, "me", sender="self", reply_to=first.id)  # accepted, not read yet
        await me.ask("parent")
        receipt = room.send(kin, "me", sender="self", reply_to=first.id, interrupt=True)
        assert receipt.lowered
        assert "no mail" not in receipt.note

    in_room(main)


def test_m74_the_owner_may_always_interrupt() -> None:
    async def main(room: Room) -> None:
        family(room, interrupt_scope="own")
        for kin in KIN:
            receipt = room.session(kin).interrupt("now")
            assert (receipt.lowered, receipt.priority, receipt.note) == (False, "interrupt", "")

    in_room(main)


def test_m17_all_that_a_receipt_has_to_say_stands_in_its_note() -> None:
    """An unknown reply, a lowered interrupt and why the mail waits, one after the other."""

    async def main(room: Room) -> None:
        family(room, mail_scope="all")
        receipt = room.send("sibling", "hi", sender="self", interrupt=True, reply_to="m-0999")
        assert receipt.note == (
            "no mail m-0999 to reply to: sent as fresh mail; "
            "interrupt lowered: interrupt_scope 'children' of self does not reach sibling "
            "(sibling); waits: wake_on of sibling has no 'peer'"
        )

    in_room(main)
