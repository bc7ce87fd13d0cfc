"""Parents, children and helpers: spawned, asked, steered, closed; and who may wait for whom."""

import asyncio
import json
from typing import Any

import pytest

from mail.foreign import RoutedInbox
from office.rooms import Act, Talk, in_room, lives, read, said, ticks
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import ConfigError, UnknownRecipient, WaitCycle
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason
from postroom_runtime.models.script import ScriptTurn, call, script
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session


def asking(*calls: Any) -> Any:
    """A script that makes all calls in one turn when told to go, and says what they gave."""

    @script
    def asker(turn: ScriptTurn) -> Talk:
        if not turn.text.endswith("go"):
            return f"read: {turn.text}"
        got = yield list(calls)
        return json.dumps(got)

    return asker


def results(session: Session) -> list[Any]:
    """Return what its calls gave, as it said."""
    found: list[Any] = json.loads(next(words for words in said(session) if words[:1] == "["))
    return found


async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g}"


def napper(slug: str = "napper", seconds: float = 10, **knobs: Any) -> Agent:
    """An agent that sleeps, then says all it has read."""

    @script
    def sleepy(turn: ScriptTurn) -> Talk:
        first = turn.text
        yield call("nap", seconds=seconds)
        return f"{first} | {turn.text}"

    return Agent(slug, model=sleepy, tools=[nap], **knobs)


def prompted(message: str = "hi", helper: str = "kid") -> Any:
    return call(f"prompt-agent-{helper}", message=message)


def attach(seconds: float) -> dict[str, Any]:
    rule = {
        "toolbox": "helpers",
        "disposition": {"tag": "runAsync", "attachSeconds": seconds},
    }
    return {"rules": [rule]}


def everybody(room: Room) -> list[str]:
    """Return the name of every session ever stored, oldest first."""
    return [record.name for record in room.people().values()]


# ── spawn-session ──


def test_m100_a_spawned_child_outlives_its_call_and_answers_by_mail() -> None:
    """M-100, trap 4: the call returns at once; the child may write to its parent."""

    async def main(room: Room) -> None:
        @script
        def kid(turn: ScriptTurn) -> Talk:
            asked_by = turn.mail[0].sender.id
            yield call("nap", seconds=30)
            yield call("send-message", to=asked_by, text="done it")
            return "told"

        room.define(Agent("kid", model=kid, tools=[nap]))
        root = room.spawn(
            Agent("root", model=asking(call("spawn-session", agent="kid", message="do it"))),
            name="root",
        )
        room.define(
            Agent(
                "root",
                model=asking(call("spawn-session", agent="kid", message="do it")),
                helpers=["kid"],
            )
        )
        root.send("go")
        await root.wait()
        child = room.session("kid")
        assert results(root) == [{"session": child.id, "name": "kid"}]
        assert (child.parent, child.record.for_call) == (root.id, "call_0001")
        assert child.running and not child.record.ends_with_call

        await room.drain()
        (first,) = child.mail()[:1]
        assert (first.sender.kind, first.sender.id, first.text) == ("session", root.id, "do it")
        assert read(root)[-1].endswith(f'from session {child.id} (agent "kid")]\ndone it')

    in_room(main)


def test_m90_a_grandchild_mails_the_root_once_it_may() -> None:
    """M-90, M-105: with scope all, or as an answer; by default an ancestor is out of reach."""

    async def main(room: Room) -> None:
        letter = call("send-message", to="root", text="from below")
        room.define(Agent("leaf", model=asking(letter), mail_scope="all"))
        room.define(Agent("shy", model=asking(letter)))
        room.define(
            Agent(
                "kid",
                model=asking(
                    call("spawn-session", agent="leaf", message="go"),
                    call("spawn-session", agent="shy", message="go"),
                ),
                helpers=["leaf", "shy"],
            )
        )
        root = room.spawn(
            Agent(
                "root",
                model=asking(call("spawn-session", agent="kid", message="go")),
                helpers=["kid"],
            ),
            "go",
        )
        await room.drain()
        leaf, shy = room.session("leaf"), room.session("shy")
        assert [e.sender.id for e in root.mail() if e.text == "from below"] == [leaf.id]
        assert "shy may not write to root, an ancestor of its" in said(shy)[-1]

        room.send("shy", "say hello", sender="root")
        await room.drain()
        shy.send("go")
        await room.drain()
        assert [e.sender.id for e in root.mail() if e.text == "from below"] == [leaf.id, shy.id]

    in_room(main)


