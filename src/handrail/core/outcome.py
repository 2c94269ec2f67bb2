"""The shape of what a call gives back: JSON text, an error among it, or a multimodal result."""

import json
from typing import Any

from ..base.safe_text import safe_error, well_formed
from ..base.workers import is_cancellation, is_interrupt
from ..errors import CallCancelled, ResultContract, ToolError
from ..types import JsonDict
from ..types import Outcome as Outcome


def tool_result(data: object = None, /, **fields: Any) -> str:
    """A result as JSON text: `tool_result({"a": 1})` or `tool_result(a=1)`."""
    return to_json(fields if data is None else data)


def tool_error(message: str, /, *, error_type: str = "tool_failed", **details: Any) -> str:
    """An error as JSON text."""
    return to_json({"error": message, "error_type": error_type, **details})


def error_outcome(error: ToolError) -> str:
    """What the model gets for an error that was raised on purpose: all of it safe to show."""
    details = {name: _safe(value) for name, value in error.details.items() if name not in ("error", "error_type")}
    fields = {"error": safe_error(text_of(error)), "error_type": error.error_type, **details}
    try:
        return well_formed(to_json(fields))
    except (TypeError, ValueError, RecursionError):  # details that JSON cannot carry
        return to_json({"error": fields["error"], "error_type": fields["error_type"]})


def failure_outcome(error: BaseException, prefix: str = "Tool execution failed") -> str:
    """What the model gets for an exception that nobody expected."""
    if isinstance(error, ToolError):
        return error_outcome(error)
    if is_cancellation(error):
        return error_outcome(CallCancelled("it was cancelled from within"))
    return tool_error(safe_error(f"{prefix}: {type(error).__name__}: {text_of(error)}"))


def parsed(outcome: Outcome) -> Any:
    """The JSON value of an outcome; None when it is plain text."""
    if not isinstance(outcome, str):
        return outcome
    try:
        return json.loads(outcome)
    except (ValueError, RecursionError):
        return None


def value_of(outcome: Outcome) -> Any:
    """The JSON value of an outcome; the text itself when it is plain text."""
    value = parsed(outcome)
    return outcome if value is None else value


def text_of(error: BaseException) -> str:
    """The error's message, whatever its class makes of that."""
    try:
        return str(error)
    except BaseException as failure:  # an exception's own __str__ may fail too
        if is_interrupt(failure):
            raise
        return "(its text cannot be had)"


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return safe_error(value)
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list | tuple) else value


def to_outcome(tool: str, value: object) -> Outcome:
    """What a handler gave back, as the model gets it. Raises ResultContract for what is not a result."""
    if isinstance(value, str):
        return value if value.isascii() else well_formed(value)
    if isinstance(value, dict) and value.get("_multimodal") is True and isinstance(value.get("content"), list):
        return value
    if isinstance(value, dict | list) or hasattr(value, "model_dump"):
        try:
            return well_formed(to_json(value))
        except (TypeError, ValueError, RecursionError) as error:
            why = f"returned a {type(value).__name__} that is not JSON: {error}"
            raise ResultContract(f"tool {tool!r} {why}", tool=tool) from None
    kind = type(value).__name__
    why = f"returned {kind}; a handler returns a string, a dict, a list or a pydantic model"
    raise ResultContract(f"tool {tool!r} {why}", tool=tool, result_type=kind)


def error_of(outcome: Outcome) -> JsonDict | None:
    """The error that an outcome reports, or None when it is a success."""
    if not isinstance(outcome, str) or not outcome.startswith("{") or '"error"' not in outcome:
        return None
    value = parsed(outcome)
    return value if isinstance(value, dict) and value.get("error") else None


def refuse_constant(name: str) -> Any:
    """For a JSON reader: NaN and Infinity are Python's."""
    raise ValueError(f"{name} is not a JSON value")


def to_json(data: object) -> str:
    return _encoder.encode(data)


def _jsonable(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON serialisable")


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_jsonable)
