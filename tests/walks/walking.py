"""Walk through one schedule: its sessions, its owner, and the kernels that die on the way."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from postroom_runtime.calls.context import CallContext, current_call
from postroom_runtime.calls.policy import read_policy
from postroom_runtime.calls.tool import tool
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import ToolRequest
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import AlreadyAnswered
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.journal import Row, RowKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Turn, Usage
from postroom_runtime.models.model import Emit, Prompt, Thought
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session
from postroom_runtime.testing import CrashingStorage, KernelDied, run_seeded, virtual_now
from walks.plans import TOOLS, Act, Plan, Step
from walks.prompts import faults

RULES = [
    {"tool": "now", "disposition": {"tag": "runAsync", "attachSeconds": 0}},
    {"tool": "one", "disposition": {"tag": "runAsync", "attachSeconds": 1}},
    {"tool": "three", "disposition": {"tag": "runAsync", "attachSeconds": 3}},
    {"tool": "any", "disposition": {"tag": "runAsync"}},
    {"tool": "ask", "disposition": {"tag": "defer", "reason": "may it?"}},
]

POLICIES = {
    "plain": read_policy({"rules": RULES}),
    # Even wait and status calls are answered by mail alone.
    "hasty": read_policy({"rules": RULES, "default": {"tag": "runAsync", "attachSeconds": 0}}),
}

A_MOMENT = 1 / 16
"""Seconds in which everything that is ready happens, and of what takes time nothing else."""

PATIENCE = 1000.0
"""Seconds after which whatever still is not at rest never will be."""


async def work(seconds: float, fails: bool) -> str:
    """Work."""
    text = WALKS[-1].began(current_call())
    await asyncio.sleep(seconds)
    if fails:
        raise ValueError(text)
    return text


WALKS: list["Walk"] = []
"""The last one is under way."""

WORK = [tool(name=name)(work) for name in TOOLS]


class Mind:
    """Takes the steps of the plan, one per model turn, whichever kernel asks."""

    def __init__(self, walk: "Walk", steps: list[Step]) -> None:
        self._walk, self._steps = walk, steps

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        self._walk.look_at(prompt)
        step = self._steps[0] if self._steps else Step(0, ())
        if step.seconds:
            await asyncio.sleep(step.seconds)
        if not prompt.tools:
            return Thought(text="forced")
        if self._steps:
            self._steps.pop(0)
        if step.says == "raise":
            raise ValueError("a script may raise")
        calls = tuple(self._walk.request(prompt, name, args) for name, args in step.calls)
        return Thought(text="" if calls else step.says, calls=calls, usage=Usage(requests=1))

    @property
    def owed(self) -> Usage:
        return Usage()

    def close(self) -> None:
        pass


class Planned:
    """The model of one session."""

    def __init__(self, walk: "Walk", steps: Sequence[Step]) -> None:
        self.name = "planned"
        self._walk, self._steps = walk, list(steps)

    def begin(self, session: SessionId) -> Mind:
        return Mind(self._walk, self._steps)


class Walk:
    """One schedule under way.

    Args:
        plan: What happens.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.faults: list[str] = []
        """What went wrong, in words."""
        self.deeds: list[str] = []
        """What the owner did, for people."""
        self.letters: list[str] = []
        """The words that were sent, each a text of its own."""
        self.ran: list[CallId] = []
        """The calls whose tool was begun, in order."""
        self.rows: list[Row] = []
        """The journal at the end."""
        self.died = False
        """Whether a kernel died on the way."""
        self._of_before: set[CallId] = set()
        self._random = Random(plan.seed + 1)
        self._deaths = list(plan.deaths)
        self._agents = [
            Agent(
                f"s{n}",
                model=Planned(self, steps),
                tools=WORK,
                mail_scope="all",
                max_autonomous_rounds=1000,
                **{**knobs, "policy": POLICIES[knobs["policy"]]},
            )
            for n, (steps, knobs) in enumerate(zip(plan.steps, plan.knobs, strict=True))
        ]
        self._checks: list[asyncio.Task[None]] = []

    # ── what models do ──

    def look_at(self, prompt: Prompt) -> None:
        """Check a request: by the rules, and that all of it is stored."""
        self.faults += [f"request of {prompt.session}: {each}" for each in faults(prompt.turns)]
        stored: dict[int, Turn] = {}
        for row in self.storage.rows(prompt.session, kinds=(RowKind.TURN,)):
            if isinstance(row.record, Turn):
                stored[row.record.index] = row.record
        if list(stored.values()) != list(prompt.turns):
            self.faults.append(f"request of {prompt.session}: it is not what is stored")

    def request(self, prompt: Prompt, name: str, arguments: dict[str, Any]) -> ToolRequest:
        """Return a planned call; which earlier one it is about is known only now."""
        known = [call.id for turn in prompt.turns for call in turn.calls]
        about = self._random.choice(known) if known else "call_9999"
        given = {key: about if value == "ID" else value for key, value in arguments.items()}
        if given.get("for") == about:
            given["for"] = [about]
        if given.get("text") == "LETTER":
            given["text"] = self.letter()
        return ToolRequest(tool=name, arguments=given)

    def began(self, context: CallContext) -> str:
        """Hear that the tool of a call begins; return its result, a text of its own."""
        call = self.room.session(context.session).life.table.get(context.call)
        if call is None or call.state.final:
            self.faults.append(f"{context.call} began although it had ended")
        self.ran.append(context.call)
        return f"<<{context.call}#{len(self.ran)}>>"

    def letter(self) -> str:
        """Return words that nobody said before."""
        self.letters.append(f"{{{{{len(self.letters)}}}}}")
        return self.letters[-1]

    # ── kernels ──

    def _lag(self) -> int:
        return self._random.randint(0, self.plan.lag) if self.plan.lag else 0

    def _open(self, rows: Sequence[Row]) -> None:
        while True:
            death = self._deaths.pop(0) if self._deaths else None
            self.storage = CrashingStorage(
                rows=rows,
                dies_at=death.effect if death else None,
                stored=bool(death and death.stored),
                lag=self._lag,
            )
            try:
                self.room = Room(self.storage, name="memory", now=virtual_now)
                self.room.attach()
                # What an earlier kernel was told waits for the first run in this one (M-91).
                self._of_before = _answered(self.room)
                for agent in self._agents:
                    self.room.define(agent)
                    known = {record.name for record in self.room.people().values()}
                    if agent.slug not in known:
                        self.room.spawn(agent, self.letter(), name=agent.slug)
                    elif self._random.random() < 0.5:
                        for s in self.room.sessions():
                            if s.name == agent.slug:
                                self._deed(f"resume {s.name}")
                                s.resume()
                return
            except KernelDied:
                rows = self._bury()

    def _bury(self) -> Sequence[Row]:
        self._deed(f"the kernel died at effect {self.storage.effects}")
        self.died = True
        for check in self._checks:
            check.cancel()
        self._checks.clear()
        self.room.close()
        return self.storage.rows()

    def _deed(self, words: str) -> None:
        self.deeds.append(f"{asyncio.get_running_loop().time():6.2f} {words}")

    async def _until(self, at: float) -> bool:
        """Let time pass; tell whether the kernel lives."""
        try:
            async with asyncio.timeout_at(at):
                await self.storage.died.wait()
        except TimeoutError:
            return True
        return False

    # ── the owner ──

    async def run(self) -> None:
        """Do what is planned, then see everything to its end."""
        self._open(())
        for number, act in enumerate(self.plan.acts):
            while not await self._until(act.at):
                self._open(self._bury())
            at_once = [each.at for each in self.plan.acts].count(act.at) > 1
            try:
                await self._act(act, number, alone=not at_once)
            except KernelDied:
                self._open(self._bury())
        while self.storage.dead or not await self._finish():
            self._open(self._bury())
        self.rows = self.storage.rows()
        self.room.close()

    async def _act(self, act: Act, number: int, *, alone: bool) -> None:
        room, luck = self.room, Random(act.luck)
        found = room.router.named(f"s{act.session}")
        if found is None or found.closed:
            return
        s = room.session(found.name)
        calls = [call.id for call in s.calls()]
        match act.kind:
            case "send" | "interrupt":
                text = self.letter() if luck.random() < 0.95 else " "
                self._deed(f"{act.kind} {s.name} {text}")
                s.send(text, interrupt=act.kind == "interrupt")
            case "cancel" if calls:
                chosen = luck.sample(calls[-4:], min(len(calls), luck.randint(1, 2)))
                self._deed(f"cancel {s.name} {chosen}")
                s.cancel(*chosen)
                self._later(self._are_final(s, chosen))
            case "pause":
                self._deed(f"pause {s.name}")
                s.pause()
            case "resume":
                self._deed(f"resume {s.name}")
                s.resume()
            case "stop":
                self._deed(f"stop {s.name}")
                running = s.running
                s.stop()
                if running and alone:
                    self._later(self._has_stopped(s))
            case "answer":
                self._answer(luck)
            case "close":
                self._deed(f"close {s.name}")
                s.close()
            case "drain":
                self._deed("drain")
                await self._drain()

    def _answer(self, luck: Random) -> bool:
        """Answer one question, if there is one."""
        room = self.room
        there = {s.id for s in room.sessions()}
        open_ones = [each for each in room.approvals() if each.session in there]
        if not open_ones:
            return False
        one = luck.choice(open_ones)
        how = luck.choice(("approve", "approve", "deny", "complete", "twice"))
        self._deed(f"{how} {one.id} ({one.call})")
        if how == "deny":
            room.deny(one.id, "no")
        elif how == "complete":
            room.complete(one.token, f"<<{one.call}#hand>>")
        else:
            room.approve(one.id)
        if how == "twice":
            try:
                room.complete(one.token, f"<<{one.call}#twice>>")
            except AlreadyAnswered:
                return True
            self.faults.append(f"{one.id} was answered twice")
        return True

    async def _drain(self) -> bool:
        """Wait until all is quiet; tell whether the kernel lives."""
        room = self.room
        loop = asyncio.get_running_loop()
        began = loop.time()
        draining = loop.create_task(room.drain(PATIENCE))
        dying = loop.create_task(self.storage.died.wait())
        await asyncio.wait([draining, dying], return_when=asyncio.FIRST_COMPLETED)
        quiet = draining.done() and draining.result().quiet
        for each in (draining, dying):
            each.cancel()
        if self.storage.dead:
            return False
        if not quiet or loop.time() - began >= PATIENCE:
            self.faults.append(f"not quiet after {loop.time() - began:g} s (quiet: {quiet})")
            self.faults += [f"  {s!r} {[str(c.state) for c in s.calls()]}" for s in room.sessions()]
        answered = _answered(room) - self._of_before
        for s in room.sessions():
            stuck = [c.id for c in s.life.table.deferred() if c.id in answered]
            if stuck:
                self.faults.append(f"quiet, but {stuck} of {s.name} wait for an answer given")
        return True

    async def _finish(self) -> bool:
        """See everything to its end; tell whether the kernel lived."""
        self.storage.dies_at = None
        for turn in range(30):
            luck = Random(self.plan.seed + turn)
            while self._answer(luck):
                pass
            for s in self.room.sessions():
                s.resume()
                if turn == 0 or s.unread or s.status is SessionStatus.CAPPED:
                    s.send(self.letter())
            self._deed("all resumed")
            if not await self._drain():
                return False
            if self.faults or not (
                self.room.approvals() or any(map(_has_more, self.room.sessions()))
            ):
                await asyncio.sleep(A_MOMENT)  # mail that says nothing may still be taken in
                return True
        self.faults.append("there is no end to it")
        return True

    # ── what must have happened a moment later ──

    def _later(self, check: Any) -> None:
        self._checks.append(asyncio.get_running_loop().create_task(check))

    async def _are_final(self, s: Session, calls: Sequence[CallId]) -> None:
        await asyncio.sleep(A_MOMENT)
        table = s.life.table
        left = [id for id in calls if (call := table.get(id)) is not None and not call.state.final]
        if left and not self.storage.dead:
            self.faults.append(f"{left} of {s.name} go on although they were cancelled")

    async def _has_stopped(self, s: Session) -> None:
        await asyncio.sleep(A_MOMENT)
        left = [call.id for call in (*s.life.table.open_calls(), *s.life.table.deferred())]
        # A run that had ended by itself when the order came has left its calls alone (M-85).
        if left and s.end_reason is EndReason.STOPPED and not self.storage.dead:
            self.faults.append(f"{left} of {s.name} go on although it was stopped")


def _answered(room: Room) -> set[CallId]:
    # A question that a cancel closes is no answer: its call may be ending just now.
    open_ones = (ApprovalState.PENDING, ApprovalState.CANCELLED)
    return {a.call for a in room.approvals(None) if a.state not in open_ones}


def _has_more(s: Session) -> bool:
    return bool(s.unread or s.life.table.open_calls() or s.life.table.deferred())


def walked(plan: Plan, laws: Callable[[Walk], list[str]] = lambda walk: []) -> Walk:
    """Walk through ``plan``; what is wrong with it is in ``faults``."""
    walk = Walk(plan)
    WALKS.append(walk)
    try:
        run_seeded(walk.run(), plan.seed)
    except Exception as error:  # whatever it is, its seed is worth more than its traceback
        walk.faults.append(f"{type(error).__name__}: {error}")
        walk.rows = walk.storage.rows()
    finally:
        WALKS.pop()
    walk.faults += laws(walk)
    return walk
