"""A room's worth of people for tests of mail: sessions that are nothing but what a router asks."""

from dataclasses import dataclass, field

from contracts.envelopes import AT, clock, record
from postroom_runtime.contracts.envelope import Envelope
from postroom_runtime.contracts.session_record import SessionStatus
from postroom_runtime.mail.router import Router
from postroom_runtime.storage.memory_storage import MemoryStorage

__all__ = ["AT", "Office", "Person"]


@dataclass
class Person:
    """A session as the router knows it."""

    id: str
    name: str
    agent: str = "agent"
    parent: str | None = None
    closed: bool = False
    mail_scope: str = "subtree"
    interrupt_scope: str = "children"
    max_mail_hops: int = 16
    hops: int = 0
    status: str = "idle"
    read: set[str] = field(default_factory=set)
    why: str = ""
    """Why its mail waits."""

    def has_read(self, other: str) -> bool:
        return other in self.read

    def status_words(self) -> str:
        return self.status

    def waits(self, seq: int) -> str:
        return self.why


class Office:
    """A store and a router, and whoever is put in."""

    def __init__(self) -> None:
        self.storage = MemoryStorage(now=clock)
        self.router = Router(self.storage)
        self.numbers = 0

    def person(
        self, name: str, parent: Person | None = None, *, max_unread: int = 256, **more: object
    ) -> Person:
        """Put a session in: stored, and registered."""
        self.numbers += 1
        person = Person(
            f"s-{self.numbers:04d}", name, f"{name}-agent", parent.id if parent else None
        )
        for knob, value in more.items():
            setattr(person, knob, value)
        stored = record(
            id=person.id, name=name, agent=person.agent, parent=person.parent, max_unread=max_unread
        )
        self.storage.commit(person.id, epoch=1, version=0, rows=(stored,)).result()
        self.router.register(person)
        return person

    def close(self, person: Person) -> None:
        """Close a session, in the store too."""
        person.closed = True
        stored = self.storage.records()[person.id]
        self.storage.commit(
            person.id,
            epoch=1,
            version=stored.version,
            rows=(
                record(
                    SessionStatus.CLOSED,
                    id=person.id,
                    name=person.name,
                    agent=person.agent,
                    version=stored.version + 1,
                ),
            ),
        ).result()

    def mail(self, person: Person) -> list[Envelope]:
        """All mail of a session."""
        return self.storage.fetch({person.id: 0})[person.id]
