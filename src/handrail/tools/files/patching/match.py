"""Find a block of lines in a file, also when it was copied with small mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum

from .similar import nearest_windows

Key = Callable[[str], str]

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        "…": "...",
    }
)
_SPACES = re.compile(r"\s+")
# High: in a short line one letter is another variable.
SIMILAR_ENOUGH = 0.97
_LINE_SIMILAR_ENOUGH = 0.9
_MIN_SIMILAR_LINES = 3


class How(Enum):
    """How well a block had to fit, strictest first."""

    EXACT = "exact"
    TRAILING = "trailing_whitespace"
    INDENTATION = "indentation"
    WHITESPACE = "whitespace"
    UNICODE = "unicode_punctuation"
    SIMILAR = "similar"


def plain(text: str) -> str:
    """Typographic quotes, dashes, ellipses and spaces as their ASCII relatives."""
    return text.translate(_PLAIN)


def folded(text: str) -> tuple[str, list[int]]:
    """The plain text with white space inside of lines as single spaces, and where each of its characters is in the text."""
    made: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        each = plain(character)
        if each in " \t":
            if made and made[-1] == " ":
                continue
            each = " "
        made += each
        places += [place] * len(each)
    return "".join(made), [*places, len(text)]


_KEYS: dict[How, Key] = {
    How.EXACT: str,
    How.TRAILING: str.rstrip,
    How.INDENTATION: str.strip,
    How.WHITESPACE: lambda line: _SPACES.sub(" ", line.strip()),
    How.UNICODE: lambda line: _SPACES.sub(" ", plain(line).strip()),
}


class Haystack:
    """A file's lines, with computed keys kept from one hunk to the next."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._keyed: dict[How, list[str]] = {}

    def find(self, block: Sequence[str], usable: Callable[[int], bool]) -> tuple[How, list[int]]:
        """The places of the block, by the strictest way that finds a usable one; none if there is no match."""
        if not block or len(block) > len(self.lines):
            return How.EXACT, []
        blank = not any(line.strip() for line in block)
        for how in _KEYS:
            places = [place for place in self._places(how, block) if usable(place)]
            if places:
                return how, places
            if blank:  # nothing to recognise it by
                return how, []
        return How.SIMILAR, [place for place in self._similar(block) if usable(place)]

    def _places(self, how: How, block: Sequence[str]) -> list[int]:
        key = _KEYS[how]
        wanted = [key(line) for line in block]
        lines = self._keyed.get(how)
        if lines is None:
            lines = self._keyed[how] = [key(line) for line in self.lines]
        first, size = wanted[0], len(wanted)
        places = [
            place
            for place in range(len(lines) - size + 1)
            if lines[place] == first and lines[place : place + size] == wanted
        ]
        if how is How.INDENTATION:
            return [place for place in places if _shifted_together(block, self.lines[place : place + size])]
        return places

    def _similar(self, block: Sequence[str]) -> list[int]:
        if len(block) < _MIN_SIMILAR_LINES:
            return []
        return [
            window.start
            for window in nearest_windows(self.lines, block)
            if window.score >= SIMILAR_ENOUGH and window.worst_line >= _LINE_SIMILAR_ENOUGH and window.whole
        ]


def _shifted_together(block: Sequence[str], found: Sequence[str]) -> bool:
    """Whether lines of one indentation in the block have one indentation in the file too."""
    mapping: dict[str, str] = {}
    return all(
        mapping.setdefault(indent_of(line), indent_of(other)) == indent_of(other)
        for line, other in zip(block, found, strict=True)
        if line.strip()
    )


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
