"""Models that are there without being defined."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from postroom_runtime.models.script import Script, ScriptTurn, script

__all__ = ["BUILT_IN", "echo"]


@script
def echo(turn: ScriptTurn) -> str:
    """Answer with what was said: the model of the first lesson, and of agents without one."""
    return f"echo: {turn.text}"


BUILT_IN: Final[Mapping[str, Script]] = MappingProxyType({echo.name: echo})
"""By the name that ``model=`` takes."""
