"""Watches: events of one session, forwarded into the mailbox of another (M-125…M-128).

They live in memory and on the room's loop. A watch ends with its time, with either of its sessions,
or with the room. What it cannot deliver it drops and counts: nobody whose events are heard ever
learns of it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from postroom_runtime.contracts.envelope import FromSystem, Outgoing, WatchedEvent
from postroom_runtime.contracts.errors import ConfigError, PostroomError, TooManyHops
from postroom_runtime.contracts.event import Event, EventKind
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.contracts.turn import Role
from postroom_runtime.mail.delivery import Delivery
from postroom_runtime.mail.router import Member, Posted, Router
from postroom_runtime.mail.watched import (
    WATCHABLE,
    check_events,
    check_tool,
    check_ttl,
    hops_of,
    told_of,
    wanted,
)

log = logging.getLogger("postroom")

MOST: Final = 32
"""Watches of one watcher (M-127)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One watch as it stood when it was asked for."""

    id: str
    session: SessionId
    """Whose events."""
    into: SessionId
    """Whose mailbox they go to."""
    events: tuple[str, ...]
    """Kinds of events."""
    tool: str | None
    """A glob that ``tool.*`` events are narrowed by."""
    ttl: float
    """Seconds it lasts."""
    expires_at: datetime
    session_name: str
    into_name: str
    since: int = 0
    """Number of the last row before it: it forwards what was stored later."""
    forwarded: int = 0
    """Events that were accepted as mail."""
    dropped: int = 0
    """Events that were refused: its mailbox was full, or they would have travelled too far."""
    why_dropped: str = ""
    """The last refusal, in words."""
    note: str = ""
    """What whoever began it should know."""

    def __str__(self) -> str:
        """Return ``w-0001: ann → bob (run.stopped; for 600 s)`` and what has become of it."""
        told = [self.kinds]
        if self.tool is not None:
            told.append(f"tools {self.tool}")
        told.append(f"for {self.ttl:g} s")
        if self.forwarded or self.dropped:
            told.append(self.counts)
        if self.note:
            told.append(self.note)
        return f"{self.id}: {self.session_name} → {self.into_name} ({'; '.join(told)})"

    __repr__ = __str__

    @property
    def kinds(self) -> str:
        """Its events in words."""
        return "all events" if self.events == WATCHABLE else ", ".join(self.events)

    @property
    def counts(self) -> str:
        """What became of its events: ``3 forwarded, 1 dropped``."""
        dropped = f", {self.dropped} dropped" if self.dropped else ""
        return f"{self.forwarded} forwarded{dropped}"


class Reports(Protocol):
    """Writes an entry in the owner inbox of a session's agent."""

    def __call__(self, session: SessionId, /, type: str, content: str, **metadata: Any) -> None:
        """Write it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """What watches need of the room they are in."""

    router: Router
    delivery: Delivery
    now: Callable[[], datetime]
    head: Callable[[], int]
    """Number of the last row stored."""
    hop: Callable[..., None]
    """Runs a function on the loop, from any thread."""
    task: Callable[[Coroutine[Any, Any, Any], str], object]
    """Runs work on the loop."""
    said: Callable[[SessionId, int], str]
    """What a session's model said in a turn; '' in none and in a user turn."""
    report: Reports
    next_id: Callable[[], str]
    """Counts out the id of a new watch."""


