"""R3a: stay attached to the calls of a turn until each ends, detaches or is cut off (M-38, M-61)."""

import asyncio
from collections.abc import Sequence

from postroom_runtime.calls.executor import Work
from postroom_runtime.calls.policy import RunAsync
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.signals.bell import wait_until
from postroom_runtime.stepper.folding import STATUS_TOOL, Detached
from postroom_runtime.stepper.receive_points import halts
from postroom_runtime.stepper.step import Host, Stopped, halting, interrupting

WAITING = ("wait", STATUS_TOOL)
"""Tools that mail and controls end: they return at once, and need not be detached (M-67, trap 6)."""

_RESOLUTION = 1e-6
"""Seconds that no clock need tell apart: less than that is no time to wait for."""


def attach_limit(work: Work, strategy: object) -> float | None:
    """Return how many seconds the step stays with a call; None for as long as it takes."""
    disposition = work.applied.disposition
    if not isinstance(disposition, RunAsync):
        return None
    if disposition.attach_seconds is not None:
        return disposition.attach_seconds
    if isinstance(strategy, dict):
        return float(strategy["milliseconds"]) / 1000
    return None


async def attend(host: Host, works: Sequence[Work]) -> Detached:
    """Wait for the calls of a turn; return why each one that goes on was detached.

    In order of precedence: a StopRun; all calls ended; an interrupt or a Pause, which detaches every
    call (one that waits for mail returns by itself, trap 6); a deadline, at which only the calls
    whose time it is detach and the others are waited for (M-61).

    Raises:
        Stopped: A StopRun arrived; every call that was open is cancelled.
        StoreFailed: A result could not be stored.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    strategy = host.definition().async_yield_strategy
    limits = {work.request.id: attach_limit(work, strategy) for work in works}
    any_progress = {
        work.request.id
        for work in works
        if isinstance(work.applied.disposition, RunAsync)
        and work.applied.disposition.attach_seconds is None
        and strategy == "yieldOnAnyProgress"
    }
    waiting = {work.request.id for work in works if work.request.tool in WAITING}
    attached = list(limits)
    detached = Detached()

    def open_calls() -> list[CallId]:
        calls = (host.table.get(id) for id in attached)
        return [c.id for c in calls if c and c.state in (CallState.PENDING, CallState.RUNNING)]

    def detach(ids: Sequence[CallId], why: str) -> None:
        for id in ids:
            detached.why[id] = why
            attached.remove(id)

    def look() -> str | None:
        host.take_orders()
        if host.executor.failure is not None:
            return "failure"
        if halting(host):
            return "stop"
        still = open_calls()
        if not still:
            return "ended"
        # A call that waits for mail has been woken by the same mail and returns at once.
        if interrupting(host):
            return "interrupt" if set(still) - waiting else None
        if any(halts(envelope) for envelope in host.state.unread()):
            return "pause" if set(still) - waiting else None
        if any_progress & set(still) and len(still) < len(attached):
            return "progress"
        return None

    while True:
        now = loop.time() - began
        # A call with no attach time at all is detached even if it is done by now (M-60).
        for id in [id for id in attached if limits[id] == 0]:
            detach([id], "still running after 0s")
            detached.always.add(id)
        due = now + _RESOLUTION
        for id in [id for id in open_calls() if (limit := limits[id]) is not None and limit <= due]:
            detach([id], f"still running after {limits[id]:g}s")
        later = [limits[id] for id in open_calls() if limits[id] is not None]
        timeout = min((limit for limit in later if limit is not None), default=None)
        found = await wait_until(look, host.bell, None if timeout is None else timeout - now)
        match found:
            case "failure":
                failure, host.executor.failure = host.executor.failure, None
                raise failure or Stopped
            case "stop":
                await host.executor.cancel_all()
                raise Stopped
            case "ended":
                return detached
            case "interrupt":
                detach([id for id in open_calls() if id not in waiting], "interrupted")
            case "pause":
                detach([id for id in open_calls() if id not in waiting], "paused")
            case "progress":
                detach([id for id in open_calls() if id in any_progress], "a call beside it ended")
            case _:
                continue
