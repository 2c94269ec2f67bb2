"""A parameters schema: checked, frozen, compiled."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from enum import StrEnum
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handrail.core.entry import Contract
from handrail.errors import RegistrationError
from tests.support import parameters


def accepts(schema: dict[str, Any], arguments: Any) -> bool:
    return Contract("tool", schema).is_valid(arguments)


def test_a_copy_belongs_to_who_asked() -> None:
    contract = Contract("tool", parameters(x={"enum": ["a"]}))
    contract.schema()["properties"]["x"]["enum"].append("b")
    assert contract.schema()["properties"]["x"]["enum"] == ["a"]
    assert not contract.is_valid({"x": "b"})


@pytest.mark.parametrize(
    "schema",
    [
        parameters(a={}),
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": []}]},
        {"$defs": {"A": {"type": "object", "properties": {"a": {}}}}, "$ref": "#/$defs/A", "properties": {}},
    ],
)
def test_names_that_the_schema_does_not_mention_are_refused(schema: dict[str, Any]) -> None:
    assert accepts(schema, {"a": 1})
    assert not accepts(schema, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    "more",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "integer"}},
        {"unevaluatedProperties": True},
        {"patternProperties": {"^b": {}}},
    ],
)
def test_a_schema_that_allows_other_names_is_believed(more: dict[str, Any]) -> None:
    assert accepts({"type": "object", "properties": {"a": {}}, **more}, {"a": 1, "b": 2})


def test_a_schema_that_mentions_no_names_at_all_takes_any() -> None:
    assert accepts({"type": "object"}, {"anything": 1})


def test_enum_members_and_tuples_in_a_schema_are_written_as_json_would() -> None:
    class Colour(StrEnum):
        RED = "red"

    contract = Contract("tool", {"type": "object", "properties": {"c": {"enum": [Colour.RED]}}, "required": ("c",)})
    assert contract.schema()["properties"]["c"]["enum"] == ["red"]
    assert contract.is_valid({"c": "red"})
    assert not contract.is_valid({"c": "blue"})
    assert contract.schema()["required"] == ["c"]


def test_a_recursive_schema_is_held() -> None:
    tree = {"$defs": {"T": parameters(kids={"type": "array", "items": {"$ref": "#/$defs/T"}})}, "$ref": "#/$defs/T"}
    assert accepts(tree, {"kids": [{"kids": []}]})
    assert not accepts(tree, {"kids": [{"kids": 1}]})


def test_what_is_worked_out_from_a_schema_is_worked_out_once() -> None:
    contract = Contract("tool", parameters())
    made: list[int] = []

    def make(schema: dict[str, Any]) -> str:
        made.append(1)
        return ""  # something false must be remembered too

    assert contract.derived("x", make) == contract.derived("x", make) == ""
    assert len(made) == 1


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": ["string", "null"]}, "object", True, 5])
def test_arguments_are_an_object_or_there_is_no_tool(schema: Any) -> None:
    with pytest.raises(RegistrationError, match="'the_tool'"):
        Contract("the_tool", schema)


_leaves = st.sampled_from(
    ["x", "y", 0, 1, -1, 2.5, float("nan"), True, None, [], ["x"], {}, "^[a-z0-9_]+$", "^[z-a]+$"]
)
_words = st.sampled_from(
    "type description title minimum exclusiveMinimum minLength maxItems enum required pattern default "
    "additionalProperties $ref anyOf format".split()
)
_types = st.sampled_from(
    ["string", "integer", "number", "boolean", "array", "object", "null", "nonsense", ["string"], 3]
)
_schemas = st.recursive(
    st.dictionaries(_words, _leaves, max_size=3).flatmap(
        lambda words: _types.map(lambda kind: {**words, "type": kind})
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)},
        optional={"required": st.lists(st.sampled_from("abc"), max_size=3), "items": inner},
    ),
    max_leaves=6,
)


@given(_schemas, st.lists(st.dictionaries(st.sampled_from("abcd"), _leaves, max_size=3), max_size=4))
@settings(max_examples=300, deadline=None)
def test_what_is_not_compiled_yet_means_the_same(schema: dict[str, Any], calls: list[dict[str, Any]]) -> None:
    schema = {**schema, "type": "object"}
    required, declared = schema.get("required"), schema.get("properties", {})
    if isinstance(required, list) and isinstance(declared, dict):
        assume(set(map(str, required)) <= set(declared))  # what no call could give is not required
    try:
        jsonschema_rs.meta.validate(schema)
        compiled = jsonschema_rs.validator_for({"additionalProperties": False, **schema})
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        with pytest.raises(RegistrationError):
            Contract("t", schema)
        return
    for arguments in calls if "properties" in schema and not {"$ref", "anyOf"} & schema.keys() else ():
        with contextlib.suppress(ValueError):  # not JSON
            expected = compiled.is_valid(arguments)
            contract = Contract("t", schema)
            assert [contract.is_valid(arguments) for _ in range(3)] == [expected] * 3


def test_a_plain_schema_is_compiled_when_it_is_used_twice_or_does_not_plainly_fit() -> None:
    code = (
        "import sys; from handrail.core.entry import Contract\n"
        "c = Contract('t', {'type': 'object', 'properties': {'a': {'type': 'string', 'description': 'x'}}})\n"
        "assert c.is_valid({'a': 'x'}) and 'jsonschema_rs' not in sys.modules\n"
        "assert c.is_valid({'a': 'x'}) and 'jsonschema_rs' in sys.modules\n"
        "assert not Contract('t', c.schema()).is_valid({'b': 'x'})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
