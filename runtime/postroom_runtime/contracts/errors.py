"""Every error a user or a model may meet has one root.

``PostroomError``
 ├ ``MailRefused``: mail was not accepted, nothing was stored
 │  ├ ``UnknownRecipient``  ├ ``NotPermitted``  ├ ``TooManyHops``  └ ``MailboxFull``
 ├ ``InboxReadOnly``: nobody but the runtime writes to an owner inbox
 ├ ``OwnerOnly``: somebody else tried what only the owner may
 ├ ``NameTaken``  ├ ``AlreadyAnswered``  ├ ``AnswerFailed``
 ├ ``StaleRecord``: somebody else stored a newer version; a bug or a second owner
 ├ ``RoomLocked``: another kernel holds the file  ├ ``StoreFailed``: the disk refused
 ├ ``ConfigError``: a wrong value, type or option; also a ``ValueError``
 ├ ``ModelError``: a model could not be reached, or failed
 ├ ``NotReadable``: a session's scope does not let it look into another
 ├ ``TooManySessions``: agents have spawned as many as the room allows
 ├ ``WaitCycle``: sessions would wait for each other for ever
 ├ ``WaitTimedOut``: a strict wait ran out of time; also a ``TimeoutError``
 └ ``WaitInterrupted``: a kernel interrupt ended a wait; also a ``KeyboardInterrupt``

Each message has the value, the rule and the remedy; the values are attributes too.
"""

from collections.abc import Sequence
from difflib import get_close_matches

_TOLD = 12
"""Names an error lists before it only counts the rest: a model has to read it."""

_NOBODY = " No session is open yet."


class PostroomError(Exception):
    """The root of all errors Postroom raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in a notebook: the message says what to do, the stack would not help."""
        return [f"{type(self).__name__}: {self}"]


class MailRefused(PostroomError):
    """Mail was not accepted; nothing was stored, and sending again later is safe."""

    code: str = "mail_refused"


class UnknownRecipient(MailRefused):
    """No open session goes by that name or id."""

    code = "unknown_recipient"

    def __init__(self, to: str, known: Sequence[str] = (), *, closed: bool = False) -> None:
        near = get_close_matches(to, known, n=3, cutoff=0.5)
        if closed:
            what = f"session {to!r} is closed and takes no mail."
        elif near:
            what = f"no session {to!r}. Did you mean {' or '.join(map(repr, near))}?"
        else:
            what = f"no session {to!r}."
        more = f" and {len(known) - _TOLD} more" if len(known) > _TOLD else ""
        reach = f" Reachable: {', '.join(known[:_TOLD])}{more}." if known else _NOBODY
        super().__init__(what + reach)
        self.to, self.known, self.near, self.closed = to, tuple(known), tuple(near), closed


_KIN = {
    "stranger": "a stranger to it",
    "sibling": "its sibling",
    "ancestor": "an ancestor of its",
    "child": "its child",
    "descendant": "a descendant of its",
    "self": "itself",
}


class NotPermitted(MailRefused):
    """The sender's scope does not reach the recipient."""

    code = "not_permitted"

    def __init__(self, sender: str, to: str, scope: str, relation: str) -> None:
        super().__init__(
            f"{sender} may not write to {to}, {_KIN.get(relation, relation)}: its mail_scope is "
            f"{scope!r}. It may answer mail from {to} and write to its parent; "
            "the owner can widen mail_scope."
        )
        self.sender, self.to, self.scope, self.relation = sender, to, scope, relation


class TooManyHops(MailRefused):
    """Mail between agents went on too long with no human in between."""

    code = "too_many_hops"

    def __init__(self, hops: int, limit: int) -> None:
        super().__init__(
            f"mail would travel {hops} hops with no word from the owner, limit {limit}. "
            "Stop writing and end your turn; a message from the owner starts again at 0."
        )
        self.hops, self.limit = hops, limit


class AlreadyRead(PostroomError):
    """The mail that was to be withdrawn has been read; nothing was stored."""

    def __init__(self, mail: str, session: str) -> None:
        super().__init__(
            f"{mail} cannot be withdrawn: {session} has read it. Only unread mail can; write again "
            "to correct it."
        )
        self.mail, self.session = mail, session


class MailboxFull(MailRefused):
    """The recipient has too much unread mail; the sender should wait."""

    code = "mailbox_full"

    def __init__(self, session: str, unread: int, limit: int) -> None:
        super().__init__(
            f"mailbox of {session} is full: {unread} unread, limit {limit}. "
            f"Wait for {session} to take a turn, or raise mailbox_max_unread."
        )
        self.session, self.unread, self.limit = session, unread, limit


