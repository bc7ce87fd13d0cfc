"""``watch-session`` and ``unwatch-session``, called by models under their scope (M-126, M-127)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from office.rooms import Talk, in_room, said
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import WatchedEvent
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session


@script
def caller(turn: ScriptTurn) -> Talk:
    """Calls what the owner writes as JSON, and says what came of it."""
    if not turn.text.startswith("{"):
        return "read"
    wanted = json.loads(turn.text)
    got = yield call(wanted.pop("call"), **wanted)
    return json.dumps(got)


async def told(session: Session, /, **wanted: Any) -> Any:
    """What the session's model was told when it called a tool."""
    answer = await session.ask(json.dumps(wanted))
    return json.loads(answer.text)


def family(room: Room, **knobs: Any) -> tuple[Session, Session, Session]:
    """A boss, its worker, and a stranger."""
    agent = Agent("caller", model=caller, **knobs)
    boss = room.spawn(agent, name="bea")
    return boss, room.spawn(agent, name="ann", parent=boss), room.spawn(agent, name="zoe")


def test_m126_a_model_watches_its_child_and_stops() -> None:
    async def main(room: Room) -> None:
        boss, ann, _ = family(room)
        begun = await told(
            boss,
            call="watch-session",
            session="ann",
            events=["run.stopped", "tool.completed"],
            tool="deploy_*",
            ttl_seconds=60,
        )
        assert begun == {"watch": "w-0001"}
        (watch,) = room.watches()
        assert (watch.session, watch.into, watch.tool, watch.ttl) == (
            ann.id,
            boss.id,
            "deploy_*",
            60,
        )
        ann.send("hello")
        await room.wait()
        (mail,) = [e for e in boss.mail() if isinstance(e.body, WatchedEvent)]
        assert mail.body.event == "run.stopped"  # type: ignore[union-attr]
        ended = await told(boss, call="unwatch-session", watch="w-0001")
        assert ended == {"watch": "w-0001", "forwarded": 1, "dropped": 0}
        assert room.watches() == []

    in_room(main)


def test_m126_by_default_it_is_told_of_everything_for_600_seconds() -> None:
    async def main(room: Room) -> None:
        boss, ann, _ = family(room)
        await told(boss, call="watch-session", session=ann.id)
        (watch,) = room.watches()
        assert (len(watch.events), watch.tool, watch.ttl) == (8, None, 600)

    in_room(main)


@pytest.mark.parametrize(
    ("who", "target", "said"),
    [
        ("ann", "bea", "may not read bea, its parent"),
        ("zoe", "ann", "may not read ann, a stranger to it"),
        ("bea", "zoe", "may not read zoe"),
    ],
)
def test_m127_watching_needs_the_reader_s_right(who: str, target: str, said: str) -> None:
    """M-127: a session writes to its parent and does not look into it."""

    async def main(room: Room) -> None:
        family(room)
        answer = await told(room.session(who), call="watch-session", session=target)
        assert said in answer or f"no session {target!r}" in answer
        assert room.watches() == []

    in_room(main)


def test_m127_a_scope_of_all_watches_everybody_and_no_owner_inbox() -> None:
    async def main(room: Room) -> None:
        boss, _, _ = family(room, mail_scope="all")
        assert await told(boss, call="watch-session", session="zoe") == {"watch": "w-0001"}
        for inbox in ("inbox", "inbox@caller"):
            answer = await told(boss, call="watch-session", session=inbox)
            assert f"no session {inbox!r}" in answer
        assert len(room.watches()) == 1

    in_room(main)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"session": "bea"}, "bea cannot watch itself"),
        ({"session": "nobody"}, "no session 'nobody'"),
        ({"session": "ann", "events": ["run.stop"]}, "Did you mean 'run.stopped'"),
        ({"session": "ann", "events": ["text.delta"]}, "is never forwarded"),
        ({"session": "ann", "ttl_seconds": 0}, "ttl=0"),
        ({"session": "ann", "tool": ""}, "matches no tool"),
    ],
)
def test_what_will_not_do_is_told_to_the_model(wanted: dict[str, Any], said: str) -> None:
    async def main(room: Room) -> None:
        boss, _, _ = family(room)
        assert said in await told(boss, call="watch-session", **wanted)
        assert room.watches() == []

    in_room(main)


def test_m127_a_33rd_watch_is_refused_to_a_model_too() -> None:
    async def main(room: Room) -> None:
        boss, ann, _ = family(room)
        for _ in range(32):
            room.watch(ann, into=boss, events=["session.failed"])
        assert "32 watches" in await told(boss, call="watch-session", session="ann")

    in_room(main)


def test_a_session_ends_no_watch_of_another() -> None:
    async def main(room: Room) -> None:
        boss, ann, zoe = family(room)
        room.watch(ann, into=zoe, events=["session.failed"])
        answer = await told(boss, call="unwatch-session", watch="w-0001")
        assert "no watch 'w-0001' is under way" in answer
        assert len(room.watches()) == 1

    in_room(main)


def test_a_toolbox_may_leave_them_out() -> None:
    async def main(room: Room) -> None:
        tools: Callable[[Session], set[str]] = lambda s: set(s.life.tools())  # noqa: E731
        names = {"watch-session", "unwatch-session"}
        assert names <= tools(room.spawn(Agent("all", model="echo")))
        assert not names & tools(room.spawn(Agent("few", model="echo", toolbox=["wait"])))
        some = room.spawn(Agent("some", model="echo", toolbox=["watch-session"]))
        assert names & tools(some) == {"watch-session"}
        assert said(some) == []

    in_room(main)
