"""Fill in the form that a server asks for, by asking a person field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..base.safe_text import safe_error
from ..types import JsonDict
from .schema_checks import check_of

# A question and what may be chosen, to what was said; None when nobody answers.
Ask = Callable[[str, list[str]], str | None]

_LEAVE_OUT = "-"
_TRIES = 3
_YES_OR_NO = {"yes": True, "no": False}


class _NotAnswered(Exception):
    """Then the whole form is not."""


def fill(schema: Mapping[str, Any], message: str, ask: Ask | None) -> JsonDict | None:
    """What the form holds in the end. None: it was not answered.

    A lone yes or no was answered by whoever let the server ask. Where there is nobody to ask, the form's own defaults hold.
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
    """The field with its value; nothing when it is left out."""
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
        said = ask(problem + question, list(_options(field)))
        if said is None:
            raise _NotAnswered
        if said.strip() in ("", _LEAVE_OUT) and may_be_left_out:
            return left_out
        try:
            return {name: _checked(_typed(said.strip(), field), field)}
        except ValueError as error:
            problem = f"{safe_error(str(error))}. "
    raise _NotAnswered


def _options(field: JsonDict) -> dict[str, Any]:
    """What can be chosen, by what it is called. A list is chosen from what its items may be."""
    if field.get("type") == "boolean":
        return _YES_OR_NO
    source = field.get("items") or {} if field.get("type") == "array" else field
    if "enum" in source:
        values = source["enum"]
        return dict(zip(map(str, source.get("enumNames") or values), values, strict=False))
    named = source.get("oneOf") or source.get("anyOf") or ()
    return {str(each.get("title") or each["const"]): each["const"] for each in named if "const" in each}


def _typed(said: str, field: JsonDict) -> Any:
    """Raises ValueError for what does not fit."""
    options, kind = _options(field), field.get("type")
    if kind == "array":
        names = {str(number): name for number, name in enumerate(options, 1)}  # as they were shown
        pieces = [each.strip() for each in said.split(",") if each.strip()]
        return [_chosen(names.get(each, each), options) for each in pieces]
    if kind == "boolean":
        return _chosen({"y": "yes", "true": "yes", "n": "no", "false": "no"}.get(said.lower(), said.lower()), options)
    if options:
        return _chosen(said, options)
    if kind in ("integer", "number"):
        try:
            return int(said) if kind == "integer" else float(said)
        except ValueError:
            raise ValueError(f"{said!r} is no {'whole number' if kind == 'integer' else 'number'}") from None
    return said


def _chosen(said: str, options: Mapping[str, Any]) -> Any:
    if said in options:
        return options[said]
    for value in options.values():
        if str(value) == said:
            return value
    if not options:
        return said
    raise ValueError(f"{said!r} is none of {', '.join(options)}")


def _checked(value: Any, field: JsonDict) -> Any:
    check = check_of(field)
    problem = next(iter(check.iter_errors(value)), None) if check is not None else None
    if problem is not None:
        raise ValueError(problem.message)
    return value
