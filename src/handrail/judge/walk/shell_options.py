"""The options of a shell's own command line: `bash +lO extglob -c text`, `sh -eo pipefail file`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..values.word_values import Arg

_LONG_WITH_VALUE = frozenset(("--rcfile", "--init-file", "--command", "--init-command", "--eval", "--startup-file"))
_COMMANDS = frozenset(("--command", "--eval", "--init-command"))
_ATTACHED = frozenset(("zsh", "rzsh", "ksh", "ksh93", "mksh", "lksh", "yash"))
"""Shells that also take the name of an option attached: `-oextendedglob`."""
_FISH = frozenset(("-C", "--init-command"))


class ShellOptions(NamedTuple):
    """What a shell was started with."""

    letters: frozenset[str]
    """Single-letter options, whether a minus or a plus came before them."""
    words: frozenset[str]
    """Long options."""
    startup: list[Arg]
    """Files that it reads first."""
    texts: list[Arg]
    """Scripts that are given as values of options."""
    operands: Sequence[Arg]


def read_options(name: str, args: Sequence[Arg]) -> ShellOptions:
    letters: set[str] = set()
    words: set[str] = set()
    startup: list[Arg] = []
    texts: list[Arg] = []
    place = 0
    while place < len(args):
        arg = args[place]
        if arg[:1] not in ("-", "+") or arg == "+":
            break
        place += 1
        if arg in ("-", "--"):
            break
        if arg.startswith("--"):
            word, equals, value = arg.partition("=")
            words.add(word)
            given = arg.like(value) if equals else None
            if not equals and word in _LONG_WITH_VALUE:
                given = args[place] if place < len(args) else None
                place += 1
            if given is not None:
                (texts if word in _COMMANDS else startup).append(given)
        elif name == "fish" and arg[:2] in _FISH:
            texts.append(arg.like(arg[2:]) if arg[2:] else args[place] if place < len(args) else Arg(""))
            place += not arg[2:]
        else:
            place += _cluster(name, arg, letters)
    return ShellOptions(frozenset(letters), frozenset(words), startup, texts, args[place:])


def _cluster(name: str, arg: Arg, letters: set[str]) -> int:
    """Take the letters of one argument; returns how many arguments after it are their values."""
    values = 0
    for position, letter in enumerate(arg[1:], 2):
        if arg[0] == "+" and letter == "n":
            letters.discard(letter)  # it runs what it reads again
        else:
            letters.add(letter)
        if letter in "oO":
            if name in _ATTACHED and arg[position:]:
                return values
            values += 1
    return values
