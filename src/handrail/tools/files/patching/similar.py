"""Find the places in a file that look most like a block of lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

_MAX_WINDOWS = 10
# A line that is everywhere (`}`, `return`) says nothing about the place, and comparing is costly.
_MAX_COMMON = 100
_MAX_COMPARED_LINES = 5_000
_MAX_COMPARED_CHARS = 300
# A longer block is only compared by the lines that are equal.
_MAX_BLOCK_LINES = 200
_SPACES = re.compile(r"\s+")


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
