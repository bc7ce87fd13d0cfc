"""Parse the lines of the magics. Pure: a line and the magic's grammar in, what it says out.

Options stand between the head (TO, SLUG) and the text. The first word that is no option begins the
text, ``--`` ends the options, and from there every character counts. A ``{…}`` group is one word
even with spaces inside, because it is replaced by its value later (see ``expansion``).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite

from postroom.grammar import Magic, Option, Tail, Value
from postroom_runtime.contracts.errors import ConfigError


class BadLine(ConfigError):
    """The line of a magic cannot be read; becomes IPython's ``UsageError``."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A line taken apart, nothing expanded or converted yet."""

    head: str
    options: tuple[tuple[Option, str | None], ...]
    names: tuple[str, ...]
    text: str
    quiet: bool
    """The line ended in ``;``: show nothing. Text magics keep the ``;`` as text."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a line says. Ask with the method that fits the option's kind."""

    magic: Magic
    heads: tuple[str, ...]
    """The head, split at commas where it is a list; empty without one."""
    names: tuple[str, ...]
    text: str
    """The text of the line, then the body of the cell; '' for none."""
    quiet: bool = False
    values: Mapping[str, str | tuple[str, ...] | float | int | bool] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The one head, or ''."""
        return self.heads[0] if self.heads else ""

    def has(self, name: str) -> bool:
        """Tell whether the option was given."""
        return name in self.values

    def text_of(self, name: str) -> str | None:
        """Return the value of a text option, None when it was not given."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None

    def list_of(self, name: str) -> tuple[str, ...] | None:
        """Return the words of a list option, None when it was not given."""
        value = self.values.get(name)
        return value if isinstance(value, tuple) else None

    def number_of(self, name: str) -> float | None:
        """Return the value of a number option, None when absent or given without a value."""
        value = self.values.get(name)
        return float(value) if isinstance(value, (int, float)) and value is not True else None

    def count_of(self, name: str) -> int | None:
        """Return the value of a count option, None when it was not given."""
        value = self.values.get(name)
        return value if isinstance(value, int) and value is not True else None


def parse(
    magic: Magic, line: str, body: str | None = None, *, expand: Callable[[str], str] = str
) -> Parsed:
    """Read the line of a magic, and the body below it.

    Args:
        magic: Its grammar.
        line: What stands behind the magic's name, as IPython hands it over.
        body: The cell below ``%%``; verbatim but for the final line end. None for a line magic.
        expand: Replaces ``{expr}`` in the head, in values and in the text of the line.

    Raises:
        BadLine: An unknown or wrong option, a missing head, a word too many.
    """
    scanned = scan(magic, line)
    if body is not None and body.endswith("\n"):
        body = body.removesuffix("\n").removesuffix("\r")
    values: dict[str, str | tuple[str, ...] | float | int | bool] = {}
    for option, raw in scanned.options:
        values[option.name] = _value(magic, option, None if raw is None else expand(raw))
    text = expand(scanned.text)
    if body is not None:
        text = f"{text}\n{body}" if text else body
    head = expand(scanned.head)
    heads = tuple(head.split(",")) if magic.head_list else (head,)
    names = " ".join(expand(name) for name in scanned.names)
    return Parsed(
        magic=magic,
        heads=heads if head else (),
        names=tuple(name for name in re.split(r"[\s,]+", names) if name),
        text=text,
        quiet=scanned.quiet,
        values=values,
    )


def scan(magic: Magic, line: str) -> Scanned:
    """Take a line apart without expanding it: what the transformer of waiting magics needs.

    Raises:
        BadLine: As ``parse``, but for wrong values.
    """
    quiet = False
    if magic.tail is not Tail.TEXT:
        line, quiet = _without_comment(line)
    at = _skip(line, 0)
    head = ""
    if magic.head:
        head, at = _head(magic, line, at)
    options: list[tuple[Option, str | None]] = []
    names: list[str] = []
    while at < len(line):
        word, after = _word(line, at)
        if word == "--":
            at = _skip(line, after)
            break
        if (found := _option(magic, line, at)) is not None:
            option, raw, at = found
            if any(option is other for other, _ in options):
                raise BadLine(f"{magic.called}: {option.written} is given twice; give it once.")
            options.append((option, raw))
        elif magic.tail is Tail.TEXT:
            break
        else:
            _take_name(magic, names, word)
            at = _skip(line, after)
    text = ""
    if magic.tail is Tail.TEXT:
        text = line[at:].rstrip()
    else:
        for word in line[at:].split():
            _take_name(magic, names, word)
    return Scanned(head, tuple(options), tuple(names), text, quiet)


# ── Words ──


def _skip(line: str, at: int) -> int:
    while at < len(line) and line[at].isspace():
        at += 1
    return at


def _word(line: str, at: int) -> tuple[str, int]:
    """Return the word that starts at ``at`` and the place behind it."""
    start = at
    while at < len(line) and not line[at].isspace():
        at = _behind_group(line, at) if line[at] == "{" else at + 1
    return line[start:at], at


