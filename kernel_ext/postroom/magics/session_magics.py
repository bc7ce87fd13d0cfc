"""The magics that make, show and end sessions."""

from collections.abc import Mapping
from typing import Any

from IPython.core.magic import magics_class

from postroom.arguments import Parsed
from postroom.caller import Use, caller
from postroom.catalogue import AGENT, CLOSE, PAUSE, RESUME, SPAWN, STOP
from postroom.display import Receipts
from postroom.grammar import Magic, Names, Value
from postroom.magics.base import DeskMagics, magic, say, usage
from postroom.namespace import tools, variable
from postroom_runtime.contracts.config import Agent
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.models.script import Script
from postroom_runtime.office.session import Session

_RESUMED = {
    SessionStatus.READY: "stored before, it runs here with its unread mail",
    SessionStatus.PAUSED: "no longer paused",
    SessionStatus.FAILED: "it asks its model again",
    SessionStatus.CAPPED: "it goes on",
}


@magics_class
class SessionMagics(DeskMagics):
    """What makes, shows and ends sessions."""

    @magic(AGENT)
    def agent(self, line: str, cell: str, local_ns: Mapping[str, Any] | None = None) -> None:
        """See ``catalogue.AGENT``."""
        parsed = self.read(AGENT, line, local_ns, cell)
        slug = parsed.head
        room = self.room
        known = any(agent.slug == slug for agent in room.agents())
        room.define(Agent(slug, **self._knobs(parsed)))
        users = [s.name for s in room.sessions(hidden=True) if s.agent == slug]
        told = f"agent {slug} is defined{' anew' if known else ''}"
        if users:
            told += f"; {', '.join(users)} use{'s' * (len(users) == 1)} it from the next turn"
        say(f"{told}.")

    def _knobs(self, parsed: Parsed) -> dict[str, Any]:
        knobs: dict[str, Any] = {"instructions": parsed.text}
        for option in AGENT.options:
            if not parsed.has(option.name):
                continue
            name = option.name.replace("-", "_")
            if option.name == "model":
                knobs[name] = self._model(parsed)
            elif option.name == "tools":
                knobs[name] = self._tools(parsed)
            elif option.names is Names.VARIABLE:
                knobs[name] = variable(str(parsed.values[option.name]), self.desk.namespace)
            elif option.value is Value.FLAG:
                knobs[name] = True
            else:
                knobs[name] = parsed.values[option.name]
        return knobs

    def _model(self, parsed: Parsed) -> Any:
        """Return the model that ``--model`` names: an object of the notebook, else the text.

        A script stays a name, by which a later kernel finds it again.
        """
        name = parsed.text_of("model")
        value = self.desk.namespace.get(name) if name else None
        return name if value is None or isinstance(value, (str, Script)) else value

    def _tools(self, parsed: Parsed) -> Any:
        names = parsed.list_of("tools")
        return None if names is None else tools(names, self.desk.namespace)

    @magic(SPAWN)
    def spawn(
        self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None
    ) -> Session | None:
        """See ``catalogue.SPAWN``."""
        looked = caller()
        parsed = self.read(SPAWN, line, local_ns, cell)
        room = self.room
        parent = parsed.text_of("parent")
        session = room.spawn(
            parsed.head,
            parsed.text or None,
            name=parsed.text_of("as"),
            parent=None if parent is None else room.session(parent),
            model=self._model(parsed),
            tools=self._tools(parsed),
            hidden=parsed.has("hidden"),
            again=parsed.has("again"),
        )
        self.desk.heart.start()
        if parsed.has("hidden"):
            say(repr(session))
        else:
            if session.note and self.desk.in_kernel:
                say(f"{session.name}: {session.note}.")
            self.desk.show_view(session)
        # The view is what is displayed; the session is for whoever takes it.
        return session if looked.use is Use.KEPT else None

    @magic(PAUSE)
    def pause(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.PAUSE``."""
        looked = caller()
        parsed = self.read(PAUSE, line, local_ns)
        receipts = Receipts(session.pause() for session in self._named(PAUSE, parsed))
        return self.give(receipts[0] if len(receipts) == 1 else receipts, parsed, looked)

    @magic(STOP)
    def stop(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.STOP``."""
        looked = caller()
        parsed = self.read(STOP, line, local_ns)
        receipts = Receipts(session.stop() for session in self._named(STOP, parsed))
        return self.give(receipts[0] if len(receipts) == 1 else receipts, parsed, looked)

    @magic(RESUME)
    def resume(self, line: str, local_ns: Mapping[str, Any] | None = None) -> None:
        """See ``catalogue.RESUME``."""
        parsed = self.read(RESUME, line, local_ns)
        for session in self._named(RESUME, parsed):
            before = session.status
            session.resume()
            needs = f" once agent {session.agent} is defined: run its cell" if session.needs else ""
            say(f"{session.name}: {_RESUMED.get(before, 'nothing to resume')}{needs}.")

    @magic(CLOSE)
    def close(self, line: str, local_ns: Mapping[str, Any] | None = None) -> None:
        """See ``catalogue.CLOSE``."""
        parsed = self.read(CLOSE, line, local_ns)
        before = self.room.sessions(hidden=True)
        for session in self._named(CLOSE, parsed):
            session.close()
        closed = ", ".join(session.name for session in before if session.closed)
        say(f"Closed: {closed}. Mail and transcript stay in the room.")

    def _named(self, grammar: Magic, parsed: Parsed) -> list[Session]:
        if not parsed.names:
            raise usage(grammar, "it needs the NAME of a session.")
        return [self.room.session(name) for name in parsed.names]
