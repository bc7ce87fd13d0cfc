"""Build a provider's model: its key, its package, its HTTP client. Slow at first: runs in a thread."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.models.forms import ModelForm

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as PydanticModel

__all__ = ["build", "environment", "key_names"]

_KEYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "openai": ("OPENAI_API_KEY",),
        "openai-chat": ("OPENAI_API_KEY",),
        "anthropic": ("ANTHROPIC_API_KEY",),
        "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "ollama": ("OLLAMA_API_KEY",),
    }
)
_SERVERS: Final[Mapping[str, str]] = MappingProxyType(
    {"openai": "OPENAI_BASE_URL", "openai-chat": "OPENAI_BASE_URL", "ollama": "OLLAMA_BASE_URL"}
)
_OLLAMA: Final = "http://localhost:11434/v1"
_NO_KEY: Final = "no-key"
"""Sent to a server that was named without a key: its client insists on one, it itself seldom does."""

_ANSWER_SECONDS: Final = 600
_CONNECT_SECONDS: Final = 10


def key_names(provider: str) -> str:
    """Return where the key of ``provider`` is looked for, in words: ``A or B``."""
    return " or ".join(_KEYS.get(provider, ()))


def environment(form: ModelForm) -> tuple[str | None, str | None]:
    """Return the key and the server that ``form`` would use now, either of them None when unset."""
    keys = (os.environ.get(name) for name in _KEYS[form.provider])
    server = form.server or os.environ.get(_SERVERS.get(form.provider, "")) or None
    if form.provider == "ollama":
        server = server or _OLLAMA
    return next((key for key in keys if key), None), server


def build(form: ModelForm) -> "PydanticModel":
    """Import what ``form`` needs and return its model, bound to no loop yet.

    Raises:
        ModelError: A key or a package is missing; the message says which one.
    """
    key, server = environment(form)
    if key is None and server is None:
        raise _key_missing(form)
    client = _http_client(form)
    try:
        import pydantic_ai.direct  # noqa: F401  Asked for on the loop later, where reading stalls.

        return _made(form, key, server, client)
    except ImportError as error:
        package = form.provider if form.provider in ("anthropic", "google") else None
        wanted = f"postroom[{package}]" if package else "pydantic-ai-slim[openai]"
        raise ModelError(
            f"{form.text} needs a package that is not installed: pip install '{wanted}'",
            model=form.text,
        ) from error


def _made(
    form: ModelForm, key: str | None, server: str | None, client: "httpx2.AsyncClient"
) -> "PydanticModel":
    # The retries are ours alone: a client that tried again by itself would triple every wait.
    match form.provider:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AnthropicProvider(api_key=key, http_client=client)
            return AnthropicModel(form.name, provider=anthropic, settings={"max_retries": 0})
        case "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            google = GoogleProvider(api_key=key, http_client=client)
            return GoogleModel(form.name, provider=google, settings={"max_retries": 0})
        case "ollama":
            from pydantic_ai.models.ollama import OllamaModel
            from pydantic_ai.providers.ollama import OllamaProvider

            ollama = OllamaProvider(server, key, http_client=client)
            return OllamaModel(form.name, provider=ollama, settings={"max_retries": 0})
        case _:
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            openai = OpenAIProvider(server, key or _NO_KEY, http_client=client)
            kind = OpenAIResponsesModel if form.provider == "openai" else OpenAIChatModel
            return kind(form.name, provider=openai, settings={"max_retries": 0})


def _http_client(form: ModelForm) -> "httpx2.AsyncClient":
    import httpx2

    # No connection is kept for later: local servers drop idle ones, which fails the next request,
    # and nothing tells a model that its room or its loop has ended, to close them then.
    try:
        return httpx2.AsyncClient(
            timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            limits=httpx2.Limits(max_keepalive_connections=0),
        )
    except (ImportError, ValueError) as error:
        raise ModelError(
            f"{form.text}: the proxy set in the environment cannot be used: {error}",
            model=form.text,
        ) from error


def _key_missing(form: ModelForm) -> ModelError:
    other = ""
    if form.provider in _SERVERS:
        other = f", or name a server: {form.provider}:{form.name}@http://host/v1"
    return ModelError(
        f"{form.text} needs {key_names(form.provider)}: set it in the environment{other}",
        model=form.text,
    )
