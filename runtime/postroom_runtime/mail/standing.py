"""Standing permissions as they are kept: entries of the owner inbox, so no file needs more than mail.

A permission is an entry of type ``permission``, stored in the transaction of the approval it was given
with; ``permission_revoked`` ends it. What stands is read from the entries when a room is opened.
"""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.entries import GRANTED, REVOKED
from postroom_runtime.contracts.envelope import Envelope, FromSystem, Notification, Outgoing
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import SessionId, permission_id
from postroom_runtime.contracts.permission import Allow, Permission
from postroom_runtime.mail.owner_inbox import OwnerInbox


class StandingPermissions:
    """What the owner lets run unasked. Safe to use from any thread.

    Args:
        inbox: Keeps the entries, those of earlier kernels too.
        now: The room's clock.
    """

    def __init__(self, inbox: OwnerInbox, now: Callable[[], datetime]) -> None:
        self._inbox, self._now = inbox, now
        self._lock = threading.Lock()
        self._revoking = threading.Lock()
        self._all: dict[str, Permission] = {}
        for agent in inbox.agents():
            for entry in inbox.entries(agent):
                self._replay(entry)
        self._last = max((int(id.rpartition("-")[2]) for id in self._all), default=0)

    def _replay(self, entry: Envelope) -> None:
        body = entry.body
        if not isinstance(body, Notification) or not isinstance(entry.sender, FromSystem):
            return
        facts: Mapping[str, Any] = body.metadata or {}
        id = facts.get("permission", "")
        if body.type == GRANTED:
            self._all[id] = _read(facts, entry.accepted_at)
        elif body.type == REVOKED and id in self._all:
            self._all[id] = replace(
                self._all[id], revoked_by=facts.get("by", ""), revoked_at=entry.accepted_at
            )

    # ── giving ──

    def draft(self, approval: Approval, allow: Allow, session_name: str) -> Permission:
        """Return the permission that comes with an approval; whoever answers stores it with that."""
        with self._lock:
            self._last = number = self._last + 1
        return Permission(
            id=permission_id(number),
            allow=allow,
            agent=approval.agent,
            session=approval.session,
            session_name=session_name,
            tool=approval.tool,
            arguments=dict(approval.allowed) if allow is Allow.ARGS else None,
            approval=approval.id,
            granted_by=approval.answered_by,
            granted_at=approval.answered_at,
        )

    def letter(self, permission: Permission) -> Outgoing:
        """Return the entry that keeps ``permission``."""
        return self._inbox.letter(
            permission.agent,
            str(permission),
            type=GRANTED,
            metadata=_facts(permission),
            id=permission.id,
        )

    def granted(self, permission: Permission) -> None:
        """Its entry is stored: it holds from now on."""
        with self._lock:
            self._all[permission.id] = permission

    # ── asking ──

    def all(self) -> list[Permission]:
        """Return every permission ever given, the revoked too, oldest first."""
        with self._lock:
            return list(self._all.values())

    def covering(
        self, session: SessionId, agent: str, tool: str, arguments: Mapping[str, Json]
    ) -> Permission | None:
        """Return the permission by which a call may run unasked, or None."""
        return next((p for p in self.all() if covers(p, session, agent, tool, arguments)), None)

    # ── revoking ──

    def revoke(self, id: str, by: str) -> Permission:
        """End a permission: calls from now on are asked about again. Blocks for the commit.

        Raises:
            ConfigError: There is none of that id, or it was revoked before, and by whom.
            StoreFailed: It stands as before.
        """
        with self._revoking:
            with self._lock:
                permission = self._all.get(id)
                standing = [p.id for p in self._all.values() if p.revoked_at is None]
            if permission is None:
                raise ConfigError(
                    f"no permission {id!r}; there are: {', '.join(standing) or 'none'}.", value=id
                )
            if permission.revoked_at is not None:
                raise ConfigError(
                    f"{id} was already revoked by {permission.revoked_by}; that stands.", value=id
                )
            revoked = replace(permission, revoked_by=by, revoked_at=self._now())
            self._inbox.post(
                self._inbox.letter(
                    permission.agent,
                    f"{id} no longer lets {permission.tool} run",
                    type=REVOKED,
                    metadata={"permission": id, "tool": permission.tool, "by": by},
                    id=f"revoked-{id}",
                )
            ).result()
            with self._lock:
                self._all[id] = revoked
        return revoked


def covers(
    permission: Permission,
    session: SessionId,
    agent: str,
    tool: str,
    arguments: Mapping[str, Json],
) -> bool:
    """Tell whether ``permission`` lets a call run; names and arguments have to be the very same."""
    if permission.revoked_at is not None or (permission.tool, permission.agent) != (tool, agent):
        return False
    match permission.allow:
        case Allow.AGENT:
            return True
        case Allow.TOOL:
            return permission.session == session
        case Allow.ARGS:
            same = _text(permission.arguments or {}) == _text(arguments)
            return same and permission.session == session


def _text(arguments: Mapping[str, Json]) -> str:
    # As JSON, so that True is not 1, and the order of names does not matter.
    return json.dumps(arguments, sort_keys=True)


def _facts(permission: Permission) -> dict[str, Json]:
    return {
        "permission": permission.id,
        "allow": str(permission.allow),
        "session": permission.session,
        "session_name": permission.session_name,
        "tool": permission.tool,
        "arguments": None if permission.arguments is None else dict(permission.arguments),
        "approval": permission.approval,
        "by": permission.granted_by,
        "agent": permission.agent,
    }


def _read(facts: Mapping[str, Any], at: datetime) -> Permission:
    return Permission(
        id=facts["permission"],
        allow=Allow(facts["allow"]),
        agent=facts["agent"],
        session=facts["session"],
        session_name=facts["session_name"],
        tool=facts["tool"],
        arguments=facts["arguments"],
        approval=facts["approval"],
        granted_by=facts["by"],
        granted_at=at,
    )
