"""From what the model sent to arguments that fit, or an error that says what does not."""

from __future__ import annotations

import contextlib
import copy
import json
from types import SimpleNamespace
from typing import Any

import pytest

from handrail.core.entry import Contract
from handrail.errors import InvalidArguments
from handrail.runtime.arguments import prepare
from tests.support import costs_less_than, parameters

CONTRACT = Contract(
    "copy",
    parameters(
        ["source", "count"],
        source={"type": "string"},
        count={"type": "integer", "minimum": 1, "maximum": 9},
        mode={"type": "string", "enum": ["fast", "safe", "quiet", "loud", "dry"]},
        options={"type": "object", "properties": {"deep": {"type": "boolean"}}, "additionalProperties": False},
        tags={"type": "array", "items": {"type": "string"}, "maxItems": 2},
    ),
)


def refusal(raw: Any, contract: Contract = CONTRACT) -> str:
    with pytest.raises(InvalidArguments) as refused:
        prepare(contract, raw)
    return str(refused.value)


def test_a_json_text_and_a_dict_are_the_same() -> None:
    expected = {"source": "a", "count": 3}
    assert prepare(CONTRACT, json.dumps(expected)) == expected
    assert prepare(CONTRACT, expected) == expected
    assert prepare(CONTRACT, '{"source": "a", "count": "3"}') == expected


def test_text_of_a_subclass_is_text() -> None:
    class Text(str):
        __slots__ = ()

    assert prepare(CONTRACT, Text('{"source": "a", "count": 3}')) == {"source": "a", "count": 3}


def test_nothing_means_no_arguments() -> None:
    empty = Contract("now", parameters())
    assert prepare(empty, None) == prepare(empty, "") == prepare(empty, "{}") == prepare(empty, {}) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": "many"}, ["count", "integer", "string", "many"]),
        ({"count": 2.5}, ["count", "integer", "2.5"]),
        ({"count": True}, ["count", "integer", "boolean"]),
        ({"count": None}, ["count", "integer", "null"]),
        ({"count": 0}, ["count", "0", "1"]),
        ({"count": 10}, ["count", "10", "9"]),
        ({"mode": "slow"}, ["mode", "slow", "one of fast, safe, quiet, loud, dry"]),
        ({"options": {"deep": "perhaps"}}, ["options.deep", "boolean", "perhaps"]),
        ({"options": {"depth": 1}}, ["options.depth", "unknown"]),
        ({"tags": ["a", {"b": 1}]}, ["tags[1]", "string", "object"]),
        ({"tags": ["a", "b", "c"]}, ["tags", "2"]),
        ({"sourc": "x"}, ["unknown", "sourc", "did you mean 'source'"]),
        ({"zzz": "x"}, ["unknown", "zzz", "known: source, count"]),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected_and_what_came(
    change: dict[str, Any], words: list[str]
) -> None:
    text = refusal({"source": "a", "count": 3} | change)
    for word in words:
        assert word in text


def test_what_is_missing_is_named_with_what_is_expected() -> None:
    text = refusal({})
    assert "missing" in text
    assert "source" in text
    assert "count" in text
    assert "string" in text
    assert "integer" in text


def test_several_problems_are_told_at_once_but_not_a_thousand() -> None:
    text = refusal({f"unknown_{number}": 1 for number in range(1_000)})
    assert text.count("unknown argument") >= 2
    assert len(text) < 2_000


def test_a_long_value_is_told_shortly() -> None:
    assert len(refusal({"source": "a", "count": "x" * 1_000_000})) < 1_000


@pytest.mark.parametrize("raw", [[], 5, 1.5, True, b"{}", {1, 2}, object(), SimpleNamespace(source="a")], ids=range(8))
def test_what_is_no_object_is_refused(raw: Any) -> None:
    assert "object" in refusal(raw)


def test_the_callers_dict_is_not_changed() -> None:
    given = {"source": 5, "count": "3", "options": {"deep": "true"}, "tags": "one"}
    before = copy.deepcopy(given)
    assert prepare(CONTRACT, given) == {"source": "5", "count": 3, "options": {"deep": True}, "tags": ["one"]}
    assert given == before


