"""What one session may know of the others: whom it sees, and whose mail and turns it may read."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.errors import ConfigError, NotReadable, UnknownRecipient
from postroom_runtime.contracts.ids import SessionId, is_inbox_key
from postroom_runtime.contracts.journal import RowKind
from postroom_runtime.contracts.session_record import SessionRecord, SessionStatus
from postroom_runtime.contracts.turn import Role, Turn
from postroom_runtime.mail.permissions import Relation, may_read, may_write, relation
from postroom_runtime.mail.router import Router
from postroom_runtime.storage.protocol import Storage

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session

LISTED = 200
"""Sessions that one listing shows: a model has to read it."""

AROUND = 80
"""Characters that an excerpt shows on either side of what was found."""

_NEAREST = tuple(Relation)


class Reading:
    """The eyes of one session. Its ``mail_scope`` says how far they reach (M-88, M-105).

    It sees whom it may write to, and may read what its scope reaches: its parent, and whoever wrote
    to it, are seen and not read. Owner inboxes do not exist for it (I-7), but for the one moment in
    which it may read its own (I-15).

    Args:
        reader: The session that looks.
        router: The room's table of open sessions.
        storage: The room's store.
        own_inbox: Gives the owner inbox of its agent when that is asked for and may be read now.
    """

    def __init__(
        self,
        reader: "Session",
        router: Router,
        storage: Storage,
        own_inbox: Callable[[str, int], dict[str, Any] | None] = lambda key, last: None,
    ) -> None:
        self._reader, self._router, self._storage = reader, router, storage
        self._own_inbox = own_inbox

    # ── whom it sees ──

    def find(self, key: str) -> SessionRecord:
        """Return the session that goes by the id or name ``key``, if it may be read.

        A closed one is found by its id, and by its name while no open one has it.

        Raises:
            NotReadable: It is seen, and not for this session to read.
            UnknownRecipient: Nobody it sees goes by that; names near matches and whom it sees.
        """
        return self._found(key)[0]

    def _found(self, key: str) -> tuple[SessionRecord, Relation]:
        seen = self._seen()
        record = None
        if isinstance(key, str):
            named = [record for record, _ in seen.values() if record.name == key]
            record = seen[key][0] if key in seen else _latest(named)
        if record is None:
            open_ones = [r.name for r, _ in seen.values() if r.status is not SessionStatus.CLOSED]
            raise UnknownRecipient(str(key), open_ones)
        kin = seen[record.id][1]
        if not may_read(self._reader.mail_scope, kin):
            raise NotReadable(self._reader.name, record.name, self._reader.mail_scope, kin)
        return record, kin

    def may_read(self, id: SessionId) -> bool:
        """Tell whether it may read the session ``id``, open or closed."""
        found = self._seen().get(id)
        return found is not None and may_read(self._reader.mail_scope, found[1])

    def _seen(self) -> dict[SessionId, tuple[SessionRecord, Relation]]:
        """Return whom it sees, closed ones too, oldest first, each with what it is to the reader."""
        records = {i: r for i, r in self._storage.records().items() if not is_inbox_key(i)}
        parents = {id: record.parent for id, record in records.items()}
        me, scope = self._reader, self._reader.mail_scope
        seen = {}
        for id, record in records.items():
            kin = relation(me.id, id, parents)
            if may_write(scope, kin, replying=me.has_read(id)):
                seen[id] = (record, kin)
        return seen

    def _told(self, record: SessionRecord, kin: Relation) -> dict[str, Any]:
        live = self._router.lookup(record.id)
        status = live.status_words() if live is not None and live.id == record.id else record.status
        return {
            "id": record.id,
            "name": record.name,
            "agent": record.agent,
            "parent": record.parent,
            "status": str(status),
            "relation": str(kin),
            "readable": may_read(self._reader.mail_scope, kin),
        }

    def listed(self) -> list[dict[str, Any]]:
        """Return the open sessions it sees, the nearest kin first, as JSON (M-88, M-92)."""
        seen = [
            (record, kin)
            for record, kin in self._seen().values()
            if record.status is not SessionStatus.CLOSED
        ]
        seen.sort(key=lambda each: _NEAREST.index(each[1]))
        told = [self._told(record, kin) for record, kin in seen[:LISTED]]
        if (more := len(seen) - LISTED) > 0:
            told.append({"left_out": more, "message": "Use search-sessions to find the others."})
        return told

    # ── what it reads ──

    async def search(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return where ``query`` is found, case aside: in names, agents, mail and words of models.

        Names and agents come first, then texts, the newest first.

        Raises:
            ConfigError: A blank query, or a limit below 1.
        """
        wanted = query.casefold().strip()
        if not wanted or limit < 1:
            given = f"limit={limit}" if wanted else f"query={query!r}"
            raise ConfigError(f"{given} finds nothing: give words, and a limit of at least 1.")
        found: list[dict[str, Any]] = []
        texts: list[tuple[int, dict[str, Any]]] = []
        for record, kin in self._seen().values():
            told = self._told(record, kin)
            for where in ("name", "agent"):
                if wanted in told[where].casefold():
                    found.append({**_of(told), "found_in": where})
                    break
            if not told["readable"]:
                continue
            place: dict[str, Any]
            for row in self._storage.rows(record.id, kinds=(RowKind.MAIL, RowKind.TURN)):
                match row.record:
                    case Envelope() as mail:
                        words, place = mail.text, {"found_in": "mail", "mail": mail.id}
                    case Turn(role=Role.MODEL) as turn:
                        words, place = turn.text, {"found_in": "turn", "turn": turn.index}
                    case _:
                        continue  # what a user turn says is in its mail
                if (excerpt := _excerpt(words, wanted)) is not None:
                    texts.append((row.n, {**_of(told), **place, "excerpt": excerpt}))
            await asyncio.sleep(0)  # a long search must not hold up the others
        texts.sort(key=lambda each: -each[0])
        return [*found, *(told for _, told in texts)][:limit]

    def read(self, key: str, last: int) -> dict[str, Any]:
        """Return the last turns and the unread mail of the session ``key``, as JSON.

        Raises:
            NotReadable, UnknownRecipient: As in :meth:`find`.
            ConfigError: ``last`` is negative.
        """
        if last < 0:
            raise ConfigError(f"last={last} turns cannot be shown: give 0 or more.", value=last)
        if (entries := self._own_inbox(key, last)) is not None:
            return entries
        record, kin = self._found(key)
        rows = self._storage.rows(record.id, kinds=(RowKind.TURN,))
        # A turn that was amended stands in the journal twice; the later one counts.
        turns = {row.record.index: row.record for row in rows if isinstance(row.record, Turn)}
        shown = [turns[index] for index in sorted(turns)][max(0, len(turns) - last) :]
        unread = self._storage.fetch({record.id: record.cursor})[record.id]
        return {
            **self._told(record, kin),
            "turns_in_all": len(turns),
            "turns": [_turn(turn) for turn in shown],
            "unread": [_mail(mail) for mail in unread if mail.text.strip()],
        }


