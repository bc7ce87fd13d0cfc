"""Read a docstring: what the tool does, and a line for each parameter."""

import re
from functools import cache
from typing import Literal

_GOOGLE = re.compile(r"^\s*(Args|Arguments|Parameters|Params):\s*$", re.MULTILINE)
_NUMPY = re.compile(r"^\s*Parameters\s*\n\s*-{3,}", re.MULTILINE)
_SPHINX = re.compile(r"^\s*:param\s", re.MULTILINE)


@cache
def describe(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the description of a tool and of its parameters, by name.

    Google, NumPy and Sphinx forms are read; a docstring of no known form is all description. What a
    tool returns or raises, and notes on it, are part of its description: the model can use them.

    Args:
        docstring: As ``inspect.getdoc`` gives it; may be empty.
    """
    style: Literal["google", "numpy", "sphinx"] | None = None
    if _GOOGLE.search(docstring):
        style = "google"
    elif _NUMPY.search(docstring):
        style = "numpy"
    elif _SPHINX.search(docstring):
        style = "sphinx"
    if style is None:
        return docstring.strip(), {}
    # Costs a tenth of a second to import: only for docstrings that need it.
    from griffe import Docstring, DocstringSectionKind

    texts: list[str] = []
    parameters: dict[str, str] = {}
    for section in Docstring(docstring).parse(style, warnings=False):
        if section.kind is DocstringSectionKind.parameters:
            for parameter in section.value:
                parameters[parameter.name] = _line(parameter.description)
        elif section.kind is DocstringSectionKind.text:
            texts.append(section.value.strip())
        elif section.kind is DocstringSectionKind.returns:
            said = " ".join(item.description for item in section.value if item.description)
            texts.append(f"Returns: {_line(said)}")
        elif section.kind is DocstringSectionKind.raises:
            said = "; ".join(f"{item.annotation}: {item.description}" for item in section.value)
            texts.append(f"Raises: {_line(said)}")
        elif section.kind is DocstringSectionKind.admonition:
            texts.append(f"{section.title}: {section.value.contents.strip()}")
    return "\n\n".join(filter(None, texts)), parameters


def _line(text: str) -> str:
    return " ".join(text.split())
