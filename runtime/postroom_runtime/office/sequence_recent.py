"""The latest mail between some sessions as a small diagram, without reading all of a room."""

from collections.abc import Collection
from typing import Final

from postroom_runtime.contracts.envelope import (
    AgentMessage,
    Envelope,
    FromSession,
    UserMessage,
)
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.journal import Row, RowKind
from postroom_runtime.office.sequence import Diagram, Lifeline, select
from postroom_runtime.office.sequence_reading import DiagramReader
from postroom_runtime.storage.protocol import Storage

WINDOW: Final = 1_000
"""Rows at the end of the journal that are looked through: what lies before is not asked for, however
long the room is. They take a file some 50 ms, memory 3."""


def recent_diagram(storage: Storage, among: Collection[SessionId], last: int) -> Diagram:
    """Return the latest letters from one of some sessions to another, and nothing else.

    Args:
        storage: The room's store.
        among: Ids of the sessions.
        last: Letters at most.

    Returns:
        Their marks and lifelines; no calls, no runs. Empty when the end of the journal has none.
    """
    rows = storage.rows(kinds=(RowKind.MAIL,), after=max(0, storage.head() - WINDOW))
    letters = [row for row in rows if _between(row, among)]
    letters = letters[max(0, len(letters) - last) :]
    reader = DiagramReader()
    touched = {row.session for row in letters} | {_writer(row) for row in letters}
    for id, record in storage.records().items():
        if id in touched:
            reader.put_line(Lifeline(id=id, name=record.name, agent=record.agent))
            reader.read_up_to(id, record.cursor)
    for row in letters:
        reader.read(row)
    return select(reader.diagram(), last=None)


def _writer(row: Row) -> SessionId:
    mail = row.record
    sender = mail.sender if isinstance(mail, Envelope) else None
    return sender.session if isinstance(sender, FromSession) else ""


def _between(row: Row, among: Collection[SessionId]) -> bool:
    mail, writer = row.record, _writer(row)
    letter = isinstance(mail, Envelope) and isinstance(mail.body, UserMessage | AgentMessage)
    return letter and writer != row.session and writer in among and row.session in among
