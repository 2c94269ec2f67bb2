"""What lies too deep in a message is cut off, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handrail.mcp_client.stdio import without_depths


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for level in range(depth):
        value = {"x": value} if level % 2 else [value]
    return value


def deepest(value: Any) -> int:
    depth = 0
    while isinstance(value, dict | list) and value:
        value, depth = value["x"] if isinstance(value, dict) else value[0], depth + 1
    return depth


@pytest.mark.parametrize("depth", [0, 1, 96])
def test_what_is_not_deep_is_left_alone(depth: int) -> None:
    assert without_depths(json.dumps(nested(depth)).encode()) is None


def test_what_is_deep_is_cut_and_the_rest_stays() -> None:
    tricky = 'a "quoted" {[ \\ text'
    message = json.dumps({"before": tricky, "deep": nested(400), "after": [tricky, 1]}).encode()
    cut = without_depths(message)
    assert cut is not None
    read = json.loads(cut)
    assert (read["before"], read["after"]) == (tricky, [tricky, 1])
    assert 64 < deepest(read["deep"]) < 100


def test_what_is_no_json_is_not_made_into_some() -> None:
    assert without_depths(b"[" * 5000) is None
