"""Conditions on signals and processes."""

from __future__ import annotations

import re

from ..programs.endless_loops import loops_forever
from ..values.data_files import Patterns, Words
from ..values.word_values import UNKNOWN, Taint
from .command import Command

_WORDS = Words(__file__)
_RE = Patterns(__file__)


def _targets(command: Command) -> list[str]:
    """The process ids: what follows the signal."""
    args = list(command.args)
    found: list[str] = []
    signal_seen = False
    skip = False
    for arg in args:
        if skip:
            skip, signal_seen = False, True
        elif arg in ("-s", "-n", "--signal"):
            skip = True
        elif arg == "--" or (arg[:1] == "-" and not signal_seen):
            signal_seen = True
        elif arg.startswith("--"):
            continue
        else:
            found.append(arg)
    return found


def kills_all(command: Command, _: str) -> bool:
    """`kill -9 -1`: every process that may be signalled."""
    return _WORDS.probes.isdisjoint(command.args) and any(re.fullmatch(r"-0*1", target) for target in _targets(command))


def kills_init(command: Command, _: str) -> bool:
    return _WORDS.probes.isdisjoint(command.args) and any(re.fullmatch(r"0*1", target) for target in _targets(command))


def kills_hard(command: Command, _: str) -> bool:
    """With a signal that cannot be caught, or processes that come from a listing or a file."""
    if not _WORDS.probes.isdisjoint(command.args):
        return False
    signal = command.value("-s", "-n", "--signal")
    if (signal is not None and _RE.hard.fullmatch(signal)) or any(
        _RE.hard.fullmatch(arg) for arg in command.args[:2] if arg[:1] == "-"
    ):
        return True
    if any(_RE.mild.fullmatch(arg) for arg in (signal or "", *command.args[:1])):
        return False
    return any(Taint.WIDE in arg.taints or (UNKNOWN in arg and arg.taints) for arg in command.args)


def any_process(command: Command, _: str) -> bool:
    """A pattern that fits every process."""
    if command.name == "killall" and not command.has(("-r", "--regexp")):
        return False
    if command.has(("-u", "-U", "-P", "-t", "-g", "-G", "--euid", "--uid", "--parent")) or not command.operands:
        return False
    return all(_RE.everything.fullmatch(operand) for operand in command.operands) and not command.has(
        ("-0", "-l", "--list", "-c", "--count")
    )


def source_forks(command: Command, _: str) -> bool:
    """The program that is to be compiled, as far as this command line holds it, forks forever."""
    sources = [command.stdin, *(command.file(operand) for operand in command.operands)]
    return any("fork" in source.text and loops_forever(source.text) for source in sources if source is not None)


def endless_input(command: Command, _: str) -> bool:
    """Any number of processes in parallel, from an endless list."""
    endless = command.stdin is not None and Taint.ENDLESS in command.stdin.taints
    return endless and _RE.at_once.search(" ".join(command.args)) is not None
