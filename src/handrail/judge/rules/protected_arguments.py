"""Find a protected path among the arguments of a program about which nothing else is known: it may write there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..programs.path_readers import path_readers
from ..values.data_files import lazy_pattern
from ..values.paths import Classes
from ..values.word_values import Arg
from .command import Command
from .targets import READERS, WRITERS

_BY_ITSELF = frozenset(("startup", "credential", "own", "hook", "kernel", "device", "history"))
_LISTS = frozenset(("-f", "-F", "-n", "--file", "-i", "-s"))
_OF_THE_SYSTEM = frozenset(("config", "kernel", "root"))
_SETTINGS = ("/etc/", "/boot/")
_OUTPUT = lazy_pattern(
    r"-(?:o|O|d|D|w|P|output-directory|outdir|Logfile|out|oG|oN|oX|oA)|--?(?:out|dest|dir|target|result|log|save|write|install|export|extract|"
    r"prefix|download|to)[\w-]*|--[\w-]+_out"
)
# Options that name what is read or used: settings, keys to log in with, input.
_INPUT = lazy_pattern(
    r"-(?:c|C|f|F|i|I|K|E|S|L|s|k|n)|--?(?:config|conf|file|input|in|key|cert|ca|cacert|identity|kubeconfig|env-file|settings|"
    r"password-file|pass-file|passfile|secret|credential|auth|netrc|token|inventory|schema|rc|rcfile|include|library|shell|"
    r"source|from|root|keyring|keyfile|ssh|user|profile|socket)[\w-]*"
)
_SETTING = lazy_pattern(r"(?:DESTDIR|prefix|PREFIX|of|out|output|dest|path|dir|file)=(.+)", re.S)
_CODE_OPTIONS = frozenset(
    ("-c", "-e", "-E", "-ex", "-x", "-cmd", "--eval", "--execute", "--command", "--expr", "-r", "-g")
)
# They run a text that they are given, in a language of their own.
_PROMPTS = frozenset(
    "sqlite3 psql mysql gdb lldb vim emacs R Rscript julia octave guile jjs jrunscript tclsh wish lua luajit puppet smbclient "
    "lftp ftp sftp tftp expect gnuplot ghci maxima sage gp ocaml racket sbcl clisp erl iex scala jshell groovy kotlin swipl "
    "gawk awk duckdb clickhouse-client perl python ruby node php ed ex gst-launch-1.0 csi nasm screen debugfs".split()
)
_WRITING_WORD = lazy_pattern(
    r"(?i)write|save|dump|out(?:put|file)?\b|once|download|copy|store\b|retrieve|\bcp\b|\bputs?\b|\bget\b|\bw(?:q|a)?!?\s|\bto\b|append|"
    r"fopen|backup|export|clone|[\"']wb?[\"']|set\s+logging|->\s*/|\blog\b|\btee\b"
)
_PATHS = lazy_pattern(r"(?:(?<=[\s\"'=(,:>])|^)(?:/|~/)[\w./*~@+-]+")
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
    found = [] if name in path_readers("names") else list(_found(command, has_rules=has_rules))
    return found or (list(_in_texts(command)) if name in _PROMPTS else [])


def _found(command: Command, *, has_rules: bool) -> Iterator[Arg]:
    name = command.name
    understood = path_readers("readers").union(WRITERS, READERS)
    known = has_rules or name in understood
    for given in _given(command):
        kinds = command.classes(given.path)
        if kinds.isdisjoint(_BY_ITSELF | _OF_THE_SYSTEM):
            continue
        if "credential" in kinds and name in path_readers("readers") and name not in READERS:
            yield given.path
            continue
        if given.option:
            if name not in understood and _by_option(given.option, kinds, known=known):
                yield given.path
        elif known:
            if given.last and name not in understood:
                yield given.path
        elif given.last or not kinds.isdisjoint(_BY_ITSELF) or given.path.startswith(_SETTINGS):
            yield given.path


def _by_option(option: str, kinds: Classes, *, known: bool) -> bool:
    """Whether the value of an option may be written, or is a secret that is read as input."""
    if _OUTPUT.fullmatch(option):
        return not (known and option in ("-d", "-D", "-P", "-w"))
    if known:
        return False
    if not _INPUT.fullmatch(option):
        return not kinds.isdisjoint(_BY_ITSELF)
    return "credential" in kinds and option in _LISTS


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
            if equals and option[:1] == "-":
                yield _Given(arg.like(value), option, last=False)
            elif arg[2:3] in ("/", "~"):
                yield _Given(arg.like(arg[2:]), arg[:2], last=False)
        else:
            seen += 1
            takes = before if before[:1] == "-" and "=" not in before else ""
            setting = _SETTING.fullmatch(arg)
            if setting is not None:
                yield _Given(arg.like(setting[1]), "--output", last=False)
            elif arg[:1] == "@":
                yield _Given(arg.like(arg[1:]), takes, last=False)
            elif " " not in arg:
                yield _Given(arg, takes, last=seen == operands > 1)
        before = str(arg)


def _in_texts(command: Command) -> Iterator[Arg]:
    """Paths in a text that the program runs, when it is about writing."""
    texts = [
        arg
        for before, arg in zip(("", *command.args), command.args, strict=False)
        if before in _CODE_OPTIONS or " " in arg
    ]
    texts += [Arg(arg[1:]) for arg in command.args if arg[:1] == "+"]
    if command.stdin is not None and command.stdin.known:
        texts.append(Arg(command.stdin.text[:_MAX_TEXT]))
    for text in texts:
        if len(text) > _MAX_TEXT or not _WRITING_WORD.search(text):
            continue
        for path in _PATHS.findall(text):
            if not command.classes(path).isdisjoint(("startup", "credential", "own", "hook")):
                yield Arg(path)
