"""One structured turn: a question in, an object that fits a schema out; no tools, no mail (A-11)."""

from dataclasses import dataclass
from typing import Any

from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import EndReason, Provenance
from postroom_runtime.models.model import Thought
from postroom_runtime.models.schema import OutputSchema, WrongOutput
from postroom_runtime.stepper.folding import fold
from postroom_runtime.stepper.loop import Run
from postroom_runtime.stepper.step import Host, think, tool_messages, user_turn

AGAIN = "That is no valid answer: {fault}. Answer again, with JSON of the schema alone."

_TRIES = 2


@dataclass(slots=True, eq=False)
class Request:
    """A structured turn that somebody asks for, and what became of it."""

    text: str
    schema: OutputSchema
    first_turn: int = 0
    """Index of its user turn; 0 while it has none."""
    last_turn: int = 0
    """Index of its last turn, once it is over."""
    over: bool = False
    answered: bool = False
    """The model answered, right or wrong; else the turn was stopped, or failed."""
    value: Any = None
    """What the model answered."""
    fault: str = ""
    """What is wrong with the answer; '' when it fits."""


class StructuredRun(Run):
    """The run of one structured turn, between two runs that mail starts.

    Mail that is unread stays so; a StopRun alone takes it in, as it does in every run.

    Args:
        host: The session.
        request: What is asked.
    """

    def __init__(self, host: Host, request: Request) -> None:
        super().__init__(host)
        self.request = request

    async def run(self) -> None:
        """Run to the end, whatever it is; each is stored.

        Raises:
            StoreFailed: The end itself could not be stored.
        """
        try:
            await super().run()
        finally:
            self.request.last_turn = self.host.state.record.turns
            self.request.over = True

    async def _rounds(self) -> None:
        await self._ask()
        for left in reversed(range(_TRIES)):
            mind, schema = self._asking.mind(), self.request.schema
            thought = await think(self.host, mind, {}, uncut=True, schema=schema)
            self.budget = self.budget.took_round()
            fault = self._fault(thought)
            if not fault or not left:
                self.request.fault = fault
                turn = self._turn(thought, EndReason.ANSWER, calls=False)
                spent = self._spent(thought)
                await self._ending.end(EndReason.ANSWER, SessionStatus.IDLE, turn, **spent)
                self.request.answered = True
                return
            await self._ask_again(thought, fault)

    async def _ask(self) -> None:
        host, state = self.host, self.host.state
        host.take_orders()
        self._announce()
        results = tool_messages(host, state.unread())
        nothing = fold((), state.record, state.placeholders, running=False, read=state.read)
        rows, changes = user_turn(host, nothing, results, starts=True, injected=self.request.text)
        self.request.first_turn = state.next_index
        # The owner speaks, if not by mail: hops and rounds begin anew (M-110).
        changes |= {"hops": 0, "rounds_since_human": 0}
        await state.commit(
            *rows, status=SessionStatus.RUNNING, end_reason=None, error="", **changes
        )

    async def _ask_again(self, thought: Thought, fault: str) -> None:
        state = self.host.state
        await state.commit(self._turn(thought, calls=False), **self._spent(thought))
        self._asking.booked()
        self._announce()
        nothing = fold((), state.record, state.placeholders, running=True, read=state.read)
        again = AGAIN.format(fault=fault)
        rows, _ = user_turn(
            self.host, nothing, (), injected=again, provenance=Provenance.CONTINUATION
        )
        await state.commit(*rows)

    def _fault(self, thought: Thought) -> str:
        if thought.calls:
            return f"it called {thought.calls[0].tool}, but a structured turn has no tools"
        if thought.cut_off:
            return "the output limit cut it off"
        try:
            self.request.value = self.request.schema.read(thought.text)
        except WrongOutput as error:
            return str(error)
        return ""
