"""What every test runs under: no model request contains the text of an owner-inbox entry (I-2)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from postroom_runtime.contracts.envelope import Notification, Outgoing
from postroom_runtime.contracts.turn import Turn
from postroom_runtime.mail.owner_inbox import OwnerInbox
from postroom_runtime.models.model import Mind, Prompt
from postroom_runtime.stepper import step

SHORTEST = 12
"""Characters of an entry that is looked for: ``hi`` may stand anywhere."""


@dataclass
class Guard:
    """What was written to owner inboxes, and what of it a model got to read."""

    entries: list[str] = field(default_factory=list)
    requests: int = 0
    leaked: list[str] = field(default_factory=list)


@contextmanager
def guarded() -> Iterator[Guard]:
    """Look at every model request, against every entry written meanwhile."""
    guard = Guard()
    letter, ask = OwnerInbox.letter, step._thought

    def written(self: OwnerInbox, *args: Any, **more: Any) -> Outgoing:
        outgoing = letter(self, *args, **more)
        if isinstance(outgoing.body, Notification) and len(outgoing.body.content) >= SHORTEST:
            guard.entries.append(outgoing.body.content)
        return outgoing

    async def asked(mind: Mind, prompt: Prompt, *rest: Any) -> Any:
        guard.requests += 1
        # What stands in earlier turns was looked at when they were new.
        seen = "\n".join([prompt.instructions, *map(words, prompt.turns[-1:])])
        guard.leaked += [entry for entry in guard.entries if entry in seen]
        return await ask(mind, prompt, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OwnerInbox, "letter", written)
        patch.setattr(step, "_thought", asked)
        yield guard


def words(turn: Turn) -> str:
    """Return all that a model reads of a turn."""
    return "\n".join([turn.text, *(result.content for result in turn.results)])
