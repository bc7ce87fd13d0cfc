"""A room in which everything happens that a picture of its mail can show."""

import asyncio

from office.rooms import Talk
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import (
    FromSystem,
    Notification,
    Outgoing,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room


async def read_issue(number: int) -> str:
    """Read an issue."""
    await asyncio.sleep(1)
    return f"issue {number}: the back-off is capped at 30 s"


async def run_tests(suite: str, seconds: float = 40) -> str:
    """Run tests."""
    await asyncio.sleep(seconds)
    return "231 passed, 2 failed"


async def deploy_status(target: str) -> str:
    """Ask a host."""
    raise ConnectionError(f"{target} answers 503")


async def deploy(target: str) -> str:
    """Deploy."""
    return f"deployed to {target}"


@script
def plan(turn: ScriptTurn) -> Talk:
    first = turn.mail[0] if turn.mail else None
    if first is not None and first.text.startswith("Get PR"):
        yield call("read_issue", number=214)
        yield [
            call("send-message", to="rev", text="Review PR 214, both suites.", expects_reply=True),
            call("send-message", to="coder", text="Own the fixes for PR 214."),
        ]
        yield call("send-message", to="docs", text="May I have the notes?")
        yield call("send-message", to="coder", text="Never mind, staging first!", interrupt=True)
        return "Both are at work on PR 214; I come back to you when the tests are through."
    return "Noted."


@script
def review(turn: ScriptTurn) -> Talk:
    first = turn.mail[0] if turn.mail else None
    if first is not None and first.text.startswith("Review"):
        yield [call("run_tests", suite="integration"), call("run_tests", suite="fast", seconds=3)]
        yield call(
            "send-message",
            to=first.sender.id or "",
            text="The fast suite is green; integration runs on.",
            in_reply_to=first.id,
            interrupt=True,
        )
        return "waiting for the integration suite"
    if "231 passed" in turn.text:
        yield call("send-message", to="nobody", text="Who owns test_reconnect?")
        return "Not safe yet: 2 failures."
    return "I am with it."


@script
def code(turn: ScriptTurn) -> Talk:
    if "Own the fixes" in turn.text:
        yield call("deploy_status", target="staging")
        yield call("deploy", target="staging")
        return "deployed"
    if "break" in turn.text:
        raise ValueError("cannot digest this")
    return "ok"


@script
def write(turn: ScriptTurn) -> str:
    return "ok"


POLICY = {
    "rules": [
        {"tool": "run_tests", "disposition": {"tag": "runAsync", "attachSeconds": 10}},
        {"tool": "deploy", "disposition": {"tag": "defer"}},
    ]
}


async def fill(room: Room) -> None:
    """Let it all happen."""
    lead = room.spawn(Agent("planner", model=plan, tools=[read_issue]), name="lead")
    rev = room.spawn(
        Agent(
            "reviewer",
            model=review,
            tools=[run_tests],
            policy=POLICY,
            wake_on=["user", "parent", "tool"],
        ),
        name="rev",
        parent=lead,
    )
    coder = room.spawn(
        Agent("coder", model=code, tools=[deploy_status, deploy], policy=POLICY),
        name="coder",
        parent=lead,
    )
    docs = room.spawn(Agent("writer", model=write), name="docs")
    room.send("lead", "Get PR 214 reviewed, fixed and on staging today.")
    await asyncio.sleep(5)
    (asked,) = room.approvals()
    room.deny(asked.id, "not on a Friday")
    await asyncio.sleep(50)
    room.send("rev", "Also tell me who approved the client change.", interrupt=True)
    await asyncio.sleep(2)
    room.send("coder", "break it")
    await asyncio.sleep(1)
    docs.pause()
    await asyncio.sleep(1)
    for mail in (
        Outgoing(
            session=lead.id,
            sender=FromSystem("watch:w-0001"),
            body=WatchedEvent(coder.id, "session.failed", {"error": "cannot digest this"}),
        ),
        Outgoing(
            session=lead.id,
            sender=FromSystem("timer:t-0001"),
            body=UserMessage("Is the release still on time?"),
        ),
        Outgoing(session=docs.id, sender=FromSystem("recovery"), body=Notification("back again")),
    ):
        room.router.deliver(mail)
    await asyncio.sleep(1)
    room.send("docs", "Shorter, two lines.")
    await asyncio.sleep(1)
    rev.close()
    await asyncio.sleep(1)
