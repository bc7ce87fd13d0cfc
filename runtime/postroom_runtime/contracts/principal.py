"""Who looks into a room from outside: a person, and what they are to it (I-6, I-8)."""

from dataclasses import dataclass
from enum import StrEnum

from postroom_runtime.contracts.errors import ConfigError

_LONGEST = 64


class AccessRole(StrEnum):
    """What a person is to a room."""

    OWNER = "owner"
    """Whose room it is: may do all."""
    USER = "user"
    """Takes part: writes to sessions, reads what they say. Owner inboxes do not exist."""
    GUEST = "guest"
    """As a user, until the owner knows them better."""
    ADMIN = "admin"
    """Helps the owner: reads all, which is logged, and decides nothing."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A person in a role.

    Raises:
        ConfigError: The name is no printable text of 1 to 64 characters, or the role is none.
    """

    name: str
    role: AccessRole | str = AccessRole.USER

    def __post_init__(self) -> None:
        name: object = self.name
        if (
            not isinstance(name, str)
            or not name.strip()
            or len(name) > _LONGEST
            or not name.isprintable()
        ):
            raise ConfigError(
                f"{name!r} names nobody: give 1 to {_LONGEST} printable characters.", value=name
            )
        if self.role not in tuple(AccessRole):
            raise ConfigError(
                f"role={self.role!r} is no role: give one of {', '.join(AccessRole)}.",
                value=self.role,
            )
        object.__setattr__(self, "role", AccessRole(self.role))

    @property
    def outside(self) -> bool:
        """Whether owner inboxes and approvals do not exist for this person."""
        return self.role in (AccessRole.USER, AccessRole.GUEST)


def principal_of(who: "Principal | str") -> Principal:
    """Return ``who`` as a principal: the word of a role is somebody of that name in that role.

    Raises:
        ConfigError: Neither.
    """
    if isinstance(who, Principal):
        return who
    if who in tuple(AccessRole):
        return Principal(who, who)
    raise ConfigError(
        f"{who!r} is nobody: give pr.Principal(name, role), or one of {', '.join(AccessRole)}.",
        value=who,
    )
