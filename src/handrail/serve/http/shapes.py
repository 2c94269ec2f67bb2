"""Pieces of JSON Schema that the endpoints share."""

from typing import Any

from ...types import JsonDict
from ..endpoint import ANYTHING as ANYTHING
from ..tokens import Role

TEXT: JsonDict = {"type": "string"}
NUMBER: JsonDict = {"type": "number"}
WHOLE: JsonDict = {"type": "integer"}
FLAG: JsonDict = {"type": "boolean"}
ROLE: JsonDict = {"type": "string", "enum": [role.word for role in Role]}
OFFSET: JsonDict = {"type": "integer", "minimum": 0, "maximum": 2**40, "default": 0}


def maybe(schema: JsonDict) -> JsonDict:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: JsonDict) -> JsonDict:
    return {"type": "array", "items": schema}


def record(_required: tuple[str, ...] | None = None, /, **fields: JsonDict) -> JsonDict:
    """An object with these fields, all of them required unless `_required` names some."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields if _required is None else _required),
        "additionalProperties": False,
    }


def loose(**fields: JsonDict) -> JsonDict:
    """An answer that has at least these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


OK = record(ok=FLAG)


def count(default: int, maximum: int, doc: str = "How many at most.") -> JsonDict:
    return {"type": "integer", "minimum": 1, "maximum": maximum, "default": default, "description": doc}


def bounded(maximum: int, **more: Any) -> JsonDict:
    return {"type": "string", "maxLength": maximum, **more}
