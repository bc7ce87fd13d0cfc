"""The magics about the room as a whole: ``%postroom``, ``%mailsql``."""

import sys
from collections import Counter
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from IPython.core.magic import magics_class

from postroom.abilities import kernel_words
from postroom.caller import caller
from postroom.catalogue import MAGICS
from postroom.desk import Desk
from postroom.magics.base import DeskMagics, magic, say, usage
from postroom.paths import MEMORY, shown
from postroom.reports import RoomStatus, letters, spent_words
from postroom.room_grammar import MAILSQL, POSTROOM
from postroom.sql_tables import SqlResult


@magics_class
class RoomMagics(DeskMagics):
    """``%postroom`` and ``%mailsql``."""

    @magic(POSTROOM)
    def postroom(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.POSTROOM``."""
        looked = caller()
        parsed = self.read(POSTROOM, line, local_ns)
        match parsed.head:
            case "" | "status":
                return self.give(room_status(self.desk), parsed, looked)
            case "help":
                say(overview())
            case "open":
                self._open(parsed.text)
            case "fresh":
                self._fresh()
            case "close":
                self._close()
            case "step":
                self._step_mode(parsed.text.strip())
            case other:
                near = get_close_matches(other, POSTROOM.words, n=1)
                hint = f"Did you mean %postroom {near[0]}? " if near else ""
                raise usage(POSTROOM, f"there is no {other!r}. {hint}")
        return None

    def _open(self, path: str) -> None:
        path = path.strip("'\"")
        if not path:
            raise usage(POSTROOM, "open needs a PATH, or :memory:.")
        self.desk.open(path)
        say(greeting(self.desk))

    def _fresh(self) -> None:
        aside = self.desk.fresh()
        if aside is None:
            say("A new empty room in memory; the one before is gone.")
        else:
            say(f"What was in the room is now in {shown(aside, self.desk.folder)}.")
        say(greeting(self.desk))

    def _close(self) -> None:
        path = shown(self.room.path, self.desk.folder)
        self.desk.close()
        again = "What was in it is gone." if path == MEMORY else f"Again: %postroom open {path}"
        say(f"Closed {path}. {again}")

    def _step_mode(self, word: str) -> None:
        room = self.room
        if word not in ("on", "off"):
            mode = "on" if room.stepping else "off"
            raise usage(POSTROOM, f"step is {mode}; say step on or step off, not {word!r}.")
        held = room.held
        room.step_mode(word == "on")
        if room.stepping:
            say("Mail is held from now on. %step lets one letter through, %step --look only looks.")
        elif held:
            say(f"Mail goes through by itself again, and {letters(held)} with it.")
        else:
            say("Mail goes through by itself again.")

    @magic(MAILSQL)
    def mailsql(
        self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None
    ) -> Any:
        """See ``catalogue.MAILSQL``."""
        looked = caller()
        parsed = self.read(MAILSQL, line, local_ns, cell)
        if not parsed.text.strip():
            raise usage(MAILSQL, "there is no query.")
        result = SqlResult(self.room.sql(parsed.text), width=self.desk.width)
        if name := parsed.text_of("o"):
            self.desk.namespace[name] = result
        return self.give(result, parsed, looked)


def room_status(desk: Desk) -> RoomStatus:
    """Return what there is to tell of the notebook's room."""
    room = desk.room
    told = room.describe()
    by_status = Counter(str(session.status) for session in room.sessions(hidden=True))
    return RoomStatus(
        path=shown(room.path, desk.folder),
        size=None if room.path == MEMORY else int(str(told["bytes"])),
        sessions=dict(sorted(by_status.items())),
        unread=int(str(told["unread"])),
        calls=int(str(told["calls"])),
        held=room.held if room.stepping else None,
        approvals=tuple(approval.id for approval in room.approvals()),
        watches=len(room.watches()),
        timers=len(room.timers()),
        spent=spent_words(room.usage, room.caps),
        agents=tuple(agent.slug for agent in room.agents()),
        kernel=kernel_words(ipykernel_version(desk)),
    )


def greeting(desk: Desk, *, why: bool = False) -> str:
    """Return the line that says which room is open and what is in it.

    Args:
        desk: Whose.
        why: Say too why the room is in memory, where nobody asked for that.
    """
    room = desk.room
    stored = len(room.sessions(hidden=True))
    count = "no sessions yet" if not stored else f"{stored} session{'s' * (stored > 1)} stored"
    note = f" ({desk.choice.note})" if why and desk.choice.note else ""
    return f"postroom: {shown(room.path, desk.folder)}{note}, {count}. Help: %postroom help"


def ipykernel_version(desk: Desk) -> str | None:
    """Return the version of the kernel, None in a plain terminal."""
    if not desk.in_kernel:
        return None
    return str(getattr(sys.modules.get("ipykernel"), "__version__", "0"))


def overview() -> str:
    """Return the list of the magics, one line each."""
    width = max(len(grammar.called) for grammar in MAGICS)
    rows = [f"  {grammar.called:{width}}  {grammar.summary}" for grammar in MAGICS]
    return "\n".join(
        [
            "Agents with mailboxes, live in this kernel. Each magic explains itself: %send?",
            *rows,
            "From Python: import postroom as pr; room = pr.room()",
        ]
    )
