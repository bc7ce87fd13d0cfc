"""Any provider's model, through ``pydantic_ai``, which is imported when it is first asked."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from postroom_runtime.contracts.errors import ModelError
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.building import build, environment, key_names
from postroom_runtime.models.forms import ModelForm
from postroom_runtime.models.history import messages_of, parameters_of, text_of, thought_of
from postroom_runtime.models.model import Emit, Prompt, Thought
from postroom_runtime.models.provider_errors import (
    Where,
    all_failed,
    model_error,
    unreadable,
    wait_before_retry,
)

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.settings import ModelSettings

__all__ = ["ProviderMind", "ProviderModel"]

_A = TypeVar("_A")
_B = TypeVar("_B")
_Environment: TypeAlias = tuple[str | None, str | None]

# An HTTP client belongs to the loop it was first used on, and to the key it was built with.
_BUILT: Final[RunVar[dict[ModelForm, "tuple[_Environment, PydanticModel]"]]] = RunVar("built")
_BUILDING: Final[RunVar[anyio.Lock]] = RunVar("building")


class ProviderModel:
    """A model of a provider.

    Args:
        source: What it is called, or a ``pydantic_ai`` model.
    """

    def __init__(self, source: "ModelForm | PydanticModel") -> None:
        self._source = source

    @property
    def name(self) -> str:
        """As it was written, or ``system:name`` of the object."""
        source = self._source
        return source.text if isinstance(source, ModelForm) else source.model_id

    def begin(self, session: SessionId) -> "ProviderMind":
        """Return a mind for one run of ``session``."""
        return ProviderMind(self._source, self._load)

    async def _load(self) -> "PydanticModel":
        """Import what is needed and build the client, in a thread; again for another loop or key."""
        source = self._source
        if not isinstance(source, ModelForm):
            if "pydantic_ai.direct" not in sys.modules:
                await _in_thread(import_module, "pydantic_ai.direct")
            return source
        built = _of_this_loop(_BUILT, dict)
        # One import at a time; who comes second finds what the first one built.
        async with _of_this_loop(_BUILDING, anyio.Lock):
            env = environment(source)
            if source not in built or built[source][0] != env:
                built[source] = env, await _in_thread(build, source)
            return built[source][1]


class ProviderMind:
    """One run of a provider's model in one session; every request carries the whole transcript."""

    def __init__(
        self, source: "ModelForm | PydanticModel", load: Callable[[], "Awaitable[PydanticModel]"]
    ) -> None:
        self._source = source
        self._load = load
        self._unpaid = 0

    @property
    def owed(self) -> Usage:
        """What was asked for and never returned: completions that were cut, or failed midway.

        The next thought of this mind counts it; who gives the mind up reads it here.
        """
        return Usage(requests=self._unpaid)

    async def think(self, prompt: Prompt, emit: Emit) -> Thought:
        """Send the transcript and stream the answer.

        Failures that pass by themselves are tried again, up to three requests in all, as long as
        nothing of an answer was shown. Cancelling closes the request.

        Raises:
            ModelError: The provider failed for good, or its key or package is missing.
        """
        model = await self._load()
        from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup, UserError

        ask = self._asking(model, prompt)
        shown = _Shown(emit)
        tries = 0
        while True:
            tries += 1
            try:
                response = await ask(shown)
            except (AgentRunError, UserError) as error:
                wait = None if shown.any else wait_before_retry(error, tries)
                if wait is None:
                    where = self._where(model)
                    raise model_error(error, where, tries=tries, shown=shown.any) from error
                await anyio.sleep(wait)
            except Exception as error:
                if isinstance(error, FallbackExceptionGroup):
                    raise all_failed(error, self._where(model)) from error
                if not isinstance(self._source, ModelForm):
                    raise  # The object was handed over: its function may raise what it likes.
                # Whatever a server babbles, the library trips over it somewhere; that is no bug here.
                raise unreadable(error, self._where(model)) from error
            else:
                return self._thought(response, model)

    def close(self) -> None:
        """Nothing is held between two requests."""

    def _asking(
        self, model: "PydanticModel", prompt: Prompt
    ) -> "Callable[[_Shown], Awaitable[ModelResponse]]":
        """Return what sends ``prompt`` to ``model``, once each time."""
        from pydantic_ai.direct import model_request, model_request_stream

        # Anthropic refuses calls in a transcript of tools that the request does not declare.
        off = model.system == "anthropic" and not prompt.tools
        messages = messages_of(prompt, _provider(model))
        json_mode = prompt.schema is not None and _has_json_mode(model)
        parameters = parameters_of(prompt, declare_used=off, json_mode=json_mode)
        forced = prompt.schema is not None and not json_mode  # A call is how it answers.
        settings = _settings(
            model, tools_off=off and not forced and bool(parameters.function_tools)
        )

        async def whole(shown: _Shown) -> "ModelResponse":
            response = await model_request(
                model, messages, model_settings=settings, model_request_parameters=parameters
            )
            shown.emit(text_of(response))
            return response

        async def streamed(shown: _Shown) -> "ModelResponse":
            answering = False
            self._unpaid += 1
            try:
                async with model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                ) as stream:
                    answering = True
                    async for event in stream:
                        shown.emit(_piece(event))
                    return stream.get()
            except Exception:
                if not answering:
                    self._unpaid -= 1  # A refusal costs nothing; what is cancelled may do.
                raise

        # A FunctionModel may have been given a function for whole answers only.
        return whole if getattr(model, "stream_function", model) is None else streamed

    def _thought(self, response: "ModelResponse", model: "PydanticModel") -> Thought:
        thought = thought_of(response, _provider(model))
        if not thought.text and not thought.calls and response.finish_reason == "content_filter":
            name = self._where(model).model
            raise ModelError(
                f"{name}: the provider's content filter withheld the answer: word it otherwise.",
                model=name,
            )
        # The cut ones before it, and this one.
        usage = replace(thought.usage, requests=max(self._unpaid, 1))
        self._unpaid = 0
        return replace(thought, usage=usage)

    def _where(self, model: "PydanticModel") -> Where:
        source = self._source
        if isinstance(source, ModelForm):
            server = "" if source.server else model.base_url or ""  # Named in the text already.
            return Where(source.text, server, key_names(source.provider))
        return Where(model.model_id, model.base_url or "")


