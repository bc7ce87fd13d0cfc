"""Every knob of an agent: its default, its unit and its check.

A knob is a field with metadata ``unit``, ``rule`` (in words) and ``check``. A value that breaks its
rule raises ``ConfigError`` at the call that gave it, naming the knob, the value and the rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.helper import helpers_of
from postroom_runtime.contracts.ids import check_name
from postroom_runtime.contracts.inbox import INBOX_RULE, Inbox, is_inbox

WAKE_KINDS = ("user", "tool", "parent", "child", "peer")
MAIL_SCOPES = ("own", "children", "subtree", "all")
YIELD_STRATEGIES = ("yieldWhenAllDone", "yieldOnAnyProgress")

Scope = Literal["own", "children", "subtree", "all"]


def _whole(low: int) -> tuple[str, Callable[[Any], bool]]:
    return (
        f"a whole number, at least {low}",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= low,
    )


def _number(low: float) -> tuple[str, Callable[[Any], bool]]:
    return (
        f"a number, at least {low:g}",
        lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and low <= v < 1e12,
    )


def _above_zero() -> tuple[str, Callable[[Any], bool]]:
    return (
        "a number above 0",
        lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and 0 < v < 1e12,
    )


def _or_none(rule: tuple[str, Callable[[Any], bool]]) -> tuple[str, Callable[[Any], bool]]:
    return f"{rule[0]}, or None for no limit", lambda v: v is None or rule[1](v)


def _one_of(*words: str) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {', '.join(words)}", lambda v: isinstance(v, str) and v in words


def _strings(what: str) -> tuple[str, Callable[[Any], bool]]:
    return (
        f"a list of {what}",
        lambda v: (
            not isinstance(v, str)
            and isinstance(v, (Sequence, frozenset, set))
            and all(isinstance(x, str) for x in v)
        ),
    )


def _strategy(v: Any) -> bool:
    if isinstance(v, Mapping):
        return v.get("tag") == "yieldOnTimeout" and _number(0)[1](v.get("milliseconds"))
    return isinstance(v, str) and v in YIELD_STRATEGIES


_FLAG: tuple[str, Callable[[Any], bool]] = ("True or False", lambda v: isinstance(v, bool))
_ANY: tuple[str, Callable[[Any], bool]] = ("anything", lambda v: True)
_TEXT: tuple[str, Callable[[Any], bool]] = ("a text", lambda v: isinstance(v, str))
_WAKE: tuple[str, Callable[[Any], bool]] = (
    f"a list of words among {', '.join(WAKE_KINDS)}",
    lambda v: _strings("")[1](v) and all(x in WAKE_KINDS for x in v),
)
_HELPERS: tuple[str, Callable[[Any], bool]] = (
    "a list of agent slugs, or a dict from slugs to pr.Helper(…)",
    lambda v: (
        _strings("")[1](list(v) if isinstance(v, Mapping) else v) and helpers_of(v) is not None
    ),
)
_INBOX: tuple[str, Callable[[Any], bool]] = (INBOX_RULE, lambda v: v is None or is_inbox(v))
_LIST: tuple[str, Callable[[Any], bool]] = (
    "a list",
    lambda v: isinstance(v, Sequence) and not isinstance(v, str),
)
_POLICY: tuple[str, Callable[[Any], bool]] = (
    "the policy's JSON, an object, or None",
    lambda v: v is None or not isinstance(v, (str, bytes, int, float)),
)
_CALLABLE: tuple[str, Callable[[Any], bool]] = (
    "a callable (name, arguments) -> bool, or None",
    lambda v: v is None or callable(v),
)
_NOTIFICATIONS: tuple[str, Callable[[Any], bool]] = (
    "a dict with a list of channel names under 'channels', or None",
    lambda v: v is None or (isinstance(v, Mapping) and _strings("")[1](v.get("channels", ()))),
)


def knob(default: Any, rule: tuple[str, Callable[[Any], bool]], unit: str = "") -> Any:
    """Return a dataclass field that is checked: ``default``, the rule in words and code, its unit."""
    return field(
        default=default,
        kw_only=True,
        metadata={"rule": rule[0], "check": rule[1], "unit": unit, "knob": True},
    )


@dataclass(frozen=True, kw_only=True)
class ModelKnobs:
    """What an agent is."""

    model: Any = knob("echo", _ANY)
    """A script or its name, a ``pydantic_ai`` model, or ``provider:name`` (see ``models``)."""
    instructions: str = knob("", _TEXT)
    """The system prompt."""
    tools: Sequence[Any] = knob((), _LIST)
    """Typed functions with a docstring, or ``pr.tool`` objects."""
    helpers: Any = knob((), _HELPERS)
    """Slugs of agents it may call or spawn."""
    toolbox: Sequence[str] | None = knob(None, _or_none(_strings("names of Postroom's own tools")))
    """Which of Postroom's own tools it has; None: all that its scope lets it use."""
    notifications: Mapping[str, Any] | None = knob(None, _NOTIFICATIONS)
    """Second targets of its owner inbox's entries; the inbox itself has no opt-out (I-34)."""


