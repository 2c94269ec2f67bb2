"""What a model gets of a result: everything once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from handrail.mcp_client.result_conversion import result_of

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
    ],
)
def test_a_text_that_says_the_same_as_the_data_is_left_out(texts: list[str], data: Any) -> None:
    answer = CallToolResult(content=[TextContent(text=each) for each in texts], structured_content=data)
    assert result_of(answer) == {"structured": data}


@pytest.mark.parametrize(("text", "data"), [("3 found", {"found": ITEMS}), ("12", {"result": 1}), ("a", {"b": "ab"})])
def test_a_text_of_its_own_is_kept(text: str, data: Any) -> None:
    answer = CallToolResult(content=[TextContent(text=text)], structured_content=data)
    assert result_of(answer) == {"content": text, "structured": data}
