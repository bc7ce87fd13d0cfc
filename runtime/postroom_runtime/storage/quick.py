"""Make frozen records as fast as plain ones.

A frozen dataclass sets each field through ``object.__setattr__``, which makes an envelope four times
as dear as an unfrozen one, and accepting one mail makes three such records. A record made here is
built as an unfrozen twin with the same slots and then told its real class: from there on it is an
ordinary frozen record.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def maker(record: type[T]) -> Callable[..., T]:
    """Return a fast constructor of the frozen, slotted dataclass ``record``.

    It takes the fields by position, in the order they are declared; defaults may be left out at the
    end. It checks nothing that a dataclass would not check.
    """
    declared = fields(record)  # type: ignore[arg-type]
    twin: Any = make_dataclass(
        record.__name__, [_as_declared(each) for each in declared], slots=True, eq=False, repr=False
    )

    def make(*values: object) -> T:
        made: Any = twin(*values)
        made.__class__ = record
        return made  # type: ignore[no-any-return]

    return make


def _as_declared(each: "Field[Any]") -> tuple[str, Any, Any]:
    if each.default is not MISSING:
        return each.name, each.type, field(default=each.default)
    if each.default_factory is not MISSING:
        return each.name, each.type, field(default_factory=each.default_factory)
    return each.name, each.type, field()
