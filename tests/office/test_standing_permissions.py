"""What runs without a card because its owner once said so: how far that goes, and when it ends."""

import asyncio
from typing import Any

import pytest

from office.rooms import Talk, in_room, lives, ticks
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Notification
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError
from postroom_runtime.contracts.permission import Allow
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()


async def deploy(target: str, force: bool = False) -> str:
    """Deploy."""
    ran.append(f"deploy {target}")
    return f"deployed {target}"


async def erase(target: str) -> str:
    """Erase."""
    ran.append(f"erase {target}")
    return f"erased {target}"


async def crawl() -> str:
    """Take for ever."""
    ran.append("crawl")
    await asyncio.sleep(10_000)
    return "done"


async def guard(tool: str, arguments: dict[str, Any]) -> Any:
    """Deny what is forbidden, ask about the rest."""
    if arguments.get("target") == "forbidden":
        return {"action": "deny", "message": "never that"}
    return {"action": "defer", "reason": "may it?"}


POLICY = {
    "wrappers": [
        {"match": {"tool": each}, "decorators": [{"tag": "before", "hook": {"tool": "guard"}}]}
        for each in ("deploy", "erase", "crawl")
    ]
}


@script
def doing(turn: ScriptTurn) -> Talk:
    """``deploy prod``: one call."""
    tool, _, target = turn.text.partition(" ")
    if tool not in ("deploy", "erase", "crawl"):
        return "read"
    words = target.split()
    arguments: dict[str, Any] = {"target": words[0]} if words else {}
    if "--force" in words:
        arguments["force"] = True
    yield [call(tool, **arguments)]
    return "done"


def agent(slug: str = "coder", **knobs: Any) -> Agent:
    given = {"policy": POLICY, **knobs}
    return Agent(slug, model=doing, tools=[deploy, erase, crawl, guard], **given)


async def tells(s: Session, line: str) -> list[str]:
    """Tell a session to do something; return the ids of the questions that are open then."""
    s.send(line)
    await s.wait()
    return [a.id for a in s.room.approvals()]


async def allowed(
    room: Room, always: bool | str, line: str = "deploy prod", **more: Any
) -> Session:
    """Return a session one call of which was allowed, now and from now on."""
    s = room.spawn(agent(), line, **more)
    await s.wait()
    room.approve(room.approvals()[-1].id, always=always)
    await s.wait()
    ran.clear()
    return s


# ── how far it goes ──


@pytest.mark.parametrize(
    ("always", "unasked"),
    [
        ("args", ["deploy prod"]),
        ("tool", ["deploy prod", "deploy test", "deploy prod --force"]),
        (True, ["deploy prod", "deploy test", "deploy prod --force"]),
        ("agent", ["deploy prod", "deploy test", "deploy prod --force"]),
    ],
)
def test_a_permission_reaches_as_far_as_its_owner_said_and_no_farther(
    always: bool | str, unasked: list[str]
) -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, always)
        for line in ("deploy prod", "deploy test", "deploy prod --force", "erase prod"):
            opened = bool(await tells(s, line))
            assert opened is (line not in unasked), line
            for approval in room.approvals():
                room.deny(approval.id)
            await s.wait()
        assert len(ran) == len(unasked)

    in_room(main)


@pytest.mark.parametrize("always", ["args", "tool", "agent"])
def test_a_permission_is_never_one_for_another_agent_and_only_agent_is_for_another_session(
    always: str,
) -> None:
    async def main(room: Room) -> None:
        await allowed(room, always)
        same = room.spawn("coder", name="second")
        assert bool(await tells(same, "deploy prod")) is (always != "agent")
        other = room.spawn(agent("writer"), name="third")
        before = len(room.approvals())
        await tells(other, "deploy prod")
        assert len(room.approvals()) == before + 1

    in_room(main)


