"""One resolved command line as rules see it: program, options in any order and spelling, operands."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..programs.long_options import options_of
from ..values import paths
from ..values.assessment import Reach
from ..values.data_files import read_tables
from ..values.word_values import Arg, Value

_TABLES = read_tables(__file__, "options")
_HELP_ANYWHERE, _NO_SHORT_HELP, _IGNORES_HELP, _DRY_RUN, _DRY_BY_LETTER = (
    frozenset(_TABLES[""][key].split())
    for key in ("help anywhere", "no help", "ignores help", "dry run", "dry run by letter")
)
_VALUES = _TABLES["values"]
_CANONICAL = {name: family for family, names in _TABLES["same"].items() for name in names.split()}
_VERSIONED = re.compile(
    r"(python|pip|pypy|ruby|perl|php|lua|node|psql|pg_ctl|clang|gcc|kubectl|go|java|gem)-?\d+(?:\.\d+)*"
)
_NOT_DRY = frozenset(("none", "false", "0", "no", "off"))
_INIT_SCRIPTS = ("/etc/init.d/", "/etc/rc.d/", "/usr/local/etc/rc.d/")
_HELP_WORDS = frozenset(("help", "--help", "-help", "--usage", "-?", "/?", "-WhatIf"))


class _ValueOptions(NamedTuple):
    letters: frozenset[str]
    longs: frozenset[str]
    exact: bool
    """Long options are never abbreviated."""
    wordy: bool
    """Options have one dash and many letters; letters are never combined."""
    flags: bool
    """No other option takes a value."""


_NO_VALUES = _ValueOptions(frozenset(), frozenset(), exact=False, wordy=False, flags=False)


class Command:
    """A program with its arguments, parsed once.

    `name` is the program's family (`podman` is read as `docker`), `operands` what is neither an option nor its value.
    """

    __slots__ = tuple(
        "_met args argv0 cwd files has_long letters looked_up maybe name operands program project stdin values words".split()
    )

    def __init__(
        self,
        name: str,
        args: Sequence[Arg],
        cwd: str = ".",
        project: str = "",
        stdin: Value | None = None,
        files: Callable[[str], Value | None] | None = None,
        argv0: str = "",
    ) -> None:
        self.argv0 = argv0 or name
        if self.argv0.startswith(_INIT_SCRIPTS):
            name, args = "service", [Arg(name), *args]  # the same as `service NAME ACTION`
        self.program = name
        self.name = canonical(name)
        self.args = args
        self.cwd = cwd
        self.project = project
        self.stdin = stdin
        self.files = files
        self.letters: set[str] = set()
        self.words: set[str] = set()
        self.values: list[tuple[str, Arg]] = []
        self.looked_up = False
        """Whether it was asked what a file holds."""
        self.has_long = False
        """Whether there is an option that starts with two dashes."""
        self._met: dict[object, paths.Classes] = {}
        self.maybe: set[int] = set()
        """Indexes of operands that may be values of options that no table lists; rules read them both ways."""
        self.operands: list[Arg] = []
        self._parse(_value_options(self.name))

    def _parse(self, takes: _ValueOptions) -> None:
        args, count, index = self.args, len(self.args), 0
        operands = self.operands
        while index < count:
            arg = args[index]
            index += 1
            if arg[:1] != "-" or arg == "-":
                operands.append(arg)
                continue
            if arg == "--":
                operands.extend(args[index:])
                break
            following = args[index] if index < count else None
            read = self._long if arg[1] == "-" or takes.wordy else self._cluster
            if read(arg, following, takes):
                index += 1
            elif following is not None and following[:1] != "-" and not takes.flags and "=" not in arg:
                self.maybe.add(len(operands))

    def _long(self, arg: Arg, following: Arg | None, takes: _ValueOptions) -> bool:
        """Read `--name`, `--name=value` or `--name value`; true when it took the argument that follows."""
        name, equals, value = arg.partition("=")
        self.words.add(name)
        self.has_long = self.has_long or arg[1] == "-"
        if equals:
            self.values.append((name, Arg(value)))
            return False
        known = options_of(self.name, self.operands) if following is not None and name[:2] == "--" else None
        if following is None or not (name.lstrip("-") in takes.longs or (known and name[2:] in known.valued)):
            return False
        self.values.append((name, following))
        return True

    def _cluster(self, arg: Arg, following: Arg | None, takes: _ValueOptions) -> bool:
        """Read `-abc`, `-avalue` or `-a value`; true when it took the argument that follows."""
        if len(arg) > 2 and arg[1:].partition("=")[0] in takes.longs:
            return self._long(arg, following, takes)
        self.words.add(str(arg))
        for place in range(1, len(arg)):
            letter = arg[place]
            self.letters.add(letter)
            if letter in takes.letters:
                rest = arg[place + 1 :].removeprefix("=")
                if rest:
                    self.values.append(("-" + letter, Arg(rest)))
                elif following is not None:
                    self.values.append(("-" + letter, following))
                    return True
                break
        return False

    def has(self, names: Iterable[str]) -> bool:
        """Whether one of the options is there: `-f`, `--force` or an abbreviation of it, `-delete`, `--delete-*`."""
        words = self.words
        for name in names:
            if len(name) == 2:
                if name[1] in self.letters or name in words:
                    return True
            elif name in words or (name[1] != "-" and "-" + name in words):
                return True
            elif "*" in name:
                if any(fnmatchcase(word, name) for word in words):
                    return True
            elif self.has_long and name.startswith("--") and self._abbreviated(name):
                return True
        return False

    def _abbreviated(self, name: str) -> bool:
        """Whether an option stands for this one, or may: where the program's options are not known, or where it fits several."""
        takes, options = _value_options(self.name), options_of(self.name, self.operands)
        words = [word[2:] for word in self.words if len(word) > 2 and name.startswith(word)] if not takes.exact else []
        words = [word for word in words if word not in takes.longs and (options is None or word not in options.names)]
        return any(options is None or options.full(word) in (word, name[2:]) for word in words)

    def value(self, *names: str) -> Arg | None:
        """The value of the first of these options that has one."""
        return next((value for option, value in self.values if option in names), None)

    def given(self, *names: str) -> list[Arg]:
        """The values of these options, in order."""
        return [value for option, value in self.values if option in names]

    def classes(self, path: str) -> paths.Classes:
        return paths.classes(path, self.cwd, self.project)

    def met(self, of: Callable[[Command], Iterable[str]]) -> paths.Classes:
        """Every class of the paths that `of` finds in this command: many rules ask for the same ones."""
        found = self._met.get(of)
        if found is None:
            kinds = [self.classes(path) for path in of(self)]
            found = self._met[of] = kinds[0] if len(kinds) == 1 else frozenset().union(*kinds)
        return found

    def any_class(self, wanted: Iterable[str], operands: Iterable[str]) -> bool:
        return any(not self.classes(operand).isdisjoint(wanted) for operand in operands)

    def reach(self, operands: Iterable[str]) -> Reach:
        return paths.widest(operands, self.cwd, self.project)

    def file(self, path: str) -> Value | None:
        """What a file holds, if the judged command made it."""
        self.looked_up = True
        return self.files(path) if self.files is not None else None

    def only_talks(self, *, grave: bool) -> bool:
        """Whether a switch makes the program print its help, its version, or what it would do.

        For the gravest actions only a switch before every operand counts: not every system reads those that follow.
        """
        args = self.args
        if not args or self.name in _IGNORES_HELP or (self.program.endswith(".sh") and self.words.isdisjoint(_DRY_RUN)):
            return False
        first = args[0]
        if first in _HELP_WORDS or (len(args) == 1 and first in ("--version", "-V", "-v", "version", "-version")):
            return True
        if first == "-h" and len(args) == 1 and self.name not in _NO_SHORT_HELP:
            return True
        if grave or self.name == "kill":
            return False
        if "--help" in self.words or "-help" in self.words or args[-1] == "help":
            return True
        if "-h" in self.words and self.name in _HELP_ANYWHERE:
            return True
        if self.name in _DRY_BY_LETTER and "n" in self.letters:
            return True
        if self.words.isdisjoint(_DRY_RUN) and "-WhatIf" not in self.words:
            return False
        return not any(option == "--dry-run" and value.lower() in _NOT_DRY for option, value in self.values)


def canonical(name: str) -> str:
    """The family of a program: `podman` takes `docker`'s commands, `python3.12` is `python`."""
    if name in _CANONICAL:
        return _CANONICAL[name]
    if name[-1:].isdigit() and (match := _VERSIONED.fullmatch(name)):
        return _CANONICAL.get(match[1], match[1])
    if name.endswith(".exe"):
        return canonical(name[:-4])
    return name


def _value_options(name: str) -> _ValueOptions:
    return _read_options(name) if name in _VALUES else _NO_VALUES


@functools.cache
def _read_options(name: str) -> _ValueOptions:
    text = _VALUES[name]
    options = text.lstrip("=-!").split()
    marks = text[: len(text) - len(text.lstrip("=-!"))]
    letters, longs = ([one for one in options if (len(one) == 1) is single] for single in (True, False))
    exact, wordy = "=" in marks or "-" in marks, "-" in marks
    return _ValueOptions(frozenset(letters), frozenset(longs), exact, wordy, flags="!" in marks)
