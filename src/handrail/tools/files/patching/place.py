"""Decide at which line each hunk of a file belongs, or say why none can be chosen."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches, unified_diff
from enum import Enum
from typing import NamedTuple

from ....base.safe_text import well_formed
from ....errors import ToolFailed
from ....files.failures import shown
from .changes import Hunk, Op

_MAX_DIFF_LINES = 40
MAX_PLACES_NAMED = 20
_NEAR = 0.3
Key = Callable[[str], str]
_RELATIVES = {"'": "‘’‚‛′", '"': "“”„‟″", "-": "‐‑‒–—―−", " ": "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", "...": "…"}
_PLAIN = str.maketrans({each: ascii_one for ascii_one, found in _RELATIVES.items() for each in found})
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


class How(Enum):
    """How well a block had to fit, strictest first."""

    EXACT = "exact"
    TRAILING = "trailing_whitespace"
    INDENTATION = "indentation"
    WHITESPACE = "whitespace"
    UNICODE = "unicode_punctuation"
    SIMILAR = "similar"


class Edit(NamedTuple):
    """Lines `start` to `end` of the file (from 0, end excluded) become `lines`. `at` is the hunk's place."""

    start: int
    end: int
    lines: tuple[str, ...]
    at: int
    how: How


class Placer:
    """Places the hunks of one file, all of them in the file as it was."""

    def __init__(self, lines: Sequence[str], *, path: str, hunks: int) -> None:
        self._lines, self._path, self._hunks = lines, path, hunks
        self._haystack = Haystack(lines)
        self._edits: list[Edit] = []
        self._drift = 0

    def place(self, number: int, hunk: Hunk) -> Edit:
        """Raises ToolFailed when the hunk matches nowhere, or in more than one place."""
        if hunk.old:
            how, places = self._haystack.find(hunk.old, lambda place: self._free(hunk, place))
            if not places:
                raise self._misfit(number, hunk)
            at = self._chosen(number, hunk, places)
        else:
            how, at = How.EXACT, self._insertion(number, hunk)
        if hunk.line is not None:
            self._drift = at - (hunk.line - 1)
        edit = edit_at(self._lines, hunk, at, how)
        self._edits.append(edit)
        return edit

    def _free(self, hunk: Hunk, place: int) -> bool:
        """Whether the lines that change are not changed by another hunk. Context may be shared."""
        start, end = _core(hunk, place)
        return not any(start < edit.end and edit.start < end for edit in self._edits)

    def _chosen(self, number: int, hunk: Hunk, places: list[int]) -> int:
        if len(places) == 1:
            return places[0]
        if hunk.at_end and places[-1] + len(hunk.old) == len(self._lines):
            return places[-1]
        if hunk.line is not None:
            for expected in (hunk.line - 1, hunk.line - 1 + self._drift):
                if expected in places:
                    return expected
        below = {place for anchor in self._anchored(hunk) for place in places[bisect_left(places, anchor) :][:1]}
        if len(below) == 1:
            return below.pop()
        following = [place for place in places if self._edits and _core(hunk, place)[0] >= self._edits[-1].end]
        if len(following) == 1:
            return following[0]
        raise self._ambiguous(number, places)

    def _anchored(self, hunk: Hunk) -> list[int]:
        """The place of the hunk's last anchor: each is searched for below the previous one."""
        if not hunk.anchors:
            return []
        found = [0]
        for anchor in hunk.anchors:
            found = found[:1]  # the first class of that name; what is in it comes next
            spots = [at for at, line in enumerate(self._lines) if line.strip() == anchor.strip()]
            spots = spots or [at for at, line in enumerate(self._lines) if anchor.strip() in line]
            found = [spot for spot in spots if found and spot >= found[0]]
        return found

    def _insertion(self, number: int, hunk: Hunk) -> int:
        if hunk.at_end or not self._lines:
            return len(self._lines)
        anchors = self._anchored(hunk)
        if len(anchors) == 1:
            return anchors[0] + 1
        if len(anchors) > 1:
            raise self._ambiguous(number, anchors)
        if hunk.line is not None and hunk.line <= len(self._lines):
            return hunk.line
        raise ToolFailed(
            f"{self._named(number)} only adds lines, and nothing says where: give it a line of context, "
            "or `*** End of File`. Nothing was written.",
            path=shown(self._path),
            hunk=number,
        )

    def _ambiguous(self, number: int, places: list[int]) -> ToolFailed:
        lines = [place + 1 for place in places]
        more = "" if len(lines) <= MAX_PLACES_NAMED else " and more"
        named = ", ".join(map(str, lines[:MAX_PLACES_NAMED]))
        return ToolFailed(
            f"{self._named(number)} fits in {len(lines)} places, at lines {named}{more}: add lines of context "
            "until it fits in one. Nothing was written.",
            path=shown(self._path),
            hunk=number,
            lines=lines[:MAX_PLACES_NAMED],
        )

    def _misfit(self, number: int, hunk: Hunk) -> ToolFailed:
        message = f"{self._named(number)} does not fit: its lines are not in the file."
        how, places = self._haystack.find(hunk.new, lambda _: True)
        if places and how is How.EXACT and hunk.new != hunk.old:
            message += " What it would put there already is: perhaps it was applied before."
        return misfit(message, self._lines, hunk.old, path=self._path, hunk=number)

    def _named(self, number: int) -> str:
        return f"{shown(self._path)}, hunk {number} of {self._hunks},"


