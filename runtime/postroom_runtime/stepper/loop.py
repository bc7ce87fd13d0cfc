"""Step until there is nothing left to do: one run of a session, from its first mail to its end."""

import logging
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.call import ToolMessage
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.errors import ModelError, PostroomError
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Provenance, Role, Turn, end_of
from postroom_runtime.models.model import Thought
from postroom_runtime.signals.bell import wait_until
from postroom_runtime.stepper.asking import Asking
from postroom_runtime.stepper.attending import attend
from postroom_runtime.stepper.budget import EXTENSIONS_SPENT, Budget
from postroom_runtime.stepper.ending import Ending
from postroom_runtime.stepper.folding import Detached, Folded, fold, shown_in_full
from postroom_runtime.stepper.receive_points import halts, is_human, released, renders
from postroom_runtime.stepper.rendering import render
from postroom_runtime.stepper.spending import Capped
from postroom_runtime.stepper.step import (
    Halted,
    Host,
    Interrupted,
    Stopped,
    numbered,
    read_silent,
    store_calling_turn,
    think,
    tool_messages,
    user_turn,
)

log = logging.getLogger("postroom")

CONTINUE = "Your last turn was empty. Go on with the task, or say that you are done."

WRAP_UP = (
    "You have used all {rounds} rounds of this run, and tools are off now. Answer with what you have, "
    "and say plainly what you did not get to."
)


