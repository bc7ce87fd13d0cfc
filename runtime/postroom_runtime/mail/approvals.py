"""The approval desk: ask once, take one answer, post it to who asked (M-97, I-30)."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.envelope import (
    ContinuationResult,
    Control,
    FromSystem,
    Outgoing,
    Priority,
    Release,
)
from postroom_runtime.contracts.errors import AlreadyAnswered, ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId, SessionId, approval_id
from postroom_runtime.contracts.journal import Record
from postroom_runtime.storage.protocol import Storage


class ApprovalDesk:
    """Every question to the owner and its one answer. Safe to use from any thread.

    Args:
        storage: The room's store.
        now: The room's clock.
        stored: Approvals of earlier kernels, each in its latest state.
        told: What is written beside an answer, in its transaction, for whoever else shows the question.
    """

    def __init__(
        self,
        storage: Storage,
        now: Callable[[], datetime],
        stored: Iterable[Approval] = (),
        told: Callable[[Approval], Sequence[Outgoing]] = lambda approval: (),
    ) -> None:
        self._storage, self._now, self._told = storage, now, told
        self._all = {approval.id: approval for approval in stored}
        self._last = max((_number(id) for id in self._all), default=0)
        self._lock = threading.Lock()
        self._answering: dict[str, Approval] = {}
        """Answers that are just being stored."""

    def all(self, state: ApprovalState | None = ApprovalState.PENDING) -> list[Approval]:
        """Return the approvals in ``state``, oldest first; None: all."""
        return [a for a in self._known() if state is None or a.state is state]

    def _known(self) -> list[Approval]:
        with self._lock:
            return list(self._all.values())

    def find(self, key: str) -> Approval:
        """Return the approval with that id, token or call id; of a call asked for twice the last.

        Raises:
            ConfigError: There is none; names those that are open.
        """
        for approval in reversed(self._known()):
            if key in (approval.id, approval.token, approval.call):
                return approval
        names = ", ".join(a.id for a in self.all()) or "none"
        raise ConfigError(f"no approval {key!r}; open: {names}.", value=key)

    def by_token(self, token: str) -> Approval | None:
        """Return the approval with that continuation token, or None."""
        return next((a for a in self._known() if a.token == token), None)

    def ask(
        self,
        session: SessionId,
        agent: str,
        call: CallId,
        tool: str,
        arguments: Mapping[str, Json],
        reason: str,
        seconds: float | None = None,
    ) -> Approval:
        """Return a new question; who asks stores it together with the call that waits for it.

        Args:
            session: Whose call.
            agent: The slug of its agent.
            call: The call.
            tool: What it calls.
            arguments: As it would run.
            reason: Why the owner is asked.
            seconds: How long it may be answered; None for ever.
        """
        now = self._now()
        with self._lock:
            # Counted at once, so that two questions asked in one breath have two ids.
            self._last = number = self._last + 1
        return Approval(
            id=approval_id(number),
            token=f"t-{number:04d}",
            session=session,
            agent=agent,
            call=call,
            tool=tool,
            arguments=arguments,
            reason=reason,
            asked_at=now,
            expires_at=None if seconds is None else now + timedelta(seconds=seconds),
        )

    def asked(self, approval: Approval) -> None:
        """The question is stored: it may be answered from now on."""
        with self._lock:
            self._all[approval.id] = approval

    def answer(
        self,
        key: str,
        state: ApprovalState,
        *,
        by: str,
        arguments: Mapping[str, Json] | None = None,
        reason: str = "",
        beside: Callable[[Approval], Sequence[Outgoing]] = lambda approval: (),
    ) -> Approval:
        """Take the first answer: stored with the mail that tells it to who asked, in one transaction.

        Blocks for the commit (milliseconds); callable from any thread.

        Args:
            key: Id, token or call.
            state: ``APPROVED`` or ``DENIED``.
            by: Through what it came: ``api``, ``%approve``, ``view``.
            arguments: Edited arguments; None keeps those asked for.
            reason: Of a denial.
            beside: Gives more mail to be stored with this answer, if it is the first.

        Raises:
            AlreadyAnswered: Somebody was first, or it was ended or expired; that stands.
            ConfigError: No such approval, or the arguments are no object.
        """
        if arguments is not None and not isinstance(arguments, Mapping):
            raise ConfigError(
                f"edited arguments are an object of names and values, not {arguments!r}.",
                value=arguments,
            )
        approval = self._in_time(self.find(key))
        decision = dict(arguments) if arguments is not None else (reason or None)
        settled = replace(approval, state=state, decision=decision)
        return self._first(settled, by, (), lambda whole: (release_mail(whole), *beside(whole)))

    def expire(self, id: str) -> Approval:
        """Refuse a question that nobody has answered in time; its call ends as after a denial.

        Raises:
            AlreadyAnswered: Somebody did answer; that stands.
            StoreFailed: It is still open.
        """
        asked = self.find(id)
        settled = replace(asked, state=ApprovalState.EXPIRED, decision=expired_words(asked))
        return self._first(settled, "", (), lambda whole: (release_mail(whole),))

    def overdue(self) -> list[Approval]:
        """Return the open questions whose time is up by the room's clock, oldest first."""
        now = self._now()
        return [a for a in self.all() if a.expires_at is not None and a.expires_at <= now]

    def _in_time(self, approval: Approval) -> Approval:
        # A clock that jumped, a machine that slept: the time is up although nobody has noticed yet.
        if approval in self.overdue():
            with contextlib.suppress(AlreadyAnswered):
                self.expire(approval.id)
        return approval

    def complete(self, approval: Approval, ended: Call, by: str) -> Approval:
        """Take a result from outside as the answer, stored with the end of its call and its mail.

        Raises:
            AlreadyAnswered: Somebody was first.
        """
        settled = replace(self._in_time(approval), state=ApprovalState.COMPLETED)
        return self._first(settled, by, (ended,), lambda whole: (continuation(whole, ended),))

    def _first(
        self,
        settled: Approval,
        by: str,
        rows: Sequence[Record],
        mail: Callable[[Approval], Sequence[Outgoing]],
    ) -> Approval:
        whole = replace(settled, answered_at=self._now(), answered_by=by)
        with self._lock:
            now = self._answering.get(whole.id, self._all[whole.id])
            if now.state is not ApprovalState.PENDING:
                raise AlreadyAnswered(now.id, now.state, now.answered_by)
            self._answering[whole.id] = whole
        try:
            self._storage.commit(
                whole.session,
                epoch=self._storage.claim(whole.session, "kernel"),
                version=None,
                rows=(whole, *rows),
                mail=(*mail(whole), *self._told(whole)),
            ).result()
            with self._lock:
                self._all[whole.id] = whole
        finally:
            with self._lock:
                del self._answering[whole.id]
        return whole

    def cancel(self, token: str, by: str) -> Sequence[Approval] | None:
        """Close the question of a call that is to be ended; it is closed for every answer from now on.

        Args:
            token: Of the call.
            by: Through what it ends.

        Returns:
            What is to be stored with the end; nothing where it was answered, and the call may yet be
            ended. None when the call's result came from outside, so that it has ended already.
        """
        with self._lock:
            asked = next((a for a in self._all.values() if a.token == token), None)
            if asked is None:
                return ()
            now = self._answering.get(asked.id, asked)
            if now.state is ApprovalState.PENDING:
                now = self._all[asked.id] = replace(
                    asked, state=ApprovalState.CANCELLED, answered_at=self._now(), answered_by=by
                )
            if now.state is ApprovalState.COMPLETED:
                return None
            # One that is cancelled and not stored yet is stored by who tries again.
            return (now,) if now.state is ApprovalState.CANCELLED else ()