def test_m101_only_a_helper_can_be_spawned_and_the_call_names_the_helpers() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("stranger", model="echo"))
        root = room.spawn(
            Agent(
                "root",
                model=asking(call("spawn-session", agent="stranger", message="hi")),
                helpers=["kid", "writer"],
            ),
            "go",
        )
        await root.wait()
        assert results(root) == ["'stranger' is no helper of yours; yours: kid, writer."]
        assert (everybody(room), root.calls()[0].state) == (["root"], CallState.FAILED)

    in_room(main)


def test_m101_an_agent_without_helpers_has_no_tools_for_them() -> None:
    async def main(room: Room) -> None:
        plain = room.spawn(Agent("plain", model="echo"))
        chief = room.spawn(Agent("chief", model="echo", helpers=["kid", "a.b"]))
        narrow = room.spawn(
            Agent("narrow", model="echo", helpers=["kid"], toolbox=["prompt-agent-kid"])
        )
        mine = set(chief.life.tools()) - set(plain.life.tools())
        assert mine == {"spawn-session", "prompt-agent-kid", "prompt-agent-a_b"}
        assert list(narrow.life.tools()) == ["prompt-agent-kid"]

    in_room(main)


@pytest.mark.parametrize(
    ("helpers", "words"),
    [
        (["a.b", "a_b"], "'a.b' and 'a_b' would both be called 'prompt-agent-a_b'"),
        (["x" * 60], "Give it a shorter slug"),
        (["no way"], "'no way' cannot name an agent"),
        ({"kid": {"bnid": {}}}, "names 'bnid'; a helper has inbox, bind, tools"),
        ({"kid": {"bind": 3}}, "Helper(bind=3) will not do"),
        ({"kid": {"tools": "deploy"}}, "Helper(tools='deploy') will not do"),
        ({"kid": 3}, "helpers={'kid': 3} will not do"),
    ],
)
def test_m101_helpers_that_will_not_do_are_refused_when_the_agent_is_defined(
    helpers: Any, words: str
) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError) as refused:
            room.define(Agent("chief", model="echo", helpers=helpers))
        assert words in str(refused.value)

    in_room(main)


def test_m101_a_helper_is_narrowed_by_bound_values_and_tools() -> None:
    """M-101, M-123: the child's model neither sees nor overrides what is bound."""

    async def main(room: Room) -> None:
        async def deploy(target: str, token: str) -> str:
            """Deploy."""
            return f"{target} with {token}"

        kid = asking(
            call("deploy", target="x"), call("deploy", target="x", token="mine"), call("nap")
        )
        room.define(Agent("kid", model=kid, tools=[deploy, nap]))
        terms = {"kid": {"bind": {"token": "s3cret"}, "tools": ["deploy"]}}
        root = room.spawn(Agent("root", model=asking(prompted("go")), helpers=terms), "go")
        await root.wait()
        good, override, gone = results(root)[0]
        assert good == "x with s3cret"
        assert "token" in override and "s3cret" not in override
        assert gone.startswith("there is no tool 'nap'")
        assert "s3cret" not in json.dumps(room.people()["s-0002"].options)

    in_room(main)


def test_m101_a_narrowing_to_a_tool_that_the_helper_lacks_fails_the_call() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("kid", model="echo", tools=[nap]))
        terms = {"kid": {"tools": ["deploy"]}}
        root = room.spawn(Agent("root", model=asking(prompted()), helpers=terms), "go")
        await root.wait()
        assert results(root)[0].startswith("the tool 'deploy' it was spawned with is not defined")
        assert everybody(room) == ["root"]

    in_room(main)


