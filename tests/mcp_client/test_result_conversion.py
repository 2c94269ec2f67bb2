"""What a model gets of a result: everything once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from handrail.errors import ToolFailed
from handrail.mcp_client.result_conversion import result_of

LONG = "a sentence of some length, " * 5
ITEMS = [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    ("texts", "data"),
    [
        (["hello"], {"result": "hello"}),
        (["hello"], {"content": "hello"}),
        (['{"a": 1}'], {"result": '{"a": 1}'}),
        (["42"], {"result": "42"}),
        (["42"], {"result": 42}),
        (["true"], {"result": True}),
        (['{\n  "a": 1\n}'], {"a": 1}),
        ([json.dumps(ITEMS, indent=2)], {"entities": ITEMS}),
        ([json.dumps(each) for each in ITEMS], {"result": ITEMS}),
        (["one", "two"], {"result": ["one", "two"]}),
        (["hello"], {"content": "hello", "size": 5}),
        ([], {"a": 1}),
        ([LONG], {"content": [{"type": "text", "text": LONG}]}),
        ([LONG], {"file": {"text": LONG, "lines": 1}}),
        ([f"{LONG}\n"], {"content": LONG.strip()}),
        ([LONG, json.dumps({"a": LONG})], {"a": LONG}),
        (["Ann"], {"user": {"name": "Ann"}}),
        (["a.txt", "b.txt"], {"files": [{"type": "text", "text": "a.txt"}, {"type": "text", "text": "b.txt"}]}),
        (["  two\nlines  "], {"contents": [{"uri": "x:1", "text": "  two\nlines  "}]}),
        (["one", "2"], {"names": ["one"], "count": 2}),
    ],
)
def test_a_text_that_says_the_same_as_the_data_is_left_out(texts: list[str], data: Any) -> None:
    answer = CallToolResult(content=[TextContent(text=each) for each in texts], structured_content=data)
    assert result_of(answer) == {"structured": data}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("3 found", {"found": ITEMS}),
        ("12", {"result": 1}),
        ("a", {"b": "ab"}),
        ("1", {"is_open": True}),
        (LONG, {"hits": [{"body": LONG}, {"body": "another"}]}),
        ("one", {"all": ["one", "two"]}),
    ],
)
def test_a_text_of_its_own_is_kept(text: str, data: Any) -> None:
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=data)
    assert result_of(answer) == {"content": text, "structured": data}


def test_only_the_texts_that_the_data_holds_are_left_out() -> None:
    texts = [TextContent(text="1 found:"), TextContent(text=json.dumps({"a": LONG}))]
    answer = CallToolResult(content=texts, structured_content={"a": LONG})
    assert result_of(answer) == {"content": "1 found:", "structured": {"a": LONG}}


def test_a_short_answer_is_kept_though_it_occurs_in_the_data() -> None:
    answer = CallToolResult(content=[TextContent(text="Ann")], structured_content={"asked": [{"name": "Ann"}]})
    assert result_of(answer)["content"] == "Ann"


def test_beside_a_picture_the_data_is_whole_and_said_once() -> None:
    picture = ImageContent(data="AAAA", mime_type="image/png")
    data = {"content": LONG, "id": 5}
    answer = CallToolResult(content=[picture, TextContent(text=LONG)], structured_content=data)
    assert [part.get("text") for part in result_of(answer)["content"]] == [None, json.dumps(data)]


@pytest.mark.parametrize(
    ("text", "data", "rest"),
    [
        (json.dumps({"code": 7, "why": LONG}), {"why": LONG, "code": 7}, None),
        (LONG, {"error": LONG}, None),
        (LONG, {"error": LONG, "code": 7}, {"code": 7}),
        (LONG, {"code": 7}, {"code": 7}),
    ],
)
def test_a_failure_is_said_once(text: str, data: Any, rest: Any) -> None:
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=data, is_error=True)
    with pytest.raises(ToolFailed) as failure:
        result_of(answer)
    assert str(failure.value) == text
    assert failure.value.details.get("structured") == rest
