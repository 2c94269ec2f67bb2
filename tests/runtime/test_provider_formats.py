"""Definitions as each provider takes them, and schemas that a provider would refuse, repaired."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from handrail.runtime.provider_formats import for_gemini, repair, writer
from tests.support import costs_less_than, parameters

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
UNIONS = ("anyOf", "oneOf", "allOf")


def schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from schemas_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from schemas_in(item)


def accepts(schema: dict[str, Any], instance: Any) -> bool:
    jsonschema_rs.meta.validate(schema)
    return jsonschema_rs.validator_for(schema).is_valid(instance)


class TestFormats:
    PARAMETERS = parameters(["path"], path=STRING)

    def write(self, wanted: Any, read_only: bool = True) -> dict[str, Any]:
        chosen = writer(wanted)
        return chosen.definition("read", "Read.", chosen.parameters(self.PARAMETERS), read_only)

    def test_openai(self) -> None:
        function = {"name": "read", "description": "Read.", "parameters": self.PARAMETERS}
        assert self.write("openai") == {"type": "function", "function": function}

    def test_responses(self) -> None:
        assert self.write("responses") == {
            "type": "function",
            "name": "read",
            "description": "Read.",
            "parameters": self.PARAMETERS,
            "strict": False,
        }

    def test_anthropic(self) -> None:
        assert self.write("anthropic") == {"name": "read", "description": "Read.", "input_schema": self.PARAMETERS}

    def test_gemini(self) -> None:
        assert self.write("gemini") == {"name": "read", "description": "Read.", "parameters": self.PARAMETERS}

    @pytest.mark.parametrize("read_only", [True, False])
    def test_mcp(self, read_only: bool) -> None:
        assert self.write("mcp", read_only) == {
            "name": "read",
            "description": "Read.",
            "inputSchema": self.PARAMETERS,
            "annotations": {"readOnlyHint": read_only},
        }

    def test_an_unknown_format_is_refused(self) -> None:
        with pytest.raises((KeyError, ValueError)):
            writer("morse")  # type: ignore[arg-type]


class TestTopLevel:
    @pytest.mark.parametrize("union", UNIONS)
    def test_a_union_becomes_one_object_with_every_argument(self, union: str) -> None:
        repaired = repair({union: [parameters(["a"], a=STRING), parameters(["a", "b"], a=STRING, b=INTEGER)]})
        assert repaired["type"] == "object"
        assert not set(UNIONS) & set(repaired)
        assert repaired["properties"] == {"a": STRING, "b": INTEGER}
        assert set(repaired["required"]) == ({"a", "b"} if union == "allOf" else {"a"})

    @pytest.mark.parametrize("union", UNIONS)
    def test_a_union_of_references_keeps_their_arguments(self, union: str) -> None:
        repaired = repair(
            {
                union: [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
                "$defs": {"A": parameters(["a"], a=STRING), "B": parameters(["b"], b=INTEGER)},
            }
        )
        assert set(repaired["properties"]) == {"a", "b"}

    def test_arguments_that_differ_between_the_branches_allow_each(self) -> None:
        union = {
            "anyOf": [
                parameters(["kind"], kind={"const": "circle"}, radius=INTEGER),
                parameters(["kind"], kind={"const": "text"}, radius=STRING),
            ]
        }
        repaired = repair(union)
        for instance in ({"kind": "circle", "radius": 3}, {"kind": "text", "radius": "wide"}):
            assert accepts(union, instance)
            assert accepts(repaired, instance)

    def test_unions_within_unions_are_flattened_too(self) -> None:
        repaired = repair(
            {"allOf": [{"anyOf": [parameters(a=STRING), parameters(b=STRING)]}, parameters(["c"], c=STRING)]}
        )
        assert set(repaired["properties"]) == {"a", "b", "c"}
        assert repaired["required"] == ["c"]

    def test_a_reference_at_the_top_is_followed(self) -> None:
        repaired = repair({"$ref": "#/$defs/A", "$defs": {"A": parameters(["a"], a=STRING)}})
        assert repaired["properties"] == {"a": STRING}
        assert repaired["required"] == ["a"]
        assert "$ref" not in repaired

    @pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": ["object", "null"]}, {"properties": {}}])
    def test_an_object_without_arguments_says_so(self, schema: dict[str, Any]) -> None:
        assert repair(schema) == {"type": "object", "properties": {}}

    def test_conditions_are_left_to_the_runtime(self) -> None:
        repaired = repair(
            {**parameters(a=STRING), "if": {"required": ["a"]}, "then": {"required": ["b"]}, "not": {"required": ["c"]}}
        )
        assert set(repaired) <= {"type", "properties", "required"}


class TestInside:
    def test_nullable_types_lose_their_null(self) -> None:
        repaired = repair(
            parameters(
                a={"type": ["string", "null"], "default": None},
                b={"anyOf": [INTEGER, {"type": "null"}], "description": "A number."},
                c={"enum": ["x", None]},
            )
        )
        assert repaired["properties"] == {
            "a": {"type": "string"},
            "b": {"type": "integer", "description": "A number."},
            "c": {"enum": ["x"]},
        }

    def test_a_list_of_types_becomes_a_union(self) -> None:
        repaired = repair(parameters(a={"type": ["string", "array"], "items": INTEGER, "description": "d"}))
        assert repaired["properties"]["a"] == {
            "description": "d",
            "anyOf": [{"type": "string"}, {"type": "array", "items": INTEGER}],
        }

    def test_arrays_get_items_and_objects_properties(self) -> None:
        repaired = repair(parameters(a={"type": "array"}, o={"type": "object"}))
        assert repaired["properties"] == {
            "a": {"type": "array", "items": {}},
            "o": {"type": "object", "properties": {}},
        }

    def test_a_reference_with_siblings_is_written_out(self) -> None:
        repaired = repair(
            {**parameters(p={"$ref": "#/$defs/P", "description": "d"}), "$defs": {"P": parameters(x=INTEGER)}}
        )
        assert repaired["properties"]["p"] == {**parameters(x=INTEGER), "description": "d"}

    def test_an_optional_reference_with_a_description_has_no_siblings_either(self) -> None:
        optional = {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}], "default": None, "description": "d"}
        repaired = repair({**parameters(p=optional), "$defs": {"P": parameters(x=INTEGER)}})
        assert [s for s in schemas_in(repaired) if "$ref" in s and len(s) > 1] == []
        assert accepts(repaired, {"p": {"x": 1}})

    def test_a_bare_reference_stays_and_can_be_followed(self) -> None:
        repaired = repair({**parameters(p={"$ref": "#/$defs/P"}), "$defs": {"P": parameters(x=INTEGER)}})
        assert accepts(repaired, {"p": {"x": 1}})
        assert not accepts(repaired, {"p": {"x": "1"}})

    @pytest.mark.parametrize("only", [{"anyOf": [{"type": "null"}]}, {"oneOf": [{"type": "null"}]}, {"type": ["null"]}])
    def test_what_can_only_be_null_is_still_a_schema(self, only: dict[str, Any]) -> None:
        jsonschema_rs.meta.validate(repair(parameters(x=only)))

    @pytest.mark.parametrize("anything", [True, {}])
    def test_anything_is_still_anything(self, anything: Any) -> None:
        assert accepts(repair(parameters(x=anything)), {"x": [1, "a"]})

    def test_recursion_with_siblings_ends(self) -> None:
        tree = parameters(
            kid={"$ref": "#/$defs/T", "description": "d"}, many={"type": "array", "items": {"$ref": "#/$defs/T"}}
        )
        repaired = repair({**parameters(t={"$ref": "#/$defs/T", "description": "root"}), "$defs": {"T": tree}})
        assert accepts(repaired, {"t": {"kid": {"kid": {}}, "many": [{"many": []}]}})
        assert [s for s in schemas_in(repaired) if "$ref" in s and len(s) > 1] == []

    def test_a_recursive_list_with_siblings_is_not_made_an_object(self) -> None:
        nested = {"anyOf": [STRING, {"type": "array", "items": {"$ref": "#/$defs/N", "description": "d"}}]}
        original = {**parameters(n={"$ref": "#/$defs/N", "description": "root"}), "$defs": {"N": nested}}
        instance = {"n": [["a"], "b"]}
        assert accepts(original, instance)
        assert accepts(repair(original), instance)

    def test_the_schema_that_was_given_is_not_changed(self) -> None:
        given = {
            **parameters(a={"type": ["string", "null"]}),
            "anyOf": [parameters(b={"$ref": "#/$defs/P", "title": "t"})],
            "$defs": {"P": {}},
        }
        before = copy.deepcopy(given)
        repair(given)
        for_gemini(given)
        assert given == before

    def test_arguments_named_like_words_of_json_schema_are_arguments(self) -> None:
        words = dict.fromkeys(
            ("type", "properties", "$ref", "anyOf", "items", "enum", "default", "required", "title"), STRING
        )
        schema = {"type": "object", "properties": words}
        assert repair(schema)["properties"] == words
        assert set(for_gemini(schema)["properties"]) == set(words)


class TestGemini:
    WORDS = frozenset(
        "type format title description nullable enum items minItems maxItems properties required anyOf minimum maximum "
        "minLength maxLength pattern".split()
    )

    def test_there_are_no_references_and_no_words_it_does_not_know(self) -> None:
        written = for_gemini(
            {
                **parameters(
                    p={"$ref": "#/$defs/P"},
                    many={"type": "array", "items": {"$ref": "#/$defs/P"}, "uniqueItems": True},
                    n={"type": "integer", "exclusiveMinimum": 3, "multipleOf": 2, "$comment": "x"},
                    u={"oneOf": [STRING, INTEGER]},
                    c={"const": "fixed"},
                    f={"type": "string", "format": "uri"},
                    d={"type": "string", "format": "date-time"},
                ),
                "$defs": {"P": {**parameters(["x"], x=INTEGER), "additionalProperties": False}},
                "additionalProperties": False,
            }
        )
        found = written["properties"]
        assert found["p"] == found["many"]["items"] == parameters(["x"], x=INTEGER)
        assert found["n"] == INTEGER
        assert found["u"] == {"anyOf": [STRING, INTEGER]}
        assert found["c"]["enum"] == ["fixed"]
        assert "format" not in found["f"]
        assert found["d"]["format"] == "date-time"
        assert "$ref" not in json.dumps(written)
        assert "additionalProperties" not in json.dumps(written)

    def test_choices_that_are_not_text_are_told_in_words(self) -> None:
        found = for_gemini(parameters(n={"type": "integer", "enum": [1, 2], "description": "How many."}))["properties"][
            "n"
        ]
        assert found == {"type": "integer", "description": "How many. One of: 1, 2."}

    def test_every_argument_has_a_type_that_suits_it(self) -> None:
        found = for_gemini(parameters(o={"properties": {"a": STRING}}, l={"items": STRING}, c={"const": 5}))[
            "properties"
        ]
        assert found["o"]["type"] == "object"
        assert found["l"]["type"] == "array"

    def test_every_list_says_what_is_in_it(self) -> None:
        found = for_gemini(parameters(pair={"type": "array", "prefixItems": [STRING, INTEGER]}, some={"type": "array"}))
        assert all("items" in found["properties"][name] for name in ("pair", "some"))

    def test_what_is_required_is_there(self) -> None:
        assert for_gemini({**parameters(a=STRING), "required": ["a", "ghost"]})["required"] == ["a"]

    def test_a_recursive_schema_ends(self) -> None:
        tree = parameters(kid={"$ref": "#/$defs/T"})
        written = for_gemini({**parameters(t={"$ref": "#/$defs/T"}), "$defs": {"T": tree}})
        assert "$ref" not in json.dumps(written)
        assert written["properties"]["t"]["properties"]["kid"]["type"] == "object"

    def test_references_that_double_at_every_step_do_not_fill_the_memory(self) -> None:
        steps = 14
        defs = {
            f"N{n}": parameters(l={"$ref": f"#/$defs/N{n + 1}"}, r={"$ref": f"#/$defs/N{n + 1}"}) for n in range(steps)
        }
        schema = {**parameters(x={"$ref": "#/$defs/N0"}), "$defs": {**defs, f"N{steps}": STRING}}
        with costs_less_than(2):
            assert len(json.dumps(for_gemini(schema))) < 300_000

    def test_a_tool_without_arguments_has_no_parameters(self) -> None:
        chosen = writer("gemini")
        assert chosen.definition("now", "The time.", chosen.parameters({}), True) == {
            "name": "now",
            "description": "The time.",
        }
