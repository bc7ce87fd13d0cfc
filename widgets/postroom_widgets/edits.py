"""What somebody typed over the arguments of a call, read where numbers are whole. Pure."""

import json
from collections.abc import Mapping

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