def test_the_arguments_of_a_permission_are_those_that_were_allowed_the_edited_ones() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(agent(), "deploy prod")
        await s.wait()
        room.approve("ap-0001", {"target": "test"}, always="args")
        await s.wait()
        assert await tells(s, "deploy test") == []
        assert await tells(s, "deploy prod") == ["ap-0002"]
        (permission,) = room.permissions()
        assert permission.arguments == {"target": "test"}

    in_room(main)


@pytest.mark.parametrize(
    ("said", "meant"), [({"a": 1}, {"a": True}), ({"a": 1}, {"a": 1.0}), ({"a": 1}, {"a": "1"})]
)
def test_the_same_arguments_are_the_very_same(said: dict[str, Any], meant: dict[str, Any]) -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, "args")
        (permission,) = room.permissions()
        object.__setattr__(permission, "arguments", {**said, "b": [1, {"c": 2}]})
        covering = room.standing.covering
        same = {"b": [1, {"c": 2}], **said}
        assert covering(s.id, "coder", "deploy", same) is permission
        assert covering(s.id, "coder", "deploy", {**meant, "b": [1, {"c": 2}]}) is None

    in_room(main)


def test_a_call_that_runs_unasked_says_by_which_permission() -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, "tool")
        entries = len(room.inbox("coder"))
        await tells(s, "deploy test")
        last = s.calls()[-1]
        assert (last.state, last.token) == (CallState.COMPLETED, "")
        assert [p.text for p in last.progress] == ["runs without asking: pm-0001 allows it"]
        assert len(room.inbox("coder")) == entries

    in_room(main)


def test_the_disposition_defer_asks_nobody_where_a_permission_answers() -> None:
    async def main(room: Room) -> None:
        policy = {"rules": [{"tool": "deploy", "disposition": {"tag": "defer", "reason": "?"}}]}
        s = room.spawn(agent(policy=policy), "deploy prod")
        await s.wait()
        room.approve("ap-0001", always="args")
        await s.wait()
        assert await tells(s, "deploy prod") == []
        assert await tells(s, "deploy test") == ["ap-0002"]
        assert ran == ["deploy prod"] * 2

    in_room(main)


def test_a_hook_that_denies_is_obeyed_whatever_is_allowed_and_so_is_the_agent_s_approve() -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, "agent")
        assert await tells(s, "deploy forbidden") == []
        assert (s.calls()[-1].state, s.calls()[-1].result) == (CallState.FAILED, "never that")
        room.define(agent(approve=lambda tool, arguments: False))
        s = room.spawn("coder", name="second")
        assert await tells(s, "deploy prod") == []
        assert ran == []

    in_room(main)


def test_other_calls_that_wait_already_go_on_waiting() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(agent())
        await tells(s, "deploy a")
        await tells(s, "deploy b")
        room.approve("ap-0001", always="tool")
        await s.wait()
        assert [a.id for a in room.approvals()] == ["ap-0002"]

    in_room(main)


# ── listing, revoking ──


def test_permissions_are_listed_and_kept_in_the_inbox_of_their_agent() -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, "args")
        (permission,) = room.permissions()
        assert (permission.id, permission.allow, permission.tool) == (
            "pm-0001",
            Allow.ARGS,
            "deploy",
        )
        assert (permission.session, permission.agent, permission.approval) == (
            s.id,
            "coder",
            "ap-0001",
        )
        assert str(permission) == "pm-0001: deploy runs unasked in coder with the same arguments"
        entry = room.inbox("coder")[1]
        assert isinstance(entry.body, Notification)
        assert (entry.body.type, entry.text) == ("permission", str(permission))
        assert room.inbox("coder").unread == 1  # its card; what the owner did is no news

    in_room(main)


def test_a_permission_and_its_answer_are_one_transaction() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(agent(), "deploy prod")
        await s.wait()
        groups: list[list[str]] = []
        room.storage.bells(lambda rows: groups.append([r.session for r in rows]))
        room.approve("ap-0001", always=True)
        assert groups == [[s.id, s.id, "inbox@coder", "inbox@coder"]]

    in_room(main)


