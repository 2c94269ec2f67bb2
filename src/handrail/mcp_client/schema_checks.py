"""Hold a value against a schema that a server wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jsonschema_rs

    from ..types import JsonDict


def check_of(schema: JsonDict) -> jsonschema_rs.Validator | None:
    """None: the schema is none, so that nothing can be held against it."""
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse_to_fetch)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return None


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")
