"""Promises about the mailbox that no single part keeps by itself."""

import asyncio
import re
from pathlib import Path

from office.rooms import in_room, read, said, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.models.script import ScriptTurn, script
from postroom_runtime.office.room import Room

RUNTIME = Path(__file__).parents[2] / "runtime" / "postroom_runtime"


def test_m35_m20_looking_at_mail_never_moves_the_cursor() -> None:
    """M-35, M-20: only a stored turn does; listings, histories and waits are readers."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("lazy", wake_on=["peer"]))
        s.send("waits")
        for _ in range(3):
            assert [e.text for e in s.mail(unread=True)] == ["waits"]
            s.mail()
            s.history()
            room.describe()
            await s.wait("mail", timeout=1)
        assert (s.cursor, s.unread) == (0, 1)

    in_room(main)


def test_m9_m98_a_message_to_a_running_session_is_posted_and_starts_no_second_run() -> None:
    """M-9, M-98: at most one run per session; the message is mail in the run under way."""

    async def main(room: Room) -> None:
        inside, most = 0, 0

        @script
        async def slow(turn: ScriptTurn) -> str:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(5)
            inside -= 1
            return f"read {turn.text}"

        s = room.spawn(Agent("slow", model=slow), "one")
        await ticks()
        receipt = s.send("two")
        assert (receipt.seq, receipt.recipient_status) == (2, "running")
        assert s.mail()[1].body.kind == "user_message"
        await s.wait()
        assert most == 1
        assert said(s) == ["read one", "read two"]

    in_room(main)


def test_m92_a_session_that_never_ran_is_listed_beside_those_stored() -> None:
    async def main(room: Room) -> None:
        room.spawn("echo", name="old", text="hi")
        await room.wait()
        room.spawn("echo", name="fresh")
        assert [s.name for s in room.sessions()] == ["old", "fresh"]
        assert [r.name for r in room.people().values()] == ["old", "fresh"]

    in_room(main)


def test_m49_who_said_what_stands_in_the_stored_transcript() -> None:
    async def main(room: Room) -> None:
        boss = room.spawn("echo", name="boss")
        s = room.spawn("echo", name="worker", parent=boss)
        room.send(s.id, "go", sender=boss)
        await s.wait()
        stored = [r.record for r in room.storage.rows(s.id, kinds=(RowKind.TURN,))]
        (envelope,) = stored[0].mail  # type: ignore[union-attr]
        assert (envelope.sender.kind, envelope.sender.id) == ("session", boss.id)

    in_room(main)


def test_m34_a10_a_run_that_nobody_writes_to_asks_the_same_as_ever() -> None:
    """M-34, A-10: one turn in, one turn out, and nothing of the mailbox in the request."""

    async def main(room: Room) -> None:
        s = room.spawn(Agent("plain", model="echo", inbox=None), "What is 2 + 2?")
        await s.wait()
        assert read(s) == ["What is 2 + 2?"]
        assert len(s.transcript()) == 2

    in_room(main)


def test_m52_m128_nothing_in_the_runtime_polls() -> None:
    """M-52: a pause, a stop and every wait are rings; no loop sleeps and looks again."""
    polling = re.compile(r"while .*:\n(?:.*\n){0,3}?\s+await (?:asyncio|anyio)\.sleep\(")
    found = [
        str(path.relative_to(RUNTIME))
        for folder in ("stepper", "office", "mail", "signals", "toolbox")
        for path in (RUNTIME / folder).glob("*.py")
        if polling.search(path.read_text())
    ]
    assert found == []