def test_a_revoked_permission_holds_no_more_and_revoking_twice_is_told_by_whom() -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, "tool")
        ended = room.revoke("pm-0001", by="view")
        assert (ended.revoked_by, room.permissions()) == ("view", [])
        assert await tells(s, "deploy prod") == ["ap-0002"]
        with pytest.raises(ConfigError, match="pm-0001 was already revoked by view; that stands"):
            room.revoke("pm-0001")
        room.approve("ap-0002", always="tool")
        with pytest.raises(ConfigError, match="no permission 'pm-9'; there are: pm-0002"):
            room.revoke("pm-9")
        entries = [e.text for e in room.inbox("coder") if isinstance(e.body, Notification)]
        assert entries.count("pm-0001 no longer lets deploy run") == 1

    in_room(main)


def test_a_permission_ends_with_its_session_and_the_next_of_that_name_has_none() -> None:
    async def main(room: Room) -> None:
        s = await allowed(room, "tool")
        s.close()
        await ticks()
        assert room.permissions() == []
        again = room.spawn("coder")
        assert again.name == s.name
        assert await tells(again, "deploy prod") == ["ap-0002"]

    in_room(main)


def test_an_answer_that_comes_too_late_gives_no_permission() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(agent(), "deploy prod")
        await s.wait()
        room.deny("ap-0001")
        head = room.storage.head()
        with pytest.raises(AlreadyAnswered):
            room.approve("ap-0001", always="agent")
        assert (room.permissions(), room.storage.head() >= head) == ([], True)
        await s.wait()
        assert await tells(s, "deploy prod") == ["ap-0002"]

    in_room(main)


@pytest.mark.parametrize("always", ["ever", 1, ["tool"], "Tool"])
def test_an_always_that_is_none_is_refused_before_anything_is_answered(always: Any) -> None:
    async def main(room: Room) -> None:
        await room.spawn(agent(), "deploy prod").wait()
        with pytest.raises(ConfigError, match=r"always=.* will not do: give 'args' \(these"):
            room.approve("ap-0001", always=always)
        assert len(room.approvals()) == 1

    in_room(main)


# ── restarts ──


def test_permissions_hold_over_a_restart_and_so_do_their_ends() -> None:
    async def gives(room: Room) -> None:
        s = await allowed(room, "tool")
        await tells(s, "erase prod")
        room.approve(room.approvals()[-1].id, always="args")
        await s.wait()
        room.revoke("pm-0002")

    async def holds(room: Room) -> None:
        room.define(agent())
        s = room.session("coder")
        s.resume()
        (permission,) = room.permissions()
        assert (permission.id, permission.allow) == ("pm-0001", Allow.TOOL)
        assert permission.granted_by == "api"
        assert await tells(s, "deploy prod") == []
        (asked,) = await tells(s, "erase prod")
        room.approve(asked, always="agent")
        assert [p.id for p in room.permissions()] == ["pm-0001", "pm-0003"]
        with pytest.raises(ConfigError, match="already revoked by api"):
            room.revoke("pm-0002")

    lives(gives, holds)


def test_i30_an_unasked_call_that_the_kernel_s_end_cut_short_does_not_fire_again() -> None:
    async def begins(room: Room) -> None:
        s = room.spawn(agent(), "crawl")
        await asyncio.sleep(1)
        room.approve("ap-0001", always="agent")
        await asyncio.sleep(1)
        s.send("crawl")
        await asyncio.sleep(1)
        assert ran == ["crawl"] * 2

    async def goes_on(room: Room) -> None:
        room.define(agent())
        s = room.session("coder")
        s.resume()
        await s.wait()
        assert [c.state for c in s.calls()] == [CallState.ORPHANED] * 2
        assert (ran, room.approvals()) == (["crawl"] * 2, [])

    lives(begins, goes_on)
