"""Standing permissions: what the owner lets run from now on without being asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId


class Allow(StrEnum):
    """How far a permission reaches, the narrowest first."""

    ARGS = "args"
    """The same tool with exactly the same arguments, in the same session."""
    TOOL = "tool"
    """The same tool in the same session."""
    AGENT = "agent"
    """The same tool in every session of the same agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """One standing permission, as ``room.permissions()`` lists it and its owner inbox keeps it."""

    id: str
    """``pm-0001``."""
    allow: Allow
    agent: str
    session: SessionId
    """Where it was given; with ``agent`` it holds in the agent's other sessions too."""
    session_name: str
    tool: str
    arguments: Mapping[str, Json] | None = None
    """With ``args`` those that may run; else None. Values bound to a tool are never among them."""
    approval: str = ""
    """The question it was given with: ``ap-0001``."""
    granted_by: str = ""
    """Through what it came: ``%approve``, ``api``, ``view``."""
    granted_at: datetime | None = None
    revoked_by: str = ""
    revoked_at: datetime | None = None
    """None while it stands."""

    def __str__(self) -> str:
        """Return ``pm-0001: deploy runs unasked in coder``."""
        where = f"every session of {self.agent}" if self.allow is Allow.AGENT else self.session_name
        how = " with the same arguments" if self.allow is Allow.ARGS else ""
        return f"{self.id}: {self.tool} runs unasked in {where}{how}"


def check_allow(always: object) -> Allow | None:
    """Return how far ``always`` reaches: True is ``tool``, False and None are not at all.

    Raises:
        ConfigError: It is something else; names what there is.
    """
    if always is None or always is False:
        return None
    if always is True:
        return Allow.TOOL
    if isinstance(always, str) and always in frozenset(Allow):
        return Allow(always)
    raise ConfigError(
        f"always={always!r} will not do: give 'args' (these arguments, this session), 'tool' or True "
        "(this tool, this session), 'agent' (this tool, this agent), or False.",
        value=always,
    )
