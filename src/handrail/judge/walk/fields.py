"""How one word becomes several fields: brace expansion (`{a,b}`, `{1..5}`) before, and splitting by IFS after expansion."""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator

from ..grammar.syntax import Literal, Parameter, Part, Word
from ..values.taints import NO_TAINTS, Taints
from ..values.word_values import UNKNOWN, Arg, make_arg

MAX_FIELDS = 256
_MAX_ATOMS = 2_000
_MAX_BRACES = 10
_MAX_DEPTH = 12
_GLOB = re.compile(r"[*?]|\[.")
_EXTENDED = re.compile(r"[?*+@]\(([^()|]*)\)|[?*+@!]\([^()]*(?:\)|\Z)")

Atom = str | Part
"""A character outside quotes, or a part that braces do not look into."""
LITERAL, QUOTED, SPLIT, BREAK = "literal", "quoted", "split", "break"
Piece = tuple[str, Taints, str]
"""A stretch of text, where it came from, and what may still happen to it: `split` by IFS, or `break` between fields."""


def expand_braces(parts: list[Part]) -> list[list[Part]]:
    """The words that a word stands for; one that stands for too many is one unknown word."""
    if not any(isinstance(part, Literal) and "{" in part.text for part in parts):
        return [parts]
    atoms: list[Atom] = [atom for part in parts for atom in (part.text if isinstance(part, Literal) else (part,))]
    if "}" not in atoms:
        return [parts]
    if len(atoms) > _MAX_ATOMS or atoms.count("{") > _MAX_BRACES:
        return [[Parameter(UNKNOWN)]]
    words = _expand(atoms, 0)
    return [parts] if len(words) == 1 else [_parts(word) for word in words]


def _parts(atoms: list[Atom]) -> list[Part]:
    parts: list[Part] = []
    for atom in atoms:
        if isinstance(atom, str) and parts and isinstance(parts[-1], Literal):
            parts[-1] = Literal(parts[-1].text + atom)
        else:
            parts.append(Literal(atom) if isinstance(atom, str) else atom)
    return parts


def _expand(atoms: list[Atom], depth: int) -> list[list[Atom]]:
    if depth > _MAX_DEPTH:
        return [atoms]
    for start, atom in enumerate(atoms):
        if atom != "{":
            continue
        end, commas = _closing(atoms, start)
        if end < 0:
            continue
        cuts = itertools.pairwise([start, *commas, end])
        inner = (_expand(atoms[left + 1 : right], depth + 1) for left, right in cuts)
        items = list(itertools.chain.from_iterable(inner)) if commas else _range(atoms[start + 1 : end])
        if items is None:
            continue
        tails = _expand(atoms[end + 1 :], depth + 1)
        words = (atoms[:start] + item + tail for item in items for tail in tails)
        return list(itertools.islice(words, MAX_FIELDS + 1))
    return [atoms]


def _closing(atoms: list[Atom], start: int) -> tuple[int, list[int]]:
    """Where the brace at `start` is closed (-1: nowhere), and the commas of its own level."""
    level = 0
    commas: list[int] = []
    for place in range(start, len(atoms)):
        atom = atoms[place]
        if atom == "{":
            level += 1
        elif atom == "}":
            level -= 1
            if level == 0:
                return place, commas
        elif atom == "," and level == 1:
            commas.append(place)
    return -1, []


def _range(atoms: list[Atom]) -> list[list[Atom]] | None:
    text = "".join(atom if isinstance(atom, str) else UNKNOWN for atom in atoms)
    match = re.fullmatch(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?", text)
    if match is None:
        return None
    first, last, step_text = match.groups()
    step = abs(int(step_text or 1)) or 1
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high = int(first), int(last)
        width = max(len(first), len(last)) if first.lstrip("-")[0] == "0" or last.lstrip("-")[0] == "0" else 0
        numbers = _between(low, high, step)
        return [list(str(number).zfill(width)) for number in numbers]
    if first.isalpha() and last.isalpha():
        return [[chr(code)] for code in _between(ord(first), ord(last), step)]
    return None


def _between(low: int, high: int, step: int) -> range:
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return numbers[: MAX_FIELDS + 1]


class Splitter:
    """Builds the fields of one word."""

    def __init__(self, separators: str, word: Word) -> None:
        self._separators = separators
        self._word = word
        self._fields: list[Arg] = []
        self._reset()

    def _reset(self) -> None:
        self._texts: list[str] = []
        self._taints: Taints = NO_TAINTS
        self._glob = self._quoted = self._started = False

    def fields(self, pieces: Iterable[Piece]) -> list[Arg]:
        for text, taints, mode in pieces:
            if mode == BREAK:
                self._flush()
                self._started = True
            elif mode == SPLIT and text != UNKNOWN:
                if UNKNOWN in self._separators:  # where it is cut is not known
                    text = UNKNOWN
                self._split(text, taints)
            else:
                if mode == LITERAL and "(" in text:  # `@(a|b)` with extglob
                    text = _EXTENDED.sub(lambda match: match[1] or "*", text)
                self._add(text, taints)
                if mode == QUOTED:
                    self._started = self._quoted = True
                elif mode == LITERAL and _GLOB.search(text):
                    self._glob = True
        self._flush()
        return self._fields

    def _add(self, text: str, taints: Taints) -> None:
        self._texts.append(text)
        self._taints |= taints
        self._started = self._started or bool(text)

    def _split(self, text: str, taints: Taints) -> None:
        for chunk, cut in cut_by(text, self._separators):
            if chunk:
                self._add(chunk, taints)
                self._glob = self._glob or bool(_GLOB.search(chunk))
            if cut:
                self._started = self._started or not cut.isspace()
                self._flush()
                if len(self._fields) > MAX_FIELDS:  # too many: the rest counts as unknown
                    return

    def _flush(self) -> None:
        if self._started:
            text = "".join(self._texts)
            self._fields.append(
                make_arg(text, taints=self._taints, glob=self._glob, quoted=self._quoted, word=self._word)
            )
        self._reset()


def cut_by(text: str, separators: str) -> Iterator[tuple[str, str]]:
    """The stretches between separators, each with what ends it; the last one ends with nothing."""
    pattern = _separator(separators)
    pieces = [*(re.split(f"({pattern})", text) if pattern else [text]), ""]
    return zip(pieces[::2], pieces[1::2], strict=True)


def split_by(text: str, separators: str, most: int = 0) -> list[str]:
    """Cut a text as IFS says: runs of blanks are one cut, every other separator is one of its own."""
    pattern = _separator(separators)
    return re.split(pattern, text, maxsplit=most) if pattern else [text]


@functools.lru_cache(32)
def _separator(separators: str) -> str:
    if not separators:
        return ""
    blanks = "".join(char for char in separators if char in " \t\n")
    others = "".join(char for char in separators if char not in " \t\n")
    space = f"[{blanks}]" if blanks else "(?!)"
    return f"{space}*[{re.escape(others)}]{space}*|{space}+" if others else f"{space}+"
