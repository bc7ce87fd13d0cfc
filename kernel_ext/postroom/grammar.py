"""What a magic's line may say: its head, its options, its tail. Data, read by four modules.

``arguments`` parses by it, ``awaiting`` finds what waits, ``completers`` knows what Tab may offer,
and the help of a magic is written from it, so the four cannot disagree.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SHOWN_OPTIONS: Final = 6
"""Options that a usage line names; a magic with more lists the rest below."""


class Names(StrEnum):
    """What a word of a line names: decides what Tab offers."""

    NOTHING = ""
    SESSION = "session"
    AGENT = "agent"
    TOOL = "tool"
    CALL = "call"
    OPEN_CALL = "open call"
    """A call that has not ended."""
    APPROVAL = "approval"
    """A question to the owner that is not answered."""
    PERMISSION = "permission"
    """A standing permission."""
    UNREAD_MAIL = "unread mail"
    """A message that its reader has not read."""
    UNTIL = "until"
    """What ``%wait --for`` waits for: idle, answer, mail, a call id, an event."""
    EVENT = "event"
    """An event that a watch may forward."""
    WATCH = "watch"
    """A watch that is under way."""
    MODEL = "model"
    VARIABLE = "variable"
    WORD = "word"
    """One of the words the grammar lists."""


class Value(StrEnum):
    """What an option holds."""

    FLAG = "flag"
    TEXT = "text"
    LIST = "list"
    """Comma-separated, without spaces."""
    NUMBER = "number"
    """Not negative; seconds."""
    COUNT = "count"
    """A whole number, at least 0."""


class Tail(StrEnum):
    """What stands after the options."""

    NOTHING = "nothing"
    NAMES = "names"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a magic."""

    name: str
    """Without the dashes: ``reply-to``."""
    help: str
    value: Value = Value.FLAG
    short: str = ""
    """One letter, used with one dash; '' for none."""
    spaced: bool = False
    """Whether the value may be the following word; ``=`` is always good."""
    bare: bool = False
    """Whether the value may be left out."""
    shown: str = ""
    """What stands for the value in usage lines: ``SECONDS``."""
    names: Names = Names.NOTHING
    words: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """The name with its dashes: ``--wait``, ``-o``."""
        return f"-{self.name}" if len(self.name) == 1 else f"--{self.name}"

    @property
    def usage(self) -> str:
        """How the option is written: ``[--wait[=SECONDS]]``."""
        name = f"-{self.short}/{self.written}" if self.short else self.written
        if self.value is Value.FLAG:
            return f"[{name}]"
        if self.spaced:
            return f"[{name} {self.shown}]"
        return f"[{name}[={self.shown}]]" if self.bare else f"[{name}={self.shown}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Magic:
    """The grammar of one magic, and what its help says."""

    name: str
    summary: str
    head: str = ""
    """What the first word is called, ``TO``; '' when the line has none."""
    head_names: Names = Names.NOTHING
    head_list: bool = False
    """Whether the head may be a comma-separated list."""
    head_optional: bool = False
    options: tuple[Option, ...] = ()
    tail: Tail = Tail.NOTHING
    tail_shown: str = ""
    tail_names: Names = Names.NOTHING
    line: bool = True
    """Whether ``%name`` exists."""
    body: str = ""
    """What the body of ``%%name`` is; '' when there is no cell form."""
    details: str = ""
    example: str = ""
    words: tuple[str, ...] = ()
    """What the head may be, where it is one of a few words."""

    @property
    def called(self) -> str:
        """How it is called in messages: ``%send``, ``%%agent``."""
        return f"%{self.name}" if self.line else f"%%{self.name}"

    @property
    def usage(self) -> tuple[str, ...]:
        """The forms of the magic, one line each."""
        head = f"[{self.head}]" if self.head_optional else self.head
        options = [option.usage for option in self.options]
        if len(options) > SHOWN_OPTIONS:
            options = [*options[:SHOWN_OPTIONS], "…"]
        order = (
            [head, self.tail_shown, *options]
            if self.tail is Tail.NAMES
            else [head, *options, self.tail_shown]
        )
        forms = [" ".join(filter(None, [f"%{self.name}", *order]))] if self.line else []
        if self.body:
            cell = filter(None, [f"%%{self.name}", head, *options, f"(body: {self.body})"])
            forms.append(" ".join(cell))
        return tuple(forms)

    def find(self, word: str) -> Option | None:
        """Return the option written ``--word`` or ``-w``, or None."""
        for option in self.options:
            if word == option.written or (option.short and word == f"-{option.short}"):
                return option
        return None

    @property
    def help(self) -> str:
        """What ``%name?`` shows: forms, meaning, options, an example."""
        parts = ["\n".join(self.usage), self.summary, self.details]
        if self.options:
            width = max(len(option.usage[1:-1]) for option in self.options)
            rows = (f"  {option.usage[1:-1]:{width}}  {option.help}" for option in self.options)
            parts.append("Options:\n" + "\n".join(rows))
        if self.example:
            parts.append("Example:\n" + "\n".join(f"  {row}" for row in self.example.splitlines()))
        return "\n\n".join(part for part in parts if part) + "\n"
