"""What holds for any input, tried with many."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from handrail.core.entry import Contract
from handrail.core.registry import ToolRegistry
from handrail.errors import InvalidArguments
from handrail.model_tools import get_tool_definitions, handle_function_call
from handrail.runtime.arguments import Coercion, decode_object, prepare
from handrail.runtime.provider_formats import for_gemini, repair
from handrail.settings.sections import ToolsetConfig
from handrail.toolsets import Toolsets
from tests.support import add, strict_loads

texts = st.text(st.characters(codec="utf-8"), max_size=20)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.sampled_from(
        ["1", "-3", "2.5", "true", "False", "null", "[1]", '["a"]', '{"a": 1}', "[", "{", "1e3", "nan", ""]
    ),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)

names = st.sampled_from(["a", "b", "c"])
simple = st.sampled_from(
    [
        {},
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": "integer", "minimum": 0, "maximum": 9},
        {"type": "string", "enum": ["x", "1"]},
        {"enum": ["x", 1, None]},
        {"type": ["string", "null"]},
        {"type": ["integer", "boolean"]},
        {"const": "x"},
        {"type": "array"},
        {"type": "object"},
        {"$ref": "#/$defs/D"},
        {"$ref": "#/$defs/D", "description": "with a sibling"},
    ]
)


def wider(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        inner.map(lambda item: {"type": "array", "items": item}),
        st.dictionaries(names, inner, max_size=3).map(lambda found: {"type": "object", "properties": found}),
        st.lists(inner, min_size=1, max_size=3).map(lambda found: {"anyOf": found}),
        st.lists(inner, min_size=1, max_size=2).map(lambda found: {"oneOf": found, "description": "one of"}),
        inner.map(lambda item: {"anyOf": [item, {"type": "null"}], "default": None}),
    )


nested = st.recursive(simple, wider, max_leaves=5)


@st.composite
def whole_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """The parameters of some tool: an object, with a definition, perhaps a union at its top."""
    schema: dict[str, Any] = {"type": "object", "properties": draw(st.dictionaries(names, nested, max_size=3))}
    schema["$defs"] = {
        "D": draw(st.sampled_from([{"type": "integer"}, {"type": "object", "properties": {"a": {"type": "string"}}}]))
    }
    if schema["properties"] and draw(st.booleans()):
        schema["required"] = [sorted(schema["properties"])[0]]
    if draw(st.integers(0, 3)) == 0:
        branches = st.dictionaries(names, nested, max_size=2).map(lambda found: {"type": "object", "properties": found})
        schema[draw(st.sampled_from(["anyOf", "oneOf", "allOf"]))] = draw(st.lists(branches, min_size=1, max_size=2))
    return schema


class TestCoercion:
    @given(whole_schemas(), st.dictionaries(names, values, max_size=3))
    def test_arguments_that_fit_are_never_changed(self, schema: dict[str, Any], arguments: dict[str, Any]) -> None:
        contract = Contract("tool", schema)
        assume(contract.is_valid(arguments))
        before = copy.deepcopy(arguments)
        assert repr(prepare(contract, arguments)) == repr(before)
        assert repr(prepare(contract, json.dumps(arguments))) == repr(before)

    @given(whole_schemas(), st.dictionaries(names, values, max_size=3))
    def test_a_value_that_fits_its_own_schema_is_never_changed(
        self, schema: dict[str, Any], arguments: dict[str, Any]
    ) -> None:
        fixed = Coercion(schema).arguments(arguments)
        for name, value in arguments.items():
            wanted = schema["properties"].get(name)
            if wanted is None or jsonschema_rs.validator_for({**wanted, "$defs": schema["$defs"]}).is_valid(value):
                assert repr(fixed[name]) == repr(value)

    @given(whole_schemas(), st.dictionaries(names, values, max_size=3))
    def test_the_callers_dict_is_never_changed_and_what_comes_out_fits(
        self, schema: dict[str, Any], arguments: dict[str, Any]
    ) -> None:
        contract = Contract("tool", schema)
        before = repr(arguments)
        try:
            fixed = prepare(contract, arguments)
        except InvalidArguments:
            fixed = None
        assert fixed is None or contract.is_valid(fixed)
        assert repr(arguments) == before

    @given(st.integers())
    def test_no_digit_is_lost(self, number: int) -> None:
        schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
        for text in (str(number), f"{number}.0", f" {number} "):
            assert Coercion(schema).arguments({"x": text}) == {"x": number}


class TestDecoding:
    @given(objects)
    def test_what_json_wrote_is_read_as_it_was(self, value: dict[str, Any]) -> None:
        for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=2)):
            assert repr(decode_object(text, 1_000_000)) == repr(value)

    @given(objects)
    def test_in_a_fence_and_in_a_string_too(self, value: dict[str, Any]) -> None:
        assume(value)
        assert repr(decode_object(f"```json\n{json.dumps(value)}\n```", 1_000_000)) == repr(value)
        assert repr(decode_object(json.dumps(json.dumps(value)), 1_000_000)) == repr(value)

    @given(objects, st.data())
    def test_what_is_cut_off_is_never_guessed(self, value: dict[str, Any], data: st.DataObject) -> None:
        text = json.dumps(value)
        cut = data.draw(st.integers(1, len(text) - 1))
        with pytest.raises(InvalidArguments):
            decode_object(text[:cut], 1_000_000)

    @given(st.one_of(st.text(), st.text(st.sampled_from("{}[]\"':,\\ \n01.eE+-tfn"), max_size=40)))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        try:
            value = decode_object(text, 1_000_000)
        except InvalidArguments:
            return
        assert isinstance(value, dict)
        strict_loads(json.dumps(value))


class TestRepairing:
    @settings(max_examples=200)
    @given(whole_schemas())
    def test_what_comes_out_is_an_object_schema_that_every_provider_takes(self, schema: dict[str, Any]) -> None:
        repaired = repair(schema)
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **repaired})
        assert repaired["type"] == "object"
        assert isinstance(repaired["properties"], dict)
        assert not {"anyOf", "oneOf", "allOf"} & set(repaired)
        for part in parts_of(repaired["properties"]):
            assert "$ref" not in part or len(part) == 1
            assert not isinstance(part.get("type"), list)

    @settings(max_examples=200)
    @given(whole_schemas(), st.dictionaries(names, values, max_size=3))
    def test_what_the_original_takes_the_repaired_one_takes_too(
        self, schema: dict[str, Any], arguments: dict[str, Any]
    ) -> None:
        # A branch that says nothing of an argument would take anything for it; the model is told what the others say.
        for word in {"anyOf", "oneOf"} & schema.keys():
            schema[word] = [{**branch, "additionalProperties": False} for branch in schema[word]]
        assume(Contract("tool", schema).is_valid(arguments))  # which, unlike the bare schema, knows no other names
        assume("null" not in json.dumps(arguments))  # optional is said by leaving it out
        assert jsonschema_rs.validator_for(repair(schema)).is_valid(arguments)

    @given(whole_schemas())
    def test_gemini_gets_no_reference_and_no_word_it_does_not_know(self, schema: dict[str, Any]) -> None:
        words = set(
            "type format title description nullable enum items minItems maxItems properties required anyOf minimum maximum "
            "minLength maxLength pattern".split()
        )
        for part in parts_of({"top": for_gemini(schema)}):
            assert set(part) <= words
            assert part.get("type") or part.get("anyOf")
            assert part.get("type") != "array" or "items" in part


def parts_of(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Every schema below some properties."""
    found: list[dict[str, Any]] = []
    waiting = list(properties.values())
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        found.append(part)
        waiting += list(part.get("properties", {}).values())
        waiting += [part[word] for word in ("items", "additionalProperties") if word in part]
        waiting += [branch for word in ("anyOf", "oneOf", "allOf") for branch in part.get(word, ())]
    return found


