"""The verb of a room that draws what happened in it."""

from collections.abc import Callable, Collection
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING, Any

from postroom_runtime.contracts.errors import PostroomError
from postroom_runtime.contracts.ids import SessionId
from postroom_runtime.office.sequence import (
    LAST,
    MarkKind,
    known_kinds,
    named,
    select,
    whole_number,
)
from postroom_runtime.office.sequence_live import LiveDiagram
from postroom_runtime.office.sequence_picture import Sequence
from postroom_runtime.office.sequence_reading import KINDS, read_diagram
from postroom_runtime.office.sequence_recent import recent_diagram
from postroom_runtime.office.verbs import RoomVerbs
from postroom_runtime.storage.protocol import Storage

if TYPE_CHECKING:
    from postroom_runtime.office.session import Session


class PictureVerbs(RoomVerbs):
    """What a room draws of itself."""

    storage: Storage
    board_factory: Callable[[Any], Any] | None = None
    """Makes the live view of the whole room, where there is a notebook."""

    def sequence(
        self,
        *,
        sessions: "Many[Session | str] | Session | str | None" = None,
        kinds: "Many[MarkKind | str] | MarkKind | str | None" = None,
        last: int | None = LAST,
        since: int | None = None,
    ) -> Sequence:
        """Return the mail between the sessions as a sequence diagram, in commit order.

        Args:
            sessions: Names, ids or sessions, closed ones too: only what starts or ends at one of
                them. ``you`` is the owner.
            kinds: Only these: ``mail``, ``reply``, ``interrupt``, ``answer``, ``control``,
                ``spawn``, ``close``, ``call``, ``result``, ``refused``, ``approval``, ``watched``,
                ``timer``, ``system``, ``failed``.
            last: How many at most, the latest; None for all.
            since: Only what was stored after this row, as ``Event.seq`` counts them.

        Returns:
            The diagram: a notebook shows it; ``.mermaid``, ``.svg`` and ``.save(path)`` keep it.

        Raises:
            ConfigError: No such session or kind, or no such number; tells near matches.
        """
        self.check_open()
        wanted = None if kinds is None else known_kinds(kinds)
        most = None if last is None else whole_number("last", last, 1)
        after = 0 if since is None else whole_number("since", since, 0)
        whole = read_diagram(self.storage.rows(kinds=KINDS))
        chosen = None if sessions is None else named(whole, sessions)
        return Sequence(select(whole, sessions=chosen, kinds=wanted, last=most, since=after))

    def recent_mail(self, among: Collection[SessionId], last: int) -> Sequence:
        """Return the latest letters between some sessions as a small diagram.

        It looks through the end of the journal only, so it costs little in a long room too.

        Args:
            among: Ids of the sessions; a letter is shown that goes from one of them to another.
            last: How many at most.
        """
        self.check_open()
        return Sequence(recent_diagram(self.storage, among, last))

    def view(self) -> Any:
        """Return a live view of the whole room: its sessions, and the mail between them.

        Raises:
            PostroomError: There is no notebook to show it in, or the room was closed.
        """
        self.check_open()
        if self.board_factory is None:
            raise PostroomError(
                "live views need a notebook: open the room with %load_ext postroom. "
                "Without one, room.sequence() gives the same as a picture."
            )
        return self.board_factory(self)

    def live_diagram(self) -> LiveDiagram:
        """Return the diagram of all that happened, which grows with the room: what views draw."""
        return LiveDiagram(self.storage)
