"""Everything a view of an owner inbox shows at one moment, grown entry by entry."""

from collections.abc import Iterable, Mapping
from typing import Any

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.entries import GRANTED, QUIET, RESOLVED
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.ids import SessionId, inbox_agent
from postroom_widgets.inbox_model import (
    APPROVAL,
    DONE,
    OPEN,
    Standing,
    card,
    facts_of,
    stand,
    type_of,
)
from postroom_widgets.view_rows import People, Row
from postroom_widgets.view_state import RowTable

KEPT = 300
"""Resolved cards a view keeps; older ones are in the room's file."""


class InboxState(RowTable):
    """The cards of one agent's inbox, or of all agents', and a head above them.

    Args:
        agent: The one agent it is about; '' for all.
    """

    def __init__(self, agent: str = "") -> None:
        super().__init__({}, 0)
        self.head: Row = {"agent": agent}
        """``agent``, ``room``, ``asks`` (cards that wait for an answer), ``news`` (what is new and
        still of interest), ``permissions`` (those that stand), ``earlier`` (resolved cards left out)
        and ``at`` (when the last entry was written)."""
        self.cursors: dict[str, int] = {}
        """``seq`` of the last entry taken in, by agent."""
        self._open: dict[str, None] = {}
        self._done: dict[str, None] = {}
        self._answers: dict[str, Mapping[str, Any]] = {}
        self._granted: dict[str, str] = {}
        self._last: dict[tuple[SessionId, str], str] = {}
        self._earlier = 0

    def ordered(self) -> list[Row]:
        """Return the cards, the oldest first."""
        shown = (row for row in self.rows.values() if row["kind"] != "gone")
        return sorted(shown, key=lambda row: row["o"])

    def since(self, version: int) -> list[Row]:
        """Return the rows changed after ``version``, in order of their change."""
        found: list[Row] = []
        for row in reversed(self.rows.values()):
            if row["v"] <= version:
                break
            found.append(row)
        return found[::-1]

    # ── What happens ──

    def take(self, entries: Iterable[Envelope], people: People) -> None:
        """Take in entries that are new, in order."""
        for entry in entries:
            agent = inbox_agent(entry.session)
            self.cursors[agent] = entry.seq
            self.head = {**self.head, "at": entry.accepted_at.isoformat()}
            type, facts = type_of(entry), facts_of(entry)
            if type in QUIET:
                self._told(type, facts)
                continue
            row = self.put(f"e:{agent}:{entry.seq}", card(entry, people))
            self._open[row["key"]] = None
            self._last[row.get("session", ""), row["face"]] = row["key"]

    def _told(self, type: str, facts: Mapping[str, Any]) -> None:
        about = str(facts.get("approval") or "")
        if type == RESOLVED:
            self._answers[about] = facts
        elif type == GRANTED and about:
            self._granted[about] = str(facts.get("allow") or "")

    def look(self, approvals: Iterable[Approval], people: People, seen: Mapping[str, int]) -> None:
        """Look how each open card stands now."""
        known = {approval.id: approval for approval in approvals}
        now = Standing(known, self._answers, self._granted, people, seen, self._last)
        for key in tuple(self._open):
            row = self.put(key, stand(self.rows[key], now))
            if row["state"] == DONE and self._settled(row, now):
                del self._open[key]
                self._done[key] = None
        while len(self._done) > KEPT:
            oldest = next(iter(self._done))
            del self._done[oldest]
            self.drop(oldest)
            self._earlier += 1

    def _settled(self, row: Row, now: Standing) -> bool:
        """Tell whether nothing about a resolved card can change any more."""
        approval = now.approvals.get(row.get("approval", ""))
        pending = row["face"] == APPROVAL and approval is not None and approval.state == "pending"
        return not pending and not row.get("fresh")

    def count(self, **more: Any) -> None:
        """Bring the head up to date; ``more`` are further fields of it."""
        cards = [self.rows[key] for key in self._open]
        self.head = {
            **self.head,
            "asks": sum(row["face"] == APPROVAL and row["state"] == OPEN for row in cards),
            "news": sum(bool(row.get("fresh")) for row in cards),
            "earlier": self._earlier,
            **more,
        }
