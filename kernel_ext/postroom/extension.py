"""``%load_ext postroom``: what is put into a shell, and taken out of it again."""

import os
from typing import Any

from postroom.abilities import load_note
from postroom.awaiting import await_magics, clean_lines
from postroom.completers import Matcher
from postroom.desk import Desk, leave, take
from postroom.directory import Directory
from postroom.magics.base import DeskMagics, say
from postroom.magics.call_magics import CallMagics
from postroom.magics.look_magics import LookMagics
from postroom.magics.mail_magics import MailMagics
from postroom.magics.permission_magics import PermissionMagics
from postroom.magics.room_magics import RoomMagics, greeting, ipykernel_version
from postroom.magics.session_magics import SessionMagics
from postroom.magics.watch_magics import WatchMagics

_MAGICS: tuple[type[DeskMagics], ...] = (
    RoomMagics,
    SessionMagics,
    WatchMagics,
    MailMagics,
    CallMagics,
    PermissionMagics,
    LookMagics,
)


class _Installed:
    """What is in a shell because postroom is loaded there.

    Args:
        desk: Whose.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._matcher = Matcher(desk.ip, Directory(desk))
        self._replaced: list[tuple[str, str, Any]] = []

    def put_in(self) -> None:
        """Register magics, transformers, matcher and hooks."""
        ip = self.desk.ip
        for cls in _MAGICS:
            magics = cls(self.desk)
            for kind, methods in magics.magics.items():
                known = ip.magics_manager.magics[kind]
                self._replaced += [(kind, name, known.get(name)) for name in methods]
            ip.register_magics(magics)
        ip.input_transformers_cleanup.append(clean_lines)
        ip.input_transformers_post.append(await_magics)
        self._matcher.install()
        ip.events.register("pre_run_cell", self.desk.before_cell)
        ip.events.register("post_run_cell", self.desk.after_cell)

    def take_out(self) -> None:
        """Undo it; a magic that ours replaced is there again."""
        ip = self.desk.ip
        ip.events.unregister("pre_run_cell", self.desk.before_cell)
        ip.events.unregister("post_run_cell", self.desk.after_cell)
        self._matcher.remove()
        ip.input_transformers_post.remove(await_magics)
        ip.input_transformers_cleanup.remove(clean_lines)
        for kind, name, before in self._replaced:
            known = ip.magics_manager.magics[kind]
            if before is None:
                known.pop(name, None)
            else:
                known[name] = before


_installed: list[_Installed] = []


def load_ipython_extension(ip: Any) -> None:
    """Put the magics into a shell and open the notebook's room. Harmless twice.

    Raises:
        RoomLocked: Another kernel holds the file. The magics are there all the same, so that
            ``%postroom open`` can go on with another room.
        StoreFailed: The file cannot be opened; as with ``RoomLocked``.
    """
    desk = take(ip, os.environ)
    if not any(installed.desk is desk for installed in _installed):
        installed = _Installed(desk)
        installed.put_in()
        _installed.append(installed)
    if desk.room_or_none is None:
        desk.open_own()
        say(greeting(desk, why=True))
        if note := load_note(ipykernel_version(desk)):
            say(note)
        desk.before_cell()


def unload_ipython_extension(ip: Any) -> None:
    """Take everything out of a shell again, and close its room. Harmless twice."""
    for installed in tuple(_installed):
        if installed.desk.ip is ip:
            _installed.remove(installed)
            installed.take_out()
            leave(installed.desk)
