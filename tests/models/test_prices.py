"""What an answer costs, by the price table that is installed; over real HTTP, on the loopback."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest
from genai_prices import Usage as Measured
from genai_prices import calc_price
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from models.asking import ask
from models.openai_server import OpenAIServer, Says
from models.transcripts import prompt, quiet, user
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.history import thought_of
from postroom_runtime.models.model import Thought
from postroom_runtime.models.prices import at_home
from postroom_runtime.models.resolve import resolve
from postroom_runtime.office.opening import open_room
from postroom_runtime.office.room import Room

TESTS = str(Path(__file__).parents[1])


def listed(name: str, read: int, written: int) -> float:
    usage = Measured(input_tokens=read, output_tokens=written)
    return float(calc_price(usage, name, provider_id="openai").total_price)


GATEWAY = "openai-chat:test@http://gateway.example/v1"


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Callable[[OpenAIServer], str]:
    """What to write behind ``model=`` to reach a server as one far away, which may send a bill."""

    def model(server: OpenAIServer) -> str:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        return GATEWAY

    return model


Gateway = Callable[[OpenAIServer], str]


def think(model: object) -> Thought:
    return asyncio.run(resolve(model).begin("s").think(prompt(user("hi")), quiet))


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4o-mini", "gpt-4o-2024-08-06"])
def test_an_answer_of_a_listed_model_costs_what_the_table_says(name: str, gateway: Gateway) -> None:
    with OpenAIServer(Says(("ok",), usage=(4000, 281), model=name)) as server:
        usage = think(gateway(server)).usage

    assert usage.cost == listed(name, 4000, 281)
    assert usage.cost > 0


def test_the_price_of_a_model_nobody_lists_is_not_known(gateway: Gateway) -> None:
    with OpenAIServer(Says(("ok",), model="my-own-7b")) as server:
        usage = think(gateway(server)).usage
        assert usage == Usage(requests=1, input_tokens=11, output_tokens=7)


def test_an_answer_that_tells_no_tokens_has_no_price(gateway: Gateway) -> None:
    with OpenAIServer(Says(("ok",), usage=None, model="gpt-4o")) as server:
        assert think(gateway(server)).usage.cost is None


def test_a_server_at_home_sends_no_bill_whatever_its_model_is_called() -> None:
    with OpenAIServer(Says(("ok",), usage=(4000, 281), model="gpt-4o")) as server:
        assert ask(server).usage == Usage(requests=1, input_tokens=4000, output_tokens=281)


@pytest.mark.parametrize(
    ("url", "home"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:11434/v1", True),
        ("http://192.168.1.7/v1", True),
        ("http://gpu-7:8000/v1", True),
        ("http://gpu-7.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("https://internal.example.com/v1", False),
        ("", False),
        (None, False),
    ],
)
def test_a_house_is_told_by_its_address(url: str | None, home: bool) -> None:
    assert at_home(url) is home


def test_a_model_that_is_a_function_costs_nothing_known_whatever_it_is_called() -> None:
    def answer(*_: object) -> ModelResponse:
        return ModelResponse([TextPart("ok")], model_name="gpt-4o")

    thought = think(FunctionModel(answer, model_name="gpt-4o"))

    assert thought.text == "ok"
    assert thought.usage.cost is None


def test_what_a_gateway_says_it_charged_is_believed() -> None:
    response = ModelResponse(
        [TextPart("ok")],
        usage=RequestUsage(input_tokens=9, cost=Decimal("0.25")),
        model_name="gpt-4o",
        provider_name="openai",
    )

    assert thought_of(response, "openai").usage.cost == 0.25


def test_a_price_that_cannot_be_worked_out_loses_no_answer() -> None:
    response = ModelResponse(
        [TextPart("ok")],
        usage=RequestUsage(input_tokens=1, cache_read_tokens=100),  # More read than there was.
        model_name="gpt-4o",
        provider_name="openai",
    )

    thought = thought_of(response, "openai")

    assert (thought.text, thought.usage.cost) == ("ok", None)


def test_a_session_sums_what_its_turns_cost_and_another_kernel_knows_it(
    tmp_path: Path, gateway: Gateway
) -> None:
    path = tmp_path / "room.duckdb"
    says = [Says(("ok",), usage=(1000 * n, n), model="gpt-4o") for n in (1, 2)]
    costs = [listed("gpt-4o", 1000 * n, n) for n in (1, 2)]

    async def live(room: Room, model: str) -> None:
        s = room.spawn(Agent("a", model=model), "one")
        await s.wait()
        answer = await s.ask("two")
        free = room.spawn("echo", "hi")
        await free.wait()
        assert answer.usage.cost == costs[1]
        assert [t.usage.cost for t in s.transcript() if t.usage] == costs
        assert free.usage.cost is None

    with OpenAIServer(*says) as server, closing(open_room(path)) as room:
        asyncio.run(live(room, gateway(server)))
        assert room.usage.cost == pytest.approx(sum(costs))

    with closing(open_room(path)) as room:
        [s] = [s for s in room.sessions() if s.agent == "a"]
        assert s.usage.cost == room.usage.cost == pytest.approx(sum(costs))
        assert room.sql("SELECT agent, cost FROM usage ORDER BY agent").fetchall() == [
            ("a", s.usage.cost),
            ("echo", None),
        ]
        turns = room.sql("SELECT cost FROM turns WHERE cost IS NOT NULL ORDER BY index")
        assert turns.fetchall() == [(cost,) for cost in costs]


_COSTS = st.none() | st.floats(0, 1e6)


@given(st.lists(_COSTS))
def test_a_sum_counts_the_costs_that_are_known(costs: list[float | None]) -> None:
    known = [cost for cost in costs if cost is not None]
    summed = sum((Usage(cost=cost) for cost in costs), Usage()).cost

    assert (summed is None) is (not known)
    assert not known or summed == pytest.approx(sum(known))


WATCHED = """
import asyncio, json, sys, threading
from importlib.abc import MetaPathFinder

class Watch(MetaPathFinder):
    where = {}
    def find_spec(self, name, path=None, target=None):
        if name.startswith("genai_prices"):
            self.where[name] = threading.current_thread() is threading.main_thread()

sys.meta_path.insert(0, Watch())
import postroom
from postroom_runtime.models.resolve import resolve
from models.transcripts import prompt, quiet, user
light = "genai_prices" not in sys.modules
model = resolve(sys.argv[1])
thought = asyncio.run(model.begin("s").think(prompt(user("hi")), quiet))
from genai_prices.data_snapshot import get_snapshot
print(json.dumps([light, thought.usage.cost, Watch.where["genai_prices.data"],
                  get_snapshot().from_auto_update,
                  [t.name for t in threading.enumerate() if "price" in t.name]]))
"""


def test_the_table_is_read_off_the_loop_when_a_provider_is_first_asked_and_never_fetched() -> None:
    with OpenAIServer(Says(("ok",), usage=(4000, 281), model="gpt-4o")) as server:
        run = subprocess.run(
            [sys.executable, "-c", WATCHED, GATEWAY],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([TESTS, *sys.path]),
                "HTTP_PROXY": server.url.removesuffix("/v1"),
            },
        )
    assert run.returncode == 0, run.stderr

    light, cost, on_the_loop, fetched, threads = json.loads(run.stdout)

    assert light
    assert cost == listed("gpt-4o", 4000, 281)
    assert not on_the_loop
    assert not fetched
    assert threads == []
