"""Lists that show themselves as tables: aligned text in a terminal, HTML in a notebook."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, SupportsIndex, TypeVar, overload

from postroom.grid_html import as_html
from postroom.grid_text import WIDTH, plain
from postroom.grids import Grid

T = TypeVar("T")


class Table(list[T], Generic[T]):
    """Records, as a list to work with and as a table to look at. A slice of it is a table too.

    Args:
        records: What the list holds.
        draw: Says what is shown of them; asked once, at once.
        width: Columns of its plain form.
    """

    def __init__(
        self,
        records: Iterable[T],
        draw: Callable[[Sequence[T]], Grid],
        *,
        width: int = WIDTH,
    ) -> None:
        super().__init__(records)
        self.grid = draw(self)
        self._draw, self._width = draw, width

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> "Table[T]": ...
    def __getitem__(self, at: SupportsIndex | slice) -> "T | Table[T]":
        if isinstance(at, slice):
            return Table(super().__getitem__(at), self._draw, width=self._width)
        return super().__getitem__(at)

    def __repr__(self) -> str:
        return plain(self.grid, self._width)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": as_html(self.grid)}
