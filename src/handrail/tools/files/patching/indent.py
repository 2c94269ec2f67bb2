"""Indent new lines like the file when the patch is indented differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .match import indent_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Reindent:
    """Learns from pairs of lines how the patch's indentation maps to the file's."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._theirs: dict[str, str] = {}
        for patch_line, file_line in pairs:
            if patch_line.strip() and file_line.strip():
                self._theirs.setdefault(indent_of(patch_line), indent_of(file_line))
        self._unit = next((unit for pair in self._theirs.items() if (unit := _unit(*pair))), ("", ""))

    def __call__(self, line: str) -> str:
        own = indent_of(line)
        return self._translated(own) + line[len(own) :] if line.strip() else line

    def _translated(self, own: str) -> str:
        if own in self._theirs:
            return self._theirs[own]
        if shorter := [mine for mine in self._theirs if own.startswith(mine)]:
            nearest = max(shorter, key=len)
            return self._theirs[nearest] + self._in_their_characters(own[len(nearest) :])
        if longer := [mine for mine in self._theirs if mine.startswith(own)]:
            nearest = min(longer, key=len)
            excess = self._in_their_characters(nearest[len(own) :])
            return self._theirs[nearest][: max(0, len(self._theirs[nearest]) - len(excess))]
        return own

    def _in_their_characters(self, indent: str) -> str:
        mine, theirs = self._unit
        return indent.replace(mine, theirs) if mine else indent


def _unit(mine: str, theirs: str) -> tuple[str, str] | None:
    """What one step is on both sides, where one uses tabs and the other spaces."""
    if set(mine) == {" "} and set(theirs) == {"\t"} and len(mine) % len(theirs) == 0:
        return " " * (len(mine) // len(theirs)), "\t"
    if set(mine) == {"\t"} and set(theirs) == {" "} and len(theirs) % len(mine) == 0:
        return "\t", " " * (len(theirs) // len(mine))
    return None
