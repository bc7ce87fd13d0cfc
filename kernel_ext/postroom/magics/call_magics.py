"""The magics that decide about tool calls: ``%cancel``, ``%approve``, ``%deny``."""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from IPython.core.magic import magics_class

from postroom.approval_grammar import APPROVE, DENY
from postroom.call_tables import answer_words
from postroom.caller import Use, caller
from postroom.catalogue import CANCEL
from postroom.display import Receipts, arguments_text
from postroom.magics.base import DeskMagics, magic, say, usage
from postroom_runtime.contracts.approval import Approval
from postroom_runtime.contracts.call import Call
from postroom_runtime.contracts.errors import ConfigError
from postroom_runtime.contracts.extra import Json
from postroom_runtime.office.session import Session

BY_APPROVE = "%approve"
BY_DENY = "%deny"


@magics_class
class CallMagics(DeskMagics):
    """What decides about tool calls."""

    @magic(CANCEL)
    def cancel(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``catalogue.CANCEL``."""
        looked = caller()
        parsed = self.read(CANCEL, line, local_ns)
        if not parsed.names:
            raise usage(CANCEL, "it needs the id of a CALL.")
        # All of them are known before one of them is cancelled.
        found = [self._call(id) for id in dict.fromkeys(parsed.names)]
        for _, call in found:
            if call.state.final:
                say(f"{call.id} ({call.tool}) has ended: {call.state}.")
        orders: dict[str, tuple[Session, list[str]]] = {}
        for session, call in found:
            if not call.state.final:
                orders.setdefault(session.id, (session, []))[1].append(call.id)
        receipts = Receipts(session.cancel(*ids) for session, ids in orders.values())
        if not receipts:
            return None
        return self.give(receipts[0] if len(receipts) == 1 else receipts, parsed, looked)

    def _call(self, id: str) -> tuple[Session, Call]:
        """Return a call of the room and its session.

        Raises:
            ConfigError: There is none; names a near match.
        """
        known = {
            call.id: (session, call)
            for session in self.room.sessions(hidden=True)
            for call in session.calls()
        }
        if id in known:
            return known[id]
        open_calls = [call.id for _, call in known.values() if not call.state.final]
        near = get_close_matches(id, known, n=1)
        hint = (
            f"Did you mean {near[0]!r}?"
            if near
            else f"Open: {', '.join(open_calls) or 'none'}; %calls lists all."
        )
        raise ConfigError(f"no call {id!r}. {hint}", value=id)

    @magic(APPROVE)
    def approve(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Approval | None:
        """See ``approval_grammar.APPROVE``."""
        looked = caller()
        parsed = self.read(APPROVE, line, local_ns)
        args = _arguments(parsed.text_of("args"))
        always = parsed.text_of("always") or parsed.has("always")
        approval = self.room.approve(parsed.head, args, always=always, by=BY_APPROVE)
        return self._told(approval, args, quiet=parsed.quiet, kept=looked.use is Use.KEPT)

    @magic(DENY)
    def deny(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Approval | None:
        """See ``approval_grammar.DENY``."""
        looked = caller()
        parsed = self.read(DENY, line, local_ns)
        approval = self.room.deny(parsed.head, parsed.text, by=BY_DENY)
        return self._told(approval, None, quiet=parsed.quiet, kept=looked.use is Use.KEPT)

    def _told(
        self, approval: Approval, args: Mapping[str, Json] | None, *, quiet: bool, kept: bool
    ) -> Approval | None:
        if kept:
            return approval
        if not quiet:
            names = self.room.people()
            who = names[approval.session].name if approval.session in names else approval.session
            what = arguments_text(approval.arguments if args is None else args)
            say(f"{answer_words(approval)} · {approval.tool}({what}) of {who}")
            for permission in self.room.permissions():
                if permission.approval == approval.id:
                    say(f"{permission}. %revoke {permission.id} ends that.")
        return None


def _arguments(text: str | None) -> Mapping[str, Json] | None:
    """Return the arguments of ``--args``.

    Raises:
        UsageError: They are no JSON object; says where it breaks.
    """
    if text is None:
        return None
    try:
        given = json.loads(text)
    except ValueError as error:
        raise usage(APPROVE, f"--args={text} is no JSON: {error}.") from None
    if not isinstance(given, dict):
        raise usage(APPROVE, f'--args={text} is no JSON object like {{"target": "staging"}}.')
    return given
