"""Fill in a form that a server sends, by asking the user field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs

from ..base.safe_text import safe_error
from ..types import JsonDict

# Takes a question and its choices, returns the answer; None if nobody answers.
Ask = Callable[[str, list[str]], str | None]

_LEAVE_OUT = "-"
_TRIES = 3
_YES_OR_NO = {"yes": True, "no": False}


class _NotAnswered(Exception):
    """A field, and so the form, was not answered."""


def fill(schema: Mapping[str, Any], message: str, ask: Ask | None) -> JsonDict | None:
    """The form's content, or None if it was not answered.

    A single yes/no field was answered by whoever approved the question. Without a user the form's own defaults are used.
    """
    fields: Mapping[str, JsonDict] = schema.get("properties") or {}
    if len(fields) == 1 and all(field.get("type") == "boolean" for field in fields.values()):
        return dict.fromkeys(fields, True)
    required = schema.get("required") or ()
    content: JsonDict = {}
    try:
        for name, field in fields.items():
            content |= _filled(name, field, message, ask, is_required=name in required)
    except _NotAnswered:
        return None
    return content


def _filled(name: str, field: JsonDict, message: str, ask: Ask | None, *, is_required: bool) -> JsonDict:
    """The field with its value; empty if it is left out."""
    left_out = {name: field["default"]} if "default" in field else {}
    may_be_left_out = bool(left_out) or not is_required
    if ask is None:
        if not may_be_left_out:
            raise _NotAnswered
        return left_out
    label = str(field.get("title") or field.get("description") or name)
    question = f"{safe_error(message)} — {safe_error(label)}"
    if may_be_left_out:
        question += f" (“{_LEAVE_OUT}” " + (f"is {left_out[name]!r})" if left_out else "leaves it out)")
    problem = ""
    for _ in range(_TRIES):
        answer = ask(problem + question, list(_options(field)))
        if answer is None:
            raise _NotAnswered
        if answer.strip() in ("", _LEAVE_OUT) and may_be_left_out:
            return left_out
        try:
            return {name: _checked(_typed(answer.strip(), field), field)}
        except ValueError as error:
            problem = f"{safe_error(str(error))}. "
    raise _NotAnswered


def _options(field: JsonDict) -> dict[str, Any]:
    """The choices by name. For a list, the choices of its items."""
    if field.get("type") == "boolean":
        return _YES_OR_NO
    source = field.get("items") or {} if field.get("type") == "array" else field
    if "enum" in source:
        values = source["enum"]
        return dict(zip(map(str, source.get("enumNames") or values), values, strict=False))
    named = source.get("oneOf") or source.get("anyOf") or ()
    return {str(each.get("title") or each["const"]): each["const"] for each in named if "const" in each}


def _typed(answer: str, field: JsonDict) -> Any:
    """Raises ValueError for an answer of the wrong type."""
    options, kind = _options(field), field.get("type")
    if kind == "array":
        names = {str(number): name for number, name in enumerate(options, 1)}  # as they were shown
        pieces = [each.strip() for each in answer.split(",") if each.strip()]
        return [_chosen(names.get(each, each), options) for each in pieces]
    if kind == "boolean":
        return _chosen(
            {"y": "yes", "true": "yes", "n": "no", "false": "no"}.get(answer.lower(), answer.lower()), options
        )
    if options:
        return _chosen(answer, options)
    if kind in ("integer", "number"):
        try:
            return int(answer) if kind == "integer" else float(answer)
        except ValueError:
            raise ValueError(f"{answer!r} is not a {'whole number' if kind == 'integer' else 'number'}") from None
    return answer


def _chosen(answer: str, options: Mapping[str, Any]) -> Any:
    if answer in options:
        return options[answer]
    for value in options.values():
        if str(value) == answer:
            return value
    if not options:
        return answer
    raise ValueError(f"{answer!r} is not one of {', '.join(options)}")


def _checked(value: Any, field: JsonDict) -> Any:
    try:
        check = jsonschema_rs.validator_for(field, retriever=_refuse_to_fetch)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return value  # the field's schema is not valid, so there is nothing to check against
    problem = next(iter(check.iter_errors(value)), None)
    if problem is not None:
        raise ValueError(problem.message)
    return value


def _refuse_to_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched")
