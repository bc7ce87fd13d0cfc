"""Let magics wait, and let text keep its question marks: two transformers of IPython's input.

A magic cannot await. A waiting one returns a coroutine, and ``await_magics`` puts the ``await`` in
front of its call, by the syntax tree, after IPython has turned the magic into Python. A call that
stays without one (in a plain ``def``, or in the very cell that loads postroom) is noticed by the
magic itself, see ``caller``.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any, Final

from postroom.arguments import BadLine, scan
from postroom.catalogue import BY_NAME, MAGICS, WAIT
from postroom.grammar import Tail
from postroom.room_grammar import STEP
from postroom_runtime.contracts.errors import PostroomError

WRAPPERS: Final = frozenset({"capture", "time", "timeit", "prun", "memit"})
"""Magics that run a cell or a line themselves, where nothing can be awaited."""


class CannotWait(PostroomError):
    """A waiting magic stands where Python cannot await."""


def waits(name: str, line: str) -> bool:
    """Tell whether the magic ``name`` with this line is one that must be awaited."""
    magic = BY_NAME.get(name)
    if magic is None:
        return False
    if magic is WAIT or magic is STEP:
        return True
    if magic.find("--wait") is None:
        return False
    try:
        return any(option.name == "wait" for option, _ in scan(magic, line).options)
    except BadLine:
        return False  # the magic says so at once, there is nothing to wait for


# ── After IPython's own transformations ──


def await_magics(lines: list[str]) -> list[str]:
    """Put ``await`` before calls of waiting magics: ``ip.input_transformers_post``.

    Args:
        lines: A cell in Python, with line ends.

    Returns:
        The same cell; where a magic such as ``%%capture`` would run a waiting one, a call that
        raises ``CannotWait`` in its place, for there the wait would fail without a word.
    """
    source = "".join(lines)
    if "run_line_magic(" not in source and "run_cell_magic(" not in source:
        return lines
    tree = _tree(source)
    if tree is None:
        return lines  # IPython reports it better
    changes: list[tuple[ast.Call, str]] = []
    for call, awaitable in _magic_calls(tree):
        name, line, body = _arguments(call)
        if name in WRAPPERS and _runs_a_wait(body or line):
            sign = "%%" if body else "%"
            changes.append((call, _refusal(f"{sign}{name}")))
        elif awaitable and waits(name, line):
            changes.append((call, ""))
    if not changes:
        return lines
    return _changed(source, changes)


def refuse(wrapper: str) -> None:
    """Raise what a cell says that waits inside another magic; called by the rewritten cell.

    Raises:
        CannotWait: Always.
    """
    raise CannotWait(
        f"{wrapper} cannot run a magic that waits. Wait in a cell of its own, "
        "or keep what it returns: result = %wait"
    )


def _refusal(wrapper: str) -> str:
    return f"__import__('importlib').import_module({__name__!r}).refuse({wrapper!r})"


def _tree(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # IPython warns when it compiles
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def _magic_calls(
    node: ast.AST, awaitable: bool = True, awaited: bool = False
) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls of magics, each with whether an ``await`` is missing and allowed there."""
    if isinstance(node, ast.Call) and _is_magic_call(node):
        yield node, awaitable and not awaited
    if isinstance(node, ast.AsyncFunctionDef):
        awaitable = True
    elif isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
        awaitable = False
    for child in ast.iter_child_nodes(node):
        yield from _magic_calls(child, awaitable, isinstance(node, ast.Await))


def _is_magic_call(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in ("run_line_magic", "run_cell_magic")
        and isinstance(node.func.value, ast.Call)
        and isinstance(node.func.value.func, ast.Name)
        and node.func.value.func.id == "get_ipython"
        and len(node.args) >= 2
        and all(isinstance(arg, ast.Constant) and isinstance(arg.value, str) for arg in node.args)
    )


def _arguments(call: ast.Call) -> tuple[str, str, str]:
    values: list[Any] = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    return values[0], values[1], values[2] if len(values) > 2 else ""


def _runs_a_wait(cell: str) -> bool:
    """Tell whether a cell that another magic would run has a waiting magic in it."""
    if "%" not in cell:
        return False
    from IPython.core.inputtransformer2 import TransformerManager

    manager = TransformerManager()
    manager.cleanup_transforms.append(clean_lines)
    tree = _tree(manager.transform_cell(cell))
    if tree is None:
        return False
    for call, _ in _magic_calls(tree):
        name, line, body = _arguments(call)
        if waits(name, line) or (name in WRAPPERS and _runs_a_wait(body or line)):
            return True
    return False


def _changed(source: str, changes: list[tuple[ast.Call, str]]) -> list[str]:
    """Return the lines with each call replaced, or awaited where the replacement is ''."""
    rows = [row.encode() for row in source.split("\n")]  # the tree counts bytes and \n
    for call, text in sorted(changes, key=lambda change: _place(change[0]), reverse=True):
        row, column = call.lineno - 1, call.col_offset
        if not text:
            rows[row] = rows[row][:column] + b"await " + rows[row][column:]
            continue
        end_row = (call.end_lineno or call.lineno) - 1
        rest = rows[end_row][call.end_col_offset :]
        rows[row : end_row + 1] = [rows[row][:column] + text.encode() + rest]
    return b"\n".join(rows).decode().splitlines(keepends=True)


def _place(call: ast.Call) -> tuple[int, int]:
    return call.lineno, call.col_offset


# ── Before IPython's own transformations ──

_TARGET = r"\s*(?:[^\s%'\"#=][^%'\"#=]*=\s*%|%?)"
_TEXTS = "|".join(magic.name for magic in MAGICS if magic.tail is Tail.TEXT)
_OTHERS = "|".join(magic.name for magic in MAGICS if magic.line and magic.tail is not Tail.TEXT)
_TEXT_LINE = re.compile(rf"{_TARGET}(?:{_TEXTS})[ \t]+\S")
_BARE_SEMICOLON = re.compile(rf"({_TARGET}(?<=%)(?:{_OTHERS}));")


def clean_lines(lines: list[str]) -> list[str]:
    r"""Keep IPython from misreading our magics: ``ip.input_transformers_cleanup``.

    A line that ends in ``?`` is help on its last word to IPython. Behind the text of a magic, as
    in ``%send ann are you there?``, a blank prevents that; it is dropped with the line end later.
    ``%send?`` alone stays help. And ``%wait;`` is no magic called ``wait;``.

    Args:
        lines: A cell as typed, with line ends; a line may go on behind a ``\``.
    """
    if lines and lines[0].startswith("%%"):
        return lines  # the whole body goes to the magic as it is
    kept: list[str] = []
    quote = ""
    continued = False
    for line in lines:
        if continued or (not quote and _TEXT_LINE.match(line)):
            continued = line.endswith("\\\n")
            kept.append(re.sub(r"\?(\s*)\Z", r"? \1", line))
        else:
            kept.append(line if quote else _BARE_SEMICOLON.sub(r"\1 ;", line, count=1))
            quote = _open_quote(line, quote)
    return kept


_QUOTES = re.compile(r"\\.|'''|\"\"\"|['\"#]", re.DOTALL)


def _open_quote(line: str, quote: str) -> str:
    """Return the triple quote that is open behind ``line``, given the one open before it."""
    short = ""
    for found in _QUOTES.finditer(line):
        sign = found.group()
        if sign.startswith("\\"):
            continue
        if quote:
            quote = "" if sign == quote else quote
        elif short:
            short = "" if sign[0] == short else short
        elif sign == "#":
            break
        elif len(sign) == 3:
            quote = sign
        else:
            short = sign
    return quote
