"""From what people write behind ``model=`` to a model."""

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeGuard

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.models.built_in import BUILT_IN
from postroom_runtime.models.forms import FORMS, PROVIDERS, parse_form
from postroom_runtime.models.model import Model
from postroom_runtime.models.provider import ProviderModel
from postroom_runtime.models.script import Script

if TYPE_CHECKING:
    from pydantic_ai.models import Model as PydanticModel

__all__ = ["resolve"]

_NO_SCRIPTS: Final[Mapping[str, Script]] = MappingProxyType({})


def resolve(model: object, *, scripts: Mapping[str, Script] = _NO_SCRIPTS) -> Model:
    """Return the model that ``model`` names or is. Cheap: nothing is imported or reached yet.

    Args:
        model: A script or its name, a ``pydantic_ai`` model, anything else that is a ``Model``, or
            a text ``provider:name``, ``openai-chat:NAME@http://host/v1``.
        scripts: Scripts known by name, before those built in.

    Raises:
        ConfigError: Nothing of that; names what is allowed, and what is near.
        ModelError: A kind of model that this version does not have.
    """
    if isinstance(model, str):
        return _named(model, scripts)
    if not isinstance(model, type):
        if isinstance(model, Model):
            return model
        if _is_pydantic_ai(model):
            return ProviderModel(model)
    raise ConfigError(f"model={model!r} will not do: give {FORMS}.{_hint(model)}", value=model)


def _named(name: str, scripts: Mapping[str, Script]) -> Model:
    known = {**BUILT_IN, **scripts}
    if name in known:
        return known[name]
    if (form := parse_form(name)) is not None:
        return ProviderModel(form)
    near = _near(name, known)
    raise ConfigError(
        f"model={name!r} is unknown{f': did you mean {near}?' if near else '.'} Give {FORMS}.",
        value=name,
    )


def _near(name: str, known: Mapping[str, Script]) -> str:
    """Return what may have been meant, quoted, or ''."""
    provider, colon, rest = name.partition(":")
    if colon:
        meant = get_close_matches(provider.strip().lower(), PROVIDERS, n=2, cutoff=0.6)
        return " or ".join(repr(f"{word}:{rest.strip()}") for word in meant)
    if meant := get_close_matches(name, known, n=3, cutoff=0.6):
        return " or ".join(map(repr, meant))
    if provider.startswith(("gpt", "o1", "o3", "o4")):
        return repr(f"openai:{name}")
    if provider.startswith("claude"):
        return repr(f"anthropic:{name}")
    return repr(f"google:{name}") if provider.startswith("gemini") else ""


def _is_pydantic_ai(model: object) -> "TypeGuard[PydanticModel]":
    # Whoever holds such an object has imported its class: no need to import it to know.
    models = sys.modules.get("pydantic_ai.models")
    return models is not None and isinstance(model, models.Model)


def _hint(model: object) -> str:
    if isinstance(model, type):
        return f" Give an instance: {model.__name__}(…)."
    return " Make a script of the function with @script." if callable(model) else ""
