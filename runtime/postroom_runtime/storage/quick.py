"""Make frozen records as fast as plain ones.

A frozen dataclass sets each field through ``object.__setattr__``, which makes an envelope four times
as dear as an unfrozen one, and accepting one mail makes three such records. A record made here is
built as an unfrozen twin with the same slots and then told its real class: from there on it is an
ordinary frozen record.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

T = TypeVar("T")


def maker(record: type[T]) -> Callable[..., T]:
    """Return a fast constructor of the frozen, slotted dataclass ``record``.

    It takes the fields by position or name, in the order they are declared, and checks nothing that
    the dataclass would not check. Like ``dataclass`` it is written out as source: assignments to
    named slots are the fastest that Python has.

    Raises:
        TypeError: ``record`` is built on another record, or a field has a default that is made anew
            for each record.
    """
    if record.__bases__ != (object,):
        raise TypeError(f"{record.__name__} is built on another class: its twin would differ.")
    declared = fields(record)  # type: ignore[arg-type]
    names = [each.name for each in declared]
    twin = type(record.__name__, (), {"__slots__": tuple(names)})
    known: dict[str, Any] = {"_new": object.__new__, "_twin": twin, "_record": record}
    source = [f"def make({', '.join(_parameter(each, known) for each in declared)}):"]
    source += ["    _made = _new(_twin)"]
    source += [f"    _made.{name} = {name}" for name in names]
    source += ["    _made.__class__ = _record", "    return _made"]
    exec("\n".join(source), known)
    make: Callable[..., T] = known["make"]
    return make


def _parameter(each: "Field[Any]", known: dict[str, Any]) -> str:
    if each.default_factory is not MISSING:
        raise TypeError(f"the default of {each.name} is made anew for each record.")
    if each.default is MISSING:
        return each.name
    known[f"_default_{each.name}"] = each.default
    return f"{each.name}=_default_{each.name}"
