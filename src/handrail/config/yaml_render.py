"""Write plain values as YAML text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Text that means itself without quotes, in block and in flow style, to YAML 1.1 and 1.2 readers alike. It is narrower
# than what YAML allows: quotes are never wrong.
_PLAIN = re.compile(r"(?:[A-Za-z_/]|~/|\./)(?:[\w/.@%+=~-]| (?![ #]))*(?<! )", re.ASCII)
_TAKEN = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def inline(value: Any, *, quote: str = "") -> str:
    """The value on one line. `quote` is the kind of quotes that text had before, which is kept where it can be."""
    if isinstance(value, str):
        return _text(value, quote)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{inline(key)}: {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value)


def entry(key: str, value: Any, *, indent: int) -> str:
    """`key: value` as lines of their own, lists and mappings one line an item."""
    return f"{' ' * indent}{inline(key)}:{after_colon(value, indent=indent)}\n"


def after_colon(value: Any, *, indent: int) -> str:
    """What follows the colon of a key at column `indent`."""
    below = indent + 2
    if value and isinstance(value, Mapping):
        return "\n" + "".join(entry(key, item, indent=below) for key, item in value.items()).removesuffix("\n")
    if value and isinstance(value, list):
        return "".join(f"\n{' ' * below}- {inline(item)}" for item in value)
    return " " + inline(value)


def _text(text: str, quote: str) -> str:
    if quote not in ("'", '"') and _PLAIN.fullmatch(text) and text.lower() not in _TAKEN:
        return text
    # Single quotes know no escapes: good for commands, impossible for control characters.
    if text.isprintable() and (quote == "'" or (quote != '"' and ('"' in text or "\\" in text))):
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in ('"', "\\"):
        return "\\" + character
    if character.isprintable():
        return character
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or f"\\U{ord(character):08x}"


def _number(value: float) -> str:
    text = repr(value)
    # `1e+16` is a float to YAML only with a dot in it.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text
