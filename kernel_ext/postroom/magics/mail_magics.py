"""The magics that send and wait: ``%send``, ``%interrupt``, ``%wait``, ``%step``."""

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from IPython.core.magic import magics_class
from IPython.display import display

from postroom.answers import answer_to
from postroom.arguments import Parsed
from postroom.caller import Caller, Use, caller
from postroom.catalogue import INTERRUPT, SEND, WAIT, WITHDRAW
from postroom.display import Receipts
from postroom.grammar import Magic
from postroom.magics.base import DeskMagics, magic, recipient, usage
from postroom.room_grammar import STEP
from postroom_runtime.contracts.envelope import Receipt
from postroom_runtime.contracts.results import WaitResult, WokenBy
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.office.session import Session
from postroom_runtime.office.stepping import StepResult

TIMEOUT = 300.0
"""Seconds that a wait takes at most when nothing else is said."""


@magics_class
class MailMagics(DeskMagics):
    """What sends and waits."""

    @magic(SEND)
    def send(
        self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None
    ) -> Any:
        """See ``catalogue.SEND``."""
        looked = caller()
        parsed = self.read(SEND, line, local_ns, cell)
        if parsed.has("wait"):
            self.check_can_wait(looked, "%send --wait")
        receipts = self._post(SEND, parsed)
        sent = receipts[0] if len(receipts) == 1 else receipts
        if not parsed.has("wait"):
            return self.give(sent, parsed, looked)
        if looked.use is not Use.KEPT:
            display(sent)
        return self._answers(receipts, parsed.number_of("wait"), parsed, looked)

    @magic(INTERRUPT)
    def interrupt(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.INTERRUPT``."""
        looked = caller()
        parsed = self.read(INTERRUPT, line, local_ns)
        return self.give(self._post(INTERRUPT, parsed)[0], parsed, looked)

    @magic(WITHDRAW)
    def withdraw(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.WITHDRAW``."""
        looked = caller()
        parsed = self.read(WITHDRAW, line, local_ns)
        receipt = self.room.withdraw(parsed.head, sender=parsed.text_of("from"))
        return self.give(receipt, parsed, looked)

    def _post(self, grammar: Magic, parsed: Parsed) -> Receipts:
        if not parsed.text.strip():
            raise usage(grammar, "there is no text.")
        room = self.room
        sender = parsed.text_of("from")
        writer = None if sender is None else room.session(sender)
        # All of them are known before anything is sent to one of them.
        readers = [recipient(room, key) for key in parsed.heads]
        return Receipts(
            room.send(
                reader,
                parsed.text,
                sender=writer,
                interrupt=grammar is INTERRUPT or parsed.has("interrupt"),
                reply_to=parsed.text_of("reply-to"),
                expects_reply=parsed.has("expects-reply"),
            )
            for reader in readers
        )

    @magic(WAIT)
    def wait(
        self, line: str, local_ns: Mapping[str, Any] | None = None
    ) -> Coroutine[Any, Any, WaitResult | None]:
        """See ``catalogue.WAIT``."""
        looked = caller()
        parsed = self.read(WAIT, line, local_ns)
        self.check_can_wait(looked, "%wait")
        timeout = parsed.number_of("timeout")
        room = self.room
        return self._waited(
            [room.session(name) for name in parsed.names] or room.sessions(),
            parsed,
            looked,
            until=parsed.text_of("for") or "idle",
            timeout=TIMEOUT if timeout is None else timeout,
        )

    async def _waited(
        self,
        sessions: Sequence[Session],
        parsed: Parsed,
        looked: Caller,
        *,
        until: str,
        timeout: float,
    ) -> WaitResult | None:
        result = await self._wait_for(
            sessions, until, timeout, any=parsed.has("any"), strict=parsed.has("strict")
        )
        # In the middle of a cell, only what did not come about is worth a line.
        telling = result.left or self.room.held or any(map(_in_trouble, sessions))
        if looked.use is Use.DROPPED and not telling:
            return result
        shown: WaitResult | None = self.give(result, parsed, looked)
        return shown

    async def _answers(
        self, receipts: Sequence[Receipt], timeout: float | None, parsed: Parsed, looked: Caller
    ) -> WaitResult | None:
        sessions = [self.room.session(receipt.session) for receipt in receipts]
        result = await self._wait_for(
            sessions, "idle", TIMEOUT if timeout is None else timeout, any=False, strict=False
        )
        answers = {
            session.name: turn.text
            for session, receipt in zip(sessions, receipts, strict=True)
            if (turn := answer_to(session.transcript(), receipt.seq)) is not None
        }
        if len(answers) == len(sessions):
            said = [f"{name}: {text}" for name, text in answers.items()]
            text = "\n".join(said) if len(said) > 1 else next(iter(answers.values()))
            result = replace(result, woken_by=WokenBy.ANSWER, text=text)
        shown: WaitResult | None = self.give(result, parsed, looked)
        return shown

    async def _wait_for(
        self, sessions: Sequence[Session], until: str, timeout: float, *, any: bool, strict: bool
    ) -> WaitResult:
        """Wait as the room does."""
        wait = self.room.wait(sessions, until, any=any, timeout=timeout, strict=strict)
        return await self.wait_for(wait, sessions)

    @magic(STEP)
    def step(
        self, line: str, local_ns: Mapping[str, Any] | None = None
    ) -> Coroutine[Any, Any, StepResult]:
        """See ``catalogue.STEP``."""
        looked = caller()
        parsed = self.read(STEP, line, local_ns)
        self.check_can_wait(looked, "%step")
        if len(parsed.names) > 1:
            raise usage(STEP, f"one session at a time, not {len(parsed.names)}.")
        chosen = self.room.session(parsed.names[0]) if parsed.names else None
        return self._stepped(chosen, parsed, looked)

    async def _stepped(self, chosen: Session | None, parsed: Parsed, looked: Caller) -> StepResult:
        step = self.room.astep(chosen, look=parsed.has("look"))
        done = await self.wait_for(step, self.room.sessions())
        shown: StepResult = self.give(done, parsed, looked)
        return shown


def _in_trouble(session: Session) -> bool:
    return session.status in (SessionStatus.FAILED, SessionStatus.CAPPED)
