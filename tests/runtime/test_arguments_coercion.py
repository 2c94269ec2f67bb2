"""Coercion fixes what models get wrong about types, exactly, and touches nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from handrail.runtime.arguments import Coercion
from tests.support import costs_less_than, parameters

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}
INTEGERS = {"type": "array", "items": INTEGER}


def coerce(value: Any, schema: dict[str, Any], **root: Any) -> Any:
    return Coercion({**parameters(x=schema), **root}).arguments({"x": value}).get("x", "left out")


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("42", INTEGER, 42),
        (" -7 ", INTEGER, -7),
        ("+3", INTEGER, 3),
        ("3.0", INTEGER, 3),
        ("1e3", INTEGER, 1000),
        ("12345678901234567890123456789012345678901", INTEGER, 12345678901234567890123456789012345678901),
        ("12345678901234567890123456789012345678901.0", INTEGER, 12345678901234567890123456789012345678901),
        ("42", NUMBER, 42),
        ("2.5", NUMBER, 2.5),
        ("9007199254740993", NUMBER, 9007199254740993),
        ("true", BOOLEAN, True),
        ("False", BOOLEAN, False),
        ('{"a": "1"}', parameters(a=INTEGER), {"a": 1}),
        ('["1", 2]', INTEGERS, [1, 2]),
        ({"a": "1"}, parameters(a=INTEGER), {"a": 1}),
        (["1"], INTEGERS, [1]),
        ("one", STRINGS, ["one"]),
        (5, INTEGERS, [5]),
        ("5", INTEGERS, [5]),
        (5, STRING, "5"),
        (12345678901234567890123, STRING, "12345678901234567890123"),
        (2.5, STRING, "2.5"),
        ("null", {"type": "null"}, None),
        ("none", {"anyOf": [INTEGER, {"type": "null"}]}, None),
        ("7", {"anyOf": [INTEGER, {"type": "null"}]}, 7),
        ("7", {"oneOf": [BOOLEAN, INTEGER]}, 7),
        ("7", {"type": ["integer", "null"]}, 7),
        ([{"n": "1"}], {"type": "array", "items": parameters(n=INTEGER)}, [{"n": 1}]),
    ],
)
def test_what_models_get_wrong_is_fixed(value: Any, schema: dict[str, Any], expected: Any) -> None:
    fixed = coerce(value, schema)
    assert fixed == expected
    assert type(fixed) is type(expected)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("42", STRING),
        ("true", STRING),
        ("null", STRING),
        ("[1]", STRING),
        (3.0, INTEGER),
        (True, BOOLEAN),
        (-0.0, NUMBER),
        (10**400, INTEGER),
        ("7", {"type": ["string", "integer"]}),
        ("7", {"anyOf": [INTEGER, STRING]}),
        ("null", {"anyOf": [STRING, {"type": "null"}]}),
        (None, {"anyOf": [STRING, {"type": "null"}]}),
        ("anything", {}),
        (["1"], {"type": "array"}),
    ],
)
def test_what_fits_is_never_touched(value: Any, schema: dict[str, Any]) -> None:
    fixed = coerce(value, schema)
    assert fixed is value


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("3.5", INTEGER),
        (3.5, INTEGER),
        ("0x10", INTEGER),
        ("1_000", INTEGER),
        ("", INTEGER),
        ("1e400", NUMBER),
        ("nan", NUMBER),
        ("Infinity", NUMBER),
        (True, INTEGER),
        (False, NUMBER),
        (1, BOOLEAN),
        ("yes", BOOLEAN),
        (True, STRING),
        ({"a": 1}, STRING),
        ([1], STRING),
        ("not json", parameters()),
        ("[1]", parameters()),
    ],
)
def test_what_is_no_slip_of_type_is_left_for_the_error(value: Any, schema: dict[str, Any]) -> None:
    fixed = coerce(value, schema)
    assert fixed == value
    assert type(fixed) is type(value)


def test_null_for_an_optional_argument_means_not_given() -> None:
    assert coerce(None, INTEGER) == "left out"
    assert coerce(None, INTEGER, required=["x"]) is None
    nested = coerce({"a": None, "b": 1}, parameters(a=INTEGER, b=INTEGER))
    assert nested == {"b": 1} or nested == {"a": None, "b": 1}


def test_null_inside_what_must_be_fixed_means_not_given_too() -> None:
    assert coerce({"a": None, "b": "1"}, parameters(a=INTEGER, b=INTEGER)) == {"b": 1}


def test_the_callers_values_are_not_changed() -> None:
    schema = parameters(
        items={"type": "array", "items": parameters(n=INTEGER)}, options=parameters(deep=parameters(flag=BOOLEAN))
    )
    given = {"items": [{"n": "1"}, {"n": 2}], "options": {"deep": {"flag": "true"}}, "unknown": {"n": "1"}}
    before = copy.deepcopy(given)
    fixed = Coercion(schema).arguments(given)
    assert given == before
    assert fixed == {"items": [{"n": 1}, {"n": 2}], "options": {"deep": {"flag": True}}, "unknown": {"n": "1"}}


TREE = parameters(n=INTEGER, kids={"type": "array", "items": {"$ref": "#/$defs/Tree"}})


class TestReferences:
    def test_they_are_followed(self) -> None:
        assert coerce({"n": "1"}, {"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": TREE}}) == {"n": 1}

    def test_a_recursive_schema_is_coerced_all_the_way_down(self) -> None:
        given = {"n": "1", "kids": [{"n": "2", "kids": [{"n": "3"}]}]}
        fixed = coerce(given, {"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": TREE}})
        assert fixed == {"n": 1, "kids": [{"n": 2, "kids": [{"n": 3}]}]}

    def test_a_reference_to_the_whole_schema_is_followed(self) -> None:
        root = {"type": "object", "properties": {"n": INTEGER, "child": {"$ref": "#"}}}
        assert Coercion(root).arguments({"child": {"child": {"n": "1"}}}) == {"child": {"child": {"n": 1}}}

    def test_a_reference_into_the_properties_is_followed(self) -> None:
        root = {
            "type": "object",
            "properties": {"n": INTEGER, "many": {"type": "array", "items": {"$ref": "#/properties/n"}}},
        }
        assert Coercion(root).arguments({"many": ["1"]}) == {"many": [1]}

    def test_a_reference_to_itself_ends(self) -> None:
        with costs_less_than(2):
            assert coerce("1", {"$ref": "#/properties/x"}) == "1"

    def test_references_in_a_ring_end(self) -> None:
        ring = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}
        with costs_less_than(2):
            assert coerce("1", {"$ref": "#/$defs/A"}, **{"$defs": ring}) == "1"


def test_a_number_of_a_million_digits_costs_no_time() -> None:
    with costs_less_than(3):
        coerce("9" * 200_000 + ".0", INTEGER)
    with costs_less_than(3):
        coerce("9" * 1_000_000, INTEGER)
    with costs_less_than(3):
        coerce("9" * 1_000_000, NUMBER)


def test_a_long_list_is_fixed_in_linear_time() -> None:
    with costs_less_than(10):
        assert coerce([str(number) for number in range(100_000)], INTEGERS) == list(range(100_000))


def test_a_union_prefers_the_value_itself_to_a_list_of_it() -> None:
    assert coerce("5", {"anyOf": [INTEGERS, INTEGER]}) == 5
