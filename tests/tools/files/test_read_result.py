"""`read_result` pages and greps what was too long to show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.runtime.dispatch import Runtime
from handrail.store.results import FileResultStore
from handrail.tools.files import read_result
from tests.support import add, error_in, takes_less_than


@pytest.fixture
def runtime(default_registry: ToolRegistry, results: FileResultStore) -> Runtime:
    return Runtime(default_registry, results=results)


def read(runtime: Runtime, result_id: str, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(runtime.handle("read_result", {"id": result_id, **arguments}))
    assert isinstance(answer, dict)
    return answer


class TestPaging:
    def test_a_page_says_where_it_is_and_where_the_next_one_starts(
        self, runtime: Runtime, results: FileResultStore
    ) -> None:
        stored = results.put("tool", "\n".join(f"line {number}" for number in range(1, 101)))
        page = read(runtime, stored.id, offset=11, limit=10)
        assert page["content"].split("\n") == [f"line {number}" for number in range(11, 21)]
        assert (page["start_line"], page["end_line"], page["total_lines"], page["next_offset"]) == (11, 20, 100, 21)

    def test_the_last_page_has_no_next(self, runtime: Runtime, results: FileResultStore) -> None:
        stored = results.put("tool", "a\nb\nc")
        page = read(runtime, stored.id, offset=2, limit=50)
        assert page["content"] == "b\nc"
        assert "next_offset" not in page

    @pytest.mark.parametrize(
        "text",
        ["one line", "", "\n", "a\r\nb\r\nc", "a\rb\rc", "ünï\ncödé\n", "x" * 100_000, ("y" * 5_000 + "\n") * 20],
        ids=["one", "empty", "newline", "windows", "returns", "unicode", "one huge line", "long lines"],
    )
    def test_following_the_pages_gives_the_whole(self, runtime: Runtime, results: FileResultStore, text: str) -> None:
        stored = results.put("tool", text)
        pieces: list[str] = []
        offset = 1
        while offset:
            page = read(runtime, stored.id, offset=offset, limit=7)
            pieces += page["content"].split("\n")
            offset = page.get("next_offset", 0)
        # A line over the limit comes in pieces of exactly that length.
        whole = ""
        for piece in pieces:
            whole += piece if len(piece) == 2_000 else piece + "\n"
        assert whole.rstrip("\n").replace("\n", "") == text.rstrip("\n").replace("\n", "")

    def test_a_page_stays_bounded_whatever_is_asked(self, runtime: Runtime, results: FileResultStore) -> None:
        stored = results.put("tool", ("z" * 1_900 + "\n") * 2_000)
        answer = runtime.handle("read_result", {"id": stored.id, "limit": 5_000})
        assert len(answer) < 60_000
        assert json.loads(answer)["next_offset"] > 1

    def test_past_the_end_is_an_error_that_tells_the_length(self, runtime: Runtime, results: FileResultStore) -> None:
        stored = results.put("tool", "a\nb")
        error = error_in(runtime.handle("read_result", {"id": stored.id, "offset": 3}))
        assert error["error_type"] == "invalid_arguments"
        assert "2 lines" in error["error"]


class TestGrepping:
    def test_matching_lines_come_with_their_numbers_and_neighbours(
        self, runtime: Runtime, results: FileResultStore
    ) -> None:
        stored = results.put("tool", "\n".join(["start", "error: one", "between", "error: two", "end"]))
        found = read(runtime, stored.id, pattern=r"error: \w+", context=1)
        assert [match["line"] for match in found["matches"]] == [2, 4]
        assert found["matches"][0]["text"] == "start\nerror: one\nbetween"
        assert found["total_matches"] == 2

    def test_matches_are_paged_too(self, runtime: Runtime, results: FileResultStore) -> None:
        stored = results.put("tool", "hit\n" * 25)
        lines: list[int] = []
        offset = 1
        while offset:
            found = read(runtime, stored.id, pattern="hit", offset=offset, limit=10)
            lines += [match["line"] for match in found["matches"]]
            offset = found.get("next_offset", 0)
        assert lines == list(range(1, 26))

    def test_no_match_is_an_answer(self, runtime: Runtime, results: FileResultStore) -> None:
        stored = results.put("tool", "a\nb")
        found = read(runtime, stored.id, pattern="zebra")
        assert found["matches"] == []
        assert found["total_matches"] == 0

    @pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<x", "\\"])
    def test_a_pattern_that_is_none_is_said(self, runtime: Runtime, results: FileResultStore, pattern: str) -> None:
        stored = results.put("tool", "a")
        error = error_in(runtime.handle("read_result", {"id": stored.id, "pattern": pattern}))
        assert error["error_type"] == "invalid_arguments"
        assert "pattern" in error["error"]

    def test_a_pattern_that_never_ends_is_stopped(
        self, runtime: Runtime, results: FileResultStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(read_result, "_MATCH_SECONDS", 0.1)
        stored = results.put("tool", "a" * 1_900 + "b")
        with takes_less_than(30):
            error = error_in(runtime.handle("read_result", {"id": stored.id, "pattern": r"(a+a+)+c"}))
        assert error["error_type"] == "invalid_arguments"


class TestRefusing:
    @pytest.mark.parametrize("result_id", ["r_0123456789abcdef", "../../etc/passwd", "", "r_x", "r_0123456789ABCDEF"])
    def test_an_id_that_nobody_gave_is_an_error(self, runtime: Runtime, result_id: str) -> None:
        error = error_in(runtime.handle("read_result", {"id": result_id}))
        assert error["error_type"] == "tool_failed"
        assert "result" in error["error"]

    def test_a_runtime_without_a_store_says_so(self, default_registry: ToolRegistry) -> None:
        error = error_in(Runtime(default_registry).handle("read_result", {"id": "r_0123456789abcdef"}))
        assert "keeps no results" in error["error"]


def test_what_a_tool_said_is_read_without_running_it_again(runtime: Runtime, default_registry: ToolRegistry) -> None:
    runs = []

    def long(args: Any, **kw: Any) -> str:
        runs.append(1)
        return "\n".join(f"row {number}" for number in range(50_000))

    add(default_registry, "long_tool", long, max_result_size_chars=3_000)
    shown = json.loads(runtime.handle("long_tool", {}))
    assert shown["head"].startswith("row 0\n")
    assert shown["tail"].endswith("row 49999")
    assert shown["lines"] == 50_000
    found = read(runtime, shown["id"], pattern="^row 31415$")
    assert found["matches"] == [{"line": 31_416, "text": "row 31415"}]
    assert read(runtime, shown["id"], offset=25_000, limit=1)["content"] == "row 24999"
    assert len(runs) == 1


def test_its_own_answer_is_never_put_away_again(runtime: Runtime, results: FileResultStore) -> None:
    stored = results.put("tool", ("w" * 1_999 + "\n") * 100)
    page = read(runtime, stored.id, limit=100)
    assert "content" in page
    assert "id" not in page