def test_m100_children_get_fresh_names_that_no_session_ever_had() -> None:
    async def main(room: Room) -> None:
        room.define(Agent("kid", model="echo"))
        room.spawn("echo", name="kid-2")
        spawns = [call("spawn-session", agent="kid", message="hi") for _ in range(3)]
        root = room.spawn(Agent("root", model=asking(*spawns), helpers=["kid"]), "go")
        await root.wait()
        assert [made["name"] for made in results(root)] == ["kid", "kid-3", "kid-4"]

    in_room(main)


def test_m108_m109_the_first_message_carries_hops_and_too_many_spawn_nothing() -> None:
    """M-108, M-109: agents that spawn each other come to an end, and the owner is told."""

    async def main(room: Room) -> None:
        again = asking(call("spawn-session", agent="chain", message="go"))
        chain = Agent("chain", model=again, helpers=["chain"], max_mail_hops=3)
        room.spawn(chain, "go", name="chain")
        await room.drain()

        hops = [s.mail()[0].hops for s in room.sessions()]
        assert hops == [0, 0, 1, 2, 3]
        (refusal,) = results(room.sessions()[-1])
        assert refusal.startswith("mail would travel 4 hops")
        assert [e.body.type for e in room.inbox("chain")] == ["hops"]  # type: ignore[union-attr]
        assert room.spawn("echo").id == "s-0006"

    in_room(main)


def test_m100_a_room_full_of_sessions_spawns_no_more_for_agents() -> None:
    async def main(room: Room) -> None:
        room.max_sessions = 3
        room.define(Agent("kid", model="echo"))
        spawns = [call("spawn-session", agent="kid", message="hi") for _ in range(4)]
        root = room.spawn(Agent("root", model=asking(*spawns), helpers=["kid"]), "go")
        await root.wait()
        assert len(room.sessions()) == 3
        refused = [r for r in results(root) if isinstance(r, str)]
        assert [words.split(":")[0] for words in refused] == ["3 sessions are open, limit 3"] * 2
        assert room.spawn("echo", name="the-owner-may").name == "the-owner-may"

    in_room(main)


@pytest.mark.parametrize("tool", ["spawn-session", "prompt-agent-kid"])
def test_m100_an_agent_not_defined_and_an_empty_message_fail_the_call(tool: str) -> None:
    async def main(room: Room) -> None:
        with_agent = {"agent": "kid"} if tool == "spawn-session" else {}
        root = room.spawn(
            Agent(
                "root",
                model=asking(
                    call(tool, message="hi", **with_agent), call(tool, message=" ", **with_agent)
                ),
                helpers=["kid"],
            ),
            "go",
        )
        await root.wait()
        undefined, empty = results(root)
        assert undefined == empty
        assert undefined.startswith("no agent 'kid' is defined")
        room.define(Agent("kid", model="echo"))
        root.send("go")
        await root.wait()
        assert json.loads(said(root)[-1])[1].startswith("the message is empty")

    in_room(main)


# ── retries (M-99) ──


class Flaky:
    """Fails the first tries of each call after the tool itself has done its work."""

    def __init__(self, room: Room) -> None:
        self.tries = 0
        accept, commit = room.storage.accept, room.storage.commit

        def slow(pending: Any) -> Any:
            class Late:
                def __await__(self) -> Any:
                    yield from asyncio.sleep(5).__await__()
                    return (yield from pending.__await__())

                def result(self, timeout: float | None = None) -> Any:
                    return pending.result(timeout)

            self.tries += 1
            return Late()

        def accepted(batch: Any) -> Any:
            found = accept(batch)
            letter = batch[0].sender.kind == "session" and self.tries < 2
            return [slow(found[0])] if letter else found

        def committed(session: Any, **what: Any) -> Any:
            found = commit(session, **what)
            return slow(found) if what.get("mail") and what["version"] == 0 else found

        room.storage.accept = accepted  # type: ignore[method-assign]
        room.storage.commit = committed  # type: ignore[method-assign]