def edit_at(lines: Sequence[str], hunk: Hunk, at: int, how: How) -> Edit:
    """The edit of a hunk at line `at`. Kept lines stay exactly as the file has them."""
    start, end = _core(hunk, at)
    found = lines[at : at + len(hunk.old)]
    reindent = Reindent(zip(hunk.old, found, strict=False)) if how not in (How.EXACT, How.TRAILING) else str
    # New lines among the CRLF lines of a file that has both kinds, from a patch that knows nothing of it.
    to_crlf = bool(found) and all(line.endswith("\r") for line in found) and not any("\r" in line for line in hunk.old)
    new: list[str] = []
    place = at
    for op, text in hunk.lines:
        if op is Op.ADD:
            new.append(reindent(text) + ("\r" if to_crlf else ""))
            continue
        if op is Op.KEEP and start <= place < end:
            new.append(lines[place])
        place += 1
    return Edit(start, end, tuple(new), at, how)


def misfit(message: str, lines: Sequence[str], block: Sequence[str], **details: object) -> ToolFailed:
    """An error that shows the place that is most like the block, beside what was expected there."""
    message += " Nothing was written."
    window = next((found for found in nearest_windows(lines, block) if found.score >= _NEAR), None)
    if window is None:
        return ToolFailed(f"{message} Nothing similar was found either; read the file again.", **details)
    start, end = max(0, window.start), min(len(lines), window.start + len(block))
    diff = list(unified_diff(list(block), list(lines[start:end]), "expected", "found", lineterm="", n=1))[2:]
    kept = [line if len(line) <= 200 else line[:200] + "…" for line in diff[:_MAX_DIFF_LINES]]
    if len(diff) > _MAX_DIFF_LINES:
        kept.append(f"[{len(diff) - _MAX_DIFF_LINES} more lines]")
    nearest = {"start_line": start + 1, "end_line": end, "diff": well_formed("\n".join(kept))}
    return ToolFailed(f"{message} The nearest place is lines {start + 1} to {end}.", **details, nearest=nearest)


def _core(hunk: Hunk, place: int) -> tuple[int, int]:
    """The lines of the file that a hunk changes, without the context around them."""
    ops = [op for op, _ in hunk.lines]
    if not (changed := [at for at, op in enumerate(ops) if op is not Op.KEEP]):
        return place, place
    start = place + changed[0]
    return start, start + sum(op is not Op.ADD for op in ops[changed[0] : changed[-1] + 1])


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
    for offset, key in enumerate(wanted):
        place = start + offset
        found = keys[place] if 0 <= place < len(keys) else ""
        ratio = float(key == found)
        if not ratio and len(wanted) <= _MAX_BLOCK_LINES and max(len(key), len(found)) <= _MAX_COMPARED_CHARS:
            ratio = SequenceMatcher(None, key, found, autojunk=False).ratio()
        worst = min(worst, ratio)
        score += ratio * (len(key) + 1)
        weight += len(key) + 1
    whole = start >= 0 and start + len(wanted) <= len(keys)
    return Likeness(start, score / weight if weight else 0.0, worst, whole)


def _key(line: str) -> str:
    return _SPACES.sub(" ", line.strip())


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
    How.WHITESPACE: _key,
    How.UNICODE: lambda line: _key(plain(line)),
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
            if places := [place for place in self._places(how, block) if usable(place)]:
                return how, places
            if blank:  # nothing to recognise it by
                return how, []
        return How.SIMILAR, [place for place in self._similar(block) if usable(place)]

    def _places(self, how: How, block: Sequence[str]) -> list[int]:
        key = _KEYS[how]
        wanted = [key(line) for line in block]
        if (lines := self._keyed.get(how)) is None:
            lines = self._keyed[how] = [key(line) for line in self.lines]
        first, size = wanted[0], len(wanted)
        places = [at for at in range(len(lines) - size + 1) if lines[at] == first and lines[at : at + size] == wanted]
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
