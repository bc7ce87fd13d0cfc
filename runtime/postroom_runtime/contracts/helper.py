"""What an agent gives each of its helpers, beside the message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.inbox import INBOX_RULE, is_inbox


class Inherit(Enum):
    """The one value that says: what the caller has."""

    INHERITED = "the caller's"

    def __repr__(self) -> str:
        return "INHERITED"


INHERITED: Final = Inherit.INHERITED


@dataclass(frozen=True, kw_only=True)
class Helper:
    """How an agent uses a helper: ``helpers={"researcher": pr.Helper(inbox=mailbox)}``.

    Raises:
        ConfigError: A value breaks its rule, at the call that gave it (A-47, A-48).
    """

    inbox: Any = INHERITED
    """Steers the helper's runs. Not given: what steers the caller's run does; None: nothing (A-44)."""
    bind: Mapping[str, Any] = field(default_factory=dict)
    """Values for parameters of its tools that no model sees or overrides (M-101, M-123)."""
    tools: Sequence[Any] | None = None
    """Instead of the helper's own; None leaves it those."""

    def __post_init__(self) -> None:
        if self.inbox is not INHERITED and self.inbox is not None and not is_inbox(self.inbox):
            raise _wrong("inbox", self.inbox, INBOX_RULE)
        if not isinstance(self.bind, Mapping):
            raise _wrong("bind", self.bind, "a dict of values by parameter name")
        if self.tools is not None and (
            isinstance(self.tools, str) or not isinstance(self.tools, Sequence)
        ):
            raise _wrong("tools", self.tools, "a list of tools, or None for the helper's own")


def helpers_of(given: Any) -> dict[str, Helper]:
    """Return the ``helpers`` of an agent by slug: they may be slugs, or a dict with how each is used.

    In a dict each is a :class:`Helper`, or a dict of its fields, in which a key that is not there
    inherits and one that is None does not (A-43, A-44).

    Raises:
        ConfigError: One of them is nothing of the kind, or has a key that no helper has.
    """
    if not isinstance(given, Mapping):
        return {slug: Helper() for slug in given}
    return {slug: _helper(slug, spec) for slug, spec in given.items()}


def _helper(slug: str, spec: Any) -> Helper:
    if isinstance(spec, Helper):
        return spec
    if not isinstance(spec, Mapping):
        raise ConfigError(
            f"helpers={{{slug!r}: {spec!r}}} will not do: give pr.Helper(…), or a dict of its fields.",
            value=spec,
        )
    known = tuple(each.name for each in fields(Helper))
    if unknown := [key for key in spec if key not in known]:
        raise ConfigError(
            f"helpers={{{slug!r}: …}} names {unknown[0]!r}; a helper has {', '.join(known)}.",
            value=unknown[0],
        )
    return Helper(**spec)


def _wrong(name: str, value: Any, rule: str) -> ConfigError:
    return ConfigError(f"Helper({name}={value!r}) will not do: give {rule}.", value=value)
