"""Calls in every shape that providers use, and the answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handrail.errors import InvalidArguments
from handrail.runtime.provider_formats import read_call, read_calls, tool_message
from handrail.types import ToolCall

SHAPES = {
    "openai chat": {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}},
    "openai responses": {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"a": 1}'},
    "anthropic": {"type": "tool_use", "id": "c1", "name": "read", "input": '{"a": 1}'},
    "plain": {"id": "c1", "name": "read", "arguments": '{"a": 1}'},
    "args": {"id": "c1", "name": "read", "args": '{"a": 1}'},
    "client object": SimpleNamespace(id="c1", function=SimpleNamespace(name="read", arguments='{"a": 1}')),
}


@pytest.mark.parametrize("raw", SHAPES.values(), ids=SHAPES.keys())
def test_every_providers_shape_is_read(raw: Any) -> None:
    assert read_call(raw) == ToolCall("read", '{"a": 1}', "c1")


def test_an_item_of_the_responses_api_is_answered_by_its_call_id() -> None:
    raw = {"type": "function_call", "id": "fc_item", "call_id": "call_1", "name": "read", "arguments": "{}"}
    assert read_call(raw).id == "call_1"


def test_arguments_may_be_a_dict_or_missing() -> None:
    assert read_call({"name": "read", "input": {"a": 1}}).arguments == {"a": 1}
    assert read_call({"name": "read", "input": {}}).arguments == {}
    assert read_call({"name": "now"}).arguments is None


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"id": "x"},
        {"function": {}},
        {"name": ""},
        {"name": 5},
        {"function": {"name": None}},
        None,
        5,
        "read",
        [],
        {"function": "x"},
    ],
)
def test_a_call_without_a_name_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidArguments, match="name"):
        read_call(raw)


def test_a_message_a_list_and_a_single_call_all_give_calls() -> None:
    one = SHAPES["openai chat"]
    assert read_calls({"role": "assistant", "tool_calls": [one]}) == [one]
    assert read_calls(SimpleNamespace(tool_calls=[one])) == [one]
    assert read_calls([one, one]) == [one, one]
    assert read_calls((one,)) == [one]
    assert read_calls(one) == [one]
    assert read_calls([]) == []
    anthropic = SHAPES["anthropic"]
    assert read_calls({"role": "assistant", "content": [{"type": "text", "text": "hm"}, anthropic]}) == [anthropic]


@pytest.mark.parametrize("message", [None, 5, "text", {}, {"content": "text"}, {"tool_calls": "x"}, {"tool_calls": 5}])
def test_a_message_without_calls_is_refused(message: Any) -> None:
    with pytest.raises(InvalidArguments, match="tool_calls"):
        read_calls(message)


def test_the_answer_carries_the_id_and_a_multimodal_one_its_parts() -> None:
    assert tool_message("c1", "read", "text") == {
        "role": "tool",
        "tool_call_id": "c1",
        "name": "read",
        "content": "text",
    }
    parts = [{"type": "text", "text": "x"}]
    assert tool_message("c1", "look", {"_multimodal": True, "content": parts})["content"] == parts