ANY = Contract("any", parameters(x={}))
MAYBE_NUMBER = Contract("maybe", parameters(x={"type": ["number", "null"]}))
NUMBERS = Contract("numbers", parameters(x={"type": "array", "items": {"type": ["number", "null"]}}))
TEXTS = Contract("texts", parameters(x={"type": "array", "items": {"type": "string"}}))
TEXT = Contract("text", parameters(x={"type": "string"}))


class TestWhatNoJsonCanCarry:
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    @pytest.mark.parametrize("contract", [ANY, MAYBE_NUMBER, TEXT], ids=["any", "number or null", "text"])
    def test_nan_and_infinity_never_reach_a_tool(self, contract: Contract, value: float) -> None:
        text = refusal({"x": value}, contract)
        assert "got null" not in text

    @pytest.mark.parametrize(
        "text", ['{"x": NaN}', '{"x": 1e999}', '{"x": "[NaN]"}', '{"x": "[1e999]"}', '{"x": [NaN]}']
    )
    def test_not_in_a_text_either(self, text: str) -> None:
        refusal(text, NUMBERS)

    @pytest.mark.parametrize("contract", [ANY, TEXT], ids=["any", "text"])
    @pytest.mark.parametrize("raw", [{"x": "\ud800"}, {"x": "a\udfffb"}, {"\ud800": 1}])
    def test_lone_surrogates_never_reach_a_tool(self, contract: Contract, raw: dict[str, Any]) -> None:
        refusal(raw, contract)

    def test_not_through_a_text_within_the_text(self) -> None:
        refusal(json.dumps({"x": '["\\ud800"]'}), TEXTS)

    @pytest.mark.parametrize("value", [b"x", object(), {1: 2}, {None: 1}, {("a",): 1}, {1, 2}], ids=range(6))
    def test_values_that_are_not_json_are_refused(self, value: Any) -> None:
        refusal({"x": value}, TEXT)
        refusal({"y": value}, TEXT)

    def test_names_that_are_not_text_are_refused(self) -> None:
        for name in (1, None, ("a",), b"x", True):
            refusal({name: "x"}, TEXT)

    def test_a_dict_that_holds_itself_is_refused(self) -> None:
        looped: dict[str, Any] = {}
        looped["x"] = looped
        refusal(looped, TEXT)

    @pytest.mark.parametrize("contract", [ANY, TEXT, NUMBERS], ids=["any", "text", "numbers"])
    @pytest.mark.parametrize("depth", [250, 260, 500, 900, 980, 985, 1_000, 20_000])
    def test_nesting_of_any_depth_is_fitted_or_refused(self, contract: Contract, depth: int) -> None:
        text = '{"x":' + "[" * depth + '"é"' + "]" * depth + "}"
        with contextlib.suppress(InvalidArguments):
            prepare(contract, text)
        nested: list[Any] = []
        for _ in range(depth):
            nested = [nested]
        with contextlib.suppress(InvalidArguments):
            prepare(contract, {"x": nested})
        while nested:  # taken apart by hand: the interpreter would recurse
            nested = nested.pop()


def test_huge_integers_pass_whole() -> None:
    contract = Contract("sum", parameters(x={"type": "integer"}))
    for value in (2**63, -(2**64), 10**40, 10**400):
        assert prepare(contract, {"x": value}) == {"x": value}
        assert prepare(contract, {"x": str(value)}) == {"x": value}
        assert prepare(contract, json.dumps({"x": value})) == {"x": value}


def test_minus_zero_stays_minus_zero() -> None:
    assert str(prepare(Contract("n", parameters(x={"type": "number"})), '{"x": -0.0}')["x"]) == "-0.0"


def test_ten_megabytes_in_a_dict_are_fitted_soon() -> None:
    with costs_less_than(2):
        assert prepare(TEXT, {"x": "a" * 10_000_000})


def test_a_reference_that_the_coercion_cannot_follow_is_no_failure_of_the_tool() -> None:
    contract = Contract(
        "refs", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"items": {"$ref": "#/properties/a"}}}}
    )
    assert "b[0]" in refusal({"b": ["x"]}, contract)
