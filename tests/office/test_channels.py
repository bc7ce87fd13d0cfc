"""Second ways to the owner: pushed behind the entry, and nobody is the worse for one that fails."""

import asyncio
import hashlib
import hmac
import http.server
import json
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx as _httpx  # noqa: F401 - before any loop runs, as a Webhook does when it is made
import pytest

from contracts.envelopes import AT
from office.deploying import deployer
from office.rooms import in_room, ticks
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.mail.channels import Push
from postroom_runtime.office import pushing
from postroom_runtime.office.channel_adapters import CommandChannel, PushFailed, Webhook
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room
from process_table import gone


class Taking:
    """A channel that keeps what it gets."""

    def __init__(self, then: Callable[[], Awaitable[None]] | None = None) -> None:
        self.got: list[Push] = []
        self.then = then

    async def send(self, push: Push) -> None:
        self.got.append(push)
        if self.then is not None:
            await self.then()


async def raising() -> None:
    raise RuntimeError("no connection")


async def hanging() -> None:
    await asyncio.Event().wait()


def agent(*channels: str, slug: str = "rev") -> Agent:
    return Agent(slug, notifications={"channels": list(channels)})


def push(**changes: Any) -> Push:
    facts: dict[str, Any] = {
        "session_id": "inbox",
        "to": "ops",
        "text": "look",
        "actions": (),
        "type": "notification",
        "agent": "rev",
        "at": AT,
        "id": "m-0001",
    }
    return Push(**{**facts, **changes})


# ── what is pushed, and when ──


def test_i21_i24_a_push_carries_the_entry_and_comes_after_it_and_its_event() -> None:
    """I-19, I-20, I-21: stored, then told, then pushed."""

    async def main(room: Room) -> None:
        order: list[str] = []

        async def seen() -> None:
            order.append(f"pushed, {len(room.inbox('rev'))} stored")

        room.attach()
        room.channels["ops"] = ops = Taking(seen)
        room.delivery.broadcast.subscribe(
            lambda e: order.append("event") if e.kind == EventKind.NOTIFICATION else None
        )
        room.define(agent("ops"))
        receipt = room.notify("rev", "look", actions=[{"type": "open"}])
        order.append("returned")
        await ticks()
        assert order == ["returned", "event", "pushed, 1 stored"]
        (got,) = ops.got
        entry = room.inbox("rev")[0]
        assert got == push(actions=[{"type": "open"}], at=entry.accepted_at, id=receipt.id)
        assert got.to_json() == {
            "session_id": "inbox",
            "to": "ops",
            "text": "look",
            "actions": [{"type": "open"}],
            "type": "notification",
            "agent": "rev",
            "at": entry.accepted_at.isoformat(),
        }

    in_room(main)


def test_i25_what_lands_by_itself_is_pushed_too_and_answers_are_not() -> None:
    """I-25: one code path. What the owner did himself is no news for him."""

    async def main(room: Room) -> None:
        room.channels["ops"] = ops = Taking()
        s = room.spawn(deployer(notifications={"channels": ["ops"]}), "go")
        await s.wait()
        room.approve("ap-0001")
        await s.wait()
        assert [got.type for got in ops.got] == ["approval"]
        assert len(room.inbox("coder")) == 2

    in_room(main)


def test_i34_without_the_knob_nothing_is_pushed_and_the_inbox_has_no_opt_out() -> None:
    async def main(room: Room) -> None:
        room.attach()
        room.channels["ops"] = ops = Taking()
        room.define(agent(slug="none"))
        room.define(agent("ops", "ops"))
        for slug in ("echo", "none", "rev"):
            room.notify(slug, "look")
        await ticks()
        assert [got.agent for got in ops.got] == ["rev"]
        assert len(room.inbox()) == 3

    in_room(main)


# ── channels that misbehave (I-22, I-23) ──


def test_i22_i23_a_missing_a_raising_and_a_hanging_channel_harm_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(room: Room) -> None:
        room.attach()
        room.channels["bad"] = bad = Taking(raising)
        room.channels["slow"] = slow = Taking(hanging)
        room.channels["good"] = good = Taking()
        room.define(agent("missing", "bad", "slow", "good"))
        for n in range(3):
            assert room.notify("rev", f"entry {n}").seq == n + 1
        await ticks()
        assert [got.text for got in good.got] == ["entry 0", "entry 1", "entry 2"]
        assert [got.text for got in bad.got] == ["entry 0", "entry 1", "entry 2"]
        assert [got.text for got in slow.got] == ["entry 0"]
        await asyncio.sleep(25)  # 10 s each, and then the next
        assert [got.text for got in slow.got] == ["entry 0", "entry 1", "entry 2"]
        assert [entry.text for entry in room.inbox("rev")] == ["entry 0", "entry 1", "entry 2"]

    with caplog.at_level(logging.DEBUG, "postroom"):
        in_room(main)
    said = [(record.levelname, record.message) for record in caplog.records]
    assert ("DEBUG", "rev has no channel 'missing': m-0001 stays in the inbox") in said
    assert ("WARNING", "channel bad did not take m-0001: RuntimeError: no connection") in said
    assert ("WARNING", "channel slow did not take m-0001: it took longer than 10 s") in said


def test_a_channel_may_say_how_long_it_takes_and_be_taken_away() -> None:
    async def main(room: Room) -> None:
        class Quick(Taking):
            seconds = 1.0

        room.attach()
        room.channels["ops"] = ops = Quick(hanging)
        room.define(agent("ops"))
        room.notify("rev", "one")
        room.notify("rev", "two")
        await asyncio.sleep(1.5)
        assert [got.text for got in ops.got] == ["one", "two"]
        del room.channels["ops"]
        assert repr(room.channels) == "channels: none"
        assert not room.delivery.broadcast.heard
        room.notify("rev", "three")
        await asyncio.sleep(5)
        assert len(ops.got) == 2

    in_room(main)


