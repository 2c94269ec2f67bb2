"""How a program that runs another is read: which of its options take a value, and where the other's command starts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from ..values.word_values import Arg


class Wrapper(NamedTuple):
    """How a wrapper's command line is read up to the command that it runs."""

    letters: str = ""
    """Short options that take a value."""
    words: str = ""
    """Long options that take a value."""
    operands: int = 0
    """Operands before the command."""
    assignments: bool = False
    """`NAME=value` may come before the command."""
    inert: str = ""
    """Options with which nothing is run."""
    text: str = ""
    """Options whose value is a text for a shell."""
    joined: bool = False
    """The words of the command are joined and passed to a shell."""
    chdir: str = ""
    """Options whose value is the directory to run in."""
    raises: bool = False
    """It gives other, mostly higher, privileges."""
    pairs: str = ""
    """Long options that take two values."""


class Container(NamedTuple):
    """A program that runs a command somewhere else, behind a sub-command."""

    subcommands: str = ""
    """`exec`, or `compose/exec`; `unshare=0` when it takes another number of operands; empty when it needs none."""
    letters: str = ""
    words: str = ""
    operands: int = 1
    text: str = ""
    """Options whose value is a text for a shell."""
    remote: bool = True
    """What it runs sees other files than this machine's."""


@functools.cache
def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def skip_options(
    args: Sequence[Arg], letters: str = "", words: str = "", *, pairs: str = "", assignments: bool = False
) -> tuple[int, list[tuple[str, Arg | None]]]:
    """The index of the first operand, and the options before it with their values; ("=", arg) for an assignment."""
    longs, doubles = _names(words), _names(pairs)
    index = 0
    seen: list[tuple[str, Arg | None]] = []
    while index < len(args):
        arg = args[index]
        if arg == "--":
            return index + 1, seen
        if assignments and "=" in arg and arg[:1] != "-" and arg.split("=", 1)[0].replace("_", "a").isalnum():
            seen.append(("=", arg))
            index += 1
        elif arg[:1] != "-" or arg == "-":
            return index, seen
        elif arg.startswith("--") and arg[2:] in doubles:
            index += 3
        elif arg.startswith("--"):
            name, equals, value = arg.partition("=")
            following = args[index + 1] if not equals and name[2:] in longs and index + 1 < len(args) else None
            seen.append((name, arg.like(value) if equals else following))
            index += 1 if following is None else 2
        else:
            index += _cluster(arg, args, index, letters, seen)
    return len(args), seen


def all_options(args: Sequence[Arg], letters: str, words: str) -> tuple[list[Arg], list[tuple[str, Arg | None]]]:
    """The operands of a program that takes options after them too, and all of its options."""
    operands: list[Arg] = []
    start, options = skip_options(args, letters, words)
    while start < len(args):
        if start and args[start - 1] == "--":
            return [*operands, *args[start:]], options
        operands.append(args[start])
        more, later = skip_options(args[start + 1 :], letters, words)
        start, options = start + 1 + more, options + later
    return operands, options


def _cluster(arg: Arg, args: Sequence[Arg], index: int, letters: str, seen: list[tuple[str, Arg | None]]) -> int:
    """`-abc value` or `-abcvalue`; returns how many arguments it took."""
    for place in range(1, len(arg)):
        letter = arg[place]
        if letter not in letters:
            seen.append(("-" + letter, None))
        elif place + 1 < len(arg):
            seen.append(("-" + letter, arg.like(arg[place + 1 :])))
            return 1
        else:
            seen.append(("-" + letter, args[index + 1] if index + 1 < len(args) else None))
            return 2
    return 1