def test_m99_retries_neither_spawn_nor_send_twice() -> None:
    """M-99: each try is timed out while its work is being stored; the next finds it done."""

    async def main(room: Room) -> None:
        room.define(Agent("kid", model="echo"))
        bob = room.spawn("echo", name="bob")
        policy = {
            "wrappers": [
                {
                    "match": {"tool": "s*"},
                    "decorators": [
                        {"tag": "retries", "count": 9},
                        {"tag": "timeout", "seconds": 1},
                    ],
                }
            ]
        }
        root = Agent(
            "root",
            model=asking(
                call("spawn-session", agent="kid", message="hi"),
                call("send-message", to="bob", text="hello"),
            ),
            helpers=["kid"],
            policy=policy,
            mail_scope="all",
        )
        flaky = Flaky(room)
        session = room.spawn(root, "go")
        await session.wait()
        spawned, sent = results(session)
        assert flaky.tries > 2
        assert everybody(room) == ["bob", "root", "kid"]
        assert spawned["name"] == "kid"
        assert [mail.text for mail in bob.mail()] == ["hello"]
        assert sent["duplicate"]

    in_room(main)


# ── prompt-agent ──


def test_m104_a_helper_answers_as_the_result_of_the_call_and_is_closed() -> None:
    """M-104: one fresh child per call; it sends no mail of its own; its transcript stays."""

    async def main(room: Room) -> None:
        room.define(Agent("kid", model="echo"))
        root = room.spawn(
            Agent("root", model=asking(prompted("one"), prompted("two")), helpers=["kid"]), "go"
        )
        await root.wait()
        first, second = results(root)
        assert first.endswith("\none") and first.startswith("echo: [mail ")
        assert second.endswith("\ntwo")
        assert [s.name for s in room.sessions()] == ["root"]
        assert [r.name for r in room.people().values()] == ["root", "kid", "kid-2"]
        assert [e.body.kind for e in root.mail() if e.sender.kind == "session"] == []
        with pytest.raises(UnknownRecipient):
            room.session("kid")
        gone = room.session("s-0002", closed=True)
        assert (gone.status, said(gone)) == (SessionStatus.CLOSED, [first])

    in_room(main)


def test_m103_m104_a_detached_helper_is_steered_and_its_answer_comes_as_mail() -> None:
    """M-69, M-103, M-104: placeholder and status name the child; a letter reaches it mid-run."""

    async def main(room: Room) -> None:
        seen: dict[str, Any] = {}

        @script
        def chief(turn: ScriptTurn) -> Talk:
            if turn.text != "go":
                return f"read: {turn.text}"
            placeholder = yield prompted("work", "napper")
            seen["placeholder"] = placeholder
            seen["status"] = yield call(
                "get-tool-call-status", tool_call_id=placeholder["tool_call_id"]
            )
            child = placeholder["child_session_id"]
            seen["receipt"] = yield call("send-message", to=child, text="faster")
            return "waiting"

        room.define(napper())
        root = room.spawn(Agent("root", model=chief, helpers=["napper"], policy=attach(1)), "go")
        await root.wait()

        placeholder = seen["placeholder"]
        assert (placeholder["status"], placeholder["child_session_id"]) == ("running", "s-0002")
        assert seen["status"]["child_session_id"] == "s-0002"
        assert seen["receipt"]["recipient_status"] == "running"
        final = read(root)[-1]
        assert final.startswith("[mail m-") and "(prompt-agent-napper) completed]" in final
        assert "work | " in final and final.endswith("faster")
        (ended,) = [c for c in root.calls() if c.tool == "prompt-agent-napper"]
        assert (ended.extra or {})["child_session_id"] == "s-0002"

    in_room(main)


def _broken(turn: ScriptTurn) -> str:
    raise RuntimeError("no idea")


