"""What a structured answer has to look like, and whether one does. Pure."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json

__all__ = ["OutputSchema", "WrongOutput"]

_FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)
_TOLD: Final = 3
"""Faults that are named before the rest is only counted."""


class WrongOutput(ValueError):
    """What a model answered does not fit; the message says where and why, in one line."""


class OutputSchema:
    """A JSON object that a model has to answer with. Made by :meth:`of`.

    Args:
        name: What providers are told it is called.
        description: What they are told it is.
        json_schema: Its JSON schema.
        read: Makes the value of the JSON text; raises ``WrongOutput``.
    """

    def __init__(
        self,
        name: str,
        description: str,
        json_schema: Mapping[str, Json],
        read: Callable[[str], Any],
    ) -> None:
        self.name, self.description, self.json_schema = name, description, json_schema
        self._read = read

    @classmethod
    def of(cls, source: Any) -> Self:
        """Return the schema that ``source`` stands for.

        Args:
            source: A pydantic model class, a dataclass or a TypedDict, or a JSON schema as a dict.

        Raises:
            ConfigError: It is none of these, or describes something else than an object.
        """
        if isinstance(source, Mapping):
            return cls._of_json_schema(dict(source))
        if not isinstance(source, type):
            raise _no_schema(source)
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(source)
            json_schema = adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise _no_schema(source, str(error).splitlines()[0]) from None
        _check_object(json_schema, source)

        def read(text: str) -> Any:
            try:
                return adapter.validate_json(text)
            except ValidationError as error:
                faults = [
                    f"{'.'.join(map(str, fault['loc'])) or 'the answer'}: {fault['msg']}"
                    for fault in error.errors(include_url=False, include_input=False)
                ]
                raise WrongOutput(_listed(faults)) from None

        description = str(json_schema.get("description", ""))
        return cls(source.__name__, description, json_schema, read)

    @classmethod
    def _of_json_schema(cls, json_schema: dict[str, Json]) -> Self:
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for

        _check_object(json_schema, json_schema)
        kind = validator_for(json_schema)
        try:
            kind.check_schema(json_schema)
        except SchemaError as error:
            raise _no_schema(json_schema, error.message) from None
        validator = kind(json_schema)

        def read(text: str) -> Any:
            try:
                value = json.loads(text)
            except ValueError as error:
                raise WrongOutput(f"not JSON ({error})") from None
            found = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
            if found:
                raise WrongOutput(_listed([f"{e.json_path}: {e.message}" for e in found]))
            return value

        name = re.sub(r"[^\w-]", "_", str(json_schema.get("title", "")))[:64] or "answer"
        return cls(name, str(json_schema.get("description", "")), json_schema, read)

    def read(self, text: str) -> Any:
        """Return the value of ``text``, JSON with or without a code fence around it.

        Raises:
            WrongOutput: It is no JSON, or does not fit.
        """
        fenced = _FENCED.fullmatch(text.strip())
        return self._read(fenced.group(1) if fenced else text)

    @staticmethod
    def words(value: Any) -> str:
        """Return ``value`` as the JSON text a model would have written.

        Raises:
            WrongOutput: There is no JSON of it.
        """
        try:
            return to_json(value).decode()
        except PydanticSerializationError as error:
            raise WrongOutput(f"no JSON can be made of it ({error})") from None


def _check_object(json_schema: Mapping[str, Any], source: Any) -> None:
    if json_schema.get("type") != "object" and "$ref" not in json_schema:
        raise _no_schema(source, "it describes no JSON object")


def _no_schema(source: Any, why: str = "") -> ConfigError:
    what = getattr(source, "__name__", None) or repr(source)
    return ConfigError(
        f"schema={what} will not do{f' ({why})' if why else ''}: give a pydantic model class, a "
        'dataclass, or a JSON schema with "type": "object".',
        value=source,
    )


def _listed(faults: list[str]) -> str:
    more = f" and {len(faults) - _TOLD} more" if len(faults) > _TOLD else ""
    return "; ".join(faults[:_TOLD]) + more
