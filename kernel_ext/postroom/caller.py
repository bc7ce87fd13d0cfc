"""Who called a magic, and what becomes of its value: read off the caller's next instruction.

IPython gives a magic no word about this, yet two promises hang on it. A waiting magic that nobody
awaits must say so instead of doing nothing, and a receipt must be displayed once wherever its line
stands, though IPython displays only the last expression of a cell.
"""

import dis
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType


class Use(StrEnum):
    """What becomes of the value of a call."""

    SHOWN = "shown"
    """IPython displays it."""
    DROPPED = "dropped"
    """A statement of its own that is not the last: nobody sees it."""
    KEPT = "kept"
    """Assigned, passed on, or not to be told."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The code of the user that called a magic."""

    awaits: bool
    """Whether the value is awaited at once."""
    use: Use
    """What becomes of the value, or of what it was awaited for."""
    function: str
    """The name of the function around the call; '' at the top of a cell."""


_OURS = ("IPython.", "postroom.")


def caller() -> Caller:
    """Return who called the magic that this is called from.

    The frames of IPython and of this package are passed over. Where the code cannot be read the
    value counts as kept and as not awaited.
    """
    frame = inspect.currentframe()
    while frame is not None and _is_inside(frame):
        frame = frame.f_back
    if frame is None:
        return Caller(False, Use.KEPT, "")
    name = frame.f_code.co_name
    function = "" if name.startswith("<") and name != "<lambda>" else name
    following = _following(frame)
    awaits = bool(following) and following[0].opname == "GET_AWAITABLE"
    if awaits:
        following = _behind_await(following)
    return Caller(awaits, _use(following), function)


def _is_inside(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__")
    return isinstance(module, str) and (module.startswith(_OURS) or module == "contextlib")


def _following(frame: FrameType) -> list[dis.Instruction]:
    at = frame.f_lasti
    return [found for found in dis.get_instructions(frame.f_code) if found.offset > at]


def _behind_await(following: Sequence[dis.Instruction]) -> list[dis.Instruction]:
    """Return the instructions behind ``await``: where its SEND jumps to when it is done."""
    for instruction in following:
        if instruction.opname == "SEND":
            return [
                found
                for found in following
                if found.offset >= instruction.argval and found.opname != "END_SEND"
            ]
    return []


def _use(following: Sequence[dis.Instruction]) -> Use:
    if not following:
        return Use.KEPT
    first = following[0]
    if first.opname == "POP_TOP":
        return Use.DROPPED
    printed = first.opname == "PRINT_EXPR" or (
        first.opname == "CALL_INTRINSIC_1" and "PRINT" in first.argrepr
    )
    return Use.SHOWN if printed else Use.KEPT
