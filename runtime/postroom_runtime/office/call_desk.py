"""What running calls need of a session and its room: policy, hooks, approvals, progress."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.calls.desk import Beside
from postroom_runtime.calls.policy import Policy
from postroom_runtime.calls.tool import Tool
from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Progress
from postroom_runtime.contracts.envelope import Outgoing
from postroom_runtime.contracts.event import EventKind
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId
from postroom_runtime.office.cards import APPROVAL, card_facts, card_words, path_to

if TYPE_CHECKING:
    from postroom_runtime.office.life import Life
    from postroom_runtime.office.room import Room


class CallDesk:
    """The ``executor.Desk`` of one session.

    Args:
        life: The session's life.
        room: Its room.
    """

    def __init__(self, life: "Life", room: "Room") -> None:
        self._life, self._room = life, room

    @property
    def agent(self) -> str:
        """The slug of its agent."""
        return self._life.state.record.agent

    def policy(self) -> Policy:
        """Its agent's policy as defined now."""
        definition = self._life.defined()
        return definition.policy if definition else Policy()

    def approve(self) -> Callable[..., Any] | None:
        """What its agent asks before each call, if anything."""
        definition = self._life.defined()
        return definition.agent.approve if definition else None

    def hook_tools(self) -> Mapping[str, Tool]:
        """Every tool of its agent: a hook may name one that the model does not see."""
        return self._life.hook_tools()

    def time_limit(self) -> float | None:
        """Its agent's time limit for calls that have none of their own, in seconds."""
        return self._life.definition().async_call_timeout_seconds

    def ask(self, call: CallId, tool: str, arguments: Json, reason: str) -> Approval:
        """Return a new question to the owner."""
        record = self._life.state.record
        return self._room.approval_desk.ask(
            record.id,
            record.agent,
            call,
            tool,
            dict(arguments or {}),
            reason,
            self._room.approval_seconds,
        )

    def permitted(self, tool: str, arguments: Mapping[str, Json]) -> str:
        """Return the id of the standing permission by which a call runs unasked; '' for none."""
        record = self._life.state.record
        found = self._room.standing.covering(record.id, record.agent, tool, arguments)
        return found.id if found is not None else ""

    def card(self, approval: Approval) -> Sequence[Outgoing]:
        """Return the card that puts a question before the owner."""
        name = self._life.state.record.name
        facts = card_facts(approval, name, path_to(approval, self._room.router.lookup))
        card = self._room.owner_inbox.letter(
            approval.agent,
            card_words(approval, name),
            type=APPROVAL,
            metadata=facts,
            id=f"card-{approval.id}",
        )
        return (card,)

    def asked(self, approval: Approval) -> None:
        """The question is stored: it may be answered, as long as it has time."""
        self._room.approval_desk.asked(approval)
        self._room.expiry.watch(approval)

    def cancelled(self, token: str) -> Beside | None:
        """Return what closes the question of a call that ends unanswered; None when it has its result."""
        rows = self._room.approval_desk.cancel(token, "stop")
        if rows is None:
            return None
        for row in rows:
            self._room.expiry.settled(row.id)
        return Beside(rows, tuple(map(self._room.owner_inbox.resolved, rows)))

    def guard_failed(self, call: CallId, words: str) -> None:
        """Tell the owner of a guard that has to be mended."""
        name = self._life.state.record.name
        self._life.report(
            "guard",
            f"{name}: {words}\nMend the guard, then let {name} try again: write to it.",
            id=f"guard-{call}",
            call=call,
        )

    def progressed(self, call: CallId, progress: Progress) -> None:
        """Tell the listeners of a report."""
        self._life.live(
            EventKind.TOOL_PROGRESS,
            call=call,
            done=progress.done,
            total=progress.total,
            text=progress.text,
        )