def _latest(named: list[SessionRecord]) -> SessionRecord | None:
    open_ones = [record for record in named if record.status is not SessionStatus.CLOSED]
    return next(reversed(open_ones or named), None)


def _of(told: Mapping[str, Any]) -> dict[str, Any]:
    names = {"session": told["id"], "name": told["name"], "agent": told["agent"]}
    return {**names, "status": told["status"]}


def _excerpt(text: str, wanted: str) -> str | None:
    at = text.casefold().find(wanted)
    if at < 0:
        return None
    begin, end = max(0, at - AROUND), at + len(wanted) + AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"


def _mail(mail: Envelope) -> dict[str, Any]:
    return {"id": mail.id, "from": str(mail.sender.id or mail.sender.kind), "text": mail.text}


def _turn(turn: Turn) -> dict[str, Any]:
    told: dict[str, Any] = {"turn": turn.index, "role": str(turn.role), "text": turn.text}
    if turn.mail:
        told["mail"] = [mail.id for mail in turn.mail]
    if turn.results:
        told["results"] = [
            {"tool_call_id": m.call, "tool": m.tool, "status": str(m.state), "result": m.value}
            for m in turn.results
        ]
    if turn.calls:
        told["calls"] = [
            {"tool_call_id": c.id, "tool": c.tool, "arguments": dict(c.arguments)}
            for c in turn.calls
        ]
    if turn.end_reason:
        told["end_reason"] = str(turn.end_reason)
    return told
