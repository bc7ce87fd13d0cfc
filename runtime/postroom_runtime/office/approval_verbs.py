"""The verbs of a room that answer approvals."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from postroom_runtime.calls.tool import as_json
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.mail.approvals import ApprovalDesk

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session


class ApprovalVerbs(ABC):
    """What a room does with calls that wait for the owner."""

    approval_desk: ApprovalDesk
    now: Callable[[], datetime]

    @abstractmethod
    def session(self, key: str) -> "Session":
        """Return an open session."""

    @abstractmethod
    def attach(self) -> None:
        """Live on the running loop."""

    @abstractmethod
    def hop(self, function: Callable[..., object], *args: Any) -> None:
        """Run a function on the room's loop."""

    @abstractmethod
    def check_open(self) -> None:
        """Raise unless the room is open."""

    def approvals(self, state: str | None = "pending") -> list[Approval]:
        """Return the approvals in ``state``, oldest first: the open ones, or with None all."""
        return self.approval_desk.all(None if state is None else ApprovalState(state))

    def approve(
        self,
        id: str,
        args: Mapping[str, Json] | None = None,
        *,
        always: bool = False,
        by: str = "api",
    ) -> Approval:
        """Let a waiting call run, with ``args`` instead of its own where given; the first answer wins.

        Args:
            id: The approval's id, its token or its call.
            args: Edited arguments, whole.
            always: Standing permissions are not in this version; True is refused.
            by: Through what the answer comes.

        Raises:
            AlreadyAnswered: Somebody was first, or its run was stopped.
            ConfigError: No such approval.
        """
        self.check_open()
        if always:
            raise ConfigError(
                "always=True is not in this version: approve each call.", value=always
            )
        return self._answered(
            self.approval_desk.answer(id, ApprovalState.APPROVED, by=by, arguments=args)
        )

    def deny(self, id: str, reason: str = "", *, by: str = "api") -> Approval:
        """Keep a waiting call from running; the model reads the reason."""
        self.check_open()
        return self._answered(
            self.approval_desk.answer(id, ApprovalState.DENIED, by=by, reason=reason)
        )

    def _answered(self, approval: Approval) -> Approval:
        self.attach()
        return approval

    def complete(self, token: str, result: Any, *, by: str = "api") -> Approval:
        """Give the result of a waiting call from outside, without running its tool (M-97).

        Raises:
            AlreadyAnswered: It was answered or completed before.
            ConfigError: Nothing waits under that token.
        """
        self.check_open()
        approval = self.approval_desk.find(token)
        life = self.session(approval.session).life
        life.load()
        call = life.table.get(approval.call)
        if call is None or call.state.final:
            raise AlreadyAnswered(approval.id, approval.state, approval.answered_by)
        given = as_json(result)
        ended = replace(call, state=CallState.COMPLETED, result=given, ended_at=self.now())
        settled = self.approval_desk.complete(approval, ended, by)
        self.hop(life.table.enter, ended)
        return self._answered(settled)
