"""The agents a room knows, each with its model and tools made ready."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from postroom_runtime.calls.policy import Policy, read_policy
from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.helper import INHERITED
from postroom_runtime.mail.foreign_inbox import check_reader
from postroom_runtime.models.model import Model
from postroom_runtime.models.resolve import resolve
from postroom_runtime.models.script import Script
from postroom_runtime.toolbox import call_tools, mail_tools, session_tools, waiting, watch_tools
from postroom_runtime.toolbox.helper_tools import PREFIX, Aide, read_helpers

TOOLBOX_NAMES: tuple[str, ...] = (
    *mail_tools.NAMES,
    *waiting.NAMES,
    *call_tools.NAMES,
    *session_tools.NAMES,
    *watch_tools.NAMES,
)


@dataclass(frozen=True, slots=True)
class Definition:
    """An agent with its model and tools resolved, as defined last."""

    agent: Agent
    model: Model
    tools: Mapping[str, Tool]
    policy: Policy
    """What wraps its calls, ``approve`` included."""
    helpers: Mapping[str, Aide]
    """Whom it may ask and spawn, by slug."""


class Roster:
    """Definitions by slug. ``echo`` is built in.

    Args:
        scripts: Looks up a script by name, in the notebook's namespace say.
    """

    def __init__(self, scripts: Callable[[], Mapping[str, Script]] = dict) -> None:
        self._scripts = scripts
        self._defined: dict[str, Definition] = {}
        self.define(Agent("echo", model="echo", instructions="Says back what it reads."))

    def define(self, agent: Agent) -> Definition:
        """Take ``agent`` under its slug; a definition before counts no more.

        Raises:
            ConfigError: Not an Agent, or its model, tools, helpers or toolbox will not do.
            TypeError: The reader of an inbox that it names cannot be called (A-35).
        """
        if not isinstance(agent, Agent):
            raise ConfigError(f"{agent!r} is no agent: give pr.Agent('{agent}', …).", value=agent)
        helpers = read_helpers(agent)
        own = (*TOOLBOX_NAMES, *(helper.tool for helper in helpers.values()))
        if unknown := sorted(set(agent.toolbox or ()) - set(own)):
            raise ConfigError(
                f"agent {agent.slug}: toolbox names {', '.join(map(repr, unknown))}; "
                f"there are: {', '.join(own)}.",
                value=agent.toolbox,
            )
        check_reader(agent.inbox)
        for helper in helpers.values():
            check_reader(None if helper.terms.inbox is INHERITED else helper.terms.inbox)
        definition = Definition(
            agent,
            self.model(agent.model),
            tools_by_name(agent.slug, agent.tools),
            read_policy(agent.policy),
            helpers,
        )
        self._defined[agent.slug] = definition
        return definition

    def model(self, model: Any) -> Model:
        """Return what ``model`` names or is.

        Raises:
            ConfigError: It is no model; names the forms it may have.
        """
        return resolve(model, scripts=self._scripts())

    def get(self, slug: str) -> Definition | None:
        """Return the definition of ``slug``, or None."""
        return self._defined.get(slug)

    def agents(self) -> list[Agent]:
        """Return all agents defined, oldest first."""
        return [definition.agent for definition in self._defined.values()]

    def named(self, slug: str, model: Any = None) -> Definition:
        """Return the definition of ``slug``; with a ``model`` an unknown one is made up for it.

        Raises:
            ConfigError: Unknown, and no model given; names near matches and all agents.
        """
        if (definition := self._defined.get(slug)) is not None:
            return definition
        if model is not None:
            return self.define(Agent(slug, model=model))
        near = get_close_matches(slug, self._defined, n=2, cutoff=0.5)
        raise ConfigError(
            f"no agent {slug!r} is defined"
            + (f": did you mean {' or '.join(map(repr, near))}? " if near else ". ")
            + f"Known: {', '.join(self._defined)}. Define it with %%agent {slug}, "
            "or give it a model: --model M.",
            value=slug,
        )


def tools_by_name(slug: str, functions: Sequence[Any]) -> dict[str, Tool]:
    """Return ``functions`` as tools, by the names models call them.

    Raises:
        ConfigError: One is no tool, or two have one name, or a name is Postroom's own.
    """
    tools: dict[str, Tool] = {}
    for function in functions:
        tool = make_tool(function)
        own = tool.name in TOOLBOX_NAMES or tool.name.startswith(PREFIX)
        if own or tool.name in tools:
            whose = "Postroom's own" if own else "taken"
            raise ConfigError(
                f"agent {slug}: the tool name {tool.name!r} is {whose}; "
                "give another: @pr.tool(name=…).",
                value=tool.name,
            )
        tools[tool.name] = tool
    return tools


def bound(tools: Mapping[str, Tool], values: Mapping[str, Any]) -> dict[str, Tool]:
    """Return ``tools`` with ``values`` bound: merged in below, unseen by any model (M-123).

    Raises:
        ConfigError: A value fits no parameter of any tool.
    """
    ready = {name: tool.bind(values) for name, tool in tools.items()}
    taken = {key for tool in ready.values() for key in tool.bound}
    if unused := sorted(set(values) - taken):
        raise ConfigError(
            f"bind={{{unused[0]!r}: …}}: no tool has such a parameter. "
            f"Tools: {', '.join(tools) or 'none'}.",
            value=unused[0],
        )
    return ready
