"""What an agent's policy does to a call: how long a turn stays with it, and what wraps it; pure.

The policy is the JSON of S1 §6, accepted as it is or as the objects below. Rules choose the
disposition, first match; wrappers contribute decorators, every match, in file order, the first one
outermost (M-115).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


# ── dispositions: how long the step stays attached (D4) ──


class RunSync(_Part):
    """Stay until the call ends; only an interrupt detaches it (M-57)."""

    tag: Literal["runSync"] = "runSync"


class RunAsync(_Part):
    """Stay ``attach_seconds``, or as the agent's yield strategy says (M-58…M-60)."""

    tag: Literal["runAsync"] = "runAsync"
    attach_seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Defer(_Part):
    """Do not run it: ask the owner first (M-97)."""

    tag: Literal["defer"] = "defer"
    reason: str = ""


Disposition: TypeAlias = Annotated[RunSync | RunAsync | Defer, Field(discriminator="tag")]


# ── hook targets ──


class CommandTarget(_Part):
    """A program: JSON on its standard input, JSON on its standard output."""

    command: str | tuple[str, ...]


class ToolTarget(_Part):
    """Any tool registered on the agent, visible to the model or not."""

    tool: str


Target: TypeAlias = CommandTarget | ToolTarget


# ── decorators (M-118…M-121) ──


class Timeout(_Part):
    """End the call after so many seconds."""

    tag: Literal["timeout"] = "timeout"
    seconds: float = Field(gt=0, allow_inf_nan=False)


class Retries(_Part):
    """Try again after an exception: ``count`` times more, ``backoff_ms`` between."""

    tag: Literal["retries"] = "retries"
    count: int = Field(ge=0)
    backoff_ms: float = Field(default=0, ge=0, allow_inf_nan=False)


class Cache(_Part):
    """Answer the same call with the same arguments from the first result."""

    tag: Literal["cache"] = "cache"


class Label(_Part):
    """Recorded on the call; does nothing."""

    tag: Literal["label"] = "label"
    label: str


class Truncate(_Part):
    """Cap the result, and tell the model that it was."""

    tag: Literal["truncate"] = "truncate"
    max_bytes: int = Field(ge=1)


class Before(_Part):
    """Ask a hook before the tool runs: continue, deny, defer or answer."""

    tag: Literal["before"] = "before"
    hook: Target


class After(_Part):
    """Show a hook the result: continue or annotate."""

    tag: Literal["after"] = "after"
    hook: Target


Decorator: TypeAlias = Annotated[
    Timeout | Retries | Cache | Label | Truncate | Before | After, Field(discriminator="tag")
]


# ── the policy ──


def _schema(value: Json) -> Json:
    if value is not None:
        import jsonschema  # seconds where an optional grammar is installed: only when a schema is used

        try:
            jsonschema.Draft202012Validator.check_schema(value)
        except jsonschema.SchemaError as error:
            raise ValueError(f"args is no JSON schema: {error.message}") from None
    return value


class Match(_Part):
    """Which calls: all that is given must hold (M-117)."""

    tool: str = "*"
    """A glob on the name the model sees; case counts."""
    toolbox: str | None = None
    """One of Postroom's own toolboxes; None for any tool."""
    args: Json = None
    """A JSON schema that the model's arguments must fit."""

    _check = field_validator("args")(_schema)

    def fits(self, tool: str, toolbox: str, arguments: Mapping[str, Json]) -> bool:
        """Tell whether a call is meant."""
        if not fnmatchcase(tool, self.tool):
            return False
        if self.toolbox is not None and self.toolbox != toolbox:
            return False
        return self.args is None or _fits(self.args, arguments)


def _fits(schema: Json, arguments: Mapping[str, Json]) -> bool:
    import jsonschema

    return bool(jsonschema.Draft202012Validator(schema).is_valid(dict(arguments)))


class Rule(Match):
    """The disposition of the calls it fits."""

    disposition: Disposition


class Wrapper(_Part):
    """Decorators for the calls it fits, outermost first."""

    match: Match = Match()
    decorators: tuple[Decorator, ...] = ()


class Policy(_Part):
    """Rules and wrappers of an agent's calls."""

    default: Disposition = RunSync()
    rules: tuple[Rule, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()


def read_policy(policy: object) -> Policy:
    """Return ``policy`` as an object: the JSON of S1 §6, with or without its outer key.

    Raises:
        ConfigError: It breaks the form; names where, what and the rule.
    """
    if policy is None:
        return Policy()
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping) and set(policy) == {"toolCallPolicyConfig"}:
        policy = policy["toolCallPolicyConfig"]
    try:
        return Policy.model_validate(policy)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'policy'} = {_short(fault['input'])}: {fault['msg']}"
            for fault in error.errors()
        )
        raise ConfigError(f"the policy will not do: {faults}.", value=policy) from None


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"


class _Stored(_Part):
    disposition: Disposition
    decorators: tuple[Decorator, ...]


_STORED = TypeAdapter(_Stored)


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """What a policy makes of one call (M-116)."""

    disposition: RunSync | RunAsync | Defer
    decorators: tuple[Any, ...]

    @classmethod
    def from_json(cls, stored: Mapping[str, Json]) -> "AppliedPolicy":
        """Return what :meth:`to_json` gave."""
        read = _STORED.validate_python(dict(stored))
        return cls(read.disposition, read.decorators)

    def to_json(self) -> dict[str, Json]:
        """Return it as stored on the call: one ``Decorate […] base``."""
        return {
            "disposition": self.disposition.model_dump(by_alias=True, exclude_none=True),
            "decorators": [d.model_dump(by_alias=True, exclude_none=True) for d in self.decorators],
        }


def apply(
    policy: Policy,
    tool: str,
    arguments: Mapping[str, Json],
    *,
    toolbox: str = "",
    attach_seconds: float | None = None,
) -> AppliedPolicy:
    """Return the disposition and the decorators of a call.

    Args:
        policy: The agent's.
        tool: The name the model called.
        arguments: As the model gave them.
        toolbox: Which of Postroom's own toolboxes the tool is from; '' for a user's.
        attach_seconds: The tool's own, sugar for a first rule.
    """
    own: Sequence[RunAsync] = (
        () if attach_seconds is None else (RunAsync(attach_seconds=attach_seconds),)
    )
    disposition = next(
        (rule.disposition for rule in policy.rules if rule.fits(tool, toolbox, arguments)),
        policy.default,
    )
    decorators = tuple(
        decorator
        for wrapper in policy.wrappers
        if wrapper.match.fits(tool, toolbox, arguments)
        for decorator in wrapper.decorators
    )
    return AppliedPolicy(own[0] if own else disposition, decorators)
