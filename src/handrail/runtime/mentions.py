"""Keep a tool's text from naming a tool that the model was not given."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any

# In prose a tool's name stands in backticks, or has an underscore; `terminal` alone is also just a word.
_NAMES = re.compile(r"`([A-Za-z0-9_-]{1,64})`|(?<![\w-])([A-Za-z0-9]+(?:_+[A-Za-z0-9-]+)+)(?![\w])")
_SENTENCES = re.compile(r"(?<=[.!?;])(\s+)|(\n+)")


def names_in(value: Any) -> frozenset[str]:
    """What could be names of tools in a text, or in all the descriptions of a schema."""
    if isinstance(value, str):
        return frozenset(quoted or bare for quoted, bare in _NAMES.findall(value))
    if isinstance(value, dict):
        own = names_in(value["description"]) if isinstance(value.get("description"), str) else frozenset()
        return own.union(*(names_in(sub) for sub in value.values() if isinstance(sub, dict | list)))
    if isinstance(value, list):
        return frozenset().union(*(names_in(item) for item in value if isinstance(item, dict | list)))
    return frozenset()


def without(value: Any, absent: AbstractSet[str]) -> Any:
    """The text, or the schema, with every sentence gone that names one of these."""
    if isinstance(value, str):
        return _text_without(value, absent)
    if isinstance(value, list):
        return [without(item, absent) if isinstance(item, dict | list) else item for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without(sub, absent)
        if isinstance(sub, dict | list) or (key == "description" and isinstance(sub, str))
        else sub
        for key, sub in value.items()
    }


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
    return _NAMES.sub(lambda m: "another tool" if (m.group(1) or m.group(2)) in absent else m.group(0), text)
