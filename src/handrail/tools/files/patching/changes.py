"""The changes of a patch, whatever its format."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Op(Enum):
    """What a line of a hunk does. The value is the character it starts with in a patch."""

    KEEP = " "
    DROP = "-"
    ADD = "+"


class Action(Enum):
    UPDATE = "update"
    ADD = "add"
    DELETE = "delete"


class Hunk(NamedTuple):
    """One place to change. `anchors` are lines above it, `line` is where it was (from 1), if the patch says so."""

    lines: tuple[tuple[Op, str], ...]
    anchors: tuple[str, ...] = ()
    line: int | None = None
    at_end: bool = False
    # Whether the last line of the file ends with a newline afterwards; None leaves it as it is.
    final_newline: bool | None = None

    @property
    def old(self) -> list[str]:
        return [text for op, text in self.lines if op is not Op.ADD]

    @property
    def new(self) -> list[str]:
        return [text for op, text in self.lines if op is not Op.DROP]

    def without_returns(self) -> Hunk:
        """The same for a file whose lines end in CRLF, which are compared and added without it."""
        return self._replace(lines=tuple((op, text.removesuffix("\r")) for op, text in self.lines))


class Change(NamedTuple):
    """What happens to one file. An added file's content is the one hunk's added lines."""

    action: Action
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None
