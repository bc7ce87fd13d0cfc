"""What goes wrong with providers, over real HTTP: refusals, cuts, babble, cancelling, loops."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from models.asking import ask, fail, mind_of
from models.openai_server import (
    Babbles,
    Calls,
    Cuts,
    OpenAIServer,
    Received,
    Refuses,
    Says,
    Stalls,
)
from models.transcripts import RUN_TESTS, prompt, quiet, user
from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.building import build
from postroom_runtime.models.forms import ModelForm
from postroom_runtime.models.model import Thought
from postroom_runtime.models.provider import ProviderMind, ProviderModel
from postroom_runtime.models.resolve import resolve

SECOND = 1.0


# ── Failures ──


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Refuses(401, "Incorrect API key provided"), "check OPENAI_API_KEY. It said: Incorrect"),
        (Refuses(403), "the key was refused"),
        (Refuses(404, "model 'test' not found"), "no such model: check its name"),
        (Refuses(400, "bad request"), "the request was refused. It said: bad request"),
        (
            Refuses(400, "maximum context length is 8192", code="context_length_exceeded"),
            "no longer fits",
        ),
        (Refuses(429, "pay first", code="insufficient_quota"), "quota is used up"),
        (Refuses(429, retry_after=3600), "asks to wait 3600s"),
    ],
)
def test_what_no_second_try_would_cure_fails_at_once_in_one_line(reply: Refuses, says: str) -> None:
    error = fail(reply)  # The server would complain of a second request.

    assert says in str(error)
    assert error.status == reply.status


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_what_passes_by_itself_is_tried_again(status: int) -> None:
    with OpenAIServer(
        Refuses(status, retry_after=0.001), Refuses(status, retry_after=0.001), Says(("ok",))
    ) as server:
        thought = ask(server)

    assert thought.text == "ok"
    assert thought.usage.requests == 1, "a refusal costs nothing"


def test_after_three_tries_it_fails_and_says_so() -> None:
    error = fail(*[Refuses(429, "slow down", retry_after=0.001)] * 3)

    assert error.status == 429
    assert "Tried 3 times. It said: slow down" in str(error)


def test_a_connection_cut_before_anything_was_shown_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("postroom_runtime.models.provider_errors._WAITS", (0.001, 0.001))
    half_a_call = Cuts(calls=(Calls("run-tests", '{"suite": "a"}'),))

    with OpenAIServer(Cuts(), half_a_call, Says(("ok",))) as server:
        thought = ask(server, tools=[RUN_TESTS])

    assert (thought.text, thought.calls) == ("ok", ())
    assert thought.usage.requests == 2, "the one that had begun to answer is paid for"


def test_an_answer_cut_in_the_middle_is_an_error_and_is_not_asked_for_twice() -> None:
    async def main(server: OpenAIServer) -> ProviderMind:
        mind = mind_of(server)
        with pytest.raises(ModelError, match=r"was cut\. The answer broke off in the middle"):
            await mind.think(prompt(user("hi")), shown.append)
        return mind

    shown: list[str] = []
    with OpenAIServer(Cuts(("half ", "an"))) as server:
        mind = asyncio.run(main(server))

    assert shown == ["half ", "an"]
    assert mind.owed == Usage(requests=1)


@pytest.mark.parametrize(
    "body",
    [
        "data: {this is no JSON\n\n",
        'data: {"error": {"message": "out of memory", "code": 500}}\n\ndata: [DONE]\n\n',
        "data: [1, 2, 3]\n\n",
        'data: {"choices": [{"index": 0, "delta": "text"}]}\n\n',
        "<html>busy</html>",
    ],
)
def test_a_malformed_stream_is_a_model_error(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom_runtime.models.provider_errors._WAITS", (0.001, 0.001))

    with (
        OpenAIServer(answer=lambda received: Babbles(body)) as server,
        pytest.raises(ModelError) as caught,
    ):
        ask(server)

    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postroom_runtime.models.provider_errors._WAITS", (0.001, 0.001))
    with OpenAIServer() as gone:
        pass

    with pytest.raises(ModelError, match=rf"{gone.url}: cannot be reached: .*Tried 3 times"):
        ask(gone)


# ── Cancelling ──


@pytest.mark.parametrize("pieces", [(), ("a few ", "words")])
def test_cancelling_hangs_up_at_once_and_the_request_counts_m78(pieces: tuple[str, ...]) -> None:
    """M-78: an interrupt that cuts a completion closes the request, which is paid for."""

    async def main(server: OpenAIServer) -> tuple[Received, Usage, Thought]:
        mind = mind_of(server)
        streamed = asyncio.Event()
        task = asyncio.create_task(
            mind.think(
                prompt(user("hi")), lambda piece: streamed.set() if piece == "words" else None
            )
        )
        received = await asyncio.to_thread(server.wait_for_request)
        if pieces:
            await streamed.wait()
        assert not received.hung_up.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(received.hung_up.wait, SECOND), "the request is still open"
        owed = mind.owed
        return received, owed, await mind.think(prompt(user("hi"), user("again")), quiet)

    with OpenAIServer(Stalls(pieces), Says(("ok",))) as server:
        _, owed, after = asyncio.run(main(server))

    assert owed == Usage(requests=1)
    assert after.usage == Usage(requests=2, input_tokens=11, output_tokens=7)


def test_cancelling_while_the_client_is_being_built_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow_import(form: ModelForm) -> None:
        begun.set()
        go_on.wait(20)

    async def main() -> None:
        mind = resolve("openai-chat:m@http://127.0.0.1:1/v1").begin("s-0001")
        task = asyncio.create_task(mind.think(prompt(user("hi")), quiet))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not go_on.is_set()
        go_on.set()

    monkeypatch.setattr("postroom_runtime.models.provider.build", slow_import)
    # Were the import waited for, the test would end after 20 seconds, by the event's own time-out.
    asyncio.run(asyncio.wait_for(main(), 15))


def test_sessions_that_begin_at_once_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[ModelForm] = []

    def counting(form: ModelForm) -> Any:
        built.append(form)
        return build(form)

    async def main(server: OpenAIServer) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(mind_of(server).think(prompt(user("hi")), quiet))

    monkeypatch.setattr("postroom_runtime.models.provider.build", counting)
    with OpenAIServer(answer=lambda received: Says(("ok",))) as server:
        asyncio.run(main(server))

    assert len(built) == 1


def test_a_client_of_an_object_handed_over_does_not_retry_beside_us() -> None:
    with OpenAIServer(answer=lambda received: Refuses(429, retry_after=0.001)) as server:
        chat = OpenAIChatModel("test", provider=OpenAIProvider(server.url, "key"))
        with pytest.raises(ModelError, match="Tried 3 times"):
            asyncio.run(resolve(chat).begin("s").think(prompt(user("hi")), quiet))

    assert len(server.requests) == 3


# ── Loops ──


def test_one_model_serves_sessions_at_once_and_loops_one_after_another() -> None:
    async def main() -> list[str]:
        minds = [shared.begin(f"s-{n}") for n in range(5)]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(mind.think(prompt(user(str(n))), quiet))
                for n, mind in enumerate(minds)
            ]
        return [task.result().text for task in tasks]

    def repeats(received: Received) -> Says:
        return Says((received.messages[-1]["content"],))

    with OpenAIServer(answer=repeats) as server:
        shared = resolve(server.model)
        assert isinstance(shared, ProviderModel)
        assert shared.name == server.model
        for _ in range(2):
            assert asyncio.run(main()) == ["0", "1", "2", "3", "4"]


def test_a_server_that_only_the_environment_names_is_in_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer(Refuses(401)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        mind = resolve("openai-chat:test").begin("s-0001")
        with pytest.raises(ModelError) as caught:
            asyncio.run(mind.think(prompt(user("hi")), quiet))

    assert f"openai-chat:test (401): the key was refused at {server.url}" in str(caught.value)


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "carrier-pigeon://roof")

    with pytest.raises(ModelError, match="the proxy set in the environment cannot be used"):
        asyncio.run(resolve("openai:m@http://h/v1").begin("s").think(prompt(user("hi")), quiet))