class TestToolsets:
    @given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=5), max_size=8))
    def test_any_graph_of_sets_is_resolved_to_what_can_be_reached(self, graph: dict[str, list[str]]) -> None:
        registry = ToolRegistry()
        for name in "abcdefgh":
            add(registry, f"tool_{name}", toolset=f"leaf-{name}")
        custom = {name: ToolsetConfig(includes=(*graph.get(name, ()), f"leaf-{name}")) for name in "abcdefgh"}
        toolsets = Toolsets(registry, custom)
        for start in "abcdefgh":
            reached, waiting = set(), [start]
            while waiting:
                name = waiting.pop()
                if name not in reached:
                    reached.add(name)
                    waiting += graph.get(name, ())
            assert toolsets.resolve(start) == sorted(f"tool_{name}" for name in reached)


def _built_in() -> list[str]:
    return [definition["function"]["name"] for definition in get_tool_definitions()]


class TestEveryTool:
    # The folder is new for each test, not for each example: the tools may leave files in it.
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(st.lists(values, min_size=1, max_size=12), objects, st.integers(0, 2**32))
    def test_any_arguments_give_well_formed_json(
        self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, drawn: list[Any], unknown: dict[str, Any], seed: int
    ) -> None:
        """Every tool gets some of the values, each for another argument: to draw values for each tool takes most of the time."""
        monkeypatch.chdir(tmp_path)
        chance = random.Random(seed)
        for definition in get_tool_definitions():
            function = definition["function"]
            known = sorted(function["parameters"]["properties"])
            named = {name: chance.choice(drawn) for name in chance.sample(known, chance.randint(0, len(known)))}
            arguments = copy.deepcopy(chance.choice([named, unknown]))
            path = arguments.get("path")
            if isinstance(path, str) and path.startswith(("/", "~", "..")):
                arguments["path"] = path.strip("/~.")  # nothing outside the folder is to be written
            for sent in (arguments, json.dumps(arguments)):
                strict_loads(handle_function_call(function["name"], sent))

    @given(st.text(max_size=60))
    def test_any_text_as_arguments_gives_well_formed_json(self, text: str) -> None:
        for name in ("read_result", "clarify", "todo"):
            strict_loads(handle_function_call(name, text))

    @given(st.one_of(st.text(max_size=80), st.none(), st.integers(), st.binary(max_size=5)))
    def test_any_name_gives_well_formed_json(self, name: Any) -> None:
        assume(name not in _built_in())
        assert strict_loads(handle_function_call(name, {}))["error_type"] == "unknown_tool"
