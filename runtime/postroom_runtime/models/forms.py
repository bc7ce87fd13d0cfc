"""The texts behind ``model=`` that name a provider: ``provider:name`` and ``…@http://host/v1``."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from postroom_runtime.contracts.errors import ConfigError, ModelError

__all__ = ["FORMS", "PROVIDERS", "ModelForm", "parse_form"]

PROVIDERS: Final = ("openai", "openai-chat", "anthropic", "google", "ollama")
"""What may stand before the colon; ``openai`` is the Responses API."""

_WITH_SERVER: Final = ("openai", "openai-chat", "ollama")
_LATER: Final = ("local", "replay")

FORMS: Final = (
    "a script or its name, e.g. 'echo'; a pydantic_ai model; or a text "
    "'openai:NAME', 'openai-chat:NAME', 'anthropic:NAME', 'google:NAME', 'ollama:NAME' "
    "or 'openai-chat:NAME@http://host/v1'"
)
"""All that ``model=`` takes, in words, for messages."""

# A name may hold '@' itself ('@cf/meta/llama'): only what reads as an address is one.
_SERVER: Final = re.compile(r"@(?=https?://)")
_ADDRESS_WITHOUT_SCHEME: Final = re.compile(r"@(?:\w+://|[\w.-]+:\d+(?:/|$)|localhost(?:/|$))")


@dataclass(frozen=True, slots=True)
class ModelForm:
    """A text that names a provider's model, taken apart."""

    text: str
    """As it was written; what listings show."""
    provider: str
    """One of ``PROVIDERS``."""
    name: str
    """What the provider calls the model."""
    server: str | None = None
    """Where it is reached when not at the provider's own address, e.g. ``http://host/v1``."""


def parse_form(text: str) -> ModelForm | None:
    """Take ``text`` apart if it begins with a provider; nothing is reached or imported.

    Returns:
        The form, or None when ``text`` begins with no provider that is known.

    Raises:
        ConfigError: The provider is known, but its model's name or server is wrong.
        ModelError: A kind of model that this version does not have.
    """
    provider, colon, rest = text.partition(":")
    if colon and provider in _LATER:
        raise ModelError(
            f"model={text!r}: {provider}: models are not in this version. "
            "Serve the file with any OpenAI-compatible server and name that: "
            "'openai-chat:NAME@http://host/v1'."
            if provider == "local"
            else f"model={text!r}: {provider}: models are not in this version. Use a script instead.",
            model=text,
        )
    if not colon or provider not in PROVIDERS:
        return None

    name, *servers = _SERVER.split(rest, maxsplit=1)
    if not name or name != name.strip() or not name.isprintable():
        raise _wrong(text, f"the model's name is missing: write '{provider}:NAME'")
    if not servers:
        if _ADDRESS_WITHOUT_SCHEME.search(name, 1):
            raise _wrong(text, "the server behind '@' begins with http:// or https://")
        return ModelForm(text, provider, name)
    if provider not in _WITH_SERVER:
        raise _wrong(text, f"{provider}: takes no server: use one of {', '.join(_WITH_SERVER)}")
    _check_server(text, servers[0])
    return ModelForm(text, provider, name, servers[0])


def _check_server(text: str, server: str) -> None:
    try:
        parts = urlsplit(server)
        found = bool(parts.hostname) and parts.port != 0
    except ValueError:
        found = False
    if not found or any(sign.isspace() for sign in server):
        raise _wrong(text, f"{server!r} is no address: write e.g. http://127.0.0.1:8080/v1")
    if parts.username is not None:
        # The text is stored with the session and shown in listings; this message is shown too.
        shown = text.replace(f"{parts.netloc.rpartition('@')[0]}@", "…@")
        raise _wrong(shown, "the address holds a password: set OPENAI_API_KEY in the environment")


def _wrong(text: str, why: str) -> ConfigError:
    return ConfigError(f"model={text!r} will not do: {why}.", value=text)
