"""A line of plain words is read in one step: the tree must be the same as that of the whole grammar."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from handrail.judge.grammar.parser import Parser, parse
from handrail.judge.grammar.syntax import ShellSyntaxError, Word

LINES = (
    "ls",
    "ls -la src",
    "  git \t status\t ",
    "python3.11 -m pytest tests/a_test.py::test_b",
    "a:b c@d +e %f g,h 1 2",
    "time ls -l",
    "time",
    "then",
    "if a",
    "done x",
    "function f",
    "select x",
    "export A",
    "declare -p A",
    "local x",
    "in a",
)


def shape(node: Any) -> Any:
    if isinstance(node, Word):
        return "word", node.literal(), node.start, node.end
    if dataclasses.is_dataclass(node):
        return type(node).__name__, [shape(getattr(node, field.name)) for field in dataclasses.fields(node)]
    return [shape(item) for item in node] if isinstance(node, list | tuple) else node


def outcome(read: Any) -> Any:
    try:
        return shape(read())
    except ShellSyntaxError as error:
        return str(error)


@pytest.mark.parametrize("line", LINES)
def test_both_ways_of_reading_agree(line: str) -> None:
    assert outcome(lambda: parse(line)[0]) == outcome(lambda: Parser(line).whole())