class Run:
    """One run of a session. At rest a session has none.

    Args:
        host: The session.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.budget = Budget(limit=1)
        self._asking = Asking(host)
        self._ending = Ending(host, self._asking, lambda: self.budget)
        self._told_refusal = False

    async def run(self) -> None:
        """Run to the end: an answer, a stop, a pause, a cap or a failure; each is stored.

        Raises:
            StoreFailed: The end itself could not be stored.
        """
        try:
            self.budget = Budget(limit=self.host.definition().max_iterations)
            await self._rounds()
        except Stopped:
            await self.host.executor.cancel_all()
            await self.halt()
        except Halted:
            await self.halt()
        except Capped as reached:
            await self._ending.by_spending(reached.cap)
        except PostroomError as error:
            await self._ending.by_failure(error, "")
        except Exception as error:  # a script may raise anything: the session fails, not the room
            await self._ending.by_failure(error, traceback.format_exc())
        finally:
            self._asking.close()

    async def _rounds(self) -> None:
        starts, nudge = True, False
        detached = Detached()
        while True:
            forced = self.budget.spent
            if not await self._receive(detached, starts=starts, nudge=nudge, forced=forced):
                return
            if starts:
                self.host.open_inbox()
            starts, detached = False, Detached()
            tools: Mapping[str, Tool] = {} if forced else self.host.tools()
            thought = await self._think(tools)
            self.budget = self.budget.took_round()
            if forced:
                await self._ending.by_rounds(
                    self._turn(thought, EndReason.BUDGET, calls=False), **self._spent(thought)
                )
                return
            nudge = False
            if thought.calls:
                turn = self._turn(thought)
                works = await store_calling_turn(self.host, turn, tools, **self._spent(thought))
                self._asking.booked()
                detached = await attend(self.host, works)
                await self._pump()
            elif await self._answered(thought):
                return
            else:
                nudge = not thought.text.strip()

    async def _think(self, tools: Mapping[str, Tool]) -> Thought:
        while True:
            try:
                # Once the rounds are used up nothing cuts the last answer, or it is asked for for ever.
                return await think(self.host, self._asking.mind(), tools, uncut=self.budget.spent)
            except Interrupted:
                self._asking.was_cut()
                # Each amendment is a request that is paid for: a round, or interrupts spend for ever.
                self.budget = self.budget.took_round()
                await self._amend()
                if self.budget.spent:
                    tools = {}

    async def _amend(self) -> None:
        """Put unread mail into the head turn, stored, before it is asked again (M-78, D5).

        Raises:
            Halted: An order to end the run is among it; nothing of it is read yet.
            Capped: There is no request left to ask it with; nothing of it is read.
        """
        host, state = self.host, self.host.state
        head = state.head
        host.take_orders()
        folded = self._fold(state.unread(), (), running=True)
        if folded.halt:
            raise Halted
        self._announce()
        if head is None or not folded.mail:
            return
        if folded.human:
            self._extend()
        mail = (*head.mail, *folded.mail)
        shown = (*head.read_calls, *shown_in_full((), folded.mail))
        amended = replace(
            head, mail=mail, text=render(mail, {*state.read, *shown}), read_calls=shown
        )
        delivered = state.event(
            EventKind.INBOX,
            text=folded.text,
            mail=[envelope.seq for envelope in folded.mail],
            turn=head.index,
            starts_run=False,
        )
        changes: dict[str, Any] = {"hops": folded.hops, "read_from": folded.read_from}
        if folded.human:
            changes["rounds_since_human"] = 0
        await state.commit(delivered, amended, cursor=folded.cursor, **changes)
        for release in folded.releases:
            host.release(release)

    # ── R1 ──

    async def _receive(
        self, detached: Detached, *, starts: bool, nudge: bool, forced: bool
    ) -> bool:
        """Read the mail and store the user turn; False when there is nothing to ask the model."""
        host, state = self.host, self.host.state
        host.take_orders()  # none is passed over that had no effect
        # A forced answer reads nothing: what came too late is for the next run.
        waiting = state.unread()
        unread = [] if forced else waiting
        results = tool_messages(host, waiting, detached)
        folded = self._fold(unread, results, running=not starts)
        if folded.halt is not None:
            await self.halt(detached, running=not starts)
            return False
        injected, provenance = "", None
        if forced:
            injected = WRAP_UP.format(rounds=self.budget.rounds)
            provenance = Provenance.FINAL_ANSWER
        elif nudge and not folded.mail:
            injected, provenance = CONTINUE, Provenance.CONTINUATION
        asks = bool(folded.mail or results or injected or state.unanswered)
        if asks:
            limit = host.definition().max_autonomous_rounds
            alone = state.record.rounds_since_human >= limit
            if alone and not any(is_human(envelope) for envelope in waiting):
                await self._ending.by_autonomy()
                return False
            self._announce()
        if folded.human and not starts:
            self._extend()
        changes: dict[str, Any] = {"status": SessionStatus.RUNNING, "end_reason": None, "error": ""}
        if folded.mail or results or injected:
            rows, read = user_turn(
                host, folded, results, starts=starts, injected=injected, provenance=provenance
            )
            await state.commit(*rows, cursor=folded.cursor, **changes, **read)
        elif asks:
            # Resumed, or asked again after a failure: the last user turn still waits for an answer.
            started = state.event(EventKind.RUN_STARTED, turn=state.record.turns)
            await state.commit(started, cursor=folded.cursor, **changes)
        else:
            await state.commit(cursor=folded.cursor, status=SessionStatus.IDLE)
        for release in folded.releases:
            host.release(release)
        return asks

    def _fold(
        self, unread: Sequence[Envelope], results: Sequence[ToolMessage], *, running: bool
    ) -> Folded:
        state = self.host.state
        return fold(
            unread,
            state.record,
            state.placeholders | {m.call for m in results if not m.state.final},
            running=running,
            read=state.read | set(shown_in_full(results)),
        )

    def _extend(self) -> None:
        self.budget = self.budget.heard_human()
        if self.budget.refused and not self._told_refusal:
            self._told_refusal = True
            log.warning(EXTENSIONS_SPENT, self.budget.extensions)

    async def _pump(self) -> None:
        # Once the rounds are used up nothing more is taken in: it is for the next run.
        if not self.budget.spent:
            await self.host.pump()

    # ── thinking ──

    def _announce(self) -> None:
        """Count the request that is about to be made.

        Raises:
            Capped: There is none left to make.
        """
        if (cap := self.host.spending()) is not None:
            raise Capped(cap)
        self._asking.announce()

    def _turn(self, thought: Thought, end: EndReason | None = None, *, calls: bool = True) -> Turn:
        return Turn(
            index=self.host.state.next_index,
            role=Role.MODEL,
            text=thought.text,
            calls=numbered(self.host, thought.calls) if calls else (),
            usage=thought.usage,
            end_reason=end,
            opaque=thought.opaque,
        )

    def _spent(self, thought: Thought) -> dict[str, Any]:
        record = self.host.state.record
        return {
            "usage": record.usage + thought.usage + self._asking.left,
            "rounds_since_human": record.rounds_since_human + 1,
        }

    async def _answered(self, thought: Thought) -> bool:
        """Store a model turn that calls nothing; tell whether it ends the run."""
        state = self.host.state
        if thought.cut_off and not thought.text.strip():
            raise ModelError(
                "the output limit ended the model's turn before it said anything. "
                "Shorten the transcript, or raise the model's limit.",
                model=self.host.model().name,
            )
        await self._pump()
        waiting = [e for e in state.unread() if renders(e, state.placeholders)]
        if not thought.text.strip() or (waiting and not self.budget.spent):
            await state.commit(self._turn(thought), **self._spent(thought))
            self._asking.booked()
            return False
        if waiting and not any(is_human(e) for e in waiting):
            # The budget is spent and only agents and tools still talk: they start no fresh one.
            await self._ending.by_rounds(
                self._turn(thought, EndReason.BUDGET), **self._spent(thought)
            )
            return True
        if (self.host.table.open_calls() or state.held_ends()) and not self.budget.spent:
            turn = self._turn(thought)
            await state.commit(turn, status=SessionStatus.WAITING, **self._spent(thought))
            self._asking.booked()
            return await self._linger()
        turn = self._turn(thought, reason := end_of(thought.text))
        await self._ending.end(reason, SessionStatus.IDLE, turn, **self._spent(thought))
        return True

    async def _linger(self) -> bool:
        """Wait for what runs in the background, or any mail; tell whether the run ends (M-72).

        R2 with a run alive: whatever ``wake_on`` says, any mail that renders is read (M-37).
        """
        host, state = self.host, self.host.state

        def look() -> str | None:
            host.take_orders()
            unread = state.unread()
            if any(renders(e, state.placeholders) or halts(e) for e in unread):
                return "mail"
            if any(released(e) for e in unread):
                return "answer"
            return None if host.table.open_calls() or state.held_ends() else "over"

        while await wait_until(look, host.bell) == "answer":
            # It says nothing to the model: its call goes on, and the run waits on.
            await read_silent(host)
        await self._pump()
        if look() == "mail":
            return False
        head = state.head
        await self._ending.end(end_of(head.text if head else ""), SessionStatus.IDLE)
        return True

    # ── the end ──

    async def halt(self, detached: Detached | None = None, *, running: bool = True) -> None:
        """End the run at a Pause or StopRun: all mail before it is in a stored turn (M-82…M-86)."""
        state = self.host.state
        self.host.take_orders()
        unread = state.unread()
        folded = self._fold(unread, (), running=running)
        cancels = self.host.definition().pause_cancels_calls if folded.pauses else running
        if cancels:
            # Before their tool messages are written, which say so: then nobody is told by mail (M-85).
            await self.host.executor.cancel_all()
            detached = None
        results = tool_messages(self.host, unread, detached)
        folded = self._fold(unread, results, running=running)
        reason = EndReason.PAUSED if folded.pauses else EndReason.STOPPED
        status = SessionStatus.PAUSED if folded.pauses else SessionStatus.IDLE
        rows, changes = (
            user_turn(self.host, folded, results) if folded.mail or results else ([], {})
        )
        changes |= {"cursor": folded.cursor, "waterline": folded.cursor}
        if running:
            await self._ending.end(reason, status, *rows, **changes)
        else:
            await state.commit(*rows, status=status, end_reason=reason, **changes)
        if not cancels:
            for release in folded.releases:
                self.host.release(release)