class _Shown:
    """Passes text on, and knows whether there was any."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.any = False

    def emit(self, text: str) -> None:
        if text:
            self.any = True
            self._emit(text)


async def _in_thread(slow: Callable[[_A], _B], argument: _A) -> _B:
    """Run what imports off the loop; who is cancelled does not wait for it."""
    return await anyio.to_thread.run_sync(slow, argument, abandon_on_cancel=True)


def _of_this_loop(var: RunVar[_A], new: Callable[[], _A]) -> _A:
    try:
        return var.get()
    except LookupError:
        var.set(made := new())
        return made


def _provider(model: "PydanticModel") -> str:
    """Return who answers: what one leaves on a turn is handed back to the same one alone."""
    return f"{model.system} {model.base_url or ''}".rstrip()


def _has_json_mode(model: "PydanticModel") -> bool:
    """Tell whether ``model`` can be held to a JSON schema, by its own word."""
    try:
        return bool(model.profile.get("supports_json_schema_output"))
    except NotImplementedError:
        return False  # Of several models, each is asked in its own way.


def _settings(model: "PydanticModel", *, tools_off: bool) -> "ModelSettings":
    settings: ModelSettings = {"tool_choice": "none"} if tools_off else {}
    own = model.settings or {}
    if (
        hasattr(model, "client")
        and "max_retries" not in own
        and "max_retries" not in model.unsupported_settings
    ):
        # Of an object that was handed over: its client would multiply the tries made here.
        settings["max_retries"] = 0
    return settings


def _piece(event: object) -> str:
    """Return the text that ``event`` brings; events of other kinds, unknown ones too, bring none."""
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""
