"""Keep a tool's text from naming a tool that the model was not given."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any

# In prose a tool's name stands in backticks, or is no plain word: it has an underscore, a hyphen or a capital inside.
_WORDS = re.compile(
    r"`([A-Za-z0-9_-]{1,64})`|(?<![A-Za-z0-9_-])([A-Za-z0-9][A-Za-z0-9_-]{0,62}[A-Za-z0-9])(?![A-Za-z0-9_-])"
)
_SENTENCES = re.compile(r"(?<=[.!?;])(\s+)|(\n+)")
_TEXTS = ("description", "title", "$comment", "examples")


def names_in(value: Any) -> frozenset[str]:
    """What could be names of tools in a text, or in all the texts of a schema."""
    if isinstance(value, str):
        return frozenset(quoted or bare for quoted, bare in _WORDS.findall(value) if quoted or _is_no_plain_word(bare))
    if isinstance(value, dict):
        return frozenset().union(*(names_in(sub) for key, sub in value.items() if _may_hold_text(key, sub)))
    if isinstance(value, list):
        return frozenset().union(*(names_in(item) for item in value))
    return frozenset()


def without(value: Any, absent: AbstractSet[str]) -> Any:
    """The text, or the schema, with every sentence gone that names one of these."""
    if isinstance(value, str):
        return _text_without(value, absent)
    if isinstance(value, list):
        return [without(item, absent) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: without(sub, absent) if _may_hold_text(key, sub) else sub for key, sub in value.items()}


def _may_hold_text(key: str, value: Any) -> bool:
    if isinstance(value, str):
        return key in _TEXTS
    if isinstance(value, list):
        return key in _TEXTS or any(isinstance(item, dict | list) for item in value)
    return isinstance(value, dict)


def _is_no_plain_word(word: str) -> bool:
    return "_" in word or "-" in word or not (word.islower() or word.isupper() or word[1:].islower())


def _text_without(text: str, absent: AbstractSet[str]) -> str:
    if names_in(text).isdisjoint(absent):
        return text
    pieces = [piece for piece in _SENTENCES.split(text) if piece is not None]
    kept: list[str] = []
    for sentence, gap in zip(pieces[::2], [*pieces[1::2], ""], strict=False):
        if names_in(sentence).isdisjoint(absent):
            kept += [sentence, gap]
    left = "".join(kept).strip()
    if left:
        return left
    return _WORDS.sub(lambda m: "another tool" if (m.group(1) or m.group(2)) in absent else m.group(0), text)
