"""The front end's files, joined into the one module and the one sheet that a widget carries.

Each file in ``static/`` is a plain ES module of named exports that imports its neighbours only, so
browsers and tests run the files as they are. A widget's code travels as one text: here the files
are laid one after the other, and the lines that tie them together go. So do comments on lines of
their own and indentation, because every saved widget carries the whole text.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"

_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*.*?\*/[ \t]*)\n", re.MULTILINE | re.DOTALL)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_IMPORT = re.compile(r"^import\s[^;]*?from\s+\"\./[\w-]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", re.MULTILINE)


@cache
def script(names: Sequence[str]) -> str:
    """Return the ES modules ``names``, in this order, as one module.

    Args:
        names: File stems in ``static/``; a file stands after all it imports. Names at the top of
            the files must differ, for they share one scope. No text in them spans lines.
    """
    texts = [(STATIC / f"{name}.js").read_text("utf-8") for name in names]
    return _plain("".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts))


@cache
def sheet(names: Sequence[str]) -> str:
    """Return the style sheets ``names``, in this order, as one."""
    return _plain("".join((STATIC / f"{name}.css").read_text("utf-8") for name in names))


def _plain(text: str) -> str:
    return _INDENT.sub("", _COMMENT.sub("", text))
