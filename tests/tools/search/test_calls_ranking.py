"""How well tools are found among a thousand, measured on queries with known answers."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import pytest

from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.core.entry import ToolEntry
from handrail.core.registry import ToolRegistry
from handrail.tools.search.calls import Index, related, stem, words

from ...support import add, parameters
from .queries import OWN, QUERIES, catalogue

TOOLS = 1000
SHOWN = 5


@pytest.fixture(scope="module")
def entries() -> tuple[ToolEntry, ...]:
    builtin_tools()
    own = [entry for entry in builtin.entries() if entry.toolset != "tool_search"]
    brought = ToolRegistry()
    argument = {"id": {"type": "string", "description": "Its id."}}
    for name, (toolset, description) in catalogue(TOOLS - len(own)).items():
        add(brought, name, toolset=toolset, description=description, schema=parameters(**argument))
    return (*own, *brought.entries())


@pytest.fixture(scope="module")
def index(entries: tuple[ToolEntry, ...]) -> Index:
    return Index(entries)


def test_what_people_ask_for_is_among_the_first(index: Index) -> None:
    _finds(index, QUERIES, reciprocal=0.8, shown=0.9)


def test_the_tools_that_come_with_us_are_found_alone_and_among_a_thousand(
    index: Index, entries: tuple[ToolEntry, ...]
) -> None:
    alone = Index([entry for entry in entries if not entry.toolset.startswith("mcp-")])
    _finds(alone, OWN, reciprocal=0.7, shown=0.85)
    _finds(index, OWN, reciprocal=0.6, shown=0.8)


def test_it_finds_more_than_a_count_of_common_words(index: Index, entries: tuple[ToolEntry, ...]) -> None:
    texts = {
        entry.name: set(f"{entry.name} {entry.description}".lower().replace("_", " ").split()) for entry in entries
    }

    def plain(query: str) -> list[str]:
        wanted = set(query.lower().split())
        return sorted(texts, key=lambda name: (-len(wanted & texts[name]), name))[:SHOWN]

    by_counting = sum(1 for query, right in QUERIES.items() if set(right) & set(plain(query)))
    by_index = sum(1 for query, right in QUERIES.items() if 0 < (_place(index, query, right) or 0) <= SHOWN)
    assert by_index >= by_counting * 1.3, (by_index, by_counting)


def test_every_answer_is_a_tool_and_a_tools_name_finds_it_first(index: Index, entries: tuple[ToolEntry, ...]) -> None:
    names = {entry.name for entry in entries}
    for right in (*QUERIES.values(), *OWN.values()):
        for name in right:
            assert name in names
            assert index.search(name, limit=1)[0].entry.name == name


def test_a_query_among_a_thousand_tools_takes_no_time(index: Index) -> None:
    start = time.process_time()
    for query in QUERIES:
        index.search(query, limit=SHOWN)
    assert (time.process_time() - start) / len(QUERIES) < 0.02


@pytest.mark.parametrize("query", ["", "   ", "the of to", "???", "ж" * 50, "x" * 100_000, "\ud800", "zzzz qqqq"])
def test_what_says_nothing_finds_nothing(index: Index, query: str) -> None:
    assert index.search(query, limit=SHOWN) == []


def test_an_index_of_nothing_finds_nothing() -> None:
    assert Index(()).search("anything", limit=SHOWN) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listOpenIssues", ["list", "open", "issu"]),
        ("mcp__github__get_HTTPStatus2", ["mcp", "github", "get", "http", "status", "2"]),
        ("What is the weather?", ["weather"]),
        ("größe ändern", ["größe", "ändern"]),
    ],
)
def test_names_and_texts_become_the_same_words(text: str, expected: list[str]) -> None:
    assert [stem(word) for word in expected] == words(text)


def test_forms_of_a_word_are_one_word() -> None:
    for forms in ("issue issues", "delete deleting deleted deletes", "query queries", "run running runs", "box boxes"):
        assert len({stem(word) for word in forms.split()}) == 1, forms


def test_words_for_the_same_thing_know_each_other() -> None:
    assert stem("delete") in related(stem("remove"))
    assert stem("remove") in related(stem("delete"))
    assert related("xyzzy") == frozenset()


def _finds(index: Index, queries: Mapping[str, Collection[str]], *, reciprocal: float, shown: float) -> None:
    """The mean of one over the place of the first right answer, and the share of queries with one among the first few."""
    places = {query: _place(index, query, right) for query, right in queries.items()}
    mean = sum(1 / place for place in places.values() if place) / len(places)
    missed = sorted(query for query, place in places.items() if not place or place > SHOWN)
    assert mean >= reciprocal, (mean, missed)
    assert 1 - len(missed) / len(places) >= shown, missed


def _place(index: Index, query: str, right: Collection[str]) -> int | None:
    found = [one.entry.name for one in index.search(query, limit=20)]
    return next((at for at, name in enumerate(found, 1) if name in right), None)