def expired_words(approval: Approval) -> str:
    """Return why a question expired: ``nobody answered within 24 h``."""
    if approval.asked_at is None or approval.expires_at is None:
        return "nobody answered in time"
    seconds = (approval.expires_at - approval.asked_at).total_seconds()
    return f"nobody answered within {_span(seconds)}"


def _span(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _number(id: str) -> int:
    return int(id.rpartition("-")[2])


def release_of(approval: Approval) -> Release:
    """Return what an answered approval orders: to let its call run, or to end it."""
    approved = approval.state is ApprovalState.APPROVED
    arguments = approval.decision if approved else None
    reason = "" if approved else str(approval.decision or "")
    if approval.state is ApprovalState.EXPIRED:
        reason = f"the question expired, {reason}"
    return Release(approval.token, str(approval.state), arguments, reason)


def release_mail(approval: Approval) -> Outgoing:
    """Return the silent control mail that tells a session its approval was answered."""
    return Outgoing(
        session=approval.session,
        sender=FromSystem("approvals"),
        body=Control(release_of(approval)),
        priority=Priority.INTERRUPT,
        id=f"answer-{approval.id}",
    )


def continuation(approval: Approval, ended: Call) -> Outgoing:
    """Return the mail that carries the result of a deferred call, accepted once by its id."""
    body = ContinuationResult(approval.token, ended.id, ended.tool, ended.state, ended.result)
    return Outgoing(
        session=approval.session,
        sender=FromSystem("approvals"),
        body=body,
        id=f"cont-{approval.token}",
    )
