"""Which programs are followed in a way of their own, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..grammar.syntax import Assignment
from ..programs.interpreter_table import LANGUAGES, SHELLS
from ..values.word_values import Arg, Value

if TYPE_CHECKING:
    from .command_walk import Running


class Call:
    """One command line on its way."""

    __slots__ = ("args", "declared", "name", "program", "stdin")

    def __init__(
        self, name: str, args: Sequence[Arg], stdin: Value | None, program: Arg, declared: Sequence[Assignment] = ()
    ) -> None:
        self.name = name
        self.args = args
        self.stdin = stdin
        self.program = program
        self.declared = declared

    @property
    def argv(self) -> list[Arg]:
        return [self.program, *self.args]


Handler = Callable[["Running", Call], "Value | None"]
"""Follows what a program runs; gives what it prints, or None to leave that to the rest of the walk."""

_table: dict[str, Handler] = {}


def handler_of(name: str) -> Handler | None:
    if not _table:
        _fill()
    handler = _table.get(name)
    if handler is None and name[-1:].isdigit():  # python3.11, bash-5.2
        bare = name.rstrip("0123456789.").rstrip("-")
        return _table[bare] if bare in LANGUAGES or bare in SHELLS else None
    return handler


def _fill() -> None:
    from . import (
        editors,
        interpreters,
        launcher_programs,
        program_options,
        remote_programs,
        text_programs,
        wrapper_programs,
    )

    for module in (
        remote_programs,
        interpreters,
        editors,
        launcher_programs,
        program_options,
        text_programs,
        wrapper_programs,
    ):
        _table.update(module.HANDLERS)
