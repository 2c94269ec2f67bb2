"""No tool's text names a tool that the model was not given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.runtime.definitions import names_in, without


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Open a page. For plain text use web_extract. Slow.", "Open a page. Slow."),
        ("Open a page. Prefer `terminal` for curl! Slow.", "Open a page. Slow."),
        ("Use web_search() first; then open. Done.", "then open. Done."),
        ("One.\n\nUse web_search.\n\nTwo.", "One.\n\nTwo."),
        ("Nothing to hide.", "Nothing to hide."),
        ("A terminal is a place where web searches happen.", "A terminal is a place where web searches happen."),
        ("Mentions other_tool, which is there.", "Mentions other_tool, which is there."),
    ],
)
def test_a_sentence_that_names_an_absent_tool_is_left_out(text: str, expected: str) -> None:
    assert without(text, {"web_search", "web_extract", "terminal"}) == expected


def test_a_text_that_is_only_that_sentence_keeps_its_meaning() -> None:
    left = without("Like web_search but deeper", {"web_search"})
    assert "web_search" not in left
    assert "deeper" in left


def test_a_schema_is_cleaned_in_all_its_descriptions_and_nowhere_else() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "description": "Whole. See web_search.",
        "properties": {
            "web_search": {"type": "string", "description": "Part. See web_search."},
            "description": {"type": "string", "enum": ["web_search"]},
            "many": {"type": "array", "items": {"anyOf": [{"description": "Item. See web_search."}]}},
        },
        "required": ["web_search"],
    }
    assert without(schema, {"web_search"}) == {
        "type": "object",
        "description": "Whole.",
        "properties": {
            "web_search": {"type": "string", "description": "Part."},
            "description": {"type": "string", "enum": ["web_search"]},
            "many": {"type": "array", "items": {"anyOf": [{"description": "Item."}]}},
        },
        "required": ["web_search"],
    }
    assert "web_search" in names_in(schema)


@pytest.mark.parametrize("name", ["web_search", "web-search", "webSearch", "mcp__web__search"])
@pytest.mark.parametrize(
    "sentence", ["Try {} now.", "Try `{}` now.", 'Try "{}" now.', "Try {}(x) now.", "Try {}, now.", "Try {}."]
)
def test_a_name_that_is_no_plain_word_is_found_however_it_is_written(name: str, sentence: str) -> None:
    text = without(f"Before. {sentence.format(name)} After.", {name})
    assert name not in text
    assert text == "Before. After."


@pytest.mark.parametrize("word", ["title", "examples"])
def test_text_beside_the_descriptions_counts_too(word: str) -> None:
    said = {"title": "Like web_search", "examples": ["see web_search"]}[word]
    schema = {"type": "object", "properties": {"q": {"type": "string", word: said}}}
    assert "web_search" not in str(without(schema, {"web_search"}))


names = st.from_regex(r"[a-z]{1,8}(_[a-z0-9]{1,8}){1,3}", fullmatch=True)


@given(st.lists(st.one_of(st.text(max_size=30), names), max_size=12), st.sets(names, max_size=4))
def test_whatever_the_text_no_absent_name_is_left_in_it(pieces: list[str], absent: set[str]) -> None:
    text = " ".join([*pieces, *sorted(absent)])
    assert names_in(without(text, absent)).isdisjoint(absent)