class InboxReadOnly(PostroomError):
    """Somebody wrote to the owner inbox, which only the runtime does."""

    code = "inbox_read_only"
    status = 403

    def __init__(self, to: str = "inbox") -> None:
        super().__init__(
            f"{to!r} is the owner inbox and read-only (inbox_read_only, 403): "
            "the runtime alone writes there. Use room.notify(agent, text) from Python; "
            "read it with %inbox or room.inbox(agent)."
        )
        self.to = to


class OwnerOnly(PostroomError):
    """Somebody tried what only the owner of the room may do."""

    def __init__(self, name: str, role: str, what: str) -> None:
        super().__init__(
            f"{name} may not {what}: an {role} reads and decides nothing. Ask the owner of the room, "
            "who may: %approve, %deny."
        )
        self.name, self.role, self.what = name, role, what


class NameTaken(PostroomError):
    """An open session of another agent has that name."""

    def __init__(self, name: str, agent: str, wanted: str) -> None:
        super().__init__(
            f"{name!r} is a session of agent {agent!r}, not of {wanted!r}. "
            f"Choose another name (--as), or close it first: %close {name}."
        )
        self.name, self.agent, self.wanted = name, agent, wanted


class AlreadyAnswered(PostroomError):
    """An approval or a deferred call was answered before; the first answer stands."""

    def __init__(self, what: str, state: str, by: str | None = None) -> None:
        super().__init__(f"{what} was already {state}{f' by {by}' if by else ''}; that stands.")
        self.what, self.state, self.by = what, state, by


class AnswerFailed(PostroomError):
    """A question got no answer: the run that read it did not end with one."""

    def __init__(self, session: str, reason: str, remedy: str = "", *, end: str = "") -> None:
        super().__init__(f"{session} gave no answer: {reason}.{f' {remedy}' if remedy else ''}")
        self.session, self.reason = session, reason
        self.end = end
        """How its run ended, an ``EndReason``; '' when none ended."""


class StaleRecord(PostroomError):
    """A session was stored by somebody else meanwhile."""

    def __init__(self, session: str, expected: int, found: int) -> None:
        super().__init__(
            f"session {session} is at version {found}, not {expected}: somebody else stored it. "
            "Read it again before you store."
        )
        self.session, self.expected, self.found = session, expected, found


class RoomLocked(PostroomError):
    """Another process has the room's file open."""

    def __init__(self, path: str, pid: int | None, host: str | None) -> None:
        holder = f"process {pid} on {host}" if pid else "another process"
        super().__init__(
            f"{path} is open in {holder}. Shut that kernel down, or go on with another room: "
            "%postroom open OTHER.duckdb or %postroom open :memory:"
        )
        self.path, self.pid, self.host = path, pid, host


class StoreFailed(PostroomError):
    """The store could not write or read; what was not acknowledged is not stored."""

    def __init__(self, what: str, cause: str, remedy: str = "") -> None:
        super().__init__(f"{what}: {cause}.{f' {remedy}' if remedy else ''}")
        self.what, self.cause = what, cause


class ConfigError(PostroomError, ValueError):
    """A value, a type or an option is wrong; raised at the call that gave it."""

    def __init__(self, message: str, *, value: object = None) -> None:
        super().__init__(message)
        self.value = value


class ModelError(PostroomError):
    """A model could not be made, reached or understood."""

    def __init__(self, message: str, *, model: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.model, self.status = model, status


class NotReadable(PostroomError):
    """A session may not look into another one."""

    def __init__(self, reader: str, session: str, scope: str, relation: str) -> None:
        super().__init__(
            f"{reader} may not read {session}, {_KIN.get(relation, f'its {relation}')}: its "
            f"mail_scope is {scope!r}. It may ask by mail; the owner can widen mail_scope."
        )
        self.reader, self.session, self.scope, self.relation = reader, session, scope, relation


class TooManySessions(PostroomError):
    """Agents may spawn no more sessions for now."""

    def __init__(self, open: int, limit: int) -> None:
        super().__init__(
            f"{open} sessions are open, limit {limit}: agents spawn no more. "
            "Close some, or raise room.max_sessions."
        )
        self.open, self.limit = open, limit


class WaitCycle(PostroomError):
    """A tool call would wait for a session that waits for it: neither would ever go on."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"this wait would never end: {' → '.join(names)}. End the turn instead of waiting: "
            "what you need comes as mail."
        )
        self.names = tuple(names)


class WaitInterrupted(PostroomError, KeyboardInterrupt):
    """A kernel interrupt ended a wait; the sessions work on."""

    def __init__(self, left: Sequence[str] = ()) -> None:
        still = f" Still working: {', '.join(left)}." if left else ""
        super().__init__(f"stopped waiting; the sessions live on.{still}")
        self.left = tuple(left)


class WaitTimedOut(PostroomError, TimeoutError):
    """A strict wait ran out of time; the sessions work on."""

    def __init__(self, text: str, left: Sequence[str]) -> None:
        super().__init__(text)
        self.left = tuple(left)
