"""Recognise a loop that fills the disk: it writes in every round, never ends, and nothing in it waits."""

from __future__ import annotations

from collections.abc import Iterator

from ..grammar.syntax import Block, Command, For, If, Script, Simple, While, Word
from ..values.data_files import Words

_WORDS = Words(__file__)


def goes_on_writing(body: Script) -> bool:
    """Whether nothing in a loop's body waits, or leaves it."""
    names = list(_commands(body))
    return bool(names) and all(command is not None and _name(command) in _WORDS.quick for command in names)


def makes_files(body: Script) -> bool:
    """Whether each round makes a file under another name: `cp big $RANDOM`."""
    return any(
        command is not None
        and _name(command) in _WORDS.copies
        and any(isinstance(word, Word) and word.literal() is None for word in command.words[1:])
        for command in _commands(body)
    )


def _commands(script: Script) -> Iterator[Simple | None]:
    """The simple commands of a script; None for what is neither one nor made of them."""
    for item in script.items:
        for _, pipeline in item.items:
            for command in pipeline.commands:
                yield from _inside(command)


def _inside(command: Command) -> Iterator[Simple | None]:
    if isinstance(command, Simple):
        if command.words or command.redirects:
            yield command
    elif isinstance(command, Block | For | While):
        yield from _commands(command.body)
    elif isinstance(command, If):
        for _, body in command.branches:
            yield from _commands(body)
        if command.otherwise is not None:
            yield from _commands(command.otherwise)
    else:
        yield None


def _name(command: Simple) -> str:
    first = command.words[0] if command.words else None
    return ":" if first is None else (first.literal() or "") if isinstance(first, Word) else ""