@pytest.mark.parametrize(
    ("kid", "words"),
    [
        (
            Agent("kid", model=script(_broken)),
            "kid gave no answer: its run ended with failed: RuntimeError: no idea.",
        ),
        (
            Agent("kid", model="echo", wake_on=["user"]),
            "kid gave no answer: its wake_on has no 'parent'",
        ),
        (
            Agent("kid", model=asking(prompted("go")), helpers=["kid"], max_mail_hops=0),
            None,
        ),
    ],
)
def test_m104_a_helper_that_gives_no_answer_fails_the_call_with_words(
    kid: Agent, words: str | None
) -> None:
    """M-104: the parent is told once, by the call; not by mail of the failure as well."""

    async def main(room: Room) -> None:
        room.define(kid)
        root = room.spawn(Agent("root", model=asking(prompted("go")), helpers=["kid"]), "go")
        await root.wait()
        (answer,) = results(root)
        (made,) = root.calls()
        if words is None:
            assert "mail would travel 1 hops" in answer[0]
        else:
            assert answer.startswith(words)
            assert made.state is CallState.FAILED
        assert [e.body.kind for e in root.mail()] == ["user_message", "tool_call_finished"]
        assert room.sessions() == [root]

    in_room(main)


@pytest.mark.parametrize("deed", ["stop", "close", "cap"])
def test_m104_a_helper_that_is_stopped_closed_or_capped_fails_the_call(deed: str) -> None:
    async def main(room: Room) -> None:
        endless = asking(call("nap", seconds=1))
        room.define(
            napper("kid")
            if deed != "cap"
            else Agent("kid", model=endless, tools=[nap], max_autonomous_rounds=1)
        )
        root = room.spawn(Agent("root", model=asking(prompted("go")), helpers=["kid"]), "go")
        await ticks(60)
        if deed != "cap":
            getattr(room.session("kid"), deed)()
        await root.wait()
        (answer,) = results(root)
        ends = {
            "stop": "its run ended with stopped",
            "close": "it was closed",
            "cap": "its run ended with capped",
        }
        assert answer == f"kid gave no answer: {ends[deed]}."
        assert room.sessions() == [root]

    in_room(main)


def test_m104_a_helper_that_is_paused_goes_on_when_it_is_resumed() -> None:
    async def main(room: Room) -> None:
        room.define(napper("kid", 5))
        root = room.spawn(Agent("root", model=asking(prompted("go")), helpers=["kid"]), "go")
        await asyncio.sleep(1)
        kid = room.session("kid")
        kid.pause()
        await asyncio.sleep(60)
        assert (kid.status, root.running) == (SessionStatus.PAUSED, True)
        kid.resume()
        await root.wait()
        assert root.calls()[0].state is CallState.COMPLETED

    in_room(main)


def test_m102_a_cancelled_call_stops_and_closes_its_helper() -> None:
    async def main(room: Room) -> None:
        room.define(napper("kid", 1000))
        root = room.spawn(
            Agent("root", model=asking(prompted("go")), helpers=["kid"], policy=attach(1)), "go"
        )
        await asyncio.sleep(2)
        kid = room.session("kid")
        root.cancel("call_0001")
        await root.wait()
        await ticks()
        assert (kid.status, kid.end_reason) == (SessionStatus.CLOSED, EndReason.STOPPED)
        assert kid.calls()[0].state is CallState.CANCELLED
        assert "call_0001 (prompt-agent-kid) cancelled" in read(root)[-1]

    in_room(main)


def test_m102_a_helper_cancelled_while_it_is_being_made_is_closed_too() -> None:
    async def main(room: Room) -> None:
        room.define(napper("kid", 1000))
        Flaky(room)
        policy = {
            "wrappers": [
                {
                    "match": {"tool": "prompt-*"},
                    "decorators": [{"tag": "timeout", "seconds": 1}],
                }
            ]
        }
        root = room.spawn(
            Agent("root", model=asking(prompted("go")), helpers=["kid"], policy=policy), "go"
        )
        await root.wait()
        assert results(root) == ["timed out after 1s"]
        await asyncio.sleep(10)
        assert [r.status for r in room.people().values()] == ["idle", "closed"]

    in_room(main)


