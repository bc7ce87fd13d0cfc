"""AIMU's agents and ours, steered by each other's inboxes: the one protocol between them (A-2).

AIMU is the real package: its loop runs, its tools, its messages. Only its model is written here.
"""

import asyncio
import threading
from typing import Any

import pytest

from mail.foreign import NoArgument, QueueInbox, RoutedInbox
from office.rooms import Talk, in_room, read, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.inbox import Inbox
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room


@pytest.fixture(scope="module")
def aimu() -> Any:
    """Import it when a test of it runs: that takes seconds."""

    from office import aimu_client

    return aimu_client


def roles(request: list[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in request]


# ── an AIMU agent, steered by a mailbox of ours ──


def test_a1_a12_a_mailbox_of_ours_redirects_a_run_of_aimu_after_its_tool(aimu: Any) -> None:
    """A-1, A-2, A-12, A-23: sent as the owner, from the thread of the tool."""
    from aimu.agents import Agent as AimuAgent
    from aimu.tools import tool

    room = open_room()
    box = room.spawn(Agent("box", wake_on=()), name="stager")

    @tool
    def look() -> str:
        """Look at the log."""
        box.send("check the staging log instead")
        box.send("and hurry")
        return "all green"

    client = aimu.Scripted(lambda sent: aimu.Calls("look") if len(sent) == 1 else "done")
    agent = AimuAgent(client, name="stager", tools=[look], inbox=box.mailbox)

    assert agent.run("read the logs") == "done"
    first, second = client.requests
    assert roles(first) == ["user"]
    assert roles(second) == ["user", "assistant", "tool", "user"]
    assert second[2]["content"] == "all green"
    assert second[3] == {
        "role": "user",
        "content": "check the staging log instead\n\nand hurry",
    }
    assert box.cursor == 0  # its own: nothing was taken from it
    room.close()


def test_a13_a14_a_mailbox_of_ours_replaces_aimu_s_nudge_and_extends_its_run(aimu: Any) -> None:
    from aimu.agents import Agent as AimuAgent

    room = open_room()
    box = room.spawn(Agent("box", wake_on=()))
    answers = iter(["", "one", "two"])

    def think(sent: list[dict[str, Any]]) -> str:
        if len(sent) == 1:
            box.send("please")
        if len(sent) == 3:
            box.send("once more")
        return next(answers)

    client = aimu.Scripted(think)
    assert AimuAgent(client, name="rev", inbox=box.mailbox).run("speak") == "two"
    assert [m["content"] for m in client.requests[-1]] == [
        "speak",
        "",
        "please",
        "one",
        "once more",
    ]
    room.close()


def test_a17_aimu_streams_an_inbox_chunk_with_the_words_before_the_round(aimu: Any) -> None:
    """A-17, A-21: the text and nothing else crosses over, whoever wrote it."""
    from aimu.agents import Agent as AimuAgent

    room = open_room()
    box = room.spawn(Agent("box", wake_on=()))
    child = room.spawn("echo", name="child", parent=box)

    def think(sent: list[dict[str, Any]]) -> str:
        if len(sent) == 1:
            room.send(box, "from an agent", sender=child)
            box.send("  ")
            return "one"
        return "two"

    agent = AimuAgent(aimu.Scripted(think), name="rev")
    chunks = list(agent.run("go", stream=True, inbox=box.mailbox))

    told = [(chunk.is_inbox(), chunk.content) for chunk in chunks]
    assert told == [(False, "one"), (True, {"text": "from an agent"}), (False, "two")]
    room.close()


def test_a9_the_async_loop_of_aimu_reads_a_mailbox_of_ours_on_our_loop(aimu: Any) -> None:
    """A-9: beside the sessions of the room, and while one of them writes."""
    from aimu.aio import Agent as AimuAgent
    from aimu.tools import tool

    async def main(room: Room) -> None:
        box = room.spawn(Agent("box", wake_on=()))

        @script
        def writing(turn: ScriptTurn) -> Talk:
            yield call("send-message", to="box", text="check staging")
            return "told it"

        writer = room.spawn(Agent("writer", model=writing), parent=box)

        @tool
        async def look() -> str:
            """Look at the log."""
            await writer.ask("tell it")
            return "all green"

        client = aimu.AsyncScripted(lambda sent: aimu.Calls("look") if len(sent) == 1 else "done")
        agent = AimuAgent(client, name="rev", tools=[look], inbox=box.mailbox)

        assert await agent.run("read the logs") == "done"
        assert roles(client.requests[1]) == ["user", "assistant", "tool", "user"]
        assert client.requests[1][3]["content"] == "check staging"

    in_room(main)


def test_a5_a31_a_delegate_of_aimu_and_its_caller_share_a_mailbox_and_no_cursor(aimu: Any) -> None:
    """A-5, A-31, A-45: in one thread, one inside the other; what came before is not its own."""
    from aimu.agents import Agent as AimuAgent
    from aimu.tools import tool

    room = open_room()
    box = room.spawn(Agent("box", wake_on=()), "for the caller")
    inner = aimu.Scripted(lambda sent: aimu.Calls("look") if len(sent) == 1 else "found")

    @tool
    def look() -> str:
        """Look at the log."""
        box.send("to all")
        return "all green"

    @tool
    def delegate() -> str:
        """Have it looked at."""
        return str(
            AimuAgent(inner, name="subagent-writer", tools=[look], inbox=box.mailbox).run("look")
        )

    outer = aimu.Scripted(lambda sent: aimu.Calls("delegate") if len(sent) == 1 else "done")
    AimuAgent(outer, name="boss", tools=[delegate], inbox=box.mailbox).run("go")

    assert inner.requests[1][-1]["content"] == "to all"
    assert outer.requests[1][-1]["content"] == "for the caller\n\nto all"
    room.close()


def test_a7_the_owner_writes_from_eight_threads_while_aimu_runs(aimu: Any) -> None:
    from aimu.agents import Agent as AimuAgent
    from aimu.tools import tool

    room = open_room()
    box = room.spawn(Agent("box", wake_on=()))

    @tool
    def wait_for_them() -> str:
        """Let eight threads write."""
        threads = [
            threading.Thread(target=lambda: [box.send(f"{n}") for n in range(10)]) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "they have"

    client = aimu.Scripted(lambda sent: aimu.Calls("wait_for_them") if len(sent) == 1 else "done")
    AimuAgent(client, name="rev", tools=[wait_for_them], inbox=box.mailbox).run("go")

    texts = client.requests[1][-1]["content"].split("\n\n")
    assert texts == [envelope.text for envelope in box.mail()]
    assert len(texts) == 80
    room.close()


def test_a26_a_mailbox_of_ours_always_advances_so_aimu_s_budget_holds(aimu: Any) -> None:
    """A-26, A-29: one message, one extension; the run ends at its cap."""
    from aimu.agents import Agent as AimuAgent
    from aimu.agents import DegenerateTurnError
    from aimu.tools import tool

    room = open_room()
    box = room.spawn(Agent("box", wake_on=()), "once")

    @tool
    def look() -> str:
        """Look at the log."""
        return "all green"

    client = aimu.Scripted(lambda sent: aimu.Calls("look"))
    agent = AimuAgent(client, name="rev", tools=[look], inbox=box.mailbox, max_iterations=3)
    with pytest.raises(DegenerateTurnError):
        agent.run("go")

    # One round, then three from the message on, then the forced answer.
    assert len(client.requests) == 1 + 3 + 1
    assert sum(m.get("content") == "once" for m in client.requests[-1]) == 1
    room.close()


# ── a session of ours, steered by an inbox written for AIMU ──


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


@script
def napping(turn: ScriptTurn) -> Talk:
    """Sleep for a second, then say what it read."""
    yield call("nap", seconds=1)
    return f"read: {turn.text}"


@pytest.mark.parametrize("kind", [QueueInbox, RoutedInbox])
def test_a2_one_host_object_steers_a_session_and_an_aimu_agent_alike(
    aimu: Any, kind: type[Any]
) -> None:
    """A-2, A-12, A-34: what the model reads is the same, word for word."""
    from aimu.agents import Agent as AimuAgent
    from aimu.tools import tool

    host = kind()
    said = ("check staging", "and hurry") if kind is QueueInbox else ("check staging",)

    def say() -> None:
        for text in said:
            host.send(text) if kind is QueueInbox else host.send("rev", text)

    @tool
    def look() -> str:
        """Look at the log."""
        say()
        return "slept"

    client = aimu.Scripted(lambda sent: aimu.Calls("look") if len(sent) == 1 else "done")
    AimuAgent(client, name="rev", tools=[look], inbox=host).run("go")

    async def main(room: Room) -> list[str]:
        s = room.spawn(Agent("napper", model=napping, tools=[nap], inbox=host), "go", name="rev")
        await ticks()
        say()
        await s.wait()
        return read(s)

    assert in_room(main) == ["go", client.requests[1][-1]["content"]]


def test_a2_a3_each_side_takes_the_other_s_inbox_for_one_of_its_own(aimu: Any) -> None:
    from aimu.agents import Inbox as AimuInbox

    room = open_room()
    box = room.spawn("echo")

    assert isinstance(box.mailbox, AimuInbox)
    assert isinstance(box.mailbox, Inbox)
    assert isinstance(QueueInbox(), AimuInbox)
    assert isinstance(QueueInbox(), Inbox)
    room.close()


def test_a35_both_refuse_a_reader_without_a_parameter_in_the_same_words(aimu: Any) -> None:
    """A-35: up to the fix, which they put into words of their own."""
    from aimu.agents import Agent as AimuAgent

    inbox: Any = NoArgument()
    told: list[str] = []
    with pytest.raises(TypeError) as theirs:
        AimuAgent(aimu.Scripted(lambda sent: "never"), inbox=inbox).run("go")

    async def main(room: Room) -> None:
        with pytest.raises(TypeError) as ours:
            room.spawn(Agent("bad", model=napping, inbox=inbox), "go")
        told.append(str(ours.value))

    in_room(main)
    fix = "Widen the signature in the class body, `def reader(self, agent=None)`"
    shared, at, _ = told[0].partition(fix)
    assert at
    # Theirs shows what the reader returns too.
    assert shared == str(theirs.value).partition(fix)[0].replace(
        " -> collections.abc.Callable[[], list[str]]", ""
    )
