"""Texts in which only code between fences is set apart: nothing else in them means anything.

``static/prose.js`` does the same for the live view; a test holds the two together.
"""

import re
from typing import Final, NamedTuple

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_ANY: Final = re.compile(r"^ {0,3}(```|~~~)", re.MULTILINE)


class ProsePart(NamedTuple):
    """A stretch of a text."""

    code: bool
    """Whether it stood between fences, which are left out."""
    lang: str
    """What the fence says it is; '' for nothing."""
    text: str


def prose_parts(text: str) -> list[ProsePart]:
    """Return the parts of ``text``: prose, and code between fences, one that is open too."""
    if not _ANY.search(text):
        return [ProsePart(False, "", text)]
    parts: list[ProsePart] = []
    lines: list[str] = []
    mark, lang = "", ""  # of the fence we are behind

    def flush() -> None:
        whole = "\n".join(lines)
        whole = whole if mark else whole.strip("\n")
        if mark or whole:
            parts.append(ProsePart(bool(mark), lang, whole))
        lines.clear()

    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if fence is None or (mark and not _ends(mark, fence)):
            lines.append(line)
            continue
        flush()
        mark, lang = ("", "") if mark else (fence[1], fence[2])
    flush()
    return parts


def _ends(mark: str, fence: re.Match[str]) -> bool:
    return not fence[2] and fence[1][0] == mark[0] and len(fence[1]) >= len(mark)
