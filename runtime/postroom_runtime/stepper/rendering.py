"""One envelope as the block the model reads; pure (M-43…M-46)."""

import json
import re
import unicodedata
from collections.abc import Container, Sequence

from postroom_runtime.contracts.envelope import (
    AgentMessage,
    ContinuationResult,
    Envelope,
    FromSession,
    FromSystem,
    FromUser,
    ToolCallFinished,
    UserMessage,
    WatchedEvent,
)
from postroom_runtime.contracts.extra import Json
from postroom_runtime.contracts.ids import CallId

_HEADER = "[mail"

_FAR = 200
"""Characters over which a header broken over lines is still looked for."""

_BLANK = frozenset("\u115f\u1160\u2800")
"""Letters and a sign that show nothing, though Unicode counts them among what is seen."""


def quoted(text: str) -> str:
    """Return ``text`` with ``> `` before each line that could pass for a mail header (M-46).

    A line ends at any of Unicode's line ends, and could pass for a header if it begins like one once
    what cannot be seen is taken away, accents too, and letters of other widths and styles are plain;
    a header that is broken over lines counts from where it begins.
    """
    quoted_lines, at = [], 0
    for line in text.splitlines(keepends=True):
        begins = _begins_like_a_header(line) or (
            any(map(_seen, line)) and _begins_like_a_header(text[at : at + _FAR])
        )
        quoted_lines.append(f"> {line}" if begins else line)
        at += len(line)
    return "".join(quoted_lines)


def _begins_like_a_header(line: str) -> bool:
    seen = ""
    for character in line:
        seen += _seen(character)
        if seen.startswith(_HEADER):
            return True
        if not _HEADER.startswith(seen):
            return False
    return False


def _seen(character: str) -> str:
    return "".join(filter(_shows, unicodedata.normalize("NFKD", character))).casefold()


def _shows(character: str) -> bool:
    return unicodedata.category(character)[0] not in "CMZ" and character not in _BLANK


def render(mail: Sequence[Envelope], read: Container[CallId] = ()) -> str:
    """Return the user text for ``mail``: a block per envelope, in order, a blank line between.

    Words of the owner alone stand bare, as if typed into a chat (M-44). Anything else carries a
    header that the model can quote back, and a body that cannot forge one.

    Args:
        mail: Envelopes that render, in order of ``seq``.
        read: Calls whose result the model has read in a status call: a line tells of them (M-63).
    """
    if all(_plain(envelope) for envelope in mail):
        return "\n\n".join(envelope.text for envelope in mail)
    return "\n\n".join(block(envelope, read) for envelope in mail)


def block(envelope: Envelope, read: Container[CallId] = ()) -> str:
    """Return ``envelope`` with its header."""
    match envelope.body:
        case ToolCallFinished(call=call) | ContinuationResult(call=call) if call in read:
            return f"[mail {envelope.id}{_header(envelope)}, already read]"
    head, body = _header(envelope), _body(envelope)
    return f"[mail {envelope.id}{head}]" + (f"\n{quoted(body)}" if body else "")


def _plain(envelope: Envelope) -> bool:
    return (
        isinstance(envelope.sender, FromUser)
        and envelope.sender.owner is None
        and isinstance(envelope.body, UserMessage)
    )


def _header(envelope: Envelope) -> str:
    match envelope.body:
        case ToolCallFinished(call=call, tool=tool, state=state):
            return f": tool call {call} ({_inline(tool)}) {state}"
        case ContinuationResult(call=call, tool=tool, state=state):
            return f": deferred call {call} ({_inline(tool)}) {state}"
        case WatchedEvent(session=session, event=event):
            return f": session {session} {event}"
        case UserMessage() | AgentMessage() as said:
            replies = f", in reply to {said.in_reply_to}" if said.in_reply_to else ""
            expects = ", expects reply" if said.expects_reply else ""
            return f" from {_who(envelope)}{replies}{expects}"
        case _:
            return f" from {_who(envelope)}"


def _who(envelope: Envelope) -> str:
    match envelope.sender:
        case FromUser(owner=None):
            return "user"
        case FromUser(owner=owner):
            return f"user {_inline(str(owner))}"
        case FromSession(session=session, agent=None):
            return f"session {session}"
        case FromSession(session=session, agent=agent):
            return f'session {session} (agent "{agent}")'
        case FromSystem(name=name):
            return f"system ({_inline(name.replace(':', ' ', 1))})"
        case other:
            return f"{other.kind}"


def _inline(text: str) -> str:
    return re.sub(r"[\[\]\s]+", " ", text).strip()


def _body(envelope: Envelope) -> str:
    match envelope.body:
        case ToolCallFinished(response=response) | ContinuationResult(response=response):
            return as_words(response)
        case WatchedEvent(data=data):
            return (
                "" if data is None else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
            )
        case _:
            return envelope.text


def as_words(response: Json) -> str:
    """Return a tool's response as the model reads it: a text as it is, the rest as JSON."""
    if response is None:
        return ""
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
