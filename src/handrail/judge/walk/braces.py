"""Expand braces: `{a,b}`, `{1..5}`, nested and beside other parts."""

from __future__ import annotations

import itertools
import re

from ..grammar.syntax import Literal, Parameter, Part
from ..values.word_values import UNKNOWN

MAX_FIELDS = 256
_MAX_ATOMS = 2_000
_MAX_BRACES = 10
_MAX_DEPTH = 12

Atom = str | Part
"""A character outside quotes, or a part that braces do not look into."""


def expand_braces(parts: list[Part]) -> list[list[Part]]:
    """The words that a word stands for; one that stands for too many is one unknown word."""
    if not any(isinstance(part, Literal) and "{" in part.text for part in parts):
        return [parts]
    atoms: list[Atom] = []
    for part in parts:
        if isinstance(part, Literal):
            atoms.extend(part.text)
        else:
            atoms.append(part)
    if "}" not in atoms:
        return [parts]
    if len(atoms) > _MAX_ATOMS or atoms.count("{") > _MAX_BRACES:
        return [[Parameter(UNKNOWN)]]
    words = _expand(atoms, 0)
    if len(words) == 1:
        return [parts]
    return [_parts(word) for word in words]


def _parts(atoms: list[Atom]) -> list[Part]:
    parts: list[Part] = []
    run: list[str] = []
    for atom in atoms:
        if isinstance(atom, str):
            run.append(atom)
            continue
        if run:
            parts.append(Literal("".join(run)))
            run = []
        parts.append(atom)
    if run:
        parts.append(Literal("".join(run)))
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
        if commas:
            cuts = [start, *commas, end]
            items = [
                item for left, right in itertools.pairwise(cuts) for item in _expand(atoms[left + 1 : right], depth + 1)
            ]
        else:
            found = _range(atoms[start + 1 : end])
            if found is None:
                continue
            items = found
        tails = _expand(atoms[end + 1 :], depth + 1)
        return [atoms[:start] + item + tail for item in items[: MAX_FIELDS + 1] for tail in tails][: MAX_FIELDS + 1]
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
