"""What `handrail run` understands as calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.commands.run import BatchInput, read_batches
from handrail.errors import InvalidArguments
from handrail.testing import call

ONE, TWO, THREE = call("read_file", "1", path="a"), call("read_file", "2", path="b"), call("todo", "3")
TOOL_USE = {"type": "tool_use", "id": "1", "name": "read_file", "input": {"path": "a"}}
FUNCTION_CALL = {"type": "function_call", "call_id": "1", "name": "read_file", "arguments": "{}"}


def read(folder: Path, text: str, name: str = "input.json") -> BatchInput:
    (folder / name).write_text(text)
    return read_batches(str(folder / name))


@pytest.mark.parametrize(
    ("given", "batches"),
    [
        (ONE, [[ONE]]),
        ([ONE, TWO], [[ONE, TWO]]),
        ({"role": "assistant", "tool_calls": [ONE, TWO]}, [[ONE, TWO]]),
        ([{"role": "user", "content": "go"}, {"tool_calls": [ONE]}, {"tool_calls": [TWO]}], [[ONE], [TWO]]),
        ([ONE, {"tool_calls": [TWO]}, THREE], [[ONE], [TWO], [THREE]]),
        ({"choices": [{"message": {"role": "assistant", "tool_calls": [ONE]}}]}, [[ONE]]),
        ({"output": [{"type": "reasoning"}, FUNCTION_CALL]}, [[FUNCTION_CALL]]),
        ({"role": "assistant", "content": [{"type": "text", "text": "I look."}, TOOL_USE]}, [[TOOL_USE]]),
    ],
    ids=["call", "calls", "message", "conversation", "mixture", "completion", "response", "anthropic"],
)
def test_every_shape_that_providers_use_is_understood(tmp_path: Path, given: Any, batches: list[list[Any]]) -> None:
    assert read(tmp_path, json.dumps(given)) == BatchInput(batches, by_line=False)


def test_calls_on_lines_that_follow_each_other_are_one_batch(tmp_path: Path) -> None:
    lines = [ONE, TWO, {"role": "user", "content": "and?"}, THREE]
    assert read(tmp_path, "\n\n".join(map(json.dumps, lines))) == BatchInput([[ONE, TWO], [THREE]], by_line=True)


def test_a_name_can_say_that_one_line_is_json_lines(tmp_path: Path) -> None:
    assert read(tmp_path, json.dumps(ONE), "one.jsonl").by_line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no tool calls in this"),
        ("[]", "there are no tool calls in this"),
        ('{"role": "user", "content": "hi"}', "there are no tool calls in this"),
        ("{", "this is not JSON"),
        ('{"name": "todo"}\n{', "line 2 is not JSON"),
        ('[{"name": "todo"}, 4]', "this is neither a message nor a tool call: 4"),
    ],
)
def test_what_holds_no_calls_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        read(tmp_path, text)


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArguments, match="is not UTF-8 text"):
        read_batches(str(tmp_path / "picture"))