def _behind_group(line: str, at: int) -> int:
    """Return the place behind the ``{…}`` group at ``at``; behind the brace if it never closes."""
    depth = 0
    for place in range(at, len(line)):
        depth += {"{": 1, "}": -1}.get(line[place], 0)
        if depth == 0:
            return place + 1
    return at + 1


def _without_comment(line: str) -> tuple[str, bool]:
    line = re.sub(r"(^|\s)#.*$", "", line, flags=re.DOTALL).rstrip()
    bare = line.rstrip("; \t")
    return bare, bare != line


def _head(magic: Magic, line: str, at: int) -> tuple[str, int]:
    word, after = _word(line, at)
    if not word:
        if magic.head_optional:
            return "", at
        raise BadLine(f"{magic.called} needs {magic.head}. Write {magic.usage[0]}")
    if magic.find(word.partition("=")[0]) is not None or _looks_like_option(word):
        if magic.head_optional:
            return "", at
        raise BadLine(
            f"{magic.called}: {word} stands before {magic.head}. Options follow it: {magic.usage[0]}"
        )
    if magic.head_list and (word.startswith(",") or word.endswith(",") or ",," in word):
        raise BadLine(
            f"{magic.called}: {word!r} has an empty name. "
            f"A list has commas and no spaces: {magic.called} ann,bob …"
        )
    return word, _skip(line, after)


def _take_name(magic: Magic, names: list[str], word: str) -> None:
    if magic.tail is Tail.NOTHING:
        raise BadLine(f"{magic.called}: {word!r} is one word too many. Write {magic.usage[0]}")
    names.append(word)


# ── Options ──


def _looks_like_option(word: str) -> bool:
    return re.match(r"--[A-Za-z]", word) is not None


def _option(magic: Magic, line: str, at: int) -> tuple[Option, str | None, int] | None:
    """Return the option at ``at``, its raw value and the place of the next word, or None."""
    name = re.match(r"--?[A-Za-z][\w-]*", line[at:])
    if name is None:
        return None
    word = name.group()
    end = at + name.end()
    option = magic.find(word)
    if option is None:
        if not word.startswith("--"):
            return None
        raise BadLine(_unknown(magic, word))
    if line[end : end + 1] == "=":
        raw, after = _option_value(line, end + 1)
        if option.value is Value.FLAG:
            raise BadLine(f"{magic.called}: {word} takes no value, found {raw!r}.")
        if not raw:
            raise BadLine(f"{magic.called}: {word}= has no value. Write {option.usage[1:-1]}")
        return option, raw, _skip(line, after)
    if end < len(line) and not line[end].isspace():
        if not word.startswith("--"):
            return None  # `-i!` is text: only the whole word is the option
        raise BadLine(_unknown(magic, _word(line, at)[0]))
    if option.value is Value.FLAG or option.bare:
        return option, None, _skip(line, end)
    raw, after = _option_value(line, _skip(line, end)) if option.spaced else ("", end)
    if not raw or _looks_like_option(raw) or raw == "--":
        raise BadLine(
            f"{magic.called}: {word} needs a value. Write {option.written}="
            f"{option.shown} without spaces."
        )
    return option, raw, _skip(line, after)


def _option_value(line: str, at: int) -> tuple[str, int]:
    """Return the value at ``at``: a word, or what stands between quotes."""
    quote = line[at : at + 1]
    if quote in ("'", '"'):
        end = re.compile(rf"{quote}(?=\s|$)").search(line, at + 1)
        if end is not None:
            return line[at + 1 : end.start()], end.end()
    return _word(line, at)


def _unknown(magic: Magic, word: str) -> str:
    known = [option.written for option in magic.options]
    near = get_close_matches(word, known, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]}?" if near else ""
    has = f" It has {', '.join(known)}." if known and not near else ""
    way_on = " To begin the text with it, write -- first." if magic.tail is Tail.TEXT else ""
    return f"{magic.called} has no option {word}.{hint}{has}{way_on}"


def _value(
    magic: Magic, option: Option, raw: str | None
) -> str | tuple[str, ...] | float | int | bool:
    if raw is None:
        return True
    match option.value:
        case Value.LIST:
            return tuple(word.strip() for word in raw.split(",") if word.strip())
        case Value.NUMBER | Value.COUNT:
            return _number(magic, option, raw)
        case _:
            return raw


def _number(magic: Magic, option: Option, raw: str) -> float | int:
    whole = option.value is Value.COUNT
    try:
        number = int(raw) if whole else float(raw)
    except ValueError:
        number = -1
    if not isfinite(number) or number < 0:
        rule = "a whole number, at least 0" if whole else "seconds as a number, at least 0"
        raise BadLine(
            f"{magic.called}: {option.written}={raw} will not do: give {rule}, "
            f"like {option.written}={3 if whole else 30}."
        )
    return number