def test_m113_a_helper_call_tried_again_asks_anew_and_leaves_nobody_behind() -> None:
    async def main(room: Room) -> None:
        tries: list[str] = []

        def sometimes(turn: ScriptTurn) -> str:
            tries.append(turn.text)
            if len(tries) < 3:
                raise RuntimeError("not yet")
            return "at last"

        room.define(Agent("kid", model=script(sometimes)))
        policy = {
            "wrappers": [
                {
                    "match": {"toolbox": "helpers"},
                    "decorators": [{"tag": "retries", "count": 5}],
                }
            ]
        }
        root = room.spawn(
            Agent("root", model=asking(prompted("go")), helpers=["kid"], policy=policy), "go"
        )
        await root.wait()
        assert results(root) == ["at last"]
        assert [(r.name, r.status) for r in room.people().values()][1:] == [
            ("kid", "closed"),
            ("kid-2", "closed"),
            ("kid-3", "closed"),
        ]

    in_room(main)


def test_m102_closing_a_parent_closes_its_children_and_a_restart_can_read_them() -> None:
    async def first(room: Room) -> None:
        room.define(Agent("kid", model="echo"))
        root = room.spawn(
            Agent(
                "root",
                model=asking(call("spawn-session", agent="kid", message="remember")),
                helpers=["kid"],
            ),
            "go",
        )
        await room.drain()
        root.close()
        assert room.sessions() == []

    async def second(room: Room) -> None:
        kid = room.session("kid", closed=True)
        assert (kid.id, kid.status, kid.name) == ("s-0002", SessionStatus.CLOSED, "kid")
        assert said(kid)[0].endswith("remember")
        assert [mail.text for mail in kid.mail()] == ["remember"]
        with pytest.raises(UnknownRecipient):
            room.session("s-0002")
        with pytest.raises(UnknownRecipient):
            room.session("s-0009", closed=True)

    lives(first, second)


def test_m71_m102_a_kernel_that_ends_takes_its_helpers_and_leaves_its_children() -> None:
    """M-71, M-102: an asked helper is closed at the restart; a spawned child is ready."""

    async def first(room: Room) -> None:
        room.define(napper("kid", 1000))
        room.spawn(
            Agent(
                "root",
                model=asking(prompted("go"), call("spawn-session", agent="kid", message="go")),
                helpers=["kid"],
            ),
            "go",
        )
        await asyncio.sleep(1)
        assert len(room.sessions()) == 3
        room.close()

    async def second(room: Room) -> None:
        records = room.people()
        asked = next(r for r in records.values() if r.ends_with_call)
        spawned = next(r for r in records.values() if r.for_call and not r.ends_with_call)
        assert (asked.status, spawned.status) == ("closed", "ready")
        assert room.spawn("echo").id == "s-0004"

    acts: tuple[Act, ...] = (first, second)
    lives(*acts)


def test_m113_helper_calls_take_places_among_the_calls_that_run() -> None:
    async def main(room: Room) -> None:
        room.define(napper("kid", 10))
        root = room.spawn(
            Agent(
                "root",
                model=asking(*[prompted("go") for _ in range(4)]),
                helpers=["kid"],
                max_concurrency=2,
            ),
            "go",
        )
        await asyncio.sleep(5)
        assert len(room.sessions()) == 3
        await root.wait()
        assert asyncio.get_running_loop().time() == 20

    in_room(main)


@pytest.mark.parametrize(("terms", "steered"), [({}, True), ({"inbox": None}, False)])
def test_a42_a44_a45_helpers_and_children_are_steered_by_what_steers_their_caller(
    terms: dict[str, Any], steered: bool
) -> None:
    async def main(room: Room) -> None:
        source = RoutedInbox()
        room.define(napper("kid", 5))
        root = room.spawn(
            Agent(
                "root",
                model=asking(prompted("go"), call("spawn-session", agent="kid", message="go")),
                helpers={"kid": terms},
                inbox=source,
            ),
            "go",
        )
        await ticks(60)
        source.send("subagent-kid", "hurry")
        await root.wait()
        await room.drain()
        kids = [room.session(id, closed=True) for id in ("s-0002", "s-0003")]
        heard = [any(mail.text == "hurry" for mail in kid.mail()) for kid in kids]
        assert heard.count(True) == (1 if steered else 0)  # whoever drains it first has it

    in_room(main)


