"""What a word is worth: text in which one character stands for "not known before it runs", and where it came from.

The unknown is a character inside the text, not another type, so `/etc/$name` still begins with `/etc/` and
`$prefix/bin/python` still ends in `python`, with no special code. It is taken out of a command before it is judged.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

UNKNOWN = "\ue000"


class Taint(enum.StrEnum):
    """Where a text came from, as far as a rule may care."""

    NETWORK = "network"
    """It was fetched from another machine."""
    CREDENTIAL = "credential"
    """It holds what a credential file or a secret store holds."""
    WIDE = "wide"
    """It lists files or processes that the command did not name (`find`, `ls`, `ps`)."""
    INITIALISER = "initialiser"
    """It is what a known program prints to be evaluated (`ssh-agent -s`, `brew shellenv`)."""


Taints = frozenset[Taint]
NO_TAINTS: Taints = frozenset()


class Value:
    """A text that may be partly unknown: what a variable, a stream or a file holds."""

    __slots__ = ("origin", "taints", "text")

    def __init__(self, text: str, taints: Taints = NO_TAINTS, origin: Origin | None = None) -> None:
        self.text = text
        self.taints = taints
        self.origin = origin

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text

    def __repr__(self) -> str:
        marks = "".join(f", {taint}" for taint in sorted(self.taints))
        return f"Value({self.text[:60]!r}{marks})"


class Origin:
    """Which part of a source text a value was written in; `verbatim` when its characters are those from `start` on."""

    __slots__ = ("end", "start", "verbatim")

    def __init__(self, start: int, end: int, *, verbatim: bool = False) -> None:
        self.start = start
        self.end = end
        self.verbatim = verbatim


class Arg(str):
    """One field of a command line, after expansion. `UNKNOWN` in it stands for what cannot be known."""

    taints: Taints = NO_TAINTS
    glob: bool = False
    """It has a `*`, `?` or `[` that the shell will match against file names."""
    quoted: bool = False
    """A part of it was quoted, so it is there even when empty, and is no reserved word or alias."""
    origin: Origin | None = None

    @property
    def known(self) -> bool:
        return UNKNOWN not in self


EMPTY = Value("")


def unknown(taints: Iterable[Taint] = ()) -> Value:
    """A value of which nothing is known but where it came from."""
    return Value(UNKNOWN, frozenset(taints))


def make_arg(
    text: str,
    *,
    taints: Taints = NO_TAINTS,
    glob: bool = False,
    quoted: bool = False,
    origin: Origin | None = None,
) -> Arg:
    arg = Arg(text)
    if taints:
        arg.taints = taints
    if glob:
        arg.glob = True
    if quoted:
        arg.quoted = True
    if origin is not None:
        arg.origin = origin
    return arg
