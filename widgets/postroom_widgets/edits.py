"""What somebody typed over the arguments of a call, read where numbers are whole. Pure."""

import json
from collections.abc import Iterable, Mapping

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json


def edited(arguments: Mapping[str, Json], edits: Json) -> Mapping[str, Json] | None:
    """Return ``arguments`` with what was typed over some of them (M-97).

    Args:
        arguments: As the call asks for them.
        edits: JSON texts by name, as a front end sends them; None or empty for none.

    Returns:
        All arguments, or None when nothing was edited.

    Raises:
        ConfigError: A text is no JSON, or names an argument that the call does not have.
    """
    if not edits:
        return None
    if not isinstance(edits, Mapping):
        raise ConfigError(f"edits are JSON texts by name, not {edits!r}.", value=edits)
    return {**arguments, **{name: _value(arguments, name, text) for name, text in edits.items()}}


def edited_call(open_ones: Iterable[Approval], id: str, edits: Json) -> Mapping[str, Json] | None:
    """Return the arguments to approve ``id`` with: those it asks for, edited; None as they are.

    Args:
        open_ones: The approvals that wait. One that was answered meanwhile is not among them and has
            no arguments here: the room says who was first.
        id: Which one.
        edits: As :func:`edited` takes them.

    Raises:
        ConfigError: As :func:`edited`.
    """
    asked = next((each.arguments for each in open_ones if each.id == id), {})
    return edited(asked, edits) if asked else None


def _value(arguments: Mapping[str, Json], name: str, text: Json) -> Json:
    if name not in arguments:
        raise ConfigError(
            f"{name!r} is no argument of this call; it has {', '.join(arguments) or 'none'}.",
            value=name,
        )
    try:
        value: Json = json.loads(str(text))
    except ValueError as error:
        raise ConfigError(
            f'{name} is not JSON: {text!r}. Text needs quotes: "…".', value=text
        ) from error
    return value
