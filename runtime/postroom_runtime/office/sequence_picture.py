"""A sequence diagram to look at, to print and to keep: what ``room.sequence()`` gives."""

from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final

from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.office.sequence import Diagram
from postroom_runtime.office.sequence_mermaid import to_mermaid
from postroom_runtime.office.sequence_svg import to_svg
from postroom_runtime.office.sequence_words import (
    EMPTY,
    facts_of,
    label_of,
    left_out,
    plain,
    shown_names,
    told,
)

_SUFFIXES: Final = (".svg", ".mmd", ".md")

_SHOWN: Final = (
    "<style>[data-sequence=picture]{display:block !important;overflow-x:auto}"
    "[data-sequence=words]{display:none !important}</style>"
)
"""Where styles are let through the picture shows, elsewhere the table below it: a page that takes
styles out takes pictures apart too, and would spill their texts. It takes out these attributes as well,
so that the styles of another output do not show what it left."""


class Sequence:
    """The mail between the sessions of a room as a sequence diagram, as it was when asked for.

    A notebook shows the picture, a terminal a list; ``str()`` is the Mermaid text.

    Args:
        diagram: What it shows.
    """

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram

    @cached_property
    def mermaid(self) -> str:
        """The diagram as Mermaid text: for Markdown, GitHub, slides."""
        return to_mermaid(self.diagram)

    @cached_property
    def svg(self) -> str:
        """The diagram as an SVG that needs nothing else, light and dark."""
        return to_svg(self.diagram)

    def save(self, path: str | Path) -> Path:
        """Write it to ``path``: ``.svg``, ``.mmd`` (Mermaid) or ``.md`` (Mermaid in Markdown).

        Returns:
            The path written to.

        Raises:
            ConfigError: Another suffix.
        """
        to = Path(path).expanduser()
        suffix = to.suffix.lower()
        if suffix not in _SUFFIXES:
            raise ConfigError(
                f"{str(path)!r} cannot hold a sequence diagram: end it in "
                f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}.",
                value=path,
            )
        if suffix == ".svg":
            text = f'<?xml version="1.0" encoding="UTF-8"?>\n{self.svg}'
        else:
            text = self.mermaid if suffix == ".mmd" else f"```mermaid\n{self.mermaid}\n```"
        to.write_text(text + "\n", encoding="utf-8")
        return to

    def __str__(self) -> str:
        return self.mermaid

    def __repr__(self) -> str:
        return plain(self.diagram)

    def __len__(self) -> int:
        """Return how many marks it shows."""
        return len(self.diagram.marks)

    def __bool__(self) -> bool:
        return True

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        """Return the picture, and the same in words for a page that shows no pictures."""
        return (
            '<div class="postroom-sequence mathjax_ignore tex2jax_ignore">'
            f'{_SHOWN}<div data-sequence="words">{_table(self.diagram)}</div>'
            '<div data-sequence="picture" style="display: none">'
            f"{self.svg}</div></div>"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        # HTML alone, and no image/svg+xml beside it: as an image the picture could not take the
        # colours of the page, nor show its tooltips, and Jupyter prefers the HTML anyway.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def _table(diagram: Diagram) -> str:
    if not diagram.marks:
        return f"<p>{EMPTY}</p>"
    names = shown_names(diagram)
    rows = "".join(
        f"<tr><td>{escape(told(mark, names))}</td><td>{escape(_cut(label_of(mark)))}</td>"
        f"<td>{escape(', '.join(facts_of(mark)))}</td></tr>"
        for mark in diagram.marks
    )
    note = f"<p>{escape(left_out(diagram))}</p>" if diagram.left_out else ""
    return f"{note}<table><tbody>{rows}</tbody></table>"


def _cut(label: str) -> str:
    return label if len(label) <= 200 else f"{label[:199].rstrip()}…"
