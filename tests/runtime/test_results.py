"""A result over its budget: whole in the store, head and tail for the model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.protocols import StoredResult
from handrail.runtime.results import fit, fit_turn
from handrail.store.results import FileResultStore
from tests.support import costs_less_than, strict_loads


class Memory:
    """A store that is a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def put(self, tool: str, text: str) -> StoredResult:
        result_id = f"r_{len(self.kept):016x}"
        self.kept[result_id] = text
        return StoredResult(result_id, tool, len(text), text.count("\n") + 1)

    def get(self, result_id: str) -> str:
        return self.kept[result_id]


class Full(Memory):
    def put(self, tool: str, text: str) -> StoredResult:
        raise OSError(28, "No space left on device")


def fitted(text: str, max_chars: float, store: Any = None) -> Any:
    outcome = fit(text, tool="tool", max_chars=max_chars, store=Memory() if store is None else store)
    assert isinstance(outcome, str)
    assert len(outcome) <= max_chars
    return strict_loads(outcome)


def test_what_is_short_enough_is_not_touched() -> None:
    text = '{"a":  1}'
    assert fit(text, tool="tool", max_chars=9, store=Memory()) is text


def test_a_long_text_gives_head_tail_size_and_the_id_of_the_whole(results: FileResultStore) -> None:
    text = "\n".join(f"line {number}" for number in range(10_000))
    shown = fitted(text, 3_000, results)
    assert text.startswith(shown["head"])
    assert text.endswith(shown["tail"])
    assert shown["head"]
    assert shown["tail"]
    assert (shown["chars"], shown["lines"]) == (len(text), 10_000)
    assert results.get(shown["id"]) == text
    assert shown["id"] in shown["note"]
    assert "read_result" in shown["note"]


def test_head_and_tail_end_at_lines_where_one_is_near() -> None:
    shown = fitted("\n".join("x" * 50 for _ in range(1_000)), 3_000)
    assert set(shown["head"].split("\n")) == set(shown["tail"].split("\n")) == {"x" * 50}


def test_what_stands_beside_a_long_field_stays_readable() -> None:
    store = Memory()
    output = "row\n" * 5_000
    shown = fitted(json.dumps({"output": output, "exit_code": 3, "cwd": "/work"}), 2_000, store)
    assert shown["exit_code"] == 3
    assert shown["cwd"] == "/work"
    assert shown["output"].startswith("row\n")
    assert store.get(shown["stored"]["output"]["id"]) == output
    assert shown["stored"]["output"]["chars"] == len(output)
    assert shown["stored"]["output"]["id"] in shown["output"]


def test_two_long_fields_are_both_kept() -> None:
    store = Memory()
    shown = fitted(json.dumps({"stdout": "o" * 9_000, "stderr": "e" * 9_000, "code": 0}), 3_000, store)
    assert store.get(shown["stored"]["stdout"]["id"]) == "o" * 9_000
    assert store.get(shown["stored"]["stderr"]["id"]) == "e" * 9_000
    assert shown["code"] == 0


def test_data_in_one_line_is_spread_so_that_it_can_be_paged() -> None:
    store = Memory()
    data = [{"number": number, "text": "ü"} for number in range(2_000)]
    shown = fitted(json.dumps(data), 2_000, store)
    kept = store.get(shown["id"])
    assert json.loads(kept) == data
    assert kept.count("\n") > 2_000


@pytest.mark.parametrize(
    "text",
    [
        '{"rate": NaN, "log": "' + "x" * 5_000 + '"}',
        "[NaN, " + "1, " * 3_000 + "Infinity]",
        '{"big": 1e999, "log": "' + "x" * 5_000 + '"}',
        '{"precise": 0.12345678901234567890123456789, "log": [' + "1, " * 3_000 + "1]}",
        '{"same": 1, "same": 2, "log": [' + "1, " * 3_000 + "1]}",
        "[" * 400 + '"' + "x" * 5_000 + '"' + "]" * 400,
        "[" * 900 + '"' + "x" * 5_000 + '"' + "]" * 900,
        "{" + "x" * 5_000,
        '{"digits": ' + "9" * 5_000 + "}",
        "{'python': '" + "x" * 5_000 + "'}",
    ],
    ids=["nan", "nan in a list", "infinity", "precise", "double key", "deep", "deeper", "not json", "digits", "python"],
)
def test_no_text_is_lost_whatever_it_looks_like(text: str) -> None:
    store = Memory()
    shown = fitted(text, 2_000, store)
    assert shown
    kept = list(store.kept.values())
    assert kept
    if text.startswith(("[", "{")) and not any(odd in text for odd in ("precise", "same")):
        whole = "".join(kept).replace("\n", "").replace(" ", "")
        assert "x" * 5_000 in whole or "9" * 5_000 in whole or whole.count("1,") >= 2_999
    if "precise" in text:
        assert "0.12345678901234567890123456789" in kept[0]
    if "same" in text:
        assert kept[0].count('"same"') == 2


