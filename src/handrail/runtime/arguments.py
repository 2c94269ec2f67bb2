"""From what the model sent to arguments that fit the tool's schema, or an error that says what does not fit."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..base.suggest import did_you_mean
from ..core.entry import pointed_at, refuse_to_fetch
from ..core.outcome import refuse_constant
from ..errors import InvalidArguments
from ..types import JsonDict

if TYPE_CHECKING:
    import jsonschema_rs

    from ..core.entry import Contract

MAX_ARGUMENT_CHARS = 5_000_000
_MAX_PROBLEMS = 5
_SHOWN_CHARS = 120
_LITERAL_CHARS = 100_000
_DEEPEST = 200
# A string, also one that never ends (so that it is looked at once), or a comma before a closing bracket.
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(\s*+[}\]])', re.DOTALL)


def prepare(contract: Contract, raw: object, *, max_chars: int = MAX_ARGUMENT_CHARS) -> JsonDict:
    """The arguments as a dict that fits. The caller's own dict is never changed. Raises InvalidArguments."""
    if isinstance(raw, str):
        arguments = decode_object(raw, max_chars)
    elif isinstance(raw, dict):
        arguments = plain_copy(raw)
    elif raw is None:
        arguments = {}
    else:
        raise InvalidArguments(f"arguments must be a JSON object, not {_kind(raw)}")
    try:
        if contract.is_valid(arguments):
            return arguments
    except ValueError as error:
        raise InvalidArguments(f"arguments are not JSON: {error}") from None
    return _fitted(contract, arguments)


def _fitted(contract: Contract, arguments: JsonDict) -> JsonDict:
    schema = contract.schema()
    try:
        arguments = plain_copy(arguments)
        repaired: JsonDict = plain_copy(Coercion(schema).arguments(arguments))
        if contract.is_valid(repaired):
            return repaired
        raise _misfit(contract, repaired, schema)
    except RecursionError:
        raise InvalidArguments("arguments are nested too deeply") from None


def _misfit(contract: Contract, arguments: JsonDict, schema: JsonDict) -> InvalidArguments:
    problems: list[str] = []
    for error in contract.errors(arguments):
        problems.extend(_describe(error, schema))
        if len(problems) >= _MAX_PROBLEMS:
            break
    return InvalidArguments("; ".join(problems[:_MAX_PROBLEMS]))


def _describe(error: jsonschema_rs.ValidationError, schema: JsonDict) -> Iterator[str]:
    keyword = error.schema_path[-1] if error.schema_path else ""
    place = _place(error.instance_path)
    if keyword == "required":
        missing = str(getattr(error.kind, "property", "")).strip('"')
        expected = _expected(_property(schema, missing)) if not error.instance_path else ""
        yield f"missing argument {_join(place, missing)!r}" + (f" (expected {expected})" if expected else "")
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        known = list(_below(schema, error.instance_path).get("properties", {}))
        for name in getattr(error.kind, "unexpected", []):
            hint = f"; {did_you_mean(name, known)}" if known or not place else ""
            yield f"unknown argument {_join(place, _short(name))!r}{hint}"
    elif keyword == "type":
        expected = _types(getattr(error.kind, "types", None) or error.message)
        yield f"argument {place!r}: expected {expected}, got {_got(error.instance)}"
    elif keyword == "enum" and place:
        expected = _short(_expected({"enum": getattr(error.kind, "options", [])}))
        yield f"argument {place!r}: expected {expected}, got {_got(error.instance)}"
    else:
        yield f"argument {place!r}: {_short(error.message)}" if place else _short(error.message)


def _property(schema: JsonDict, name: str) -> JsonDict:
    found = schema.get("properties", {}).get(name, {})
    return found if isinstance(found, dict) else {}


def _below(schema: JsonDict, path: list[str | int]) -> JsonDict:
    """The schema of what is at a path in the arguments; an empty one where it does not say so plainly."""
    for step in path:
        found = schema.get("items", {}) if isinstance(step, int) else _property(schema, step)
        schema = found if isinstance(found, dict) else {}
    return schema


def _expected(schema: JsonDict) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    return _types(schema.get("type", ""))


def _types(types: object) -> str:
    return " or ".join(map(str, types)) if isinstance(types, list | tuple) else str(types)


