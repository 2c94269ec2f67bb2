"""Indent new lines as the file does, when the patch indented its lines otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .match import indent_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Reindent:
    """Learns from pairs of a patch's line and the file's line what one's indentation is in the other."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._file_indent: dict[str, str] = {}
        for patch_line, file_line in pairs:
            if patch_line.strip() and file_line.strip():
                self._file_indent.setdefault(indent_of(patch_line), indent_of(file_line))

    def __call__(self, line: str) -> str:
        own = indent_of(line)
        if not line.strip() or all(mine == theirs for mine, theirs in self._file_indent.items()):
            return line
        return self._translated(own) + line[len(own) :]

    def _translated(self, own: str) -> str:
        known = self._file_indent.get(own)
        if known is not None:
            return known
        shorter = [indent for indent in self._file_indent if own.startswith(indent)]
        if shorter:
            nearest = max(shorter, key=len)
            return self._file_indent[nearest] + self._deeper(own[len(nearest) :])
        longer = [indent for indent in self._file_indent if indent.startswith(own)]
        if longer:
            nearest = min(longer, key=len)
            excess = len(self._deeper(nearest[len(own) :]))
            theirs = self._file_indent[nearest]
            return theirs[: max(0, len(theirs) - excess)]
        return own

    def _deeper(self, rest: str) -> str:
        """Further indentation in the file's own characters: tabs where it has tabs."""
        if not rest.strip(" "):
            tabbed = [(mine, theirs) for mine, theirs in self._file_indent.items() if theirs.strip(" ") and theirs]
            for mine, theirs in tabbed:
                if not mine.strip(" ") and set(theirs) == {"\t"} and mine and len(mine) % len(theirs) == 0:
                    width = len(mine) // len(theirs)
                    return "\t" * (len(rest) // width) + " " * (len(rest) % width)
            return rest
        for mine, theirs in self._file_indent.items():
            if mine and set(mine) == {"\t"} and theirs and not theirs.strip(" ") and len(theirs) % len(mine) == 0:
                return rest.replace("\t", " " * (len(theirs) // len(mine)))
        return rest