class Watches:
    """The watches of a room. Loop-bound but for ``begin``, ``end`` and ``all``.

    Args:
        office: The room around them.
    """

    def __init__(self, office: Office) -> None:
        self._office = office
        office.delivery.followers = self._watchers
        self._table: dict[str, Watch] = {}
        self._of: dict[SessionId, dict[str, None]] = {}
        """Ids of the watches of each watched session, oldest first."""
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None
        self._stop: Callable[[], None] | None = None
        self._owed: Counter[SessionId] = Counter()
        self._said: dict[SessionId, tuple[int, str]] = {}
        self._far: set[str] = set()
        """Watches whose owner was told that their events travel too far."""

    # ── from any thread ──

    def begin(
        self,
        session: Member,
        into: Member,
        events: Sequence[str] | str | None = None,
        tool: str | None = None,
        ttl: float = 600.0,
        *,
        note: str = "",
    ) -> Watch:
        """Forward the events of ``session`` into the mailbox of ``into`` from now on.

        Args:
            session: Whose events.
            into: Whose mailbox.
            events: Which kinds; None for all that may be forwarded.
            tool: A glob: of ``tool.*`` events only those of such tools.
            ttl: For how many seconds.
            note: What whoever begins it should know.

        Raises:
            ConfigError: The session itself, a 33rd watch, or a value that will not do.
        """
        kinds, glob, seconds = check_events(events), check_tool(tool), check_ttl(ttl)
        if session.id == into.id:
            raise ConfigError(
                f"{into.name} cannot watch itself: what happens in it, it knows. "
                "Watch another session.",
                value=session.name,
            )
        mine = [watch.id for watch in self.all() if watch.into == into.id]
        if len(mine) >= MOST:
            raise ConfigError(
                f"{into.name} has {len(mine)} watches, the most a session may have: end one of "
                f"{mine[0]} to {mine[-1]} first (unwatch), or wait until one is over.",
                value=len(mine),
            )
        watch = Watch(
            id=self._office.next_id(),
            session=session.id,
            into=into.id,
            events=kinds,
            tool=glob,
            ttl=seconds,
            expires_at=self._office.now() + timedelta(seconds=seconds),
            session_name=session.name,
            into_name=into.name,
            since=self._office.head(),
            note=note,
        )
        self._table[watch.id] = watch
        self._office.hop(self._begun, watch)
        return watch

    def end(self, id: str, into: Member | None = None) -> Watch:
        """End a watch; return it as it stood.

        Args:
            id: Its id.
            into: Whose it must be; None for anybody's.

        Raises:
            ConfigError: No such watch is under way; names those that are.
        """
        mine = [watch.id for watch in self.all() if into is None or watch.into == into.id]
        watch = self._table.get(id) if id in mine else None
        if watch is None:
            under_way = f"Under way: {', '.join(mine)}." if mine else "None is under way."
            raise ConfigError(
                f"no watch {id!r} is under way: it is over, or never was. {under_way}", value=id
            )
        self._over(id)
        return watch

    def all(self) -> list[Watch]:
        """Return the watches under way, oldest first, with what they have forwarded so far."""
        members = {member.id for member in self._office.router.members() if not member.closed}
        return [
            watch
            for watch in tuple(self._table.values())
            if watch.session in members and watch.into in members
        ]

    def _over(self, id: str) -> None:
        if (watch := self._table.pop(id, None)) is not None:
            self._office.hop(self._ended, watch)

    # ── on the loop ──

    def attach(self, loop: asyncio.AbstractEventLoop, context: Context | None) -> None:
        """Live on ``loop`` from now on, with what is left of each watch's time."""
        self._loop, self._context = loop, context
        self._ends.clear()
        for watch in tuple(self._table.values()):
            left = (watch.expires_at - self._office.now()).total_seconds()
            self._begun(watch, left)

    def close(self) -> None:
        """End all watches."""
        for id in tuple(self._table):
            self._ended(self._table.pop(id))

    def owes(self, session: SessionId) -> bool:
        """Tell whether an event is, or may be, on its way to ``session``."""
        return session in self._owed or any(
            watch.into == session and self._office.delivery.untold(watch.session)
            for watch in tuple(self._table.values())
        )

    def _watchers(self, session: SessionId) -> list[SessionId]:
        return [self._table[id].into for id in self._of.get(session, ()) if id in self._table]

    def _begun(self, watch: Watch, left: float | None = None) -> None:
        if watch.id not in self._table:
            return  # over before it began
        if self._stop is None:
            self._stop = self._office.delivery.broadcast.subscribe(self._hear)
        self._of.setdefault(watch.session, {})[watch.id] = None
        if self._loop is not None:
            seconds = watch.ttl if left is None else max(0.0, left)
            self._ends[watch.id] = self._loop.call_later(
                seconds, self._over, watch.id, context=self._context
            )

    def _ended(self, watch: Watch) -> None:
        if (timer := self._ends.pop(watch.id, None)) is not None:
            timer.cancel()
        self._far.discard(watch.id)
        mine = self._of.get(watch.session, {})
        mine.pop(watch.id, None)
        if not mine:
            self._of.pop(watch.session, None)
            self._said.pop(watch.session, None)
        if not self._table and self._stop is not None:
            self._stop()
            self._stop = None

    def _hear(self, event: Event) -> None:
        try:
            self._take(event)
        except Exception:
            # Whoever emits an event must not fail because somebody watches (M-125).
            log.exception("an event of %s could not be forwarded", event.session)

    def _take(self, event: Event) -> None:
        updated = event.data if event.kind == EventKind.SESSION_UPDATED else {}
        if watches := tuple(self._of.get(event.session, ())):
            if (turn := updated.get("turn")) and turn["role"] == Role.MODEL:
                self._said[event.session] = (turn["index"], turn["text"])
            for id in watches:
                watch = self._table.get(id)
                if watch is not None and event.seq > watch.since:
                    self._forward(watch, event)
        if (record := updated.get("session")) and record.get("status") == SessionStatus.CLOSED:
            self._closed(event.session)

    def _closed(self, session: SessionId) -> None:
        for watch in tuple(self._table.values()):
            if session in (watch.session, watch.into):
                self._over(watch.id)

    def _forward(self, watch: Watch, event: Event) -> None:
        if not wanted(event, watch.events, watch.tool):
            return
        office = self._office
        member = office.router.lookup(watch.session)
        if member is None:
            return
        outgoing = Outgoing(
            session=watch.into,
            sender=FromSystem(f"watch:{watch.id}"),
            body=WatchedEvent(
                watch.session,
                str(event.kind),
                told_of(event, member.name, self._last_words(event)),
            ),
            hops=hops_of(event, member.hops),
            max_hops=member.max_mail_hops,
        )
        posted = office.router.deliver(outgoing)
        self._owed[watch.into] += 1
        office.task(self._settle(watch, posted), f"{watch.id}:{event.seq}")

    def _last_words(self, event: Event) -> str:
        if event.kind != EventKind.RUN_STOPPED:
            return ""
        turn = int(event.data.get("turn") or 0)
        index, text = self._said.get(event.session, (0, ""))
        return text if index == turn else self._office.said(event.session, turn)

    async def _settle(self, watch: Watch, posted: Posted) -> None:
        refusal: PostroomError | None = None
        try:
            await posted
        except PostroomError as error:  # full, too far, closed, or the disk refused
            refusal = error
        finally:
            self._owed[watch.into] -= 1
            if not self._owed[watch.into]:
                del self._owed[watch.into]
            self._office.delivery.ring(watch.into)
        if isinstance(refusal, TooManyHops):
            self._too_far(watch, refusal)
        elif refusal is None:
            self._far.discard(watch.id)
        if (now := self._table.get(watch.id)) is not None:
            self._table[watch.id] = (
                replace(now, forwarded=now.forwarded + 1)
                if refusal is None
                else replace(now, dropped=now.dropped + 1, why_dropped=str(refusal))
            )

    def _too_far(self, watch: Watch, refusal: TooManyHops) -> None:
        """Tell the owner, once until events get through again."""
        if watch.id in self._far:
            return
        self._far.add(watch.id)
        self._office.report(
            watch.into,
            "hops",
            f"{watch.id} forwards nothing of {watch.session_name} to {watch.into_name} for now: "
            f"{refusal}",
            watch=watch.id,
        )
