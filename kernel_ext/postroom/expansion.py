"""Replace ``{expr}`` in a line by its value. Pure but for the expressions themselves.

Every ``{expr}`` that evaluates is replaced, every other brace stays as it was typed: JSON, LaTeX,
templates and unknown names go through untouched, and one of them does not switch the others off.
``$x`` is never replaced. A literal (``{3}``, ``{"a": 1}``) says the same with its braces, and means
something with them in regular expressions, LaTeX and JSON: it stays. As in an f-string a conversion
(``{x!r}``) or a format (``{x:.2f}``) may follow, but not a space after the colon: that is prose.
"""

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any


def expand(text: str, names: Mapping[str, Any]) -> str:
    """Return ``text`` with each ``{expr}`` replaced that evaluates over ``names``.

    Args:
        text: The line as typed.
        names: The notebook's namespace. A bare builtin such as ``{id}`` is no reference to it.
    """
    if "{" not in text:
        return text
    parts: list[str] = []
    at = 0
    while (brace := text.find("{", at)) >= 0:
        parts.append(text[at:brace])
        found = _field(text, brace)
        shown = None if found is None else _shown(found, names)
        if found is None or shown is None:
            parts.append("{")
            at = brace + 1
        else:
            parts.append(shown)
            at = found.end
    return "".join([*parts, text[at:]])


@dataclass(frozen=True, slots=True)
class _Field:
    code: CodeType
    bare: str
    """The expression if it is a single name, else ''."""
    conversion: str
    format: str
    end: int


def _field(text: str, brace: int) -> _Field | None:
    """Return the shortest replacement field that starts at ``brace`` and is Python."""
    end = brace
    while (end := text.find("}", end + 1)) >= 0:
        inner = text[brace + 1 : end]
        for expression, conversion, format in _readings(inner):
            tree = _expression(expression)
            if tree is None or isinstance(tree.body, (ast.Dict, ast.Set)) or _literal(tree):
                continue
            try:
                code = compile(tree, "<line>", "eval")
            except (SyntaxError, ValueError):
                continue
            bare = tree.body.id if isinstance(tree.body, ast.Name) else ""
            return _Field(code, bare, conversion, format, end + 1)
    return None


def _readings(inner: str) -> Iterator[tuple[str, str, str]]:
    """Yield the ways to read a field: all expression, or an expression and how to show it."""
    yield inner, "", ""
    for at, sign in enumerate(inner):
        if sign == "!" and inner[at + 1 : at + 2] in ("r", "s", "a"):
            rest = inner[at + 2 :]
            if not rest or (rest.startswith(":") and not rest[1:2].isspace()):
                yield inner[:at], inner[at + 1], rest[1:]
        elif sign == ":" and inner[at + 1 :].strip() == inner[at + 1 :] != "":
            yield inner[:at], "", inner[at + 1 :]


def _expression(source: str) -> ast.Expression | None:
    if not source.strip():
        return None
    try:
        return ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _literal(tree: ast.Expression) -> bool:
    try:
        ast.literal_eval(tree)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _shown(field: _Field, names: Mapping[str, Any]) -> str | None:
    if field.bare and field.bare not in names and hasattr(builtins, field.bare):
        return None
    # The user's own code runs here and may raise anything; what has no value stays as typed.
    try:
        value = eval(field.code, dict(names))
        match field.conversion:
            case "r":
                value = repr(value)
            case "s":
                value = str(value)
            case "a":
                value = ascii(value)
        return format(value, field.format)
    except Exception:
        return None
