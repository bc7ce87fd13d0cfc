"""A society at work: hundreds of sessions that write, spawn, watch and wait as a seed has it.

Run as a program it prints what became of one seed, so that two processes can be compared::

    python -m walks.society 7
"""

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from postroom_runtime.calls.tool import tool
from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.ids import SessionId, is_inbox_key
from postroom_runtime.contracts.journal import Row
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.model import Emit, Prompt, Thought
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import CrashingStorage, journal, run_seeded, virtual_now
from walks.laws import broken

PATIENCE = 5000.0
"""Seconds after which whatever still is not at rest never will be."""

ROLES = ("lead", "worker", "critic")

DEEDS = (
    *("send",) * 6,
    *("spawn",) * 2,
    *("interrupt",) * 2,
    "stop",
    "pause",
    "resume",
    "close",
    "watch",
    "unwatch",
    "timer",
    "letter",
    "withdraw",
)


async def work(seconds: float) -> str:
    """Work for a while."""
    await asyncio.sleep(seconds)
    return "worked"


class Wanderer:
    """One run of a session that does whatever comes into its head, a few times in its life."""

    owed = Usage()

    def __init__(self, society: "Society", session: SessionId) -> None:
        self._society, self._session = society, session

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        luck = self._society.luck(self._session)
        await asyncio.sleep(luck.choice((0, 0, 0.25, 1)))
        calls: tuple[ToolRequest, ...] = ()
        offered = {spec.name for spec in prompt.tools}
        if offered and not self._society.finishing and self._society.spends(self._session):
            wanted = (self._call(luck) for _ in range(luck.choice((0, 1, 1, 2))))
            calls = tuple(each for each in wanted if each.tool in offered)
        self._society.tried.update(call.tool for call in calls)
        return Thought(text="" if calls else "said", calls=calls, usage=Usage(requests=1))

    def _call(self, luck: Random) -> ToolRequest:
        society = self._society
        other = luck.choice(society.known()) if luck.random() < 0.95 else "nobody"
        match luck.randrange(12):
            case 0 | 1 | 2 | 3:
                arguments: dict[str, Any] = {
                    "to": other,
                    "text": society.word(),
                    "interrupt": luck.random() < 0.2,
                }
                return ToolRequest(tool="send-message", arguments=arguments)
            case 4 | 5:
                arguments = {"agent": luck.choice(ROLES), "message": society.word()}
                return ToolRequest(tool="spawn-session", arguments=arguments)
            case 6:
                helper = f"prompt-agent-{luck.choice(ROLES)}"
                return ToolRequest(tool=helper, arguments={"message": society.word()})
            case 7:
                return ToolRequest(tool="watch-session", arguments={"session": other})
            case 8:
                wait = {"timeout_seconds": luck.choice((0, 1, 5))}
                return ToolRequest(tool="wait", arguments=wait)
            case 9:
                name = luck.choice(("list-sessions", "list-running-tool-calls"))
                return ToolRequest(tool=name, arguments={})
            case _:
                return ToolRequest(tool="work", arguments={"seconds": luck.choice((0, 1, 4))})

    def close(self) -> None:
        """Nothing is kept between turns."""


class Wandering:
    """The model of everybody."""

    name = "wandering"

    def __init__(self, society: "Society") -> None:
        self._society = society

    def begin(self, session: SessionId) -> Wanderer:
        return Wanderer(self._society, session)


