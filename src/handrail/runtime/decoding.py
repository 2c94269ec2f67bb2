"""Read the text that a model wrote as arguments.

What is broken in a way that leaves no doubt is repaired (a code fence, a trailing comma, raw newlines in strings,
Python's spelling, JSON inside a JSON string). What is cut off is refused: guessing the end of a path or a command would
run something that the model did not write.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from typing import Any

from ..errors import InvalidArguments
from ..types import JsonDict

_LITERAL_CHARS = 100_000
_DEEPEST = 200
# A string, also one that never ends (so that it is looked at once), or a comma before a closing bracket.
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(\s*+[}\]])', re.DOTALL)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is larger than any number that JSON readers know")
    return value


_strict = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_lenient = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, strict=False)
_scan: Callable[[str, int], tuple[Any, int]] = _strict.scan_once  # type: ignore[attr-defined]


def decode_object(text: str, max_chars: int) -> JsonDict:
    """The object in the text. Raises InvalidArguments."""
    if len(text) > max_chars:
        raise InvalidArguments(f"arguments are {len(text):,} characters long; the limit is {max_chars:,}")
    try:
        value, end = _scan(text, 0)
        if end != len(text) or type(value) is not dict:
            value = _decode_carefully(text)
    except (ValueError, StopIteration):
        value = _decode_carefully(text)
    except RecursionError:
        raise InvalidArguments("arguments are nested too deeply") from None
    if type(value) is not dict:
        if value is None:
            return {}
        raise InvalidArguments(f"arguments must be a JSON object, not {type(value).__name__}")
    if "\\u" in text or not text.isascii():
        try:
            _refuse_lone_surrogates(value)
        except RecursionError:
            raise InvalidArguments("arguments are nested too deeply") from None
    return value


def plain_copy(value: Any, depth: int = 0) -> Any:
    """A copy of Python values that JSON could carry: the caller's own are not touched. Raises InvalidArguments."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        _refuse_lone_surrogates(value)
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArguments(f"arguments hold {value!r}, which is not a JSON value")
        return value
    if depth > _DEEPEST:
        raise InvalidArguments("arguments are nested too deeply")
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise InvalidArguments(f"arguments hold a name that is no text: {key!r:.50}")
            _refuse_lone_surrogates(key)
        return {key: plain_copy(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_copy(item, depth + 1) for item in value]
    raise InvalidArguments(f"arguments hold {type(value).__name__}, which is not a JSON value")


def _decode_carefully(text: str) -> Any:
    try:
        value = _repaired(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = _repaired(value)
            _refuse_lone_surrogates(value)
    except RecursionError:
        raise InvalidArguments("arguments are nested too deeply") from None
    return value


def _repaired(text: str) -> Any:
    text = _without_fence(text.strip())
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


def _without_fence(text: str) -> str:
    if not (text.startswith("```") and text.endswith("```") and "\n" in text):
        return text
    return text[text.index("\n") : -3].strip()


def _python_literal(text: str) -> Any:
    if len(text) > _LITERAL_CHARS:
        raise ValueError("too long for a second look")
    value = ast.literal_eval(text)
    # Only what JSON can carry: a set, bytes or NaN is not what the model meant to send.
    return _strict.decode(json.dumps(value, allow_nan=False))


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"arguments hold a lone surrogate (\\u{ord(error.object[error.start]):04x}), which is not a character"
        ) from None