@dataclass(frozen=True, kw_only=True)
class MailKnobs:
    """What reaches it, and whom it reaches."""

    wake_on: Sequence[str] = knob(("user", "tool", "parent", "child"), _WAKE)
    """Whose mail starts a run of an idle session; other mail waits for the next (M-94, M-95)."""
    mail_scope: Scope = knob("subtree", _one_of(*MAIL_SCOPES))
    """Whom it may write to first; replies and its parent are always allowed (M-105)."""
    interrupt_scope: Scope = knob("children", _one_of(*MAIL_SCOPES))
    """Whom it may interrupt; elsewhere its interrupts arrive as normal mail (M-106)."""
    mailbox_max_unread: int = knob(256, _whole(1), "envelopes")
    """Unread mail before MailboxFull; controls and call ends are exempt (M-31)."""
    max_mail_hops: int = knob(16, _whole(0), "hops")
    """Letters between agents with no word from a person (M-109)."""
    inbox: Inbox | None = knob(None, _INBOX)
    """A source of messages that reach each run while it is under way (A-8)."""
    resume_on_any_mail: bool = knob(False, _FLAG)
    """Whether mail that would wake it also un-pauses it (M-83)."""


@dataclass(frozen=True, kw_only=True)
class CallKnobs:
    """How its tool calls run."""

    policy: Any = knob(None, _POLICY)
    """Dispositions and wrappers of its calls: the JSON of S1 §6, or objects."""
    approve: Callable[..., Any] | None = knob(None, _CALLABLE)
    """Asked before each call; False answers the model that it was not approved."""
    max_concurrency: int = knob(4, _whole(1), "calls")
    """Calls of one session that run at the same time."""
    async_yield_strategy: Any = knob(
        "yieldWhenAllDone",
        (
            f'one of {", ".join(YIELD_STRATEGIES)}, or {{"tag": "yieldOnTimeout", "milliseconds": N}}',
            _strategy,
        ),
    )
    """When a ``runAsync`` call without attach seconds hands control back (M-58)."""
    async_call_timeout_seconds: float | None = knob(None, _or_none(_number(0.001)), "seconds")
    """A time limit for each call that has none of its own."""
    max_wait_seconds: float = knob(300, _number(0), "seconds")
    """The longest a model may wait in one call (M-66)."""
    interrupt_completions: bool = knob(False, _FLAG)
    """Whether an interrupt cuts a completion, which is paid for all the same (M-78)."""
    pause_cancels_calls: bool = knob(False, _FLAG)
    """Whether a pause cancels detached calls (M-82)."""


@dataclass(frozen=True, kw_only=True)
class BudgetKnobs:
    """How far it may go by itself."""

    max_iterations: int = knob(10, _whole(1), "model turns")
    """Model turns of a run before a forced answer; the owner's mail extends it (A-24, A-25)."""
    max_autonomous_rounds: int = knob(100, _whole(1), "model turns")
    """Model turns over all runs since the owner last wrote, persisted (trap 8)."""
    max_requests: int | None = knob(None, _or_none(_whole(1)), "model requests")
    """Model requests of a session in its life."""
    max_tokens: int | None = knob(None, _or_none(_whole(1)), "tokens")
    """Tokens in and out of a session in its life."""
    max_cost: float | None = knob(None, _or_none(_above_zero()), "US dollars")
    """US dollars of a session in its life, at list prices.

    A model whose price is not known (a script, a local model) spends none: it cannot be capped so.
    """


@dataclass(frozen=True, kw_only=True)
class AgentConfig(ModelKnobs, MailKnobs, CallKnobs, BudgetKnobs):
    """All knobs of an agent. ``pr.Agent`` is this with a slug."""

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.metadata.get("knob"):
                check_knob(item.name, getattr(self, item.name))

    def knobs(self) -> dict[str, Any]:
        """Return the knobs whose values differ from their defaults, by name."""
        return {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.metadata.get("knob") and getattr(self, f.name) != f.default
        }


_KNOBS = {item.name: item for item in fields(AgentConfig) if item.metadata.get("knob")}


def check_knob(name: str, value: object, called: str = "") -> None:
    """Check a value by the rule of the knob ``name``.

    Args:
        name: Of an agent's knob.
        value: What somebody wants it to be.
        called: What to call it instead, where the knob is not an agent's.

    Raises:
        ConfigError: It breaks the rule; names both, and the default.
    """
    item = _KNOBS[name]
    if not item.metadata["check"](value):
        unit = f" ({item.metadata['unit']})" if item.metadata["unit"] else ""
        raise ConfigError(
            f"{called or name}={value!r}{unit} will not do: give {item.metadata['rule']}. "
            f"The default is {item.default!r}.",
            value=value,
        )


@dataclass(frozen=True)
class Agent(AgentConfig):
    """An agent: a slug and its knobs. Sessions are spawned from it.

    Args:
        slug: Its name, 1 to 64 letters, digits, ``_``, ``.`` or ``-``.
        model: See :class:`ModelKnobs`; every other knob by keyword too.

    Raises:
        ConfigError: A slug or a knob breaks its rule; unknown knobs are a ``TypeError``.
    """

    slug: str

    def __post_init__(self) -> None:
        check_name(self.slug, "agent")
        super().__post_init__()