def _place(path: list[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _got(value: object) -> str:
    return f"{_kind(value)} {_short(repr(value))}" if not isinstance(value, dict | list) else _kind(value)


def _kind(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is larger than any number that JSON readers know")
    return value


_strict = json.JSONDecoder(parse_constant=refuse_constant, parse_float=_finite)
_lenient = json.JSONDecoder(parse_constant=refuse_constant, parse_float=_finite, strict=False)
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
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") : -3].strip()
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
        if len(text) > _LITERAL_CHARS:
            raise ValueError("too long for a second look")
        # Only what JSON can carry: a set, bytes or NaN is not what the model meant to send.
        return _strict.decode(json.dumps(ast.literal_eval(text), allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError):
        raise InvalidArguments(f"arguments are not valid JSON: {first}") from None


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"arguments hold a lone surrogate (\\u{ord(error.object[error.start]):04x}), which is not a character"
        ) from None


_MAX_DIGITS = 4000  # Python refuses to turn more into a number, for good reason
_INTEGER = re.compile(r"[+-]?\d{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_MISFIT = object()


class Coercion:
    """One attempt to make arguments fit a schema: to fix what models get wrong about types, and nothing else. A value that fits
    is never touched. The values it is given are not changed; what it returns is new."""

    def __init__(self, root: JsonDict) -> None:
        self._root = root
        self._fits: dict[int, jsonschema_rs.Validator] = {}

    def arguments(self, arguments: JsonDict) -> JsonDict:
        return self._object(arguments, self._root)

    def value(self, value: Any, schema: Any) -> Any:
        schema = self._resolved(schema)
        if not isinstance(schema, dict) or self._valid(value, schema):
            return value
        branches = [self._resolved(branch) for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ()))]
        # Wrapping a value into a list is the last thing to try.
        branches.sort(key=lambda branch: isinstance(branch, dict) and branch.get("type") == "array")
        for branch in branches:
            attempt = self.value(value, branch)
            if self._valid(attempt, schema):
                return attempt
        types = schema.get("type", ())
        for kind in [types] if isinstance(types, str) else types:
            attempt = self._as(kind, value, schema)
            if attempt is not _MISFIT:
                return attempt
        return value

    def _as(self, kind: str, value: Any, schema: JsonDict) -> Any:
        if kind == "object" and isinstance(value, dict):
            return self._object(value, schema)
        if kind == "array" and isinstance(value, list):
            return [self.value(item, schema.get("items", {})) for item in value]
        if isinstance(value, str):
            parsed = _parsed(kind, value.strip())
            if parsed is not _MISFIT:
                return self.value(parsed, schema) if kind in ("array", "object") else parsed
        if kind == "array" and value is not None and not isinstance(value, dict | list) and not _looks_like_json(value):
            return [self.value(value, schema.get("items", {}))]
        if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
            return repr(value)
        return _MISFIT

    def _object(self, value: JsonDict, schema: JsonDict) -> JsonDict:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        fixed: JsonDict = {}
        for name, item in value.items():
            if name not in properties:
                fixed[name] = item
                continue
            item = self.value(item, properties[name])
            # Models write null for "not given".
            if item is None and name not in required and not self._valid(None, self._resolved(properties[name])):
                continue
            fixed[name] = item
        return fixed

    def _valid(self, value: Any, schema: Any) -> bool:
        if not isinstance(schema, dict):
            return schema is True
        validator = self._fits.get(id(schema))
        if validator is None:
            import jsonschema_rs  # what fits, which is nearly everything, never needs it

            alone = schema
            if schema is not self._root:  # a part, with the whole beside it so that its references still lead somewhere
                definitions = {**self._root.get("$defs", {}), "handrail_part": schema}
                whole = {**self._root, "$id": "handrail:whole", "$defs": definitions}
                alone = {"$ref": "handrail:whole#/$defs/handrail_part", "$defs": {"handrail_whole": whole}}
            validator = self._fits[id(schema)] = jsonschema_rs.validator_for(alone, retriever=refuse_to_fetch)
        try:
            return validator.is_valid(value)
        except ValueError:
            return False

    def _resolved(self, schema: Any) -> Any:
        """Follow references within the schema; a chain longer than the schema could hold is a loop."""
        for _ in range(32):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
                return schema
            target = pointed_at(self._root, reference)
            schema = target if target is not None else {}
        return {}


def _parsed(kind: str, text: str) -> Any:
    if kind == "integer":
        return _integer(text)
    if kind == "number":
        return _number(text)
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), _MISFIT)
    if kind == "null":
        return None if text.lower() in ("null", "none") else _MISFIT
    if kind in ("array", "object") and _looks_like_json(text):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return _MISFIT
        return value if isinstance(value, list if kind == "array" else dict) else _MISFIT
    return _MISFIT


def _integer(text: str) -> Any:
    """Exact for any number of digits; "1e3" and "3.0" are whole numbers too, "3.5" is not."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return _MISFIT
    from decimal import Decimal

    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else _MISFIT


def _number(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return _MISFIT
    value = float(text)
    return value if value not in (float("inf"), float("-inf")) else _MISFIT


def _looks_like_json(value: Any) -> bool:
    return isinstance(value, str) and value.strip()[:1] in ("[", "{")
