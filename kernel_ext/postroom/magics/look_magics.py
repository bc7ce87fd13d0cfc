"""The magics that look and change nothing: sessions, mail, turns, calls, the owner inbox."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from IPython.core.magic import magics_class

from postroom.call_tables import call_grid, inbox_grid
from postroom.caller import Use, caller
from postroom.catalogue import CALLS, INBOX, MAIL, SESSIONS, TRANSCRIPT
from postroom.display import mail_grid
from postroom.magics.base import DeskMagics, magic
from postroom.session_tables import SessionTable
from postroom.tables import Table
from postroom.transcripts import Transcript


@magics_class
class LookMagics(DeskMagics):
    """What looks and changes nothing."""

    @magic(SESSIONS)
    def sessions(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.SESSIONS``."""
        looked = caller()
        parsed = self.read(SESSIONS, line, local_ns)
        found = self.room.sessions(hidden=parsed.has("hidden"))
        table = SessionTable(found, self.room, width=self.desk.width)
        return self.give(table, parsed, looked)

    @magic(MAIL)
    def mail(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.MAIL``."""
        looked = caller()
        parsed = self.read(MAIL, line, local_ns)
        session = self.room.session(parsed.head, closed=True)
        found = session.mail(unread=parsed.has("unread"))
        draw = partial(mail_grid, names=self._names(), of=session.name, cursor=session.cursor)
        return self.give(Table(found, draw, width=self.desk.width), parsed, looked)

    @magic(TRANSCRIPT)
    def transcript(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.TRANSCRIPT``."""
        looked = caller()
        parsed = self.read(TRANSCRIPT, line, local_ns)
        session = self.room.session(parsed.head, closed=True)
        turns = session.transcript()
        if (last := parsed.count_of("last")) is not None:
            turns = turns[max(0, len(turns) - last) :]
        # Who asks for a number of turns gets them all.
        transcript = Transcript(turns, of=session.name, last=last)
        return self.give(transcript, parsed, looked)

    @magic(CALLS)
    def calls(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.CALLS``."""
        looked = caller()
        parsed = self.read(CALLS, line, local_ns)
        room = self.room
        sessions = [room.session(parsed.head)] if parsed.head else room.sessions(hidden=True)
        found = sorted(
            (call for session in sessions for call in session.calls()), key=lambda call: call.id
        )
        draw = partial(
            call_grid,
            names=self._names(),
            approvals=room.approvals(state=None),
            now=room.now(),
            lingering={call.id for session in sessions for call in session.life.lingering()},
            of=parsed.head,
        )
        return self.give(Table(found, draw, width=self.desk.width), parsed, looked)

    @magic(INBOX)
    def inbox(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.INBOX``."""
        looked = caller()
        parsed = self.read(INBOX, line, local_ns)
        room = self.room
        if self.desk.in_kernel and looked.use is not Use.KEPT:
            if not parsed.quiet:
                self.desk.show_inbox(parsed.head)
            return None
        found = room.inbox(parsed.head or None).history()
        draw = partial(inbox_grid, approvals=room.approvals(state=None), of=parsed.head)
        return self.give(Table(found, draw, width=self.desk.width), parsed, looked)

    def _names(self) -> dict[str, str]:
        return {id: record.name for id, record in self.room.people().items()}
