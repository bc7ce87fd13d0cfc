"""Reads a room's journal as a sequence diagram, at once or row by row. It asks nobody anything."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from postroom_runtime.contracts.approval import Approval, ApprovalState
from postroom_runtime.contracts.call import Call, CallState
from postroom_runtime.contracts.envelope import (
    AgentMessage,
    CancelCalls,
    ContinuationResult,
    Control,
    Envelope,
    FromSession,
    FromSystem,
    FromUser,
    Priority,
    Release,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import SessionId, is_inbox_key
from postroom_runtime.contracts.journal import Row, RowKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import EndReason, Role, Turn
from postroom_runtime.office.sequence import (
    OWNER,
    OWNER_NAME,
    Bar,
    Diagram,
    Lifeline,
    MarkKind,
    Run,
    Tone,
)
from postroom_runtime.office.sequence_growing import GrowingDiagram
from postroom_runtime.office.sequence_words import arguments_text, as_words

KINDS: Final = (
    RowKind.MAIL,
    RowKind.SESSION,
    RowKind.TURN,
    RowKind.CALL,
    RowKind.APPROVAL,
    RowKind.EVENT,
)
"""The rows it reads."""

_SEND: Final = "send-message"

_REFUSALS: Final = (
    ("no session", "no session {to}"),
    ("is closed", "session closed"),
    ("may not write", "not permitted"),
    ("hops", "too many hops"),
    ("is full", "mailbox full"),
    ("read-only", "inbox is read-only"),
)
"""How the errors of mail begin, and what fits on an arrow."""

_ANSWERED: Final = {
    ApprovalState.APPROVED: ("approved", Tone.OK),
    ApprovalState.DENIED: ("denied", Tone.BAD),
    ApprovalState.COMPLETED: ("completed", Tone.OK),
    ApprovalState.CANCELLED: ("withdrawn", Tone.SYS),
    ApprovalState.EXPIRED: ("expired", Tone.BAD),
}


def read_diagram(rows: Iterable[Row]) -> Diagram:
    """Return all that ``rows`` tell, in their order.

    Args:
        rows: Of a whole room, in commit order; other kinds than ``KINDS`` are passed over.
    """
    reader = DiagramReader()
    for row in rows:
        reader.read(row)
    return reader.diagram()


class DiagramReader(GrowingDiagram):
    """Reads rows as they come; what it has read up to now is a diagram."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[SessionId, int] = {}
        self._asked: set[SessionId] = set()

    def read(self, row: Row) -> None:
        """Take in the next row of the journal."""
        if is_inbox_key(row.session):
            return
        match row.record:
            case Envelope() as mail:
                self._mail(row, mail)
            case SessionRecord() as record:
                self._session(row, record)
            case Turn() as turn:
                self._turn(row, turn)
            case Call() as call:
                self._call(row, call)
            case Approval() as approval:
                self._approval(row, approval)
            case Event() as event:
                self._event(row, event)

    # ── sessions ──

    def _session(self, row: Row, record: SessionRecord) -> None:
        line = self.lines.get(record.id)
        if line is None:
            parent = record.parent if record.parent in self.lines else None
            line = Lifeline(
                id=record.id, name=record.name, agent=record.agent, parent=parent, born=row.n
            )
            self.put_line(line)
            by = OWNER if parent is None else parent
            maker = OWNER_NAME if parent is None else self.lines[parent].name
            told = f"{maker} made {record.name}, of agent {record.agent}"
            self.add(row, MarkKind.SPAWN, by, record.id, "spawn", text=told, id=record.id)
        if record.status is SessionStatus.CLOSED and line.closed is None:
            self.put_line(replace(line, closed=row.n))
            self._end_run(row, record.id)
            self.add(row, MarkKind.CLOSE, record.id, record.id, "closed", id=record.id)
        self.read_up_to(record.id, record.cursor)

    def _event(self, row: Row, event: Event) -> None:
        match event.kind:
            case EventKind.RUN_STARTED:
                self._end_run(row, row.session)
                self._running[row.session] = len(self.runs)
                self.put_run(len(self.runs), Run(session=row.session, begun=row.n))
            case EventKind.RUN_STOPPED:
                self._end_run(row, row.session)
                if event.data.get("reason") == EndReason.CAPPED and row.session in self.lines:
                    self.add(
                        row, MarkKind.FAILED, row.session, row.session, "capped", tone=Tone.NOW
                    )
            case EventKind.SESSION_FAILED if row.session in self.lines:
                error = str(event.data.get("error", "")) or "the run failed"
                label = f"failed: {error}" if error != "the run failed" else error
                self.add(
                    row,
                    MarkKind.FAILED,
                    row.session,
                    row.session,
                    label,
                    text=error,
                    tone=Tone.BAD,
                )

    def _end_run(self, row: Row, session: SessionId) -> None:
        if (at := self._running.pop(session, None)) is not None:
            self.put_run(at, replace(self.runs[at], ended=row.n))

    def _turn(self, row: Row, turn: Turn) -> None:
        if turn.role is Role.USER:
            for mail in turn.mail:
                self.read_in(row.session, mail.seq, turn.index)
            if any(isinstance(mail.sender, FromUser) and mail.text for mail in turn.mail):
                self._asked.add(row.session)
            for message in turn.results:
                bar = self.bars.get(message.call)
                if bar is not None and bar.detached is None and not message.state.final:
                    self.put_bar(replace(bar, detached=row.n))
        elif turn.end_reason is not None:
            asked = row.session in self._asked
            self._asked.discard(row.session)
            said = turn.text.strip() and turn.end_reason is not EndReason.NO_REPLY
            if asked and said and row.session in self.lines:
                self.add(
                    row,
                    MarkKind.ANSWER,
                    row.session,
                    OWNER,
                    turn.text,
                    text=turn.text,
                    tone=Tone.AGENT,
                )

    # ── mail ──

    def _mail(self, row: Row, mail: Envelope) -> None:
        if mail.session not in self.lines:
            return
        told: dict[str, Any] = {"id": mail.id, "seq": mail.seq, "text": mail.text}
        match mail.body:
            case Control(message=Release()):
                return  # the approval's own row tells it
            case Control(message=message):
                word = message.tag.replace("_", " ")
                if isinstance(message, CancelCalls) and message.ids:
                    word = f"cancel {', '.join(message.ids)}"
                self.add(row, MarkKind.CONTROL, self._source(mail), mail.session, word, **told)
            case ToolCallFinished() | ContinuationResult() as ended:
                bar = self.bars.get(ended.call)
                if bar is None or bar.detached is None:
                    return  # read where it was called, as a plain result
                self.put_bar(replace(bar, returned=row.n))
                said = as_words(ended.response)
                words = f"{ended.tool} {str(ended.state).replace('_', ' ')}"
                tone = Tone.TOOL if ended.state == CallState.COMPLETED else Tone.BAD
                self.add(
                    row,
                    MarkKind.RESULT,
                    mail.session,
                    mail.session,
                    f"{words}: {said}" if said else words,
                    **{**told, "text": said},
                    tone=tone,
                )
            case WatchedEvent(session=watched, event=event, data=data):
                source = watched if watched in self.lines else mail.session
                self.add(
                    row,
                    MarkKind.WATCHED,
                    source,
                    mail.session,
                    f"watched: {event}",
                    **{**told, "text": as_words(data)},
                    tone=Tone.SYS,
                )
            case UserMessage() | AgentMessage() as letter:
                self._letter(row, mail, letter, told)
            case other:
                words = mail.text or str(other.kind).replace("_", " ")
                self.add(row, MarkKind.SYSTEM, self._source(mail), mail.session, words, **told)

    def _letter(
        self, row: Row, mail: Envelope, letter: UserMessage | AgentMessage, told: dict[str, Any]
    ) -> None:
        source, text = self._source(mail), letter.text
        flags = [f"re {letter.in_reply_to}"] if letter.in_reply_to else []
        flags += ["expects reply"] if letter.expects_reply else []
        kind = MarkKind.REPLY if letter.in_reply_to else MarkKind.MAIL
        match mail.sender:
            case FromSystem(name=name):
                kind = MarkKind.TIMER if name.startswith("timer") else MarkKind.SYSTEM
                text, tone = f"{name.replace(':', ' ')}: {text}", Tone.SYS
            case FromUser(owner=owner):
                text, tone = f"{owner}: {text}" if owner else text, Tone.USER
            case _:
                tone = Tone.AGENT
        if mail.priority is Priority.INTERRUPT:
            kind, tone = MarkKind.INTERRUPT, Tone.NOW
        elif mail.lowered:
            kind, text = MarkKind.INTERRUPT, f"lowered: {text}"
            flags.append("interrupt lowered to normal")
        if mail.hops:
            flags.append("1 hop" if mail.hops == 1 else f"{mail.hops} hops")
        self.add(
            row,
            kind,
            source,
            mail.session,
            text,
            **told,
            tone=tone,
            flags=tuple(flags),
            re=letter.in_reply_to or "",
            hops=mail.hops,
        )

    def _source(self, mail: Envelope) -> SessionId:
        match mail.sender:
            case FromUser():
                return OWNER
            case FromSession(session=session) if session in self.lines:
                return session
            case _:
                return mail.session

    # ── calls ──

    def _call(self, row: Row, call: Call) -> None:
        if call.session not in self.lines:
            return
        if call.tool == _SEND:
            if call.state in (CallState.FAILED, CallState.TIMED_OUT):
                self._refused(row, call)
            return
        bar = self.bars.get(call.id)
        if bar is None:
            bar = Bar(call=call.id, session=call.session, tool=call.tool, begun=row.n)
            words = f"{call.tool}({arguments_text(call.arguments)})"
            self.add(
                row,
                MarkKind.CALL,
                call.session,
                call.session,
                call.tool,
                text=words,
                id=call.id,
                tone=Tone.TOOL,
            )
        ended = row.n if call.state.final and bar.ended is None else bar.ended
        self.put_bar(replace(bar, ended=ended, state=str(call.state)))

    def _refused(self, row: Row, call: Call) -> None:
        to, why = str(call.arguments.get("to", "")), as_words(call.result)
        target = next(
            (line.id for line in reversed(self.lines.values()) if to in (line.id, line.name)),
            call.session,
        )
        found = next((short for start, short in _REFUSALS if start in why), "").format(to=to)
        said = str(call.arguments.get("text", ""))
        self.add(
            row,
            MarkKind.REFUSED,
            call.session,
            target,
            f"refused: {found or why or call.state}",
            text="\n".join(filter(None, [f"to {to}: {said}", why])),
            id=call.id,
            tone=Tone.BAD,
        )

    def _approval(self, row: Row, approval: Approval) -> None:
        if approval.session not in self.lines:
            return
        what = f"{approval.tool}({arguments_text(approval.arguments)})"
        if approval.state is ApprovalState.PENDING:
            self.add(
                row,
                MarkKind.APPROVAL,
                approval.session,
                OWNER,
                f"may {what} run?",
                text=approval.reason,
                id=approval.id,
                tone=Tone.NOW,
            )
            return
        word, tone = _ANSWERED[approval.state]
        decision = as_words(approval.decision)
        label = f"{word} {approval.tool}"
        if approval.state is ApprovalState.DENIED and decision:
            label = f"{label}: {decision}"
        elif approval.state is ApprovalState.APPROVED and isinstance(approval.decision, Mapping):
            label = f"{label}({arguments_text(approval.decision)}), edited"
        unanswered = approval.state in (ApprovalState.CANCELLED, ApprovalState.EXPIRED)
        by = approval.session if unanswered else OWNER
        self.add(
            row,
            MarkKind.APPROVAL,
            by,
            approval.session,
            label,
            text=decision,
            id=approval.id,
            tone=tone,
        )
