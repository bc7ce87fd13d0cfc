"""The verbs of a room that watch: events of one session as mail of another (M-125…M-128)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.errors import UnknownRecipient
from postroom_runtime.contracts.ids import SessionId, watch_id
from postroom_runtime.contracts.turn import Role
from postroom_runtime.mail.permissions import wake_kind
from postroom_runtime.mail.watched import DEFAULT_TTL
from postroom_runtime.mail.watches import Office, Watch, Watches
from postroom_runtime.office.verbs import RoomVerbs
from postroom_runtime.stepper.reasons import not_woken

if TYPE_CHECKING:
    from postroom_runtime.office.reading import Reading
    from postroom_runtime.office.room import Room
    from postroom_runtime.office.session import Session


class WatchVerbs(RoomVerbs):
    """What a room does with watches; :class:`Room` is the rest."""

    watching: Watches

    def watch(
        self,
        session: "Session | str",
        *,
        into: "Session | str",
        events: Sequence[str] | str | None = None,
        tool: str | None = None,
        ttl: float = DEFAULT_TTL,
    ) -> Watch:
        """Forward events of ``session`` into the mailbox of ``into``, from now on; any thread.

        The reader gets each as a ``WatchedEvent``, and it wakes it as mail of the watched session
        would: as of its parent, its child or a peer (``wake_on``). The watch lives in memory: it ends
        with its time, with either session, or with the room.

        Args:
            session: Whose events; a session or its name.
            into: Who is told.
            events: Which kinds (``run.stopped``, ``tool.completed`` …); None for all of them. Text as
                it is streamed and progress are never forwarded.
            tool: A glob: of ``tool.started`` and ``tool.completed`` only those of such tools.
            ttl: For how many seconds.

        Returns:
            The watch; ``room.watches()`` tells what it has forwarded since.

        Raises:
            ConfigError: An unknown event, a session that would watch itself, a 33rd watch of one
                session, or another value that will not do.
            UnknownRecipient: No such session is open.
        """
        self.check_open()
        watched, watcher = self._open(session), self._open(into)
        watch = self.watching.begin(
            watched, watcher, events, tool, ttl, note=_wakes(watched, watcher)
        )
        self.hop(self.attach)
        return watch

    def unwatch(self, id: str) -> Watch:
        """End a watch; return it as it stood, with what it forwarded and dropped.

        Raises:
            ConfigError: No such watch is under way; names those that are.
        """
        self.check_open()
        return self.watching.end(id)

    def watches(self) -> list[Watch]:
        """Return the watches under way, oldest first."""
        return self.watching.all()


def _wakes(watched: "Session", watcher: "Session") -> str:
    """Return why the watcher will not wake for it, as a receipt says it; '' when it does."""
    definition = watcher.life.defined()
    word = wake_kind(watcher.room.router.relation(watcher.id, watched.id))
    if definition is None or word in definition.agent.wake_on:
        return ""
    return not_woken(watcher.name, word)


def watch_as(
    watcher: "Session",
    reading: "Reading",
    session: str,
    events: Sequence[str] | None,
    tool: str | None,
    ttl: float,
) -> Watch:
    """Let ``watcher`` watch who goes by ``session``: one that it may read (M-127).

    Raises:
        UnknownRecipient: Nobody open that it sees does; owner inboxes are unknown to sessions.
        NotReadable: Its ``mail_scope`` does not reach that session.
        ConfigError: As :meth:`WatchVerbs.watch`.
    """
    record = reading.find(session)
    member = watcher.room.router.lookup(record.id)
    if member is None or member.closed:
        near = [m.name for m in watcher.room.router.reachable(watcher) if m.id != watcher.id]
        raise UnknownRecipient(session, near, closed=True)
    return watcher.room.watching.begin(member, watcher, events, tool, ttl)


def watches_of(room: "Room") -> Watches:
    """Return the watches of a new room."""

    def member(id: SessionId) -> "Session | None":
        return next((s for s in room.sessions(hidden=True) if s.id == id), None)

    def said(id: SessionId, turn: int) -> str:
        session = member(id)
        turns = session.life.state.turns if session else []
        return next((t.text for t in turns if t.index == turn and t.role is Role.MODEL), "")

    def report(id: SessionId, /, type: str, content: str, **metadata: Any) -> None:
        if (session := member(id)) is not None:
            session.life.report(type, content, **metadata)

    return Watches(
        Office(
            router=room.router,
            delivery=room.delivery,
            now=room.now,
            head=room.storage.head,
            hop=room.hop,
            task=room.task,
            said=said,
            report=report,
            next_id=lambda: watch_id(room.signatures.next("watch")),
        )
    )
