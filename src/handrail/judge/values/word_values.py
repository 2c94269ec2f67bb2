"""What a word is worth: text in which one character stands for "not known before it runs", and where it came from.

The unknown is a character inside the text, not another type, so `/etc/$name` still starts with `/etc/` and
`$prefix/bin/python` still ends in `python`, with no special code. It is taken out of a command before it is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from .taints import NO_TAINTS, Taints, taints_of

UNKNOWN = "\ue000"
MAX_TEXT = 1 << 20
MAX_OPTIONS = 6


class SourceWord(Protocol):
    """The word of a script that a value was written as: a `Word` of the grammar."""

    start: int
    end: int

    @property
    def parts(self) -> Sequence[object]: ...


class Value:
    """A text that may be partly unknown: what a variable, a stream or a file holds."""

    __slots__ = ("taints", "text", "word")

    def __init__(self, text: str, taints: Taints = NO_TAINTS, word: SourceWord | None = None) -> None:
        self.text = text
        self.taints = taints
        self.word = word
        """Where it is written, for a value that is to be shown or run."""

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text

    def __repr__(self) -> str:
        marks = "".join(f", {taint}" for taint in sorted(self.taints))
        return f"{type(self).__name__}({self.text[:60]!r}{marks})"


class Either(Value):
    """One of a few values, depending on what happens. Code that does not look at `options` sees an unknown text."""

    __slots__ = ("options",)

    def __init__(self, options: Sequence[Value | None]) -> None:
        super().__init__(UNKNOWN, frozenset().union(*(option.taints for option in options if option is not None)))
        self.options = tuple(options)
        """None stands for "not set"."""


class OtherName(Value):
    """What a file holds that is a copy of a program, or a link to it."""

    __slots__ = ("program",)

    def __init__(self, program: str) -> None:
        super().__init__(UNKNOWN)
        self.program = program


class Computed(Value):
    """What a program wrote whose own text is known: its strings may be in it."""

    __slots__ = ("program",)

    def __init__(self, program: str, taints: Taints = NO_TAINTS) -> None:
        super().__init__(UNKNOWN, taints)
        self.program = program


class Array:
    """What an array holds, by index; by name when it is associative."""

    __slots__ = ("associative", "items")

    def __init__(self, items: dict[str, Value], *, associative: bool = False) -> None:
        self.items = items
        self.associative = associative


Stored = Value | Array
"""What a variable can hold."""


class Arg(str):
    """One field of a command line, after expansion. `UNKNOWN` in it stands for what cannot be known."""

    taints: Taints = NO_TAINTS
    glob: bool = False
    """It has a `*`, `?` or `[` that the shell will match against file names."""
    quoted: bool = False
    """A part of it was quoted, so it is there even when empty."""
    word: SourceWord | None = None
    """The word that it comes from."""

    @property
    def known(self) -> bool:
        return UNKNOWN not in self

    def value(self) -> Value:
        return Value(str(self), self.taints, self.word)

    def like(self, text: str, *, taints: Taints = NO_TAINTS) -> Arg:
        """Another text in the same place, such as a part of this one."""
        arg = Arg(text)
        arg.__dict__.update(self.__dict__)
        if taints:
            arg.taints = self.taints | taints
        return arg


EMPTY = Value("")


def unknown(taints: Taints = NO_TAINTS) -> Value:
    """A value about which only its origin is known."""
    return Value(UNKNOWN, taints)


def make_arg(
    text: str, *, taints: Taints = NO_TAINTS, glob: bool = False, quoted: bool = False, word: SourceWord | None = None
) -> Arg:
    arg = Arg(text)
    if taints:
        arg.taints = taints
    if glob:
        arg.glob = True
    if quoted:
        arg.quoted = True
    if word is not None:
        arg.word = word
    return arg


def joined(values: Iterable[Value]) -> Value:
    """The values one after the other, as in a stream."""
    some = [value for value in values if value.text or value.taints]
    if len(some) < 2:
        return some[0] if some else EMPTY
    text = "".join(value.text for value in some) if sum(len(value.text) for value in some) <= MAX_TEXT else UNKNOWN
    return Value(text, taints_of(some))


def either(options: Iterable[Value | None]) -> Value | None:
    """One of these: the value itself when all are the same, unknown when there are too many to follow."""
    distinct: list[Value | None] = []
    seen: set[object] = set()
    for option in options:
        for single in option.options if isinstance(option, Either) else (option,):
            key = None if single is None else (single.text, single.taints)
            if key not in seen:
                seen.add(key)
                distinct.append(single)
    if len(distinct) == 1:
        return distinct[0]
    if len(distinct) > MAX_OPTIONS:
        return unknown(taints_of(option for option in distinct if option is not None))
    return Either(distinct)
