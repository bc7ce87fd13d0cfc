"""What Tab offers in the lines of the magics: names of sessions, agents, tools, calls, options.

What may be offered is decided by a pure function of the line and the grammar; IPython's matcher
around it only knows where the cursor is.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from postroom.catalogue import BY_NAME
from postroom.grammar import Magic, Names, Option, Tail

IDENTIFIER: Final = "postroom.names"
"""What IPython calls the matcher, for its ``disable_matchers``."""


class Directory(Protocol):
    """Who knows the names."""

    def names(self, kind: Names) -> list[str]:
        """Return all names of a kind, in the order they should be offered. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """What Tab may put behind the cursor."""

    fragment: str
    """What is typed of the word already."""
    kind: str
    """Shown beside each name: ``session``, ``option``."""
    names: tuple[str, ...]


_LINE = re.compile(r"^\s*(?:[^\s%'\"#=][^%'\"#=]*=\s*)?%{1,2}(\w+)[ \t]+(.*)$", re.DOTALL)


def offer(before: str, directory: Directory) -> Offer | None:
    """Return what may follow in a line.

    Args:
        before: The line up to the cursor.
        directory: Who knows the names.

    Returns:
        None when the line is no magic of ours, or free text has begun.
    """
    match = _LINE.match(before)
    magic = BY_NAME.get(match.group(1)) if match else None
    if match is None or magic is None:
        return None
    words = match.group(2).split(" ")
    typed = words.pop()
    place = _place(magic, [word for word in words if word])
    if place is None:
        return None
    if isinstance(place, Option):
        return _names(typed, place.names, place.words, directory, taken=())
    if typed.startswith("-"):
        return _option(magic, typed, directory, set(words))
    if place == "head":
        return _names(typed, magic.head_names, magic.words, directory, taken=())
    if magic.tail is Tail.NAMES:
        return _names(typed, magic.tail_names, (), directory, taken=tuple(words))
    return None


def _place(magic: Magic, words: list[str]) -> Option | str | None:
    """Return what the next word is: the head, the value of an option, a name; None in a text."""
    rest = iter(words)
    if magic.head and next(rest, None) is None:
        return "head"
    for word in rest:
        option = magic.find(word.partition("=")[0])
        if option is None or word == "--":
            if magic.tail is not Tail.NAMES:
                return None
        elif option.spaced and "=" not in word and next(rest, None) is None:
            return option
    return "tail"


def _option(magic: Magic, typed: str, directory: Directory, taken: set[str]) -> Offer | None:
    name, bound, value = typed.partition("=")
    if bound:
        option = magic.find(name)
        found = option and _names(value, option.names, option.words, directory, taken=())
        return found or None
    options = [option for option in magic.options if option.written.startswith(typed)]
    fresh = (o for o in options if not any(word.split("=")[0] == o.written for word in taken))
    return Offer(typed, "option", tuple(_written(option) for option in fresh))


def _written(option: Option) -> str:
    needs_sign = not option.spaced and option.shown and not option.bare
    return f"{option.written}=" if needs_sign else option.written


def _names(
    typed: str,
    kind: Names,
    words: tuple[str, ...],
    directory: Directory,
    *,
    taken: tuple[str, ...],
) -> Offer | None:
    if kind is Names.NOTHING:
        return None
    *before, fragment = typed.split(",")
    known = [*words, *directory.names(kind)]
    fresh = dict.fromkeys(name for name in known if name not in before and name not in taken)
    return Offer(fragment, kind.value, tuple(name for name in fresh if name.startswith(fragment)))


# ── IPython's side ──


class Matcher:
    """The matcher of one shell; installed on load, gone after unload.

    Args:
        ip: The shell.
        directory: Who knows the names.
    """

    def __init__(self, ip: Any, directory: Directory) -> None:
        self._ip = ip
        self._directory = directory
        self._matcher: Callable[..., Any] | None = None

    def install(self) -> None:
        """Offer names from now on. Harmless twice."""
        if self._matcher is not None:
            return
        from IPython.core import completer

        @completer.context_matcher(identifier=IDENTIFIER, priority=50)
        def names(context: Any) -> Any:
            before = context.line_with_cursor[: context.cursor_position]
            found = offer(before, self._directory)
            if found is None:
                return {"completions": []}
            completions = [
                completer.SimpleCompletion(text=name, type=found.kind) for name in found.names
            ]
            return {
                "completions": completions,
                "matched_fragment": found.fragment,
                "suppress": bool(completions),
            }

        self._matcher = names
        self._ip.Completer.custom_matchers.append(names)

    def remove(self) -> None:
        """Offer nothing more."""
        if self._matcher is not None:
            self._ip.Completer.custom_matchers.remove(self._matcher)
            self._matcher = None
