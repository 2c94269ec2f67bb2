"""What an abbreviated long option means: many programs accept any prefix that fits only one of their options.

`long_options.txt` lists the options of such programs. It is read when a command first has a long option. `short_options.txt` says
which letters mean the same.
"""

import functools
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..values.data_files import read_tables
from ..values.word_values import UNKNOWN, Arg
from .tables import WRAPPERS

_VALUES_OF_GIT = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"))
_MAX_SUB_COMMANDS = 2
_OPTIONAL = "?"


class LongOptions(NamedTuple):
    """The long options of a program or of one of its sub-commands, without the dashes."""

    names: tuple[str, ...]
    """All of them, sorted."""
    valued: frozenset[str]
    """Those that take the next argument as their value."""
    leads: bool
    """They end at the first operand: a command that the program runs."""

    def full(self, name: str) -> str:
        """The option that a prefix stands for; the prefix itself when it fits none or several."""
        fitting = self.fitting(name)
        return fitting[0] if len(fitting) == 1 else name

    def fitting(self, name: str) -> Sequence[str]:
        start = bisect_left(self.names, name)
        if self.names[start : start + 1] == (name,):
            return (name,)
        end = start
        while end < len(self.names) and self.names[end].startswith(name):
            end += 1
        return self.names[start:end]


def spelled_out(program: str, argv: Sequence[Arg]) -> Sequence[Arg]:
    """A command line, its program first, with abbreviated long options in full."""
    out = list(argv)
    operands: list[str] = []
    options = options_of(program)
    skips = False
    for place, arg in enumerate(argv[1:], 1):
        if skips:
            skips = False
        elif arg == "--":
            break
        elif arg[:1] != "-":
            if options is not None and options.leads:
                break
            if len(operands) < _MAX_SUB_COMMANDS:
                operands.append(str(arg))
                options = options_of(program, operands)
        elif arg[:2] != "--" or options is None:
            skips = _takes_next(program, arg)
        else:
            name, equals, _ = arg[2:].partition("=")
            full = options.full(name) if name and UNKNOWN not in name else name
            if full != name:
                out[place] = arg.like(f"--{full}{arg[2 + len(name) :]}")
            skips = not equals and full in options.valued
    return out


def options_of(program: str, operands: Sequence[str] = ()) -> LongOptions | None:
    """Those of a program, or of the sub-command that its first operands are; None when they are not known."""
    key = _key(_lines(), program, operands)
    return _table(key) if key else None


def same_options(program: str, operands: Sequence[str], option: str) -> tuple[str, ...]:
    """An option with its other spellings: `--force` is `-f` where the program says so."""
    table = read_tables(__file__, "short_options")[""]
    pairs = (pair.partition("=") for pair in table.get(_key(table, program, operands), "").split())
    groups = [(f"--{name}", *(f"-{letter}" for letter in letters)) for name, _, letters in pairs]
    return next((group for group in groups if option in group), (option,))


def _key(table: Mapping[str, str], program: str, operands: Sequence[str]) -> str:
    """The line that is about a program, or about the sub-command that its first operands are; empty when there is none."""
    if program not in table and program[:1] == "g" and program[1:] in table:
        program = program[1:]  # gtar, gsed
    elif program == "pip3":
        program = "pip"
    keys = (" ".join((program, *operands[:count])) for count in range(_MAX_SUB_COMMANDS, -1, -1))
    return next((key for key in keys if key in table), "")


def _takes_next(program: str, option: str) -> bool:
    """Whether a short option before a sub-command, or before the command that a wrapper runs, takes the next argument."""
    if program == "git":
        return option in _VALUES_OF_GIT
    wrapper = WRAPPERS.get(program)
    return wrapper is not None and option[-1] in wrapper.letters and not any(c in wrapper.letters for c in option[1:-1])


@functools.cache
def _lines() -> dict[str, str]:
    table = read_tables(__file__)[""].items()
    return {name.removesuffix("+"): f"+ {options}" if name.endswith("+") else options for name, options in table}


@functools.cache
def _table(key: str) -> LongOptions:
    words = _lines()[key].split()
    leads = words[:1] == ["+"]
    names = tuple(sorted(word.rstrip(f"={_OPTIONAL}") for word in words[leads:]))
    return LongOptions(names, frozenset(word[:-1] for word in words[leads:] if word[-1] == "="), leads)
