"""``prompt-agent-<slug>``: ask another agent and get its answer, as a call (M-101, M-103, M-104)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.helper import Helper, helpers_of
from postroom_runtime.contracts.ids import check_name

TOOLBOX = "helpers"

PREFIX = "prompt-agent-"

_LONGEST = 64
"""Characters that every provider takes as the name of a tool."""


@dataclass(frozen=True, slots=True)
class Aide:
    """One entry of an agent's ``helpers``: an agent it may ask and spawn.

    Args:
        slug: Which agent.
        terms: What it is given beside the message.
    """

    slug: str
    terms: Helper

    @property
    def tool(self) -> str:
        """What the model calls it by: no model takes a dot in the name of a tool."""
        return PREFIX + re.sub(r"[^a-zA-Z0-9_-]", "_", self.slug)


def read_helpers(agent: Agent) -> dict[str, Aide]:
    """Return the helpers of ``agent`` by slug.

    ``helpers`` is a list of slugs, or a dict of slugs with the terms of each: a ``pr.Helper``, or a
    dict of its fields::

        helpers=["writer", "critic"]
        helpers={"writer": {}, "deployer": {"bind": {"token": secret}, "tools": ["deploy"]}}

    Raises:
        ConfigError: A slug that cannot be one or is too long for a tool's name, or two slugs that a
            model would call by the same name.
    """
    aides: dict[str, Aide] = {}
    by_tool: dict[str, str] = {}
    for slug, terms in helpers_of(agent.helpers).items():
        aide = Aide(check_name(slug, "agent"), terms)
        if len(aide.tool) > _LONGEST:
            raise ConfigError(
                f"agent {agent.slug}: the helper {slug!r} cannot be called {aide.tool!r}: models "
                f"take {_LONGEST} characters. Give it a shorter slug.",
                value=slug,
            )
        if (other := by_tool.setdefault(aide.tool, slug)) != slug:
            raise ConfigError(
                f"agent {agent.slug}: the helpers {other!r} and {slug!r} would both be called "
                f"{aide.tool!r}. Give one of them another slug.",
                value=slug,
            )
        aides[slug] = aide
    return aides


class Asker(Protocol):
    """Asks a helper of the calling session."""

    async def ask(self, helper: Aide, message: str) -> str:
        """Return its answer."""
        ...


async def prompt_agent(message: str, *, _helper: Aide, _asker: Asker) -> str:
    """Ask another agent.

    Args:
        message: What it should do, with all it needs to know: it sees nothing of your conversation.

    Returns:
        Its final answer.
    """
    return await _asker.ask(_helper, message)


_PROMPT = make_tool(
    prompt_agent, name="prompt-agent", bound={"_helper": None, "_asker": None}, toolbox=TOOLBOX
)


def helper_tools(helpers: Mapping[str, Aide], asker: Asker) -> list[Tool]:
    """Return a ``prompt-agent-…`` tool for each helper."""
    return [
        replace(
            _PROMPT,
            spec=replace(
                _PROMPT.spec,
                name=helper.tool,
                description=f"Ask the agent {slug!r} and get its final answer.",
            ),
            bound={"_helper": helper, "_asker": asker},
            places=True,
        )
        for slug, helper in helpers.items()
    ]
