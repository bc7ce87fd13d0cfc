"""The verbs of a room that answer approvals, now and from now on."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from postroom_runtime.calls.tool import as_json
from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import CallState
from postroom_runtime.contracts.envelope import Outgoing
from postroom_runtime.contracts.errors import AlreadyAnswered
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.permission import Allow, Permission, check_allow
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.mail.approvals import ApprovalDesk
from postroom_runtime.mail.standing import StandingPermissions
from postroom_runtime.office.expiry import DAY, Expiry, check_approval_seconds
from postroom_runtime.office.verbs import RoomVerbs


class ApprovalVerbs(RoomVerbs):
    """What a room does with calls that wait for the owner."""

    approval_desk: ApprovalDesk
    standing: StandingPermissions
    expiry: Expiry
    now: Callable[[], datetime]
    _approval_seconds: float | None = DAY

    @abstractmethod
    def people(self) -> dict[SessionId, SessionRecord]:
        """Return the record of every session ever spawned."""

    def approvals(self, state: str | None = "pending") -> list[Approval]:
        """Return the approvals in ``state``, oldest first: the open ones, or with None all."""
        return self.approval_desk.all(None if state is None else ApprovalState(state))

    def approve(
        self,
        id: str,
        args: Mapping[str, Json] | None = None,
        *,
        always: bool | str | None = False,
        by: str = "api",
    ) -> Approval:
        """Let a waiting call run, with ``args`` instead of its own where given; the first answer wins.

        With ``always`` it is not asked again: calls that the permission covers run without a card,
        and say so in their progress. Other calls that wait already go on waiting. A standing
        permission answers hooks that would ask; one that denies is still obeyed.

        Args:
            id: The approval's id, its token or its call.
            args: Edited arguments, whole.
            always: ``"tool"`` or True for this tool in this session, ``"args"`` for exactly these
                arguments (the edited ones, where edited) in this session, ``"agent"`` for this tool in
                every session of this agent. See :meth:`permissions`, :meth:`revoke`.
            by: Through what the answer comes.

        Raises:
            AlreadyAnswered: Somebody was first, its run was stopped, or it expired: nothing runs.
            ConfigError: No such approval, or ``always`` is none of these.
        """
        self.check_open()
        allow = check_allow(always)
        given: list[Permission] = []

        def permission(approval: Approval) -> Sequence[Outgoing]:
            if allow is None:
                return ()
            name = self.session(approval.session, closed=True).name
            given.append(self.standing.draft(approval, allow, name))
            return (self.standing.letter(given[0]),)

        approval = self.approval_desk.answer(
            id, ApprovalState.APPROVED, by=by, arguments=args, beside=permission
        )
        for each in given:
            self.standing.granted(each)
        return self._answered(approval)

    def deny(self, id: str, reason: str = "", *, by: str = "api") -> Approval:
        """Keep a waiting call from running; the model reads the reason.

        Raises:
            AlreadyAnswered: Somebody was first, its run was stopped, or it expired.
            ConfigError: No such approval.
        """
        self.check_open()
        return self._answered(
            self.approval_desk.answer(id, ApprovalState.DENIED, by=by, reason=reason)
        )

    def _answered(self, approval: Approval) -> Approval:
        self.attach()
        self.hop(self.expiry.settled, approval.id)
        return approval

    # ── standing permissions ──

    def permissions(self) -> list[Permission]:
        """Return the permissions that stand, oldest first: not revoked, and their session is open."""
        return [each for each in self.standing.all() if self._stands(each)]

    def _stands(self, permission: Permission) -> bool:
        if permission.revoked_at is not None:
            return False
        if permission.allow is Allow.AGENT:
            return True
        record = self.people().get(permission.session)
        return record is not None and record.status is not SessionStatus.CLOSED

    def revoke(self, id: str, *, by: str = "api") -> Permission:
        """End a standing permission: calls that would be deferred are asked about again.

        What it has let run, runs on.

        Args:
            id: ``pm-0001``.
            by: Through what it ends.

        Raises:
            ConfigError: There is none, or it was revoked before; says by what.
            StoreFailed: It stands as before.
        """
        self.check_open()
        return self.standing.revoke(id, by)

    # ── expiry ──

    @property
    def approval_seconds(self) -> float | None:
        """How long a new question may be answered, in seconds; a day at first, None for ever.

        One that nobody answers in time is refused. What is asked already keeps its time. It is not
        stored: give it each time the room is opened.
        """
        return self._approval_seconds

    @approval_seconds.setter
    def approval_seconds(self, seconds: float | None) -> None:
        self._approval_seconds = check_approval_seconds(seconds)

    # ── results from outside ──

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
