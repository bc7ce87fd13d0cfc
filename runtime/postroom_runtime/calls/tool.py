"""A tool from a Python function: its schema from the signature, its words from the docstring."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from keyword import iskeyword
from typing import Any, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import to_jsonable_python

from postroom_runtime.calls.docstring import describe
from postroom_runtime.contracts.call import ToolSpec
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes as the name of a tool."""


class BadArguments(Exception):
    """The model's arguments do not fit the tool; the message tells the model which and why."""


@dataclass(frozen=True)
class Tool:
    """Something a model may call.

    Args:
        spec: What the model is told.
        function: What runs: a plain function runs in a worker thread, a coroutine on the loop.
        model: Checks the arguments the model gives, and turns them into Python values.
        bound: Arguments merged in below, which no model sees or overrides (M-123).
        attach_seconds: How long a turn stays with a call before it goes on without it.
        toolbox: Which of Postroom's own toolboxes it is from; '' for a user's function.
        places: One of Postroom's own that works as a user's does: it takes a place among the calls
            that run at the same time.
    """

    spec: ToolSpec
    function: Callable[..., Any]
    model: type[BaseModel]
    bound: Mapping[str, Any] = field(default_factory=dict)
    attach_seconds: float | None = None
    toolbox: str = ""
    places: bool = False

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name

    @property
    def is_async(self) -> bool:
        """Whether it runs on the loop."""
        return inspect.iscoroutinefunction(_plain(self.function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it had never become a tool."""
        return self.function(*args, **kwargs)

    def unbound(self, given: Json) -> dict[str, Json]:
        """Return what of ``given`` counts: a value for what is bound changes nothing (M-123)."""
        return {name: value for name, value in dict(given or {}).items() if name not in self.bound}

    def arguments(self, given: Mapping[str, Json]) -> dict[str, Any]:
        """Return keyword arguments for the function: ``given``, checked, and what is bound.

        Raises:
            BadArguments: Missing, unknown or of the wrong type.
        """
        try:
            checked = self.model.model_validate(dict(given))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors()
            )
            raise BadArguments(f"{self.name} was not called: {faults}.") from None
        kwargs = {
            _hidden(str(info.alias)): getattr(checked, name)
            for name, info in type(checked).model_fields.items()
        }
        return kwargs | dict(self.bound)

    def bind(self, values: Mapping[str, Any]) -> "Tool":
        """Return this tool with ``values`` bound where it has such parameters."""
        mine = {k: v for k, v in values.items() if k in inspect.signature(self.function).parameters}
        if not mine:
            return self
        return make_tool(
            self.function,
            name=self.name,
            bound={**self.bound, **mine},
            attach_seconds=self.attach_seconds,
            toolbox=self.toolbox,
        )


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, attach_seconds: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    attach_seconds: float | None = None,
) -> Any:
    """Make a tool of a typed function with a docstring; usable bare or with options.

    Args:
        function: The function. Its annotations make the schema, its docstring the description.
        name: What the model calls it; the function's name when not given.
        attach_seconds: A slow call hands control back after that many seconds.

    Raises:
        ConfigError: A parameter has no usable type, or the name cannot be one.
    """
    if function is None:
        return lambda f: make_tool(f, name=name, attach_seconds=attach_seconds)
    return make_tool(function, name=name, attach_seconds=attach_seconds)


def make_tool(
    function: Callable[..., Any] | Tool,
    *,
    name: str | None = None,
    bound: Mapping[str, Any] | None = None,
    attach_seconds: float | None = None,
    toolbox: str = "",
) -> Tool:
    """Return ``function`` as a tool, with ``bound`` arguments hidden from the model.

    Raises:
        ConfigError: Not a callable, a parameter cannot be given by name or has no usable type.
    """
    if isinstance(function, Tool):
        return function
    if not callable(function):
        raise ConfigError(
            f"{function!r} is no tool: give a typed function with a docstring.", value=function
        )
    plain = _plain(function)
    # An object with __call__ goes by the name of its class, and by its words if it has no own.
    known = type(function) if plain.__name__ == "__call__" else plain
    called = name or getattr(function, "__name__", known.__name__)
    if called == "<lambda>":
        raise ConfigError("a lambda has no name to be called by: use def, or @pr.tool(name=…).")
    if not isinstance(called, str) or not _NAME.fullmatch(called):
        raise ConfigError(
            f"{called!r} cannot name a tool: models take 1 to 64 of a-z, A-Z, 0-9, '_' and '-'. "
            "Give another: @pr.tool(name=…).",
            value=called,
        )
    hidden = dict(bound or {})
    words = inspect.getdoc(known if plain.__doc__ is None else plain) or ""
    summary, parameters = describe(words)
    try:
        hints = get_type_hints(plain, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, AttributeError, SyntaxError) as error:
        raise ConfigError(f"tool {called}: {error}; its annotations must resolve.") from None
    except (ValueError, TypeError) as error:
        raise ConfigError(f"tool {called}: {error}; give a def with annotations.") from None
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.name in hidden or parameter.kind in (
            parameter.VAR_KEYWORD,
            parameter.VAR_POSITIONAL,
        ):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ConfigError(
                f"tool {called}: {parameter.name!r} is positional only, and models give names."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        # Counted names with an alias: a parameter may be called `json` or `copy`, a field may not.
        fields[f"p{len(fields)}"] = (
            hints.get(parameter.name, Any),
            Field(
                default,
                alias=_shown(parameter.name),
                description=parameters.get(parameter.name),
            ),
        )
    try:
        model = create_model(
            f"{called}_arguments",
            __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
            **fields,
        )
        schema = model.model_json_schema()
    except Exception as error:  # pydantic raises many kinds for a type it has no schema for
        raise ConfigError(f"tool {called}: no JSON schema for its parameters: {error}") from None
    schema.pop("title", None)
    for part in schema.get("properties", {}).values():
        part.pop("title", None)
    schema.setdefault("properties", {})
    return Tool(
        spec=ToolSpec(called, summary, schema),
        function=function,
        model=model,
        bound=hidden,
        attach_seconds=attach_seconds,
        toolbox=toolbox,
    )


def _shown(parameter: str) -> str:
    """Return what the model calls a parameter: ``for_`` is ``for``, which Python keeps to itself."""
    plain = parameter.removesuffix("_")
    return plain if iskeyword(plain) else parameter


def _hidden(shown: str) -> str:
    return f"{shown}_" if iskeyword(shown) else shown


def _plain(function: Callable[..., Any]) -> Any:
    """Return what carries the name, the words and the annotations of a callable."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    return type(function).__call__


def as_text(result: Any) -> str:
    """Return a tool's result as the model reads it: a text as it is, the rest as JSON.

    Raises:
        TypeError: The result is neither text nor JSON.
    """
    if isinstance(result, str):
        return result
    if result is None:
        return "done"
    return json.dumps(as_json(result), ensure_ascii=False)


def as_json(result: Any) -> Json:
    """Return ``result`` as JSON values: dataclasses, pydantic models, dates and sets included.

    Raises:
        TypeError: Something in it has no JSON form.
    """
    try:
        return to_jsonable_python(result)
    except (ValueError, TypeError) as error:
        raise TypeError(
            f"the tool returned {type(result).__name__}, which is neither text nor JSON"
        ) from error
