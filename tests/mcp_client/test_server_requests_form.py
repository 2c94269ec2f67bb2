"""Forms that servers ask for, filled in by a person field by field."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.mcp_client.server_requests import fill
from handrail.testing import ScriptedPerson


def filled(field: Any, *said: str | None, required: bool = True) -> tuple[Any, ScriptedPerson]:
    """The value of a field of a form that has another one before it."""
    person = ScriptedPerson(["x", *said])
    schema = {"properties": {"first": {"type": "string"}, "it": field}, "required": ["it"] if required else []}
    content = fill(schema, "Tell me", person.ask)
    return content and content.get("it"), person


TITLED = [{"const": "a", "title": "Apples"}, {"const": "b", "title": "Bananas"}]


@pytest.mark.parametrize(
    ("field", "said", "value"),
    [
        ({"type": "string"}, "some words", "some words"),
        ({"type": "integer"}, "3", 3),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "yes", True),
        ({"type": "boolean"}, "N", False),
        ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Apples", "Bananas"]}, "Bananas", "b"),
        ({"type": "string", "oneOf": TITLED}, "Apples", "a"),
        ({"type": "string", "oneOf": TITLED}, "a", "a"),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "a, b", ["a", "b"]),
        ({"type": "array", "items": {"anyOf": TITLED}}, "Bananas", ["b"]),
        ({"type": "array", "items": {"anyOf": TITLED}}, "1,2", ["a", "b"]),
    ],
)
def test_what_is_said_becomes_what_the_field_wants(field: Any, said: str, value: Any) -> None:
    assert filled(field, said)[0] == value


@pytest.mark.parametrize(
    ("field", "wrong", "why"),
    [
        ({"type": "integer"}, "many", "'many' is not a whole number"),
        ({"type": "string", "oneOf": TITLED}, "Cherries", "'Cherries' is not one of Apples, Bananas"),
        ({"type": "boolean"}, "perhaps", "'perhaps' is not one of yes, no"),
        ({"type": "integer", "maximum": 5}, "6", "6 is greater than the maximum of 5"),
    ],
)
def test_what_does_not_fit_is_asked_for_again_with_the_reason(field: Any, wrong: str, why: str) -> None:
    value, person = filled(field, *[wrong] * 3)
    assert value is None
    assert len(person.asked) == 4
    assert why in person.asked[-1][0]


def test_choices_are_shown_by_their_titles() -> None:
    assert filled({"type": "string", "oneOf": TITLED}, "Apples")[1].asked[-1][1] == ("Apples", "Bananas")


def test_what_need_not_be_said_can_be_left_out() -> None:
    assert filled({"type": "integer", "default": 4}, "-")[0] == 4
    assert fill({"properties": {"a": {"type": "integer"}, "b": {}}}, "", ScriptedPerson(["-", "x"]).ask) == {"b": "x"}
    assert filled({"type": "string"}, "-")[0] == "-"


def test_with_nobody_to_ask_only_a_form_that_needs_no_answer_is_filled_in() -> None:
    assert fill({"properties": {"a": {"default": 1}, "b": {}}, "required": ["a"]}, "", None) == {"a": 1}
    assert fill({"properties": {"a": {}, "b": {}}, "required": ["a"]}, "", None) is None


def test_a_lone_yes_or_no_was_answered_by_the_approval() -> None:
    assert fill({"properties": {"sure": {"type": "boolean"}}}, "Sure?", None) == {"sure": True}
