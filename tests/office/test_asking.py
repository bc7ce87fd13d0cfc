"""Questions to the owner in whole rooms: their cards, who answers first, and what runs because of it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from office.rooms import Talk, in_room, lives, read, said, ticks
from postroom_runtime.contracts.approval import ApprovalState
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.envelope import Envelope, FromUser, Notification
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()


async def deploy(target: str) -> str:
    """Deploy."""
    ran.append(f"deploy {target}")
    return f"deployed {target}"


async def note(text: str) -> str:
    """Write something down."""
    ran.append(f"note {text}")
    return "noted"


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


async def guard(arguments: dict[str, Any]) -> Any:
    """Ask the owner."""
    return {"action": "defer", "reason": f"to {arguments['target']}?"}


ASK = {
    "wrappers": [
        {
            "match": {"tool": "deploy"},
            "decorators": [{"tag": "before", "hook": {"tool": "guard"}}],
        }
    ]
}


def coder(*calls: Any, slug: str = "coder", **knobs: Any) -> Agent:
    """An agent that makes these calls at ``go``, in one turn."""

    @script
    def going(turn: ScriptTurn) -> Talk:
        if turn.text != "go":
            return f"read: {turn.text}"
        got = yield list(calls)
        return f"got {len(got)}"

    given = {"policy": ASK, **knobs}
    return Agent(slug, model=going, tools=[deploy, note, nap, guard], **given)


async def asking(room: Room, *targets: str, **more: Any) -> Session:
    """Spawn a session whose deployments wait for the owner."""
    s = room.spawn(coder(*(call("deploy", target=each) for each in targets)), "go", **more)
    await s.wait()
    return s


def entry(envelope: Envelope) -> Notification:
    assert isinstance(envelope.body, Notification)
    return envelope.body


def transactions(room: Room) -> list[list[str]]:
    """Return a list that gets what each transaction from now on stores."""
    groups: list[list[str]] = []
    room.storage.bells(lambda rows: groups.append([type(each.record).__name__ for each in rows]))
    return groups


def types(room: Room, agent: str = "coder") -> list[str]:
    return [entry(each).type for each in room.inbox(agent)]


# ── the card ──


def test_i26_a_question_and_its_card_are_one_transaction_and_told_in_this_order() -> None:
    """I-26: the row, what the requester's session hears, the card."""

    async def main(room: Room) -> None:
        told: list[Event] = []
        room.delivery.broadcast.subscribe(told.append)
        groups = transactions(room)
        s = await asking(room, "prod")
        assert ["Call", "Approval", "Envelope"] in groups
        await ticks()
        kinds = [(e.kind, e.session) for e in told]
        asked = kinds.index((EventKind.APPROVAL_REQUESTED, s.id))
        assert kinds[asked - 1 : asked + 2] == [
            (EventKind.CALLS_DEFERRED, s.id),
            (EventKind.APPROVAL_REQUESTED, s.id),
            (EventKind.NOTIFICATION, "inbox@coder"),
        ]

    in_room(main)


def test_i26_i37_a_card_says_what_would_run_who_asks_and_what_may_be_answered() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        (card,) = room.inbox("coder")
        (asked,) = room.approvals()
        assert asked.expires_at is not None
        assert card.text == "coder wants to run deploy: to prod?"
        assert entry(card).type == "approval"
        assert entry(card).metadata == {
            "type": "approval",
            "session": s.id,
            "session_name": "coder",
            "approval": "ap-0001",
            "call": "call_0001",
            "tool": "deploy",
            "arguments": {"target": "prod"},
            "reason": "to prod?",
            "path": ["owner", "coder", "call_0001"],
            "expires_at": asked.expires_at.isoformat(),
            "actions": [
                {
                    "type": "approval_review",
                    "approval": "ap-0001",
                    "token": asked.token,
                    "always": ["args", "tool", "agent"],
                }
            ],
        }

    in_room(main)


