"""What a tool's arguments must look like: its parameters schema, checked, frozen and compiled."""

from __future__ import annotations

import logging
import marshal
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import jsonschema_rs

from ..errors import RegistrationError
from ..types import JsonDict

log = logging.getLogger(__name__)

T = TypeVar("T")

NO_PARAMETERS: JsonDict = {"type": "object", "properties": {}}
_DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)
_COMBINATORS = ("allOf", "anyOf", "oneOf", "if", "$ref", "dependentSchemas")


class Contract:
    """One parameters schema. It is kept as bytes, so that nobody can change it and a copy is one call."""

    __slots__ = ("_derived", "_frozen", "_validator", "is_valid")

    def __init__(self, tool: str, parameters: object) -> None:
        schema = _plain(tool, parameters)
        _check_is_object_schema(tool, schema)
        _prune_required(tool, schema)
        try:
            # A dialect that is not built in would be fetched.
            if _dialect_of(schema) not in _DIALECTS:
                raise ValueError(f"its $schema {schema['$schema']!r} is not a known draft of JSON Schema")
            jsonschema_rs.meta.validate(schema)
            self._validator = jsonschema_rs.validator_for(_closed(schema), retriever=_refuse_to_fetch)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise RegistrationError(f"tool {tool!r}: {_place(error)} is not valid JSON Schema: {_why(error)}") from None
        self._frozen = marshal.dumps(schema)
        self._derived: dict[object, Any] = {}
        self.is_valid: Callable[[Any], bool] = self._validator.is_valid

    def schema(self) -> JsonDict:
        """A copy that belongs to the caller."""
        return cast("JsonDict", marshal.loads(self._frozen))  # our own bytes

    def derived(self, key: object, make: Callable[[JsonDict], T]) -> T:
        """What someone works out from the schema, worked out once."""
        known = self._derived.get(key)
        if known is None:
            known = self._derived[key] = make(self.schema())
        return cast("T", known)

    def errors(self, arguments: object) -> Iterator[jsonschema_rs.ValidationError]:
        return iter(self._validator.iter_errors(arguments))


def _dialect_of(schema: JsonDict) -> object:
    dialect = schema.get("$schema", _DIALECTS[0])
    return dialect.rstrip("#") if isinstance(dialect, str) else dialect


def _plain(tool: str, parameters: object) -> JsonDict:
    if not isinstance(parameters, dict):
        raise RegistrationError(
            f"tool {tool!r}: parameters must be a JSON Schema object, not {type(parameters).__name__}"
        )
    try:
        return cast("JsonDict", marshal.loads(marshal.dumps(parameters)))  # our own bytes
    except ValueError:
        pass  # an enum member or a subclass of str: JSON can still carry it
    import json

    try:
        return cast("JsonDict", json.loads(json.dumps(parameters)))
    except (TypeError, ValueError, RecursionError) as error:
        raise RegistrationError(f"tool {tool!r}: parameters cannot be written as JSON: {error}") from None


def _check_is_object_schema(tool: str, schema: JsonDict) -> None:
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise RegistrationError(
            f"tool {tool!r}: parameters.type must be 'object' (arguments are an object), not {kind!r}"
        )


def _prune_required(tool: str, schema: JsonDict) -> None:
    """Take out of `required` what no call could give: a name that is not declared where only declared ones are taken."""
    names, declared = schema.get("required"), schema.get("properties", {})
    if isinstance(names, list) and isinstance(declared, dict) and _closed(schema).get("additionalProperties") is False:
        missing = [name for name in names if name not in declared and "patternProperties" not in schema]
        schema["required"] = [name for name in names if name not in missing]
        if missing:
            log.warning("tool %r requires %s, which its properties do not have; it is not required", tool, missing)


def _closed(schema: JsonDict) -> JsonDict:
    """The schema that arguments are held against: names it does not mention are refused, unless it says otherwise."""
    if "properties" not in schema or "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    if "patternProperties" in schema or any(word in schema for word in _COMBINATORS):
        return {**schema, "unevaluatedProperties": False}
    return {**schema, "additionalProperties": False}


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri}: nothing is fetched")


def _place(error: Exception) -> str:
    path = getattr(error, "instance_path", None) or []
    return ".".join(["parameters", *(str(step) for step in path)])


def _why(error: Exception) -> str:
    return str(getattr(error, "message", "") or error).splitlines()[0]
