"""What a script says to Postroom, and what it is shown: calls, streamed text and the turn."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from postroom_runtime.contracts.call import ToolMessage
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.models.model import Prompt

__all__ = ["Say", "ScriptCall", "ScriptTurn", "call", "say"]


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A tool call that a script wants made."""

    tool: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Say:
    """A piece of the turn's text, shown as soon as it is yielded."""

    text: str


def call(name: str, /, **arguments: Json) -> ScriptCall:
    """Return the call of a tool, for a script to yield or return.

    Args:
        name: The tool's name, e.g. ``"send-message"``.
        arguments: Its arguments, JSON values; one whose name is a Python word is given as
            ``**{"for": "mail"}``.

    Raises:
        ConfigError: The name is no text, or an argument is no JSON.
    """
    if not name or not isinstance(name, str):
        hint = getattr(name, "__name__", None)
        raise ConfigError(
            f"{name!r} cannot be called by a script: give the tool's name as a text"
            f"{f', here {hint!r}' if isinstance(hint, str) else ''}.",
            value=name,
        )
    return ScriptCall(name, {key: _json(name, key, value) for key, value in arguments.items()})


def say(text: str) -> Say:
    """Return a piece of text, for a script to yield: it streams, and belongs to the turn's text.

    Raises:
        ConfigError: ``text`` is no text.
    """
    if not isinstance(text, str):
        raise ConfigError(f"say({text!r}) will not do: give a text, e.g. str(…).", value=text)
    return Say(text)


class ScriptTurn:
    """What a script is shown: the user turn to answer, and what came before it.

    A generator keeps the same object; before each resume it shows what that round brought.
    """

    __slots__ = ("_prompt",)

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def show(self, prompt: Prompt) -> None:
        """Show the next round instead; called by the runtime before a script goes on."""
        self._prompt = prompt

    @property
    def text(self) -> str:
        """The user text exactly as a model reads it, headers of mail included; may be ''."""
        return self._prompt.turns[-1].text

    @property
    def mail(self) -> tuple[Envelope, ...]:
        """The envelopes rendered in ``text``, in order of ``seq``."""
        return self._prompt.turns[-1].mail

    @property
    def results(self) -> dict[CallId, ToolMessage]:
        """The tool messages of the model turn before, by call id, in the order of its calls."""
        return {message.call: message for message in self._prompt.turns[-1].results}

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that may be called now; empty in a forced last answer."""
        return tuple(spec.name for spec in self._prompt.tools)

    @property
    def schema(self) -> dict[str, Json] | None:
        """The JSON schema that the answer has to fit; None where words are asked for."""
        schema = self._prompt.schema
        return dict(schema.json_schema) if schema is not None else None

    @property
    def history(self) -> tuple[Turn, ...]:
        """The turns before this one, oldest first."""
        return tuple(self._prompt.turns[:-1])

    @property
    def session(self) -> SessionId:
        """The id of the session that runs the script."""
        return self._prompt.session

    @property
    def name(self) -> str:
        """The name of that session."""
        return self._prompt.name

    @property
    def agent(self) -> str:
        """The slug of its agent."""
        return self._prompt.agent

    @property
    def instructions(self) -> str:
        """The agent's instructions."""
        return self._prompt.instructions

    def __repr__(self) -> str:
        """Return what a learner wants to see when printing it."""
        return f"ScriptTurn(text={self.text!r}, mail={len(self.mail)}, results={self.results!r})"


def _json(tool: str, key: str, value: object) -> Json:
    # Through JSON and back: a tool gets from a script what it would get from a provider.
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{key}={value!r} cannot be an argument of {tool!r}: {error}. "
            "A model gives its tools JSON alone: texts, numbers, True, False, None, lists, dicts.",
            value=value,
        ) from None