def test_i26_the_card_of_a_grandchild_names_the_path_from_the_owner_to_the_call() -> None:
    async def main(room: Room) -> None:
        lead = room.spawn(Agent("lead"), name="lead")
        between = room.spawn(Agent("lead"), name="second", parent=lead)
        await asking(room, "prod", name="kid", parent=between)
        (card,) = room.inbox("coder")
        assert entry(card).metadata["path"] == ["owner", "lead", "second", "kid", "call_0001"]
        assert entry(card).metadata["session_name"] == "kid"

    in_room(main)


def test_m123_what_is_bound_to_a_tool_is_neither_asked_about_nor_shown() -> None:
    async def main(room: Room) -> None:
        async def rewrite(arguments: dict[str, Any]) -> Any:
            return {"action": "continue", "arguments": {**arguments, "token": "from a hook"}}

        seen: list[str] = []

        async def release(target: str, token: str) -> str:
            seen.append(token)
            return f"released {target}"

        hooks = [{"tag": "before", "hook": {"tool": each}} for each in ("rewrite", "guard")]
        policy = {"wrappers": [{"match": {"tool": "release"}, "decorators": hooks}]}

        @script
        def going(turn: ScriptTurn) -> Talk:
            if turn.text == "go":
                yield [call("release", target="prod")]
            return "done"

        agent = Agent("coder", model=going, tools=[release, rewrite, guard], policy=policy)
        s = room.spawn(agent, "go", bind={"token": "secret"})
        await s.wait()
        assert [dict(a.arguments) for a in room.approvals()] == [{"target": "prod"}]
        room.approve("ap-0001", always="args")
        await s.wait()
        s.send("go")
        await s.wait()
        assert (seen, room.approvals()) == (["secret", "secret"], [])
        assert "secret" not in str([each.body for each in room.inbox("coder")])

    in_room(main)


# ── the first answer wins ──


def test_i30_approving_twice_runs_once_and_the_second_is_told() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        room.approve("ap-0001", by="view")
        for answer in (room.approve, room.deny):
            with pytest.raises(AlreadyAnswered, match="ap-0001 was already approved by view"):
                answer("ap-0001")
        await s.wait()
        assert ran == ["deploy prod"]
        assert types(room) == ["approval", "approval_resolved"]

    in_room(main)


@pytest.mark.parametrize("always", [False, "agent"])
def test_i30_approving_after_a_stop_is_told_so_and_runs_nothing_and_allows_nothing(
    always: bool | str,
) -> None:
    async def main(room: Room) -> None:
        s = room.spawn(coder(call("deploy", target="prod"), call("nap", seconds=90)), "go")
        await asyncio.sleep(1)
        s.stop()
        await s.wait()
        with pytest.raises(AlreadyAnswered, match="ap-0001 was already cancelled by stop"):
            room.approve("ap-0001", always=always)
        await ticks()
        assert (ran, room.permissions()) == ([], [])

    in_room(main)


@pytest.mark.parametrize("end", [Session.stop, Session.close])
@pytest.mark.parametrize("rests", [False, True])
def test_i28_an_end_of_the_run_or_session_closes_its_cards_as_cancelled(
    end: Callable[[Session], object], rests: bool
) -> None:
    """A stop ends a run, so at rest it has no effect (M-85); closing ends all."""

    async def main(room: Room) -> None:
        calls = [call("deploy", target=each) for each in "ab"] + [call("nap", seconds=90)]
        s = room.spawn(coder(*calls[: 2 if rests else 3]), "go")
        await asyncio.sleep(1)
        end(s)
        await s.wait()
        if rests and end is Session.stop:
            assert [a.state for a in room.approvals(None)] == [ApprovalState.PENDING] * 2
            assert types(room) == ["approval"] * 2
            return
        assert [a.state for a in room.approvals(None)] == [ApprovalState.CANCELLED] * 2
        assert {c.state for c in s.calls()} == {CallState.CANCELLED}
        closed = [entry(e) for e in room.inbox("coder") if entry(e).type == "approval_resolved"]
        assert [(e.metadata["approval"], e.metadata["decision"]) for e in closed] == [
            ("ap-0001", "cancelled"),
            ("ap-0002", "cancelled"),
        ]

    in_room(main)


