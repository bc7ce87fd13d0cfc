"""How things in a room are named: names people choose, and ids the room counts out."""

import re
from typing import Final, TypeAlias

from postroom_runtime.contracts.errors import ConfigError

SessionId: TypeAlias = str
CallId: TypeAlias = str
MailId: TypeAlias = str

OWNER_INBOX: Final = "inbox"
"""What people and agents call an owner inbox; its key inside is ``inbox@AGENT`` (I-3, I-4)."""

MAX_GIVEN_ID: Final = 128
"""Characters of an id that a sender chooses itself."""

_NAME = re.compile(r"[\w.-]{1,64}")


def check_name(name: object, what: str = "session") -> str:
    """Return ``name`` if a session or an agent may be called so.

    Args:
        name: The wanted name; case counts.
        what: What is being named, for the message.

    Raises:
        ConfigError: Not 1 to 64 letters, digits, ``_``, ``.`` or ``-``, or the reserved ``inbox``.
    """
    a = "an" if what[:1] in "aeiou" else "a"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot name {a} {what}: use 1 to 64 letters, digits, '_', '.' or '-'.",
            value=name,
        )
    if name.lower() == OWNER_INBOX:
        raise ConfigError(
            f"{name!r} cannot name {a} {what}: it is reserved for the owner inbox. Choose another.",
            value=name,
        )
    return name


def check_given_id(id: object) -> str:
    """Return ``id`` if a sender may give it to a mail.

    Raises:
        ConfigError: Not a string of 1 to 128 printable characters.
    """
    if not isinstance(id, str) or not id.strip() or len(id) > MAX_GIVEN_ID or not id.isprintable():
        raise ConfigError(
            f"id={id!r} cannot be a mail id: give 1 to {MAX_GIVEN_ID} printable characters, "
            "or none and the room counts one out.",
            value=id,
        )
    return id


def mail_id(number: int) -> MailId:
    """Return the id of the room's ``number``-th accepted mail: ``m-`` and at least 4 hex digits."""
    return f"m-{number:04x}"


def session_id(number: int) -> SessionId:
    """Return the id of the room's ``number``-th session, ``s-0001`` being the first."""
    return f"s-{number:04d}"


def session_number(id: SessionId) -> int:
    """Return the number that ``session_id`` made ``id`` of; 0 for an id of another form."""
    digits = id.removeprefix("s-")
    return int(digits) if digits.isdecimal() and digits != id else 0


def call_id(number: int) -> CallId:
    """Return the id of the room's ``number``-th tool call, ``call_0001`` being the first."""
    return f"call_{number:04d}"


def approval_id(number: int) -> str:
    """Return the id of the room's ``number``-th approval, ``ap-0001`` being the first."""
    return f"ap-{number:04d}"


def permission_id(number: int) -> str:
    """Return the id of the room's ``number``-th standing permission, ``pm-0001`` being the first."""
    return f"pm-{number:04d}"


def watch_id(number: int) -> str:
    """Return the id of the room's ``number``-th watch, ``w-0001`` being the first."""
    return f"w-{number:04d}"


def timer_id(number: int) -> str:
    """Return the id of the room's ``number``-th timer, ``t-0001`` being the first."""
    return f"t-{number:04d}"


def inbox_key(agent: str) -> SessionId:
    """Return the key under which the owner inbox of ``agent`` is stored."""
    return f"{OWNER_INBOX}@{agent}"


def inbox_agent(key: SessionId) -> str:
    """Return the agent whose owner inbox is stored under ``key``: what ``inbox_key`` made it of."""
    return key.partition("@")[2]


def is_inbox_key(session: SessionId) -> bool:
    """Tell whether ``session`` is the key of an owner inbox."""
    return session.startswith(f"{OWNER_INBOX}@")


def names_inbox(key: str) -> bool:
    """Tell whether ``key``, as somebody typed it, means an owner inbox: no session is called so."""
    return key.lower().partition("@")[0] == OWNER_INBOX
