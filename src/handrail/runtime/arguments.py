"""From what the model sent to arguments that fit the tool's schema, or an error that says what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.suggest import did_you_mean
from ..errors import InvalidArguments
from . import decoding

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jsonschema_rs

    from ..core.contract import Contract
    from ..types import JsonDict

MAX_ARGUMENT_CHARS = 5_000_000
_MAX_PROBLEMS = 5
_SHOWN_CHARS = 120


def prepare(contract: Contract, raw: object, *, max_chars: int = MAX_ARGUMENT_CHARS) -> JsonDict:
    """The arguments as a dict that fits. The caller's own dict is never changed. Raises InvalidArguments."""
    if isinstance(raw, str):
        arguments = decoding.decode_object(raw, max_chars)
    elif isinstance(raw, dict):
        arguments = decoding.plain_copy(raw)
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
    from .coercion import Coercion  # what fits, which is nearly everything, never needs it

    schema = contract.schema()
    try:
        arguments = decoding.plain_copy(arguments)
        repaired: JsonDict = decoding.plain_copy(Coercion(schema).arguments(arguments))
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
        known = list(schema.get("properties", {})) if not error.instance_path else []
        for name in getattr(error.kind, "unexpected", []):
            hint = "" if place else f"; {did_you_mean(name, known)}"
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
