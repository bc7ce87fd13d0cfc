"""What all magics share: reading a line by its grammar, giving back what is displayed once."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    needs_local_scope,
    no_var_expand,
)
from IPython.display import display

from postroom.arguments import BadLine, Parsed, parse
from postroom.awaiting import CannotWait
from postroom.caller import Caller, Use
from postroom.desk import Desk
from postroom.expansion import expand
from postroom.grammar import Magic
from postroom.loop import interruptible, on_loop
from postroom_runtime.contracts.errors import PostroomError, WaitInterrupted
from postroom_runtime.contracts.ids import OWNER_INBOX
from postroom_runtime.office.room import Room
from postroom_runtime.office.session import Session

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class NotYet(PostroomError):
    """A magic or an option that a later version of Postroom will have."""


def magic(grammar: Magic) -> Callable[[F], F]:
    """Make a method the magic of a grammar: its name, its forms and its help.

    The method takes the line, the cell's body if the magic has a cell form, and ``local_ns``.
    """

    def mark(method: F) -> F:
        method.__doc__ = grammar.help
        forms = line_cell_magic if grammar.line and grammar.body else line_magic
        kind = forms if grammar.line else cell_magic
        marked: F = kind(grammar.name)(no_var_expand(needs_local_scope(method)))
        return marked

    return mark


class DeskMagics(Magics):
    """Magics that work at a desk.

    Args:
        desk: Where.
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(shell=desk.ip)
        self.desk = desk

    @property
    def room(self) -> Room:
        """The notebook's room."""
        return self.desk.room

    def read(
        self,
        grammar: Magic,
        line: str,
        local_ns: Mapping[str, Any] | None,
        body: str | None = None,
    ) -> Parsed:
        """Return what a line says, ``{expr}`` replaced.

        Raises:
            UsageError: The line cannot be read.
        """
        names = {**self.desk.namespace, **(local_ns or {})}
        try:
            return parse(grammar, line, body, expand=lambda text: expand(text, names))
        except BadLine as error:
            raise UsageError(str(error)) from None

    def give(self, value: Any, line: Parsed, looked: Caller) -> Any:
        """Return the value of a magic so that it is displayed once, wherever its line stands.

        IPython displays the last expression of a cell and no other; a line that ends in ``;``
        displays nothing.
        """
        if looked.use is Use.KEPT:
            return value
        if line.quiet:
            return None
        if looked.use is Use.DROPPED:
            display(value)
        return value

    def check_can_wait(self, looked: Caller, what: str) -> None:
        """Refuse to wait where nobody would: before anything is done.

        Raises:
            CannotWait: The call is not awaited; says where it would be.
        """
        if looked.awaits:
            return
        if looked.function:
            raise CannotWait(
                f"{what} cannot wait inside the function {looked.function}: Python lets only "
                "async def wait. Use the Python API there: await session.wait()"
            )
        raise CannotWait(
            f"{what} cannot wait here, because this cell was read before postroom was loaded. "
            "Give %load_ext postroom a cell of its own and run this one again."
        )

    async def wait_for(self, work: Coroutine[Any, Any, T], sessions: Sequence[Session]) -> T:
        """Await work of the room; an interrupt of the kernel ends the wait and nothing else.

        Args:
            work: What to wait for.
            sessions: Whom it waits for.

        Raises:
            WaitInterrupted: By the kernel; names the sessions that were still at work.
        """
        self.desk.heart.start()
        try:
            with interruptible(self.desk.ip):
                return await on_loop(self.room.loop, work)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()  # the cell may catch what is raised and go on
            left = [session.name for session in sessions if not session.idle]
            raise WaitInterrupted(left) from None
        finally:
            self.desk.refresh_views()


def recipient(room: Room, key: str) -> Session | str:
    """Return the session of that name, id or unique prefix (M-87); an owner inbox as it is named.

    Raises:
        UnknownRecipient: There is none; names near matches.
    """
    if key.split("@")[0].lower() == OWNER_INBOX:
        return key  # the room says that nobody writes there
    return room.session(key)


def usage(grammar: Magic, what: str) -> UsageError:
    """Return the error of a line that misses something."""
    return UsageError(f"{grammar.called}: {what} Write {grammar.usage[0]}")


def say(text: str) -> None:
    """Print a line for people."""
    print(text)  # noqa: T201 - a magic talks to the person at the notebook
