"""Sessions with calls of every kind, in a process that is killed: what ``test_crash_of_calls`` runs.

Reads lines ``ROOM SEED`` or ``ROOM end`` and for each starts a process that opens the room and lets its
sessions go on. With a seed they call and are answered until the process is killed, and a byte for each
group of rows that is stored goes to the pipe whose number is the first argument. With ``end`` they come
to rest. Prints the number of each process when it is started, and how it ended when it is gone.
"""

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Generator, Sequence
from typing import Any

import duckdb  # noqa: F401 - loaded once, here, and not in every life
import jsonschema  # noqa: F401
import numpy as np  # noqa: F401

from postroom_runtime.calls.context import current_call, progress
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import AlreadyAnswered
from postroom_runtime.contracts.journal import Row
from postroom_runtime.models.script import Script, ScriptTurn, call
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room

ATTACHED, DETACHED, GATED = "attached", "detached", "gated"
AT_REST_SECONDS = 60.0

POLICY = {
    "rules": [
        {"tool": "background", "disposition": {"tag": "runAsync", "attachSeconds": 0}},
        {"tool": "brief", "disposition": {"tag": "runAsync", "attachSeconds": 0.004}},
    ],
    "wrappers": [
        {"match": {"tool": "gated"}, "decorators": [{"tag": "before", "hook": {"tool": "guard"}}]},
    ],
}


async def quick(tag: str, seconds: float) -> str:
    """Take a moment."""
    progress(1, 1, tag)
    await asyncio.sleep(seconds)
    return payload()


async def background(tag: str, seconds: float) -> str:
    """Take a moment, with nobody waiting."""
    return await quick(tag, seconds)


async def brief(tag: str, seconds: float) -> str:
    """Take a moment, with somebody waiting not quite so long."""
    return await quick(tag, seconds)


def threaded(tag: str, seconds: float) -> str:
    """Take a moment in a thread."""
    progress(1, 1, tag)
    time.sleep(seconds)
    return payload()


async def gated(tag: str, seconds: float) -> str:
    """Take a moment, if the owner lets it."""
    return await quick(tag, seconds)


async def guard() -> dict[str, str]:
    """Ask the owner."""
    return {"action": "defer", "reason": "may it?"}


def payload() -> str:
    return f"<<{current_call().call}>>"


def calling(tools: Sequence[str], chance: random.Random | None, life: str) -> Script:
    """A script that calls without end, each call with a tag of its own; without ``chance`` none."""
    counted = iter(range(1_000_000))

    def script(turn: ScriptTurn) -> Generator[Any, Any, str]:
        while chance is not None:
            calls = [
                call(
                    chance.choice(tools),
                    tag=f"{life}-{next(counted)}",
                    seconds=chance.choice([0, 0.001, 0.004, 0.03]),
                )
                for _ in range(chance.randint(1, 3))
            ]
            yield calls
            if chance.random() < 0.1:
                return "for now"
        return "at rest"
        yield

    return Script(script, "calling")


def define(room: Room, chance: random.Random | None, life: str) -> None:
    """Define the three agents."""
    for name, tools in {
        ATTACHED: ["quick", "threaded"],
        DETACHED: ["background", "brief", "threaded"],
        GATED: ["gated", "quick", "background"],
    }.items():
        room.define(
            Agent(
                name,
                model=calling(tools, chance, f"{name}-{life}"),
                tools=[quick, background, brief, threaded, gated, guard],
                policy=POLICY,
                max_iterations=5000,
                max_autonomous_rounds=100_000,
                mailbox_max_unread=5000,
            )
        )


def own(room: Room, chance: random.Random) -> None:
    """Be the owner, in a thread: answer, cancel, interrupt, pause and resume, write."""
    while True:
        time.sleep(chance.random() * 0.004)
        for approval in room.approvals():
            try:
                match chance.randrange(6):
                    case 0 | 1:
                        room.approve(approval.id)
                    case 2:
                        room.deny(approval.id, f"no {approval.call}")
                    case 3:
                        room.complete(approval.token, f"<<{approval.call}>>")
            except AlreadyAnswered:
                pass
        session = room.session(chance.choice([ATTACHED, DETACHED, GATED]))
        match chance.randrange(20):
            case 0:
                session.cancel(*[each.id for each in session.calls()[-3:]])
            case 1:
                session.interrupt("quick")
            case 2:
                session.pause()
                session.resume()
            case 3:
                session.stop()
                session.send("go on")
            case 4 | 5:
                session.send("go on")


async def go_on(path: str, seed: str, pipe: int) -> None:
    """Live in a room until killed."""
    chance = random.Random(seed)
    room = open_room(path)
    room.attach()
    room.storage.bells(lambda rows: told(pipe, rows))
    define(room, chance, seed)
    for name in (ATTACHED, DETACHED, GATED):
        if any(session.name == name for session in room.sessions()):
            room.session(name).resume()
        else:
            room.spawn(name, "go")
    threading.Thread(target=own, args=(room, random.Random(f"{seed} owner")), daemon=True).start()
    await asyncio.Event().wait()


def told(pipe: int, rows: Sequence[Row]) -> None:
    if rows:
        os.write(pipe, b".")


async def come_to_rest(path: str) -> None:
    """Resume every session of a room, answer what is asked, and wait until nothing is left to do."""
    room = open_room(path)
    room.attach()
    define(room, None, "end")
    for session in room.sessions():
        session.resume()
    for approval in room.approvals():
        room.approve(approval.id)
    async with asyncio.timeout(AT_REST_SECONDS):
        await room.wait(timeout=None)
    room.close()


def live(path: str, seed: str, pipe: int) -> None:
    """Be one process in a room."""
    asyncio.run(come_to_rest(path) if seed == "end" else go_on(path, seed, pipe))


def main() -> None:
    """Start one life after the other, as asked."""
    pipe = int(sys.argv[1])
    for line in sys.stdin:
        path, seed = line.split()
        process = os.fork()  # nothing is open here yet, and no thread runs
        if process == 0:
            try:
                live(path, seed, pipe)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