@pytest.mark.parametrize("store", [None, Full()], ids=["no store", "full disk"])
def test_without_a_place_to_keep_it_the_model_is_told_what_is_lost(store: Any) -> None:
    outcome = fit("x\n" * 5_000, tool="tool", max_chars=2_000, store=store)
    assert isinstance(outcome, str)
    shown = strict_loads(outcome)
    assert "id" not in shown
    assert "lost" in shown["note"]
    assert shown["head"].startswith("x\n")


def test_a_multimodal_result_keeps_its_pictures_and_shortens_its_text() -> None:
    store = Memory()
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000}}
    outcome = {"_multimodal": True, "content": [{"type": "text", "text": "t" * 9_000}, picture]}
    shown = fit(outcome, tool="look", max_chars=4_000, store=store)
    assert isinstance(shown, dict)
    assert shown["content"][1] == picture
    assert len(shown["content"][0]["text"]) <= 4_000
    assert "t" * 9_000 in store.kept.values()
    assert len(outcome["content"][0]["text"]) == 9_000, "the handler's own result is not changed"  # type: ignore[index]


@pytest.mark.parametrize("part", [{"type": "text", "text": None}, {"type": "text"}, "text", None, 5])
def test_odd_parts_of_a_multimodal_result_pass_through(part: Any) -> None:
    outcome = {"_multimodal": True, "content": [part, {"type": "text", "text": "t" * 5_000}]}
    shown = fit(outcome, tool="look", max_chars=2_000, store=Memory())
    assert isinstance(shown, dict)
    assert shown["content"][0] == part


class TestTurn:
    def test_all_results_of_a_turn_fit_together_and_the_largest_pay(self) -> None:
        store = Memory()
        outcomes: list[tuple[str, Any]] = [("small", "s" * 500), ("large", "l" * 40_000), ("larger", "x" * 90_000)]
        fitted_turn = fit_turn(outcomes, max_chars=20_000, store=store)
        assert sum(len(outcome) for outcome in fitted_turn) <= 20_000
        assert fitted_turn[0] == "s" * 500
        assert "x" * 90_000 in store.kept.values()

    def test_a_turn_within_its_budget_is_not_touched(self) -> None:
        outcomes: list[tuple[str, Any]] = [("a", "x" * 50), ("b", {"_multimodal": True, "content": []})]
        assert fit_turn(outcomes, max_chars=50, store=None) == [outcome for _, outcome in outcomes]

    def test_a_result_that_is_no_strict_json_does_not_lose_the_turn(self) -> None:
        outcomes: list[tuple[str, Any]] = [("a", '{"x": NaN, "log": "' + "x" * 9_000 + '"}'), ("b", "y" * 9_000)]
        shown = fit_turn(outcomes, max_chars=5_000, store=Memory())
        assert len(shown) == 2
        assert all(shown)

    def test_thousands_of_results_are_fitted_in_linear_time(self) -> None:
        outcomes: list[tuple[str, Any]] = [("a", "x" * 2_000)] * 5_000
        with costs_less_than(5):
            shown = fit_turn(outcomes, max_chars=6_000_000, store=Memory())
        assert sum(map(len, shown)) <= 6_000_000


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=60)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(st.text(max_size=12), inner, max_size=6)),
    max_leaves=20,
)
long_texts = st.builds(lambda piece, times: piece * times, st.text(min_size=1, max_size=80), st.integers(1, 400))
long_objects = st.dictionaries(st.text(max_size=200), st.one_of(values, long_texts), max_size=8)


@given(
    st.one_of(long_texts, long_objects.map(json.dumps), st.lists(values, max_size=40).map(json.dumps)),
    st.integers(1_500, 6_000),
)
def test_any_result_fits_any_budget_and_is_kept_whole(text: str, max_chars: int) -> None:
    store = Memory()
    outcome = fit(text, tool="tool", max_chars=max_chars, store=store)
    assert isinstance(outcome, str)
    assert len(outcome) <= max_chars
    if len(text) <= max_chars:
        assert outcome == text
        return
    shown = strict_loads(outcome)
    if not store.kept:  # written more shortly, it fits
        assert shown == json.loads(text)
    elif "stored" in shown and "head" not in shown:
        original = json.loads(text)
        for name, place in shown["stored"].items():
            assert store.get(place["id"]) == original[name]
        for name, value in original.items():
            assert name in shown["stored"] or shown[name] == value
    else:
        kept = store.get(shown["id"])
        assert kept == text or json.loads(kept) == json.loads(text)
        assert kept.startswith(shown["head"])
        assert kept.endswith(shown["tail"])
