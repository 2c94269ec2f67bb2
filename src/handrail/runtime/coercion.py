"""Fix what models get wrong about types, and nothing else: a value that fits its schema is never touched."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs

from ..types import JsonDict

_MAX_DIGITS = 4000  # Python refuses to turn more into a number, for good reason
_INTEGER = re.compile(r"[+-]?\d{1,4000}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_MISFIT = object()


class Coercion:
    """One attempt to make arguments fit a schema. The values it is given are not changed; what it returns is new."""

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
            validator = self._fits[id(schema)] = jsonschema_rs.validator_for(
                self._standing_alone(schema), retriever=_refuse_to_fetch
            )
        try:
            return validator.is_valid(value)
        except ValueError:
            return False

    def _standing_alone(self, schema: JsonDict) -> JsonDict:
        """A part of the schema, with the whole beside it so that its references still lead somewhere."""
        if schema is self._root:
            return schema
        return {"$ref": "handrail:whole#/$defs/handrail_part", "$defs": {"handrail_whole": self._with_part(schema)}}

    def _with_part(self, schema: JsonDict) -> JsonDict:
        definitions = {**self._root.get("$defs", {}), "handrail_part": schema}
        return {**self._root, "$id": "handrail:whole", "$defs": definitions}

    def _resolved(self, schema: Any) -> Any:
        """Follow references within the schema; a chain longer than the schema could hold is a loop."""
        for _ in range(32):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
                return schema
            target: Any = self._root
            for step in filter(None, reference[1:].split("/")):
                target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
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


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"nothing is fetched: {uri}")