# ── a sub-agent as a hook (M-122) ──


def guarded(said_by_guard: str, **knobs: Any) -> tuple[Agent, Agent]:
    def answer(turn: ScriptTurn) -> str:
        facts = json.loads(turn.text.split("\n", 1)[1])
        return said_by_guard.replace("SEEN", facts["arguments"]["target"])

    async def deploy(target: str) -> str:
        """Deploy."""
        return f"deployed to {target}"

    policy = {
        "wrappers": [
            {
                "match": {"tool": "*"},
                "decorators": [{"tag": "before", "hook": {"tool": "prompt-agent-guard"}}],
            }
        ]
    }
    return Agent("guard", model=script(answer)), Agent(
        "root",
        model=asking(call("deploy", target="prod")),
        tools=[deploy],
        helpers=["guard"],
        policy=policy,
        **knobs,
    )


DENIED = "the guard prompt-agent-guard failed, so deploy was not run"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ('{"action": "continue"}', "deployed to prod"),
        ('{"action": "continue", "arguments": {"target": "not SEEN"}}', "deployed to not prod"),
        ('{"action": "deny", "message": "never SEEN"}', "never prod"),
        ('I think so:\n```json\n{"action": "continue"}\n```\nBye.', "deployed to prod"),
        ('```\n{"action": "answer", "result": "no need"}\n```', "no need"),
        (
            "Looks fine to me.",
            f"{DENIED}: it answered 'Looks fine to me.', which is no hook answer",
        ),
        (
            '```json\n{"action": "continue"}\n```\nor\n```json\n{"action": "continue"}\n```',
            None,
        ),
    ],
)
@pytest.mark.parametrize("toolbox", [None, []])
def test_m122_m124_a_sub_agent_guards_a_call_and_prose_denies(
    answer: str, result: str | None, toolbox: list[str] | None
) -> None:
    """M-122: visible to the model or not; M-124: it fails closed."""

    async def main(room: Room) -> None:
        guard, chief = guarded(answer, toolbox=toolbox)
        room.define(guard)
        root = room.spawn(chief, "go")
        await root.wait()
        (got,) = results(root)
        if result is None:
            assert "which is no hook answer" in got
        else:
            assert got == result
        assert (root.calls()[0].extra or {}).get("child_session_id") is None
        assert [s.name for s in room.sessions()] == ["root"]

    in_room(main)


def test_m122_m124_a_guard_that_fails_denies() -> None:
    async def main(room: Room) -> None:
        _, chief = guarded("")
        room.define(Agent("guard", model=script(_broken)))
        root = room.spawn(chief, "go")
        await root.wait()
        assert DENIED in results(root)[0]

    in_room(main)


# ── waits that would never end ──


def waiter(room: Room, *names: str, how: str = "wait", **options: Any) -> Any:
    async def wait_for() -> str:
        """Wait for other sessions."""
        await asyncio.sleep(1)
        try:
            if how == "ask":
                await room.session(names[0]).ask("are you there?", timeout=50)
            elif how == "drain":
                await room.drain(timeout=50)
            else:
                await room.wait(list(names), timeout=50, **options)
        except WaitCycle as error:
            return f"cycle: {' → '.join(error.names)}"
        return "waited"

    return wait_for


def waiting(name: str, tool: Any) -> Agent:
    return Agent(name, model=asking(call("wait_for")), tools=[tool])


@pytest.mark.parametrize("how", ["wait", "ask", "drain"])
def test_a_call_that_waits_for_its_own_session_is_told_so_at_once(how: str) -> None:
    """Cycle of length 1."""

    async def main(room: Room) -> None:
        ann = room.spawn(waiting("ann", waiter(room, "ann", how=how)), "go")
        await ann.wait()
        assert results(ann) == ["cycle: ann → ann"]
        assert asyncio.get_running_loop().time() == 1

    in_room(main)


