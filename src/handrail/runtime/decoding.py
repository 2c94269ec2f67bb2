"""Read the text that a model wrote as arguments.

What is broken in a way that leaves no doubt is repaired (a code fence, a trailing comma, raw newlines in strings,
Python's spelling, JSON inside a JSON string). What is cut off is refused: guessing the end of a path or a command would
run something that the model did not write.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any

from ..errors import InvalidArguments
from ..types import JsonDict

_LITERAL_CHARS = 100_000
_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(\s*[}\]])', re.DOTALL)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


_strict = json.JSONDecoder(parse_constant=_refuse_constant)
_lenient = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)
_scan: Callable[[str, int], tuple[Any, int]] = _strict.scan_once  # type: ignore[attr-defined]


def decode_object(text: str, max_chars: int) -> JsonDict:
    """The object in the text. Raises InvalidArguments."""
    if len(text) > max_chars:
        raise InvalidArguments(f"arguments are {len(text):,} characters long; the limit is {max_chars:,}")
    try:
        value, end = _scan(text, 0)
        if end != len(text):
            value = _decode_carefully(text)
    except (ValueError, StopIteration):
        value = _decode_carefully(text)
    except RecursionError:
        raise InvalidArguments("arguments are nested too deeply") from None
    if not isinstance(value, dict):
        if value is None:
            return {}
        raise InvalidArguments(f"arguments must be a JSON object, not {type(value).__name__}")
    if "\\u" in text or not text.isascii():
        _refuse_lone_surrogates(value)
    return value


def _decode_carefully(text: str) -> Any:
    try:
        value = _repaired(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = _repaired(value)
    except RecursionError:
        raise InvalidArguments("arguments are nested too deeply") from None
    return value


def _repaired(text: str) -> Any:
    fenced = _FENCE.match(text)
    text = (fenced.group(1) if fenced else text).strip()
    if not text:
        return {}
    try:
        return _lenient.decode(text)
    except ValueError as error:
        first = error
    try:
        return _lenient.decode(_STRING_OR_COMMA.sub(lambda m: m.group(1) or m.group(2), text))
    except ValueError:
        pass
    try:
        return _python_literal(text)
    except (ValueError, SyntaxError, TypeError, MemoryError):
        raise InvalidArguments(f"arguments are not valid JSON: {first}") from None


def _python_literal(text: str) -> Any:
    if len(text) > _LITERAL_CHARS:
        raise ValueError("too long for a second look")
    value = ast.literal_eval(text)
    # Only what JSON can carry: a set, bytes or NaN is not what the model meant to send.
    return _strict.decode(json.dumps(value, allow_nan=False))


def _refuse_lone_surrogates(value: JsonDict) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"arguments hold a lone surrogate (\\u{ord(error.object[error.start]):04x}), which is not a character"
        ) from None
