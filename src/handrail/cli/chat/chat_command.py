"""A slash command of the chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .chat import Chat


class Command(NamedTuple):
    """`run` gets what follows the name; `choices` completes it."""

    name: str
    usage: str
    about: str
    run: Callable[[Chat, str], None]
    choices: Callable[[Chat], Iterable[str]] = lambda _: ()
    aliases: tuple[str, ...] = ()