@pytest.mark.parametrize("length", [2, 3])
def test_a_wait_that_closes_a_circle_is_told_so_and_the_others_end(length: int) -> None:
    """Cycles of length 2 and 3: the one who closes it is told; who waited first gets its wait."""

    async def main(room: Room) -> None:
        names = ["ann", "bob", "cid"][:length]
        sessions = []
        for place, name in enumerate(names):
            other = names[(place + 1) % length]
            sessions.append(room.spawn(waiting(name, waiter(room, other)), "go"))
        await room.drain()
        *first, last = [results(session)[0] for session in sessions]
        circle = " → ".join([names[-1], *names])
        assert (first, last) == (["waited"] * (length - 1), f"cycle: {circle}")
        assert asyncio.get_running_loop().time() < 3

    in_room(main)


def test_a_wait_for_any_is_refused_only_when_nobody_could_end_it() -> None:
    async def main(room: Room) -> None:
        room.spawn(napper("cid", 20), "go")
        ann = room.spawn(waiting("ann", waiter(room, "bob")), "go")
        bob = room.spawn(waiting("bob", waiter(room, "ann", "cid", any=True)), "go")
        dan = room.spawn(waiting("dan", waiter(room, "dan", "dan", any=True)), "go")
        await room.drain()
        assert (results(ann), results(bob)) == (["waited"], ["waited"])
        assert results(dan) == ["cycle: dan → dan"]

    in_room(main)


def test_a_wait_for_mail_or_an_event_of_oneself_is_no_circle() -> None:
    async def main(room: Room) -> None:
        ann = room.spawn(waiting("ann", waiter(room, "ann", until="mail")), "go")
        await asyncio.sleep(2)
        ann.send("here")
        await room.drain()
        assert results(ann) == ["waited"]

    in_room(main)


def test_a_helper_that_waits_for_who_asked_it_is_told_so() -> None:
    async def main(room: Room) -> None:
        room.define(waiting("kid", waiter(room, "root")))
        root = room.spawn(Agent("root", model=asking(prompted("go")), helpers=["kid"]), "go")
        await root.wait()
        assert results(root)[0] == ["cycle: kid → root → kid"]

    in_room(main)


def test_a_tool_may_wait_in_a_room_of_its_own_where_ids_are_the_same() -> None:
    async def main(room: Room) -> None:
        from postroom_runtime.office.opening import open_room

        async def wait_for() -> str:
            """Open a room and wait in it."""
            async with open_room() as other:
                s = other.spawn("echo", "hi")
                await s.wait()
                return f"{s.id}: {said(s)[0]}"

        ann = room.spawn(waiting("ann", wait_for), "go")
        await ann.wait()
        assert results(ann) == ["s-0001: echo: hi"]

    in_room(main)


def test_a_session_that_a_tool_starts_is_not_part_of_its_call() -> None:
    """Its script may wait for whom it likes, and its progress is not the call's."""

    async def main(room: Room) -> None:
        from postroom_runtime.calls.context import progress

        @script
        async def free(turn: ScriptTurn) -> str:
            progress(1, 2, "not yours")
            await room.wait(["ann"], timeout=3)
            return "done"

        async def wait_for() -> str:
            """Start a session."""
            room.spawn(Agent("free", model=free), "hi")
            await asyncio.sleep(1)
            return "started"

        ann = room.spawn(waiting("ann", wait_for), "go")
        await room.drain()
        assert results(ann) == ["started"]
        assert (said(room.session("free")), ann.calls()[0].progress) == (["done"], ())

    in_room(main)


def test_m88_the_journal_holds_what_made_a_child() -> None:
    async def first(room: Room) -> None:
        room.define(Agent("kid", model="echo"))
        room.spawn(
            Agent(
                "root",
                model=asking(call("spawn-session", agent="kid", message="hi")),
                helpers=["kid"],
            ),
            "go",
        )
        await room.drain()

    async def second(room: Room) -> None:
        assert room.people()["s-0002"].for_call == "call_0001"
        assert room.storage.count(RowKind.CALL) == 2

    lives(first, second)
