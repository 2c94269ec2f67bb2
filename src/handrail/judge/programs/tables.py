"""What is known about programs that run others, as tables in files beside this one: a new program is one line there.

`wrapper_table` (they run a program given on their own command line), `container_table` (they run it somewhere else, behind a
sub-command), `interpreter_table` (shells and languages; variables and options that hold a command) and `data_programs`.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..values.data_files import Patterns, Words, read_records, read_tables
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


_WORDS = Words(__file__)
_MAX_CLUSTER = 8
_RE = Patterns(__file__)
WRAPPERS = read_records(read_tables(__file__, "wrapper_table")[""], Wrapper)
TERMINALS = frozenset("alacritty gnome-terminal konsole wezterm x-terminal-emulator xterm".split())
"""Terminals run what follows `-e`, `-x` or `--`."""
_CONTAINERS = read_tables(__file__, "container_table")
CONTAINERS = read_records(_CONTAINERS["containers"], Container)
REMOTE: dict[str, tuple[str, int]] = {name: (text[2:], int(text[:1])) for name, text in _CONTAINERS["remote"].items()}
"""Programs that pass their words to a shell on another machine: options with a value, operands before the words."""
DATA_PROGRAMS = frozenset(" ".join(read_tables(__file__, "data_programs")[""].values()).split())
"""Programs whose operands are data, files or free text: a destructive word there is not a sub-command."""
_INTERPRETERS = read_tables(__file__, "interpreter_table")
SHELLS = frozenset(_INTERPRETERS[""]["shells"].split())
LANGUAGES = {name: language for language, names in _INTERPRETERS["languages"].items() for name in names.split()}
"""Interpreters by their name without a version, and the language that they read."""
CODE_OPTIONS = _INTERPRETERS["code options"]
"""Options whose value is a program in that language."""
VALUE_LETTERS = _INTERPRETERS["value letters"]
"""Other options of the interpreters that take a value."""
TEXT_OPTIONS = {name: options for names, options in _INTERPRETERS["text options"].items() for name in names.split()}
"""Options of ordinary programs whose value is run as a command."""
CODE_FILES = {name: options for names, options in _INTERPRETERS["code files"].items() for name in names.split()}
"""Options of ordinary programs that name a file which they run, load, or take commands from."""
COMMAND_VARIABLES = frozenset(_INTERPRETERS[""]["command variables"].split())
"""Variables whose value a program runs."""
INJECTING_VARIABLES = _INTERPRETERS["injecting variables"]
"""Variables that make programs load code, with what in their value does so."""
INJECTING_VALUES = {name: text for names, text in _INTERPRETERS["injecting values"].items() for name in names.split()}
"""The same, for those whose value may be unknown every day."""


def raised(under: Iterable[str]) -> bool:
    """Whether one of the programs that it was started through changes the rights."""
    return not _WORDS.raisers.isdisjoint(under)


def opens_root_shell(under: Sequence[str], name: str, args: Sequence[str], *, followed: bool) -> bool:
    """Whether this program, started through the others and reading the terminal, lets its user open a root shell.

    `followed`: what it runs in turn has been judged already.
    """
    if not raised(under):
        return False
    if name in _WORDS.multiplexers:
        return _WORDS.no_shell.isdisjoint(args) and not (name == "tmux" and len(args) > 1 and " " in args[-1])
    if name in _WORDS.editors or name in _WORDS.prompts:
        return not only_describes_itself(args) if name in _WORDS.editors else _WORDS.batch.isdisjoint(args)
    return not followed and name not in _WORDS.about_files and any(_RE.shell_path.fullmatch(arg) for arg in args)


def only_describes_itself(args: Sequence[str]) -> bool:
    """Whether it is asked for its version or help."""
    return bool(args) and args[0] in ("--version", "-version", "-V", "-v", "--help", "-h")


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


def option_value(option: str, arg: Arg, following: Arg | None) -> Arg | None:
    """The value of an option if this argument is that option: `-e x`, `-ex`, `-ave x`, `--rsh=x`, `+x`."""
    if arg == option:
        return following
    if option[0] == "+" and arg.startswith(option):
        return arg.like(arg[len(option) :])
    if option.startswith("--"):
        return arg.like(arg[len(option) + 1 :]) if arg.startswith(option + "=") else None
    if len(option) == 2 and arg[:1] == "-" and arg[1:2] != "-":
        if arg.startswith(option):
            return arg.like(arg[2:])
        if arg.endswith(option[1]) and arg[1:].isalpha() and len(arg) <= _MAX_CLUSTER:
            return following
        place = arg.find(option[1])
        if 1 < place < _MAX_CLUSTER and arg[1:place].isalpha() and " " in arg[place:]:
            return arg.like(arg[place + 1 :])
    return None


class Program(NamedTuple):
    """What an interpreter is told to run."""

    codes: list[Arg]
    """The programs given in options."""
    module: Arg | None
    """The module that is run instead of a program."""
    rest: Sequence[Arg]
    """What comes after that: the file to run, if there is no program yet, and arguments."""


def read_program(language: str, args: Sequence[Arg]) -> Program:
    flags = CODE_OPTIONS[language].split()
    letters = frozenset(flag[1] for flag in flags if len(flag) == 2)
    takes = VALUE_LETTERS.get(language, "")
    found: list[Arg] = []
    index = 0
    while index < len(args):
        arg = args[index]
        if (arg[:1] != "-" or arg == "-") and arg not in flags:
            break
        index += 1
        name, equals, value = arg.partition(":" if language == "other" and ":" in arg[:7] else "=")
        if arg in flags:
            found += args[index : index + 1]
            index += 1
        elif equals and name in flags:
            found.append(arg.like(value))
        elif arg == "--":
            break
        elif not arg.startswith("--"):
            code, used, module = _in_cluster(arg, letters, takes, language)
            if module:
                attached = arg.partition("m")[2]
                named = arg.like(attached) if attached else next(iter(args[index:]), Arg(""))
                return Program(found, named, args[index + (not attached) :])
            if code is not None:
                found += [arg.like(code)] if code else args[index : index + 1]
                index += not code
            else:
                index += used
        if found and language == "python":
            break
    return Program(found, None, args[index:])


def _in_cluster(arg: Arg, letters: frozenset[str], takes: str, language: str) -> tuple[str | None, int, bool]:
    """The code in `-lane 'code'`: (what is left of the argument after the letter, arguments to skip, a module)."""
    for place in range(1, len(arg)):
        letter = arg[place]
        if letter == "m" and language == "python":
            return None, 0, True
        if letter in letters:
            return arg[place + 1 :], 0, False
        if letter in takes:
            return None, int(place + 1 == len(arg) and letter not in "iC0l"), False
    return None, 0, False
