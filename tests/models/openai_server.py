"""A small OpenAI-compatible server on the loopback: it streams what it is told, and is strict.

    with OpenAIServer(Says(("hel", "lo")), Refuses(429, retry_after=0.01)) as server:
        model = resolve(server.model)          # "openai-chat:test@http://127.0.0.1:PORT/v1"

Each request takes the next reply; every request is checked against ``chat_rules``, and leaving the
block fails if one broke them. It runs on a thread of its own, on raw sockets, so that it sees when
its peer hangs up and can cut a connection where it likes.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias

from models.chat_rules import violations

_FRAGMENT = 5
_PATIENCE = 20
"""Seconds; longer than any test should take, so that a mistake fails and does not hang."""


@dataclass(frozen=True)
class Calls:
    """One tool call of a reply; its arguments are sent in fragments."""

    tool: str
    arguments: str
    id: str = "call_of_the_server"


@dataclass(frozen=True)
class Says:
    """A whole answer: its thinking, its text, its calls."""

    pieces: tuple[str, ...]
    calls: tuple[Calls, ...] = ()
    thinks: tuple[str, ...] = ()
    usage: tuple[int, int] | None = (11, 7)
    """Tokens in and out; None: it does not say."""
    model: str = "test"
    """What the server says which model answered."""
    finish: str = ""
    """Why it ended; '' is "tool_calls" with calls, else "stop"."""


@dataclass(frozen=True)
class Refuses:
    """An HTTP error."""

    status: int
    message: str = "no"
    code: str | None = None
    retry_after: float | None = None
    """Seconds."""


@dataclass(frozen=True)
class Cuts:
    """The connection dies after these pieces; without any, before the head of the response."""

    pieces: tuple[str, ...] = ()
    calls: tuple[Calls, ...] = ()


@dataclass(frozen=True)
class Babbles:
    """A response that is no stream of chunks."""

    body: str = "data: {this is no JSON\n\n"


@dataclass(frozen=True)
class Stalls:
    """Nothing comes after these pieces; without any, not even the head. Ends when the peer hangs up."""

    pieces: tuple[str, ...] = ()


Reply: TypeAlias = Says | Refuses | Cuts | Babbles | Stalls


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: Any
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when the peer closed the connection before the answer was whole."""

    @property
    def messages(self) -> Any:
        """The messages of the request."""
        return self.body["messages"]


class OpenAIServer:
    """The server; a context manager.

    Args:
        replies: What it answers, in order; or a function of the request.
    """

    def __init__(self, *replies: Reply, answer: Callable[[Received], Reply] | None = None) -> None:
        self.replies: list[Reply] = list(replies)
        self.requests: list[Received] = []
        self.violations: list[str] = []
        self.port = 0
        self._answer = answer
        self._arrived = threading.Semaphore(0)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def model(self) -> str:
        """What to write behind ``model=``."""
        return f"openai-chat:test@{self.url}"

    def wait_for_request(self) -> Received:
        """Block until one more request arrived; call it from a thread."""
        assert self._arrived.acquire(timeout=_PATIENCE), "no request came"
        return self.requests[-1]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(_PATIENCE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE)
        if error is None:
            assert not self.violations, self.violations
            assert not self.replies, f"never asked for: {self.replies}"

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            received = await _read(reader)
            if wrong := violations(received.body):
                self.violations += wrong
            self.requests.append(received)
            self._arrived.release()
            if self._answer is not None:
                reply = self._answer(received)
            else:
                reply = self.replies.pop(0) if self.replies else Refuses(418, "no reply is left")
            async with _hang_up_noticed(reader, received):
                await _send(writer, reply)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, colon, value in (line.partition(":") for line in lines)
        if colon
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(first.split()[1], headers, json.loads(body))


@asynccontextmanager
async def _hang_up_noticed(reader: asyncio.StreamReader, received: Received) -> AsyncIterator[None]:
    """Run the block until it is done or the peer is gone."""
    block = asyncio.current_task()
    assert block is not None

    async def watch() -> None:
        try:
            await reader.read()
        except ConnectionError:
            pass
        received.hung_up.set()
        block.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not received.hung_up.is_set():
            raise
    finally:
        watcher.cancel()


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> None:
    match reply:
        case Refuses():
            error = {"message": reply.message, "type": "error", "code": reply.code}
            await _whole(writer, reply.status, json.dumps({"error": error}), _wait(reply))
        case Babbles():
            await _head(writer)
            await _chunk(writer, reply.body)
            await _chunk(writer, "")
        case Says():
            await _head(writer)
            for event in _events(reply):
                await _chunk(writer, event)
            await _chunk(writer, "")
        case Stalls() | Cuts():
            if reply.pieces or (isinstance(reply, Cuts) and reply.calls):
                calls = reply.calls if isinstance(reply, Cuts) else ()
                await _head(writer)
                for event in _deltas(reply.pieces, calls):
                    await _chunk(writer, event)
            if isinstance(reply, Stalls):
                await asyncio.sleep(_PATIENCE)
            writer.transport.abort()


def _wait(reply: Refuses) -> list[str]:
    if reply.retry_after is None:
        return []
    # The standard header counts whole seconds; OpenAI has one of its own for less.
    if reply.retry_after >= 1:
        return [f"retry-after: {reply.retry_after:.0f}"]
    return [f"retry-after-ms: {reply.retry_after * 1000:g}"]


async def _whole(
    writer: asyncio.StreamWriter, status: int, body: str, headers: Sequence[str] = ()
) -> None:
    data = body.encode()
    lines = [
        f"HTTP/1.1 {status} Whatever",
        "content-type: application/json",
        f"content-length: {len(data)}",
        "connection: close",
        *headers,
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    await writer.drain()


async def _head(writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    )
    await writer.drain()


async def _chunk(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


def _events(reply: Says) -> Iterator[str]:
    for thought in reply.thinks:
        yield _event({"reasoning_content": thought}, model=reply.model)
    yield from _deltas(reply.pieces, reply.calls, reply.model)
    finish = reply.finish or ("tool_calls" if reply.calls else "stop")
    yield _event({}, finish=finish, model=reply.model)
    if reply.usage is not None:
        prompt, completion = reply.usage
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        yield _event(None, usage=usage, model=reply.model)
    yield "data: [DONE]\n\n"


def _deltas(pieces: Iterable[str], calls: Sequence[Calls], model: str = "test") -> Iterator[str]:
    for piece in pieces:
        yield _event({"content": piece}, model=model)
    for index, call in enumerate(calls):
        function = {"name": call.tool, "arguments": ""}
        head = {"index": index, "id": call.id, "type": "function", "function": function}
        yield _event({"tool_calls": [head]}, model=model)
    # Fragments of parallel calls arrive in turns, as they do from real servers.
    longest = max((len(call.arguments) for call in calls), default=0)
    for start in range(0, longest, _FRAGMENT):
        for index, call in enumerate(calls):
            if fragment := call.arguments[start : start + _FRAGMENT]:
                part = {"index": index, "function": {"arguments": fragment}}
                yield _event({"tool_calls": [part]}, model=model)


def _event(delta: Any, *, finish: str | None = None, usage: Any = None, model: str = "test") -> str:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": choices,
        "usage": usage,
    }
    return f"data: {json.dumps(chunk)}\n\n"
