"""What names in a magic's options stand for in the user's notebook. Pure over a namespace."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from postroom_runtime.calls.tool import Tool, make_tool
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.models.script import Script


def tools(names: Iterable[str], namespace: Mapping[str, Any]) -> list[Tool]:
    """Return the functions of a notebook as tools.

    Args:
        names: Variables, or attributes of them: ``run_tests``, ``suite.run``.
        namespace: The notebook's.

    Raises:
        ConfigError: No such name, with near matches; or it cannot be a tool, with the reason.
    """
    return [make_tool(variable(name, namespace, "tool")) for name in names]


def variable(name: str, namespace: Mapping[str, Any], what: str = "variable") -> Any:
    """Return what a name or a dotted path stands for.

    Args:
        name: ``policy`` or ``suite.run``.
        namespace: The notebook's.
        what: What is looked for, for the message; near matches of a ``tool`` are callables.

    Raises:
        ConfigError: There is no such name.
    """
    first, *rest = name.split(".")
    try:
        value = namespace[first]
        for attribute in rest:
            value = getattr(value, attribute)
    except (KeyError, AttributeError):
        known = tool_names(namespace) if what == "tool" else public_names(namespace)
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(
            f"no {what} {name!r} in this notebook.{hint} Run the cell that defines it first.",
            value=name,
        ) from None
    return value


def tool_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the names of what may be a tool: functions with annotations or a docstring."""
    return [name for name in public_names(namespace) if _may_be_tool(namespace[name])]


def _may_be_tool(value: Any) -> bool:
    if isinstance(value, Tool):
        return True
    if not callable(value) or isinstance(value, (type, Script)):
        return False
    module = getattr(value, "__module__", None)
    return module == "__main__" or bool(getattr(value, "__annotations__", None))


class Scripts(Mapping[str, Script]):
    """The scripts of a notebook by name, as they are now: it looks each time it is asked.

    Args:
        namespace: The notebook's. A variable's name counts before a script's own.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def _found(self) -> dict[str, Script]:
        found = {n: v for n, v in self._namespace.items() if isinstance(v, Script)}
        return {script.name: script for script in found.values()} | found

    def __getitem__(self, name: str) -> Script:
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found())

    def __len__(self) -> int:
        return len(self._found())


_IPYTHON = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython"})


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the names a user gave, in the order they were first used."""
    return [name for name in namespace if not name.startswith("_") and name not in _IPYTHON]
