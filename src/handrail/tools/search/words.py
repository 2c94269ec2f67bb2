"""Turn text into words that can be compared: the parts of names, without endings, and with what means the same."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_WORDS = re.compile(r"[^\W_]+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_STOP = frozenset(
    "a about all an and any anything are as at be by can could did do does for from has have how i if in into is it "
    "its like me my of on or our should so some something that the their them then there these this to up us use used using "
    "want was we what when where which will with would you your tool tools please need".split()
)


def words(text: str) -> list[str]:
    """The words of a text or a name, in order: `listOpenIssues` is list, open, issue."""
    found = (part for word in _WORDS.findall(text) for part in (_PARTS.findall(word) if word.isascii() else [word]))
    return [stem(part) for part in map(str.lower, found) if part not in _STOP]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its ending: coarse, but the same for all forms of most words."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_ENDINGS = (
    ("ations", "at"),
    ("ation", "at"),
    ("ments", "ment"),
    ("iness", "y"),
    ("ingly", ""),
    ("ies", "y"),
    ("ing", ""),
    ("ied", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("ed", ""),
    ("ly", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("s", ""),
)


def related(word: str) -> frozenset[str]:
    """Other words for the same thing."""
    return _related().get(word, frozenset())


@lru_cache(maxsize=1)
def _related() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    lines = Path(__file__).with_name("synonyms.txt").read_text("utf-8").splitlines()
    for line in lines[1:]:
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}