def test_i28_a_card_is_closed_in_the_transaction_that_ends_its_call() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        groups = transactions(room)
        s.cancel("call_0001")
        await s.wait()
        ending = next(group for group in groups if "Call" in group)
        assert ending == ["Call", "Approval", "Envelope", "Envelope"]

    in_room(main)


def test_i30_of_three_answers_at_once_one_wins_and_the_others_are_told_whose() -> None:
    """On a real loop, from three threads, time and again."""

    async def main() -> None:
        async with open_room() as room:
            s = await asking(room, "prod")
            answers: dict[str, Callable[[], object]] = {
                "one": lambda: room.approve("ap-0001", by="one", always=True),
                "two": lambda: room.deny("ap-0001", by="two"),
                "three": lambda: room.complete("ap-0001", "by hand", by="three"),
            }
            won, lost, ready = list[str](), list[str](), threading.Barrier(3)

            def answer(by: str) -> None:
                ready.wait()
                try:
                    answers[by]()
                    won.append(by)
                except AlreadyAnswered as late:
                    lost.append(late.by or "")

            await asyncio.gather(*(asyncio.to_thread(answer, by) for by in answers))
            await s.wait()
            assert (len(won), lost) == (1, won * 2)
            approved = won == ["one"]
            assert ran == ["deploy prod"] * approved
            assert len(room.permissions()) == approved
            assert types(room).count("approval_resolved") == 1
        ran.clear()

    for _ in range(20):
        asyncio.run(main())


def test_m114_a_sibling_of_a_gated_call_runs_exactly_once_whatever_is_answered() -> None:
    async def main(room: Room) -> None:
        calls = [
            call("note", text="before"),
            call("deploy", target="x"),
            call("note", text="after"),
        ]
        s = room.spawn(coder(*calls), "go")
        await s.wait()
        assert ran == ["note before", "note after"]
        room.approve("ap-0001")
        await s.wait()
        s.resume()
        await s.wait()
        assert ran == ["note before", "note after", "deploy x"]

    in_room(main)


def test_i26_edited_arguments_run_instead_of_those_asked_for() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        approval = room.approve("ap-0001", {"target": "staging"})
        await s.wait()
        assert ran == ["deploy staging"]
        assert dict(approval.allowed) == {"target": "staging"}
        assert (dict(approval.arguments), approval.state) == ({"target": "prod"}, "approved")
        assert "deployed staging" in read(s)[-1]

    in_room(main)


# ── who is not asked ──


def test_i32_the_agent_s_own_approve_asks_in_its_session_and_leaves_the_inbox_alone() -> None:
    async def main(room: Room) -> None:
        answers = iter([True, False])
        asked: list[str] = []

        async def yes(tool: str, arguments: Any) -> bool:
            asked.append(f"{tool} {arguments['target']}")
            return next(answers)

        agent = coder(call("deploy", target="a"), policy=None, approve=yes)
        s = room.spawn(agent, "go")
        await s.wait()
        s.send("go")
        await s.wait()
        assert (asked, ran) == (["deploy a"] * 2, ["deploy a"])
        assert (list(room.inbox("coder")), room.approvals(None)) == ([], [])

    in_room(main)


def test_i27_a_call_that_no_guard_holds_back_makes_no_card() -> None:
    async def main(room: Room) -> None:
        s = room.spawn(coder(call("note", text="x")), "go")
        await s.wait()
        assert (ran, list(room.inbox("coder"))) == (["note x"], [])

    in_room(main)


