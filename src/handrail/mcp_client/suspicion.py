"""What in a tool's definition is not meant for the person who reads it, but for the model that obeys it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from .listing import Listed

_LONGEST_DESCRIPTION = 16_000
_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"})
# Each is how a text speaks that gives orders behind the person's back.
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:ignore|disregard|forget)\b.{0,30}\b(?:previous|prior|above|earlier|other|all)\b.{0,30}\b(?:instruction|prompt|rule|message)",
        r"\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|mention|inform|show|reveal|notify)(?:ing)?\b.{0,20}"
        r"\b(?:user|human|person|anyone)\b",
        r"</?\s*(?:important|system|instructions?|secret|hidden|assistant)\b[^<>]{0,40}>",
        r"<!--",
        r"(?:~|\$HOME|/home/\w+|/root)/\.(?:ssh|aws|gnupg|config|netrc)|\bid_(?:rsa|ed25519)\b",
        r"\bbefore\b.{0,40}\b(?:using|calling|any)\b.{0,40}\btools?\b.{0,60}\b(?:read|send|pass|include|call)\b",
        r"\byou are now\b|\bnew instructions?:",
    )
)


def suspicion(tool: Listed) -> str:
    """Why a person should look at the tool before a model sees it. Empty: nothing strange."""
    if len(tool.description) > _LONGEST_DESCRIPTION:
        return f"its description has {len(tool.description):,} characters"
    for text in _texts(tool):
        unseen = sorted({character for character in text if _is_unseen(character)})
        if unseen:
            return "its definition has invisible characters: " + " ".join(f"U+{ord(each):04X}" for each in unseen[:5])
        for pattern in _ORDERS:
            found = pattern.search(text)
            if found:
                return f"its definition seems to give orders to the model: {found[0][:80]!r}"
    return ""


def made_visible(text: str) -> str:
    """The text with what cannot be seen written by its number."""
    return "".join(f"\\u{{{ord(each):x}}}" if _is_unseen(each) else each for each in text)


def _is_unseen(character: str) -> bool:
    # The joiner between the parts of an emoji is part of what is seen.
    return character not in "\t\n\r\u200d" and unicodedata.category(character) in _UNSEEN


def _texts(tool: Listed) -> Iterator[str]:
    yield tool.name
    yield tool.description
    left: list[Any] = [tool.schema, tool.annotations]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left.extend(value)
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