def test_i35_a_channel_that_cannot_keep_up_loses_the_oldest_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pushing, "MOST_WAITING", 2)

    async def main(room: Room) -> None:
        room.attach()
        room.channels["slow"] = slow = Taking(hanging)
        room.define(agent("slow"))
        for n in range(5):
            room.notify("rev", f"{n}")
            await ticks()
        await asyncio.sleep(60)
        assert [got.text for got in slow.got] == ["0", "3", "4"]
        assert len(room.inbox("rev")) == 5

    in_room(main)
    assert "channel slow is slow: m-0002 was not pushed" in caplog.messages


@pytest.mark.parametrize(
    ("name", "channel"), [("ops", object()), ("ops", Taking), ("a b", Taking()), ("", Taking())]
)
def test_what_is_no_channel_is_refused_where_it_is_given(name: str, channel: Any) -> None:
    async def main(room: Room) -> None:
        with pytest.raises(ConfigError, match=r"is no channel|cannot name a channel"):
            room.channels[name] = channel

    in_room(main)


# ── web hooks, against a real server ──


class Server:
    """A server on a free port that answers what it is told to, and keeps what it gets."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(server.answers.pop(0) if server.answers else 204)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    yield running
    running.close()


def test_a_web_hook_is_signed_so_that_its_receiver_can_check_it(server: Server) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    hook = Webhook(server.url, "geheim", headers={"X-Team": "ops"}, now=lambda: moment)
    sent = push(text="Störung – 3 Geräte", actions=[{"type": "approval_review"}])
    asyncio.run(hook.send(sent))

    ((headers, body),) = server.got
    assert json.loads(body) == sent.to_json()
    assert headers["content-type"] == "application/json"
    assert (headers["x-postroom-id"], headers["x-team"]) == ("m-0001", "ops")
    timestamp = headers["x-postroom-timestamp"]
    assert timestamp == str(int(moment.timestamp()))
    signed = hmac.new(b"geheim", timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers["x-postroom-signature"] == f"sha256={signed}"
    assert repr(hook) == "Webhook(127.0.0.1, signed)"


def test_without_a_secret_nothing_is_signed(server: Server) -> None:
    asyncio.run(Webhook(server.url).send(push()))
    assert "x-postroom-signature" not in server.got[0][0]


def test_a_web_hook_tries_again_what_the_other_side_could_not_take(server: Server) -> None:
    server.answers = [500, 429, 200]
    asyncio.run(Webhook(server.url, backoff=0.01).send(push()))
    assert len(server.got) == 3
    assert len({(headers["x-postroom-id"], body) for headers, body in server.got}) == 1


@pytest.mark.parametrize(
    ("answers", "tries", "words"), [([500] * 5, 3, "3 tries: it answered 500"), ([403], 1, "403")]
)
def test_a_web_hook_gives_up_and_says_why(
    server: Server, answers: list[int], tries: int, words: str
) -> None:
    server.answers = answers
    with pytest.raises(PushFailed, match=words):
        asyncio.run(Webhook(server.url, backoff=0.01).send(push()))
    assert len(server.got) == tries


def test_a_web_hook_that_nobody_answers_fails_after_its_tries(server: Server) -> None:
    url = server.url
    server.close()
    server.http.server_close = lambda: None  # type: ignore[method-assign] # closed already
    server.http.shutdown = lambda: None  # type: ignore[method-assign]
    with pytest.raises(PushFailed, match="2 tries"):
        asyncio.run(Webhook(url, attempts=2, backoff=0.01).send(push()))


def test_a_room_pushes_to_a_real_web_hook(server: Server) -> None:
    async def main() -> None:
        async with open_room() as room:
            room.channels["ops"] = Webhook(server.url, "s")
            room.define(agent("ops"))
            room.notify("rev", "disk almost full")
            async with asyncio.timeout(10):
                while not server.got:
                    await asyncio.sleep(0.01)

    asyncio.run(main())
    assert json.loads(server.got[0][1])["text"] == "disk almost full"


@pytest.mark.parametrize("url", ["", "ftp://x", "https://", None, 5])
def test_an_address_that_is_none_is_refused_at_once(url: Any) -> None:
    with pytest.raises(ConfigError, match="is no web hook"):
        Webhook(url)
    with pytest.raises(ConfigError, match="will not do"):
        Webhook("http://x", attempts=0)


# ── a program ──


def test_a_command_channel_hands_the_push_to_a_program(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    asyncio.run(CommandChannel([sys.executable, "-c", code, str(out)]).send(push()))
    assert json.loads(out.read_text()) == push().to_json()


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path(sys.argv[1]).write_text(f'{os.getpid()} {child.pid}')\n"
        "time.sleep(600)\n"
    )
    channel = CommandChannel([sys.executable, "-c", code, str(pids)], timeout=3)
    with pytest.raises(PushFailed, match="was ended after 3 s, with all it had started"):
        asyncio.run(channel.send(push()))
    assert [pid for pid in pids.read_text().split() if not gone(int(pid))] == []


def test_a_command_that_fails_or_is_none_says_so() -> None:
    code = "import sys; sys.exit('no network')"
    with pytest.raises(PushFailed, match="exit code 1: no network"):
        asyncio.run(CommandChannel([sys.executable, "-c", code]).send(push()))
    with pytest.raises(PushFailed, match="cannot be started"):
        asyncio.run(CommandChannel(["/no/such/program"]).send(push()))
    nothing: list[Any] = ["", [], "'"]
    for argv in nothing:
        with pytest.raises(ConfigError):
            CommandChannel(argv)
