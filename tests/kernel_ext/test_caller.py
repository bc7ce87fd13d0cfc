"""What a magic can tell of the code that calls it."""

import ast
import asyncio
import inspect
import types
from typing import Any

import pytest

from postroom.caller import Caller, Use, caller

_SOURCE = """
def magic():
    seen.append(caller())
    return "value"
def waiting():
    seen.append(caller())
    return Soon()
class Soon:
    def __await__(self):
        yield from ()
        return "value"
"""


@pytest.fixture
def cell() -> Any:
    """Return a function that runs a cell as IPython does and returns what its magics saw."""
    seen: list[Caller] = []
    inside = types.ModuleType("postroom.pretended")  # passed over, as IPython's own frames are
    inside.__dict__.update(seen=seen, caller=caller)
    exec(_SOURCE, inside.__dict__)
    user: dict[str, Any] = {"__name__": "__main__", "m": inside.magic, "w": inside.waiting}

    async def run(source: str) -> list[Caller]:
        *body, last = ast.parse(source).body
        parts: list[tuple[Any, str]] = [(ast.Module([node], []), "exec") for node in body]
        if isinstance(last, ast.Expr):
            parts.append((ast.Interactive([last]), "single"))
        else:
            parts.append((ast.Module([last], []), "exec"))
        for tree, mode in parts:
            code = compile(tree, "<cell>", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            found = eval(code, user)
            if inspect.isawaitable(found):
                await found
        return seen

    return lambda source: asyncio.run(run(source))


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("m()", [Use.SHOWN]),
        ("m(); m()", [Use.DROPPED, Use.SHOWN]),
        ("m()\nx = 1", [Use.DROPPED]),
        ("x = m()", [Use.KEPT]),
        ("a, b = m(), m()", [Use.KEPT, Use.KEPT]),
        ("if 1:\n    m()\n    x = m()", [Use.DROPPED, Use.KEPT]),
        ("for n in range(2):\n    m()", [Use.DROPPED, Use.DROPPED]),
        ("x = [m()]", [Use.KEPT]),
        ("str(m())", [Use.KEPT]),
    ],
)
def test_what_becomes_of_a_value(cell: Any, source: str, uses: list[Use]) -> None:
    seen = cell(source)

    assert [look.use for look in seen] == uses
    assert not any(look.awaits for look in seen)


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        ("await w()", [Use.SHOWN]),
        ("await w(); await w()", [Use.DROPPED, Use.SHOWN]),
        ("x = await w()", [Use.KEPT]),
        ("if 1:\n    await w()\n    x = await w()", [Use.DROPPED, Use.KEPT]),
        ("async def f():\n    await w()\nawait f()", [Use.DROPPED]),
        ("async def f():\n    return await w()\nawait f()", [Use.KEPT]),
    ],
)
def test_what_becomes_of_an_awaited_value(cell: Any, source: str, uses: list[Use]) -> None:
    seen = cell(source)

    assert [look.use for look in seen] == uses
    assert all(look.awaits for look in seen)


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("w()", ""),
        ("def f():\n    w()\nf()", "f"),
        ("f = lambda: w()\nx = f()", "<lambda>"),
        ("import asyncio\nw()\nawait asyncio.sleep(0)", ""),
        ("async def f():\n    w()\nawait f()", "f"),
    ],
)
def test_a_call_that_nobody_awaits_is_noticed(cell: Any, source: str, function: str) -> None:
    (seen,) = cell(source)

    assert not seen.awaits
    assert seen.function == function
