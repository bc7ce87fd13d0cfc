"""What went wrong at a provider, in one line that says what to do, and whether to try again."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.contracts.extra import Json

if TYPE_CHECKING:
    from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup, UserError

__all__ = ["TRIES", "Where", "all_failed", "model_error", "unreadable", "wait_before_retry"]

TRIES: Final = 3
"""Requests for one thought, the first included."""

_WAITS: Final = (1.0, 4.0)
"""Seconds before the second and the third try, unless the provider says how long."""

_LONGEST_WAIT: Final = 60.0
"""Seconds; a provider that asks for a longer wait is not waited for."""

_PASSING: Final = frozenset({408, 409, 425, 429})
"""Statuses below 500 that another try may cure."""

_DETAIL: Final = 300
"""Characters of a provider's own words that are shown."""


@dataclass(frozen=True, slots=True)
class Where:
    """Who was asked, for messages."""

    model: str
    """The model as it was written, e.g. ``openai-chat:gpt-5``."""
    server: str = ""
    """Its address, unless ``model`` says it."""
    key: str = ""
    """Name of the environment variable that holds the key, or ''."""


def wait_before_retry(error: "AgentRunError | UserError", tries: int) -> float | None:
    """Return the seconds to wait before asking again, or None when that would not help.

    Args:
        error: Why the last try failed; nothing of an answer had been shown.
        tries: How many there were, from 1.
    """
    from pydantic_ai import exceptions as e

    if tries >= TRIES or not isinstance(error, e.ModelAPIError):
        return None
    if isinstance(error, e.ModelHTTPError) and error.provider_retry_hint is not None:
        curable = error.provider_retry_hint
    elif isinstance(error, e.ModelQuotaExceededError | e.ModelRequestTimeout):
        curable = False
    elif isinstance(error, e.ModelHTTPError):
        curable = error.status_code in _PASSING or error.status_code >= 500
    elif isinstance(error, e.ModelTimeoutError):
        curable = error.phase == "connect"  # A server that kept silent for minutes will again.
    else:
        passing = e.ModelConnectionError, e.ModelRateLimitError, e.ModelServerError
        curable = isinstance(error, (*passing, e.ModelUnavailableError))
    wait = error.retry_after or _WAITS[tries - 1]
    return wait if curable and wait <= _LONGEST_WAIT else None


def model_error(
    error: "AgentRunError | UserError", where: Where, *, tries: int = 1, shown: bool = False
) -> ModelError:
    """Return ``error`` as one line for people.

    Args:
        error: Why the last try failed.
        where: Who was asked.
        tries: How often.
        shown: Part of the answer had been shown when it failed.
    """
    status = getattr(error, "status_code", None)
    what = _what(error, where)
    if shown:
        what += " The answer broke off in the middle and is not asked for twice: send again."
    elif tries > 1:
        what += f" Tried {tries} times."
    said = _said(error)
    line = f"{where.model}{f' ({status})' if status else ''}: {what}{said and f' It said: {said}'}"
    return ModelError(line, model=where.model, status=status)


def all_failed(group: "FallbackExceptionGroup", where: Where) -> ModelError:
    """Return what to say when every model of a fallback failed: each one's reason, in their order."""
    from pydantic_ai.exceptions import ModelAPIError

    reasons = [
        str(model_error(error, Where(error.model_name)))
        if isinstance(error, ModelAPIError)
        else " ".join(str(error).split())
        for error in group.exceptions
    ]
    return ModelError(f"{where.model}: {' '.join(reasons)}", model=where.model)


def unreadable(error: Exception, where: Where) -> ModelError:
    """Return what to say of an answer that the library could make nothing of."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())[:_DETAIL]}"
    at = f" at {where.server}" if where.server else ""
    return ModelError(
        f"{where.model}: the answer{at} cannot be read: does the server speak its provider's "
        f"language? ({what})",
        model=where.model,
    )


def _what(error: "AgentRunError | UserError", where: Where) -> str:
    from pydantic_ai import exceptions as e

    at = f" at {where.server}" if where.server else ""
    match error:
        case e.ModelAuthenticationError():
            return f"the key was refused{at}: check {where.key or 'the key of the model'}."
        case e.ModelContextWindowExceededError():
            return (
                "the transcript no longer fits into the model's context: "
                "begin a new session, or use a model with a larger context."
            )
        case e.ModelNotFoundError():
            return f"no such model{at}: check its name, and the address."
        case e.ModelQuotaExceededError():
            return "the account's quota is used up: raise it, or use another model."
        case e.ModelRateLimitError(retry_after=float(wait)) if wait > _LONGEST_WAIT:
            return f"too many requests, and it asks to wait {wait:g}s: send again after that."
        case e.ModelRateLimitError():
            return "too many requests: wait a little, or let fewer sessions run at once."
        case e.ModelRequestRejectedError():
            return "the request was refused."
        case e.ModelUnavailableError() | e.ModelServerError():
            return f"the server{at} failed: try again later."
        case e.ModelTimeoutError() | e.ModelRequestTimeout():
            return f"no answer{at} in time: is the server busy, or stuck?"
        case e.ModelConnectionError(phase="connect"):
            return f"cannot be reached{at}: is the server running, and the address right?"
        case e.ModelConnectionError():
            return f"the connection{at} was cut."
        case e.ModelHTTPError():
            return f"the server{at} refused."
        case e.UserError():
            return " ".join(error.message.split())
        case _:
            return f"the answer{at} cannot be read: {' '.join(error.message.split())[:_DETAIL]}"


def _said(error: "AgentRunError | UserError") -> str:
    """Return the provider's own words on one line, or ''."""
    body: Json = getattr(error, "body", None)
    for key in ("error", "message"):
        if isinstance(body, dict):
            body = body.get(key, body.get("message"))
    text = " ".join(body.split()) if isinstance(body, str) else ""
    return text if len(text) <= _DETAIL else f"{text[:_DETAIL]}…"
