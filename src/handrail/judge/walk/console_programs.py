"""Follow programs with a prompt of their own: what is given to them as input or in options can leave to the shell.

`psql` has `\\!`, sqlite3 `.shell`, gdb `shell` and `python`, ftp `!`, mail `~!`. Their other commands are for the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from ..programs.tables import TEXT_OPTIONS
from ..values.data_files import read_tables
from ..values.word_values import UNKNOWN, Arg, Value, unknown
from .builtins import STDIN_PATHS
from .interpreters import judge_code
from .judgement import Limit
from .program_options import follow_ssh_copies, follow_text_options
from .walk import Call, Walk

_MAX_TEXT = 100_000
_QUOTED = re.compile(r"\s*(['\"])(.*)\1\s*", re.S)


class Console(NamedTuple):
    """How the commands of a program with a prompt are read. In each pattern, group 1 is what is meant."""

    shell: str
    """A command for the shell."""
    python: str = ""
    """Code in Python."""
    writes: str = ""
    """A file that it writes."""
    loads: str = ""
    """A library that it loads."""
    texts: str = ""
    """Options whose value is a command of the console."""
    files: str = ""
    """Options whose value is a file with such commands."""
    pipes: str = ""
    """Options whose value may be a pipe: `-o '|command'`."""
    operands: str = "99"
    """From which operand on the operands are commands."""
    asks: str = ""
    """Not empty where commands that are not known are asked about."""


_CONSOLES = {
    name: Console(**fields)
    for names, fields in cast("dict[str, dict[str, Any]]", read_tables(__file__)).items()
    for name in names.split()
}


def _console(walk: Walk, call: Call) -> None:
    if call.name in TEXT_OPTIONS:
        follow_text_options(walk, call)
    if call.name == "sftp":
        follow_ssh_copies(walk, call)
    console = _CONSOLES[call.name]
    for text in _texts(walk, call, console):
        _commands(walk, call, console, text)
    if call.name in ("gdb", "gdb-multiarch") and "--args" in call.args:
        walk.start(call.args[call.args.index(Arg("--args")) + 1 :], None, under="gdb")


def _texts(walk: Walk, call: Call, console: Console) -> Iterator[Value]:
    """Everything that the program reads as commands."""
    if call.stdin is not None:
        yield call.stdin
    texts, files, pipes = console.texts.split(), console.files.split(), console.pipes.split()
    operands = -int(console.operands)
    place = 0
    while place < len(call.args):
        arg = call.args[place]
        place += 1
        name, equals, attached = arg.partition("=")
        option = name if name in (*texts, *files, *pipes) else arg[:2] if arg[:2] in (*texts, *files, *pipes) else ""
        if not option:
            if arg[:1] != "-":
                operands += 1
                if operands > 0:
                    yield arg.value()
            continue
        if option != name:
            value = arg.like(arg[2:])
        elif equals:
            value = arg.like(attached)
        else:
            value = call.args[place] if place < len(call.args) else Arg("")
            place += 1
        if option in texts:
            yield value.value()
        elif option in pipes:
            if value[:1] == "|" or option == "--pager":
                walk.run_text(Value(value.lstrip("|"), value.taints), unknown(), "-c")
        elif value not in STDIN_PATHS and (content := walk.known_file(value)) is not None:
            yield content


def _commands(walk: Walk, call: Call, console: Console, text: Value) -> None:
    """Follow what leaves the console in a text for it. Other text is for the rules: most of it is SQL."""
    if len(text.text) > _MAX_TEXT:
        raise Limit(f"more input for {call.name} than is read")
    for match in re.finditer(console.shell, text.text, re.M | re.I):
        command = _unquoted(_group(match))
        with walk.wrapped(call.name):
            walk.run_text(Value(command, text.taints), unknown(), "-c")
    for match in re.finditer(console.python, text.text, re.M) if console.python else ():
        judge_code(walk, call, "python", Value(match[1], text.taints))
    if console.writes:
        for match in re.finditer(console.writes, text.text, re.M | re.I):
            walk.on_write(Arg(_group(match)), ">", unknown())
    if console.loads and re.search(console.loads, text.text, re.M | re.I):
        walk.report("env.inject", call.argv)
    if text.text.strip() == UNKNOWN and console.asks:
        walk.report("dynamic.script", call.argv)


def _group(match: re.Match[str]) -> str:
    return next((group for group in match.groups() if group is not None), "")


def _unquoted(text: str) -> str:
    text = text.strip().strip(";")
    if text[:2] == "$$":
        return text[2:-2]
    if match := _QUOTED.fullmatch(text.removeprefix("e").removeprefix("E") if text[1:2] == "'" else text):
        return match[2].replace("''", "'") if match[1] == "'" else match[2]
    return text.rstrip("\"'") if text.count('"') == 1 or text.count("'") == 1 else text
