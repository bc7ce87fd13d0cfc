"""The magics that watch: ``%watch`` shows a session here or forwards its events, ``%unwatch``."""

from collections.abc import Mapping
from typing import Any

from IPython.core.magic import magics_class

from postroom.arguments import Parsed
from postroom.caller import caller
from postroom.display import Lines
from postroom.magics.base import DeskMagics, magic, say, usage
from postroom.tables import Table
from postroom.watch_grammar import UNWATCH, WATCH
from postroom.watch_tables import watch_grid
from postroom_runtime.mail.watched import DEFAULT_TTL
from postroom_runtime.mail.watches import Watch

_FORWARDS = ("events", "tool", "ttl")


@magics_class
class WatchMagics(DeskMagics):
    """What watches."""

    @magic(WATCH)
    def watch(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.WATCH``."""
        looked = caller()
        parsed = self.read(WATCH, line, local_ns)
        if parsed.has("all"):
            self._all(parsed)
            return None
        if parsed.has("into"):
            return self.give(self._forward(parsed), parsed, looked)
        for option in _FORWARDS:
            if parsed.has(option):
                raise usage(WATCH, f"--{option} needs --into=OTHER, who is to be told.")
        if not parsed.names:
            found = self.room.watches()
            return self.give(Table(found, watch_grid, width=self.desk.width), parsed, looked)
        for session in [self.room.session(name) for name in parsed.names]:
            self.desk.show_view(session)
        return None

    def _all(self, parsed: Parsed) -> None:
        if parsed.names or any(parsed.has(option) for option in ("into", *_FORWARDS)):
            raise usage(WATCH, "--all shows every session: give it no NAME and no other option.")
        self.desk.show_board()

    def _forward(self, parsed: Parsed) -> Watch | Lines[Watch]:
        if not parsed.names:
            raise usage(WATCH, "--into needs the NAME of the session to be watched.")
        watched = [self.room.session(name) for name in parsed.names]
        into = self.room.session(parsed.text_of("into") or "")
        ttl = parsed.number_of("ttl")
        begun = Lines(
            self.room.watch(
                session,
                into=into,
                events=parsed.list_of("events"),
                tool=parsed.text_of("tool"),
                ttl=DEFAULT_TTL if ttl is None else ttl,
            )
            for session in watched
        )
        return begun[0] if len(begun) == 1 else begun

    @magic(UNWATCH)
    def unwatch(self, line: str, local_ns: Mapping[str, Any] | None = None) -> None:
        """See ``catalogue.UNWATCH``."""
        parsed = self.read(UNWATCH, line, local_ns)
        if not parsed.names:
            raise usage(UNWATCH, "it needs the ID of a watch.")
        for id in dict.fromkeys(parsed.names):
            ended = self.room.unwatch(id)
            pair = f"{ended.session_name} → {ended.into_name}"
            say(f"{ended.id} ({pair}) is over: {ended.counts}.")
