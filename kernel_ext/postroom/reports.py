"""What is told of the room as a whole. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postroom_runtime.contracts.spending import MEASURES
from postroom_runtime.contracts.turn import Usage

_SHOWN_APPROVALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomStatus:
    """What ``%postroom`` tells; shows itself as a text."""

    path: str
    size: int | None
    """Bytes of the file; None without one."""
    sessions: Mapping[str, int]
    """How many sessions, by status."""
    unread: int
    calls: int
    """Running calls."""
    approvals: tuple[str, ...] = ()
    """Ids of the approvals that wait for an answer, oldest first."""
    watches: int = 0
    """Watches under way."""
    timers: int = 0
    """Timers under way."""
    spent: str = ""
    """What was spent of the caps that are set, in words; '' when none is."""
    agents: tuple[str, ...]
    held: int | None = None
    """Letters that wait for a step; None while the room does not step."""
    kernel: str
    """What this kernel and its front end can do, in words."""

    def __repr__(self) -> str:
        size = "kept in memory only" if self.size is None else human_size(self.size)
        total = sum(self.sessions.values())
        by_status = ", ".join(f"{count} {status}" for status, count in self.sessions.items())
        rows = (
            ("room", f"{self.path} ({size})"),
            ("sessions", f"{total} ({by_status})" if total else "none"),
            ("unread", f"{self.unread} mail" if self.unread else "none"),
            *(() if self.held is None else (("step mode", _stepping(self.held)),)),
            ("calls", f"{self.calls} running" if self.calls else "none running"),
            ("approvals", _waiting(self.approvals)),
            *((("watches", f"{self.watches} under way (%watch)"),) if self.watches else ()),
            *((("timers", f"{self.timers} under way"),) if self.timers else ()),
            *([("spent", self.spent)] if self.spent else []),
            ("agents", ", ".join(self.agents) or "none"),
            ("kernel", self.kernel),
        )
        return "\n".join(f"{name:9} {value}" for name, value in rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


def letters(count: int) -> str:
    """Return ``1 letter`` or ``2 letters``."""
    return f"{count} letter{'s' * (count != 1)}"


def _stepping(held: int) -> str:
    return f"on, {letters(held) if held else 'nothing'} held (%step, %postroom step off)"


def spent_words(usage: Usage, caps: Mapping[str, float]) -> str:
    """Return what was spent of a room's caps: ``3 of 10 requests (room.max_requests)``."""
    told = [(measure, caps[knob]) for knob, measure in MEASURES.items() if knob in caps]
    return ", ".join(
        f"{measure.number(measure.of(usage))} of {measure.words(limit)} (room.{measure.knob})"
        for measure, limit in told
    )


def _waiting(approvals: Sequence[str]) -> str:
    if not approvals:
        return "none waiting"
    shown = ", ".join(approvals[:_SHOWN_APPROVALS])
    more = len(approvals) - _SHOWN_APPROVALS
    rest = f" and {more} more" if more > 0 else ""
    return f"{len(approvals)} waiting for you: {shown}{rest} (%inbox, %approve ID, %deny ID)"


def human_size(size: int) -> str:
    """Return a number of bytes as people read it: ``1.2 MB``."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
