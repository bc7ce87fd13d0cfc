"""An agent whose one call waits for the owner."""

from typing import Any

from postroom_runtime.contracts.config import Agent
from postroom_runtime.models.script import ScriptTurn, call, script


@script
def deploying(turn: ScriptTurn) -> Any:
    if turn.text != "go":
        return f"read: {turn.text}"
    yield call("deploy", target="staging")
    return "asked"


async def deploy(target: str) -> str:
    """Deploy."""
    return f"deployed to {target}"


DEFER = {"rules": [{"tool": "deploy", "disposition": {"tag": "defer"}}]}


def deployer(**knobs: Any) -> Agent:
    return Agent("coder", model=deploying, tools=[deploy], policy=DEFER, **knobs)