class Inspector:
    """Looks at each row as it is published: the laws hold at every moment, not only in the end."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._heads: dict[SessionId, int] = {}
        self._records: dict[SessionId, SessionRecord] = {}
        self._n = 0

    def hear(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.n != self._n + 1:
                self.faults.append(f"row {row.n} follows {self._n}")
            self._n = row.n
            if isinstance(row.record, Envelope):
                self._mail(row, row.record)
            elif isinstance(row.record, SessionRecord):
                self._record(row, row.record)

    def _mail(self, row: Row, envelope: Envelope) -> None:
        head = self._heads.get(row.session, 0)
        if envelope.seq != head + 1:
            self.faults.append(f"mail {envelope.seq} of {row.session} follows {head}")
        self._heads[row.session] = envelope.seq
        known = self._records.get(row.session)
        if known is not None and known.status is SessionStatus.CLOSED:
            self.faults.append(f"{row.session} is closed and got {envelope.id}")

    def _record(self, row: Row, record: SessionRecord) -> None:
        before = self._records.get(record.id)
        if before is not None and record.version != before.version + 1:
            self.faults.append(f"version {record.version} of {record.id} follows {before.version}")
        if before is not None and record.cursor < before.cursor:
            self.faults.append(f"the cursor of {record.id} went back to {record.cursor}")
        if record.cursor > self._heads.get(record.id, 0):
            self.faults.append(f"{record.id} has read {record.cursor}, which is not there")
        self._records[record.id] = record


class Society:
    """A room, its people and its owner.

    Args:
        seed: Decides everything: what each does, and in which order all that is ready happens.
        size: How many sessions there shall be before the owner lets it come to rest.
    """

    def __init__(self, seed: int, size: int = 200) -> None:
        self.seed, self.size = seed, size
        self.finishing = False
        self.tried: Counter[str] = Counter()
        """What the models called, how often."""
        self.did: Counter[str] = Counter()
        """What the owner did, how often."""
        self.inspector = Inspector()
        self._words = 0
        self._lucks: dict[SessionId, Random] = {}
        self._left: dict[SessionId, int] = {}

    def luck(self, session: SessionId) -> Random:
        """Return the session's own dice."""
        return self._lucks.setdefault(session, Random(f"{self.seed} {session}"))

    def spends(self, session: SessionId) -> bool:
        """Tell whether the session may still call something: nobody is busy for ever."""
        left = self._left.setdefault(session, 5)
        self._left[session] = max(0, left - 1)
        return left > 0

    def word(self) -> str:
        """Return words that nobody said before."""
        self._words += 1
        return f"word {self._words}"

    def known(self) -> list[str]:
        """Return whom one may write to, closed ones too."""
        return sorted(self.room.people())

    async def run(self) -> None:
        """Live until the society is as large as it shall be, then see everything to its end."""
        lag = Random(self.seed)
        self.storage = CrashingStorage(lag=lambda: lag.randint(0, 2))
        self.storage.bells(self.inspector.hear)
        self.room = room = Room(self.storage, name="memory", now=virtual_now)
        room.attach()
        for role in ROLES:
            room.define(
                Agent(
                    role,
                    model=Wandering(self),
                    tools=[tool(work)],
                    helpers=list(ROLES),
                    mail_scope="subtree" if role == "worker" else "all",
                    wake_on=("user", "tool", "parent", "child", "peer"),
                    max_autonomous_rounds=30,
                    policy={
                        "rules": [
                            {
                                "tool": "work",
                                "disposition": {"tag": "runAsync", "attachSeconds": 1},
                            },
                            {
                                "tool": "prompt-agent-*",
                                "disposition": {"tag": "runAsync", "attachSeconds": 2},
                            },
                        ]
                    },
                )
            )
        luck = Random(self.seed + 1)
        while len(room.people()) < self.size:
            self._do(luck.choice(DEEDS), luck)
            if luck.random() < 0.5:
                await asyncio.sleep(luck.choice((0, 0.25, 1)))
        await self._finish()
        self.rows = self.storage.rows()
        room.close()

    def _do(self, deed: str, luck: Random) -> None:
        room = self.room
        there = room.sessions()
        if deed == "spawn" or len(there) < 3:
            parent = luck.choice(there) if there and luck.random() < 0.5 else None
            name = f"p{len(room.people())}"
            room.spawn(luck.choice(ROLES), self.word(), name=name, parent=parent)
            self.did["spawn"] += 1
            return
        one, other = luck.choice(there), luck.choice(there)
        try:
            self._to(deed, one, other, luck)
            self.did[deed] += 1
        except PostroomError:
            self.did[f"{deed} refused"] += 1

    def _to(self, deed: str, one: Session, other: Session, luck: Random) -> None:
        room = self.room
        match deed:
            case "send" | "interrupt":
                one.send(self.word(), interrupt=deed == "interrupt")
            case "letter":
                room.send(other, self.word(), sender=one)
            case "stop":
                one.stop()
            case "pause":
                one.pause()
            case "resume":
                one.resume()
            case "close" if luck.random() < 0.3:
                one.close()
            case "watch":
                room.watch(one, into=other, ttl=luck.choice((1, 10, 100)))
            case "unwatch" if watches := room.watches():
                room.unwatch(luck.choice(watches).id)
            case "withdraw" if waiting := one.mail(unread=True):
                room.withdraw(luck.choice(waiting).id)
            case "timer":
                room.after(luck.choice((0, 1, 5)), one, self.word())

    async def _finish(self) -> None:
        room = self.room
        self.finishing = True
        for turn in range(10):
            for watch in room.watches():
                room.unwatch(watch.id)
            for session in room.sessions():
                session.resume()
                if turn == 0 or session.unread:
                    session.send(self.word())
            if not (result := await room.drain(PATIENCE)).quiet:
                self.inspector.faults.append(f"not quiet after {PATIENCE:g} s: {result.left}")
                return
            if not any(s.unread or s.life.table.open_calls() for s in room.sessions()):
                await asyncio.sleep(1)  # mail that says nothing may still be taken in
                return
        self.inspector.faults.append("there is no end to it")

    @property
    def faults(self) -> list[str]:
        """Every law that is broken, in words."""
        return [*self.inspector.faults, *broken(self.rows, ())]

    @property
    def digest(self) -> str:
        """A fingerprint of the whole journal."""
        return hashlib.sha256("\n".join(journal(self.rows)).encode()).hexdigest()


def lived(seed: int, size: int = 200) -> Society:
    """Let the society of ``seed`` live, and return it."""
    society = Society(seed, size)
    run_seeded(society.run(), seed)
    return society


def letters(society: Society) -> int:
    """Return how many mails there are, owner inboxes left out."""
    return sum(
        isinstance(row.record, Envelope) and not is_inbox_key(row.session) for row in society.rows
    )


if __name__ == "__main__":
    found = lived(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print(found.digest, letters(found), len(found.faults))