def test_i2_no_model_reads_a_card_or_its_answer() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        room.approve("ap-0001", always=True, by="a surface")
        await s.wait()
        turns = str(s.transcript())
        assert "a surface" not in turns
        assert "wants to run" not in turns
        assert "pm-0001" not in turns

    in_room(main)


# ── restarts ──


def test_i30_nothing_fires_again_after_a_restart_whatever_was_answered() -> None:
    """One answered and run, one denied, one answered and not yet run, one still open."""
    agent = coder(*(call("deploy", target=each) for each in "abcd"))
    entries: list[int] = []

    async def asks(room: Room) -> None:
        s = room.spawn(agent, "go")
        await s.wait()
        room.approve("ap-0001")
        room.deny("ap-0002")
        await s.wait()
        room.approve("ap-0003")  # the kernel ends before its session hears of it
        entries.append(len(room.inbox("coder")))

    async def looks(room: Room) -> None:
        room.define(agent)
        await ticks()
        assert ran == ["deploy a"]
        assert [a.id for a in room.approvals()] == ["ap-0004"]
        assert len(room.inbox("coder")) == entries[0]
        for late in ("ap-0001", "ap-0002", "ap-0003"):
            with pytest.raises(AlreadyAnswered, match="by api"):
                room.approve(late)

    async def goes_on(room: Room) -> None:
        room.define(agent)
        s = room.session("coder")
        s.resume()
        await s.wait()
        assert ran == ["deploy a", "deploy c"]
        room.approve("ap-0004")
        await s.wait()
        assert ran == ["deploy a", "deploy c", "deploy d"]
        assert len(room.inbox("coder")) == entries[0] + 1

    async def is_done(room: Room) -> None:
        room.define(agent)
        s = room.session("coder")
        s.resume()
        await s.wait()
        assert len(ran) == 3
        assert [c.state for c in s.calls()] == [
            CallState.COMPLETED,
            CallState.FAILED,
            CallState.COMPLETED,
            CallState.COMPLETED,
        ]

    lives(asks, looks, goes_on, is_done, is_done)


# ── talking about it ──


@pytest.mark.reads_inbox
def test_i40_discussing_an_entry_is_a_session_that_has_read_it_because_its_owner_said_so() -> None:
    async def main(room: Room) -> None:
        await asking(room, "prod")
        (card,) = room.inbox("coder")
        talk = room.discuss(card)
        await talk.wait()
        assert (talk.name, talk.agent, talk.parent) == ("coder-about-1", "coder", None)
        (first,) = [each for each in talk.mail() if isinstance(each.sender, FromUser)]
        assert first.text.startswith(
            "I would like to talk about this notice of yours:\n\n"
            "coder wants to run deploy: to prod?\n\n{"
        )
        assert '"target": "prod"' in first.text
        assert '"token"' not in first.text
        assert said(talk) == [f"read: {first.text}"]
        assert room.discuss("card-ap-0001") is talk
        assert [a.state for a in room.approvals()] == [ApprovalState.PENDING]
        assert room.discuss(card, name="mine").name == "mine"

    in_room(main)


def test_i40_only_an_entry_of_an_owner_inbox_can_be_discussed() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        for other in (s.mail()[0], "m-9999"):
            with pytest.raises(
                ConfigError, match="is no entry of an owner inbox: give one of room"
            ):
                room.discuss(other)
        assert len(room.sessions()) == 1

    in_room(main)


def test_i26_a_question_waits_while_its_session_goes_on_with_other_things() -> None:
    async def main(room: Room) -> None:
        s = await asking(room, "prod")
        s.send("hello")
        await s.wait()
        assert said(s)[-1] == "read: hello"
        await asyncio.sleep(3600)
        assert [a.id for a in room.approvals()] == ["ap-0001"]
        assert [c.state for c in s.calls()] == [CallState.DEFERRED]

    in_room(main)
