"""Find a block of lines in a file, also when it was copied with small mistakes, or the places that look most like it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher, get_close_matches
from enum import Enum
from typing import NamedTuple

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
_MAX_WINDOWS = 10
# A line that is everywhere (`}`, `return`) says nothing about the place, and comparing is costly.
_MAX_COMMON = 100
_MAX_COMPARED_LINES = 5_000
_MAX_COMPARED_CHARS = 300
# A longer block is only compared by the lines that are equal.
_MAX_BLOCK_LINES = 200


class Likeness(NamedTuple):
    """A window of the file as long as the block. `whole` is False when the file begins or ends inside of it."""

    start: int
    score: float
    worst_line: float
    whole: bool


def nearest_windows(lines: Sequence[str], block: Sequence[str]) -> list[Likeness]:
    """The most similar windows, best first. Lines that the two share vote for where the block may begin."""
    keys = [_key(line) for line in lines]
    wanted = [_key(line) for line in block]
    where: defaultdict[str, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        if key:
            where[key].append(number)
    votes: Counter[int] = Counter()
    for offset, key in enumerate(wanted):
        places = where.get(key, ())
        if len(places) <= _MAX_COMMON:
            votes.update(place - offset for place in places)
    starts = [start for start, _ in votes.most_common(_MAX_WINDOWS)] or _starts_by_one_line(keys, wanted)
    windows = [_compare(keys, wanted, start) for start in starts]
    return sorted(windows, key=lambda window: (-window.score, window.start))


def _starts_by_one_line(keys: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """No line is shared: look for one that is close to the block's longest."""
    longest = max(wanted, key=len, default="")
    if not longest or len(keys) > _MAX_COMPARED_LINES or len(longest) > _MAX_COMPARED_CHARS:
        return []
    short = [key for key in dict.fromkeys(keys) if key and len(key) <= _MAX_COMPARED_CHARS]
    near = get_close_matches(longest, short, n=3, cutoff=0.5)
    return [keys.index(match) - wanted.index(longest) for match in near]


def _compare(keys: Sequence[str], wanted: Sequence[str], start: int) -> Likeness:
    score = weight = 0.0
    worst = 1.0
    compare = _ratio if len(wanted) <= _MAX_BLOCK_LINES else _equal
    for offset, key in enumerate(wanted):
        place = start + offset
        found = keys[place] if 0 <= place < len(keys) else ""
        ratio = compare(key, found)
        worst = min(worst, ratio)
        score += ratio * (len(key) + 1)
        weight += len(key) + 1
    whole = start >= 0 and start + len(wanted) <= len(keys)
    return Likeness(start, score / weight if weight else 0.0, worst, whole)


def _ratio(key: str, found: str) -> float:
    if key == found:
        return 1.0
    if max(len(key), len(found)) > _MAX_COMPARED_CHARS:
        return 0.0
    return SequenceMatcher(None, key, found, autojunk=False).ratio()


def _equal(key: str, found: str) -> float:
    return float(key == found)


def _key(line: str) -> str:
    return _SPACES.sub(" ", line.strip())


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
