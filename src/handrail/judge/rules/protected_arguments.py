"""Find a protected path among the arguments of a program about which nothing else is known: it may write there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..values.data_files import Patterns, Words
from ..values.paths import Classes
from ..values.word_values import Arg
from .command import Command
from .targets import READERS, WRITERS

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_SETTINGS = ("/etc/", "/boot/")
_NOBODYS_SETTINGS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_READ_BY_MANY = (".ssh/config", ".gitconfig")
_MAX_TEXT = 20_000


class _Given(NamedTuple):
    path: Arg
    option: str
    """The option that it is the value of; empty for an operand."""
    last: bool
    """It is the last of several operands, where the result mostly goes."""


def protected_arguments(command: Command, *, has_rules: bool) -> list[Arg]:
    """The paths of files of the system, of keys, or of what runs by itself that the program may write."""
    name = command.name
    found: list[Arg] = []
    if name not in _WORDS.names:
        for arg in command.args:
            if "/" in arg or "~" in arg:
                found = list(_found(command, has_rules=has_rules))
                break
    return found or (list(_in_texts(command)) if name in _WORDS.prompts else [])


def own_arguments(command: Command) -> bool:
    """Whether a program that is not known only to read is given a path of Handrail's own files."""
    if command.name in _WORDS.own_readers or not any("/" in arg or "~" in arg for arg in command.args):
        return False
    pieces = (piece for arg in command.args if " " not in arg for piece in (arg, *re.split(r"[=,:@]", arg), arg[2:]))
    return any("own" in command.classes(piece) for piece in pieces if "/" in piece or "~" in piece)


def _found(command: Command, *, has_rules: bool) -> Iterator[Arg]:
    name = command.name
    is_understood = name in WRITERS or name in READERS or name in _WORDS.readers
    known = has_rules or is_understood
    for given in _given(command):
        kinds = command.classes(given.path)
        if kinds.isdisjoint(_WORDS.by_itself | _WORDS.of_the_system):
            continue
        if "credential" in kinds and name in _WORDS.readers and name not in READERS:
            yield given.path
            continue
        if given.option:
            if not is_understood and _by_option(given, kinds, known=known):
                yield given.path
        elif known:
            if given.last and not is_understood:
                yield given.path
        elif given.last or not kinds.isdisjoint(_WORDS.by_itself) or given.path.startswith(_SETTINGS):
            yield given.path


def _by_option(given: _Given, kinds: Classes, *, known: bool) -> bool:
    """Whether the value of an option may be written, or is a secret that is read as input."""
    option = given.option
    if _RE.output.fullmatch(option):
        return not (known and option in ("-d", "-D", "-P", "-w"))
    if given.path.startswith(_NOBODYS_SETTINGS):
        return True
    if known:
        return False
    if not _RE.input.fullmatch(option):
        return not kinds.isdisjoint(_WORDS.by_itself)
    is_input = kinds.isdisjoint(_WORDS.never_input) or given.path.endswith(_READ_BY_MANY)
    return not is_input or ("credential" in kinds and option in _WORDS.lists)


def _given(command: Command) -> Iterator[_Given]:
    operands = sum(arg[:1] != "-" for arg in command.args)
    seen, before = 0, ""
    for arg in command.args:
        if len(arg) < 4 or len(arg) > 1000 or ("/" not in arg and "~" not in arg):
            before = str(arg)
            seen += arg[:1] != "-"
            continue
        option, equals, value = arg.partition("=")
        if arg[:1] == "-":
            if equals:
                yield from (_Given(arg.like(piece), option, last=False) for piece in _pieces(value))
            elif arg[2:3] in ("/", "~"):
                yield _Given(arg.like(arg[2:]), arg[:2], last=False)
        else:
            seen += 1
            takes = before if before[:1] == "-" and "=" not in before else ""
            setting = _RE.setting.fullmatch(arg)
            if setting is not None:
                yield _Given(arg.like(setting[1]), "--output", last=False)
            elif named := _RE.named.fullmatch(arg):
                yield from (_Given(arg.like(piece), f"--{named[1]}", last=False) for piece in _pieces(named[2]))
            elif arg[:1] == "@":
                yield _Given(arg.like(arg[1:]), takes, last=False)
            elif " " not in arg:
                yield _Given(arg, takes, last=seen == operands > 1)
        before = str(arg)


def _pieces(value: str) -> list[str]:
    """The value of an option, and the paths in it: `src=/etc/x,dst=y`, `/etc/x:/y`."""
    inner = re.split(r"[=,:;]", value) if "://" not in value else []
    return [value, *(piece for piece in inner if piece[:1] in ("/", "~") and piece != value)]


def _in_texts(command: Command) -> Iterator[Arg]:
    """Paths in a text that the program runs, when it is about writing."""
    texts = [
        arg
        for before, arg in zip(("", *command.args), command.args, strict=False)
        if before in _WORDS.code_options or " " in arg
    ]
    texts += [Arg(arg[1:]) for arg in command.args if arg[:1] == "+"]
    if command.stdin is not None and command.stdin.known:
        texts.append(Arg(command.stdin.text[:_MAX_TEXT]))
    for text in texts:
        if len(text) > _MAX_TEXT or not _RE.writing_word.search(text):
            continue
        for path in _RE.paths.findall(text):
            if not command.classes(path).isdisjoint(("startup", "credential", "own", "hook")):
                yield Arg(path)
