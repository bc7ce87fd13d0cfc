"""The magics about standing permissions: ``%permissions`` and ``%revoke``."""

from collections.abc import Mapping
from typing import Any

from IPython.core.magic import magics_class

from postroom.approval_grammar import PERMISSIONS, REVOKE
from postroom.caller import caller
from postroom.magics.base import DeskMagics, magic, say, usage
from postroom.permission_tables import permission_grid
from postroom.tables import Table

BY_REVOKE = "%revoke"


@magics_class
class PermissionMagics(DeskMagics):
    """What lists standing permissions and ends them."""

    @magic(PERMISSIONS)
    def permissions(self, line: str, local_ns: Mapping[str, Any] | None = None) -> Any:
        """See ``approval_grammar.PERMISSIONS``."""
        looked = caller()
        parsed = self.read(PERMISSIONS, line, local_ns)
        found = self.room.permissions()
        table = Table(found, permission_grid, width=self.desk.width)
        return self.give(table, parsed, looked)

    @magic(REVOKE)
    def revoke(self, line: str, local_ns: Mapping[str, Any] | None = None) -> None:
        """See ``approval_grammar.REVOKE``."""
        parsed = self.read(REVOKE, line, local_ns)
        if not parsed.names:
            raise usage(REVOKE, "it needs the ID of a permission.")
        for id in dict.fromkeys(parsed.names):
            ended = self.room.revoke(id, by=BY_REVOKE)
            say(f"{ended.id} no longer lets {ended.tool} run: you are asked again.")
