"""How a run ends, but for an order: what is stored of it, and who is told."""

import contextlib
from collections.abc import Callable
from typing import Any

from postroom_runtime.contracts.errors import PostroomError, StoreFailed
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.journal import Record
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Turn
from postroom_runtime.stepper.asking import Asking
from postroom_runtime.stepper.budget import Budget
from postroom_runtime.stepper.spending import Cap
from postroom_runtime.stepper.step import Host


class Ending:
    """The end of one run.

    Args:
        host: The session.
        asking: What the run has spent.
        budget: Gives its rounds.
    """

    def __init__(self, host: Host, asking: Asking, budget: Callable[[], Budget]) -> None:
        self._host, self._asking, self._budget = host, asking, budget

    async def end(
        self,
        reason: EndReason,
        status: SessionStatus,
        *rows: Record,
        cap: str | None = None,
        **changes: Any,
    ) -> None:
        """Store the end, with the last rows and changes of the record in the same transaction.

        Args:
            reason: Why it ends.
            status: What the session does now.
            rows: Stored with it.
            cap: The knob that capped it.
            changes: Of the session's record.
        """
        state, budget = self._host.state, self._budget()
        turns = sum(isinstance(row, Turn) for row in rows)
        changes.setdefault("usage", state.record.usage + self._asking.owed)
        stopped = state.event(
            EventKind.RUN_STOPPED,
            reason=reason,
            rounds=budget.rounds,
            allowed=budget.allowed,
            **({"extended": budget.extensions} if budget.extensions else {}),
            **({"cap": cap} if cap else {}),
            **({"closing": True} if self._host.closed else {}),
            turn=state.record.turns + turns,
        )
        await state.commit(*rows, stopped, status=status, end_reason=reason, **changes)
        self._asking.booked()

    async def by_rounds(self, turn: Turn, **spent: Any) -> None:
        """Store the last answer of a run that used up its rounds.

        Args:
            turn: The answer.
            spent: What it changes in the record.
        """
        record, limit = self._host.state.record, self._budget().limit
        await self.end(
            EndReason.BUDGET, SessionStatus.CAPPED, turn, waterline=record.cursor, **spent
        )
        end = "its last answer was forced" if turn.text.strip() else "it ended without an answer"
        self._host.report(
            "budget",
            f"{record.name} used its {limit} rounds; {end}. Write to it to let it go on.",
            limit=limit,
            knob="max_iterations",
        )

    async def by_autonomy(self) -> None:
        """Stop a session that took too many rounds with no word from its owner."""
        record = self._host.state.record
        limit = self._host.definition().max_autonomous_rounds
        await self._capped("max_autonomous_rounds")
        self._host.report(
            "budget",
            f"{record.name} took {record.rounds_since_human} rounds with no word from you and was "
            "stopped. Write to it to let it go on.",
            limit=limit,
            knob="max_autonomous_rounds",
        )

    async def by_spending(self, cap: Cap) -> None:
        """Stop a session that has spent all it, or its room, may."""
        record = self._host.state.record
        await self._capped(cap.called)
        self._host.report(
            "budget",
            f"{cap.words(record.name, record.agent)}. What it has not read waits.",
            # Who writes to it again and again is told by each receipt, and here once.
            id=f"{record.id}-{cap.called}-{cap.limit}-{cap.used}",
            limit=cap.limit,
            used=cap.used,
            knob=cap.called,
        )

    async def _capped(self, cap: str) -> None:
        """End it with what is unread still unread, and none of that a reason to try again."""
        state = self._host.state
        last = state.unread()[-1:]
        waterline = last[0].seq if last else state.record.cursor
        await self.end(EndReason.CAPPED, SessionStatus.CAPPED, cap=cap, waterline=waterline)

    async def by_failure(self, error: BaseException, trace: str) -> None:
        """Cancel what runs, and tell the owner and the parent what went wrong."""
        host, state = self._host, self._host.state
        with contextlib.suppress(StoreFailed):
            await host.executor.cancel_all()
        line = (
            str(error) if isinstance(error, PostroomError) else f"{type(error).__name__}: {error}"
        )
        failed = state.event(EventKind.SESSION_FAILED, error=line, traceback=trace)
        await self.end(
            EndReason.FAILED,
            SessionStatus.FAILED,
            failed,
            error="\n\n".join(filter(None, (line, trace))),
            waterline=state.no_news(),
        )
        name, version = state.record.name, state.record.version
        host.report(
            "failed",
            f"{name} failed: {line}\n%resume {name} lets it try again; %transcript {name} shows how "
            "far it came.",
            id=f"failed-{state.id}-{version}",
            error=line,
            traceback=trace,
        )
        host.failed_to_parent(line)
