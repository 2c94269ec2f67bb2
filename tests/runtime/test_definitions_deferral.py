"""Lists of tools that are too long for the model's context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.config.paths import remembered
from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.core.registry import ToolRegistry
from handrail.runtime.definitions import Definitions, room
from handrail.runtime.dispatch import USES_FILE
from handrail.toolsets import Toolsets

from ..support import add, parameters

SEARCHERS = ["tool_call", "tool_describe", "tool_search"]


@pytest.fixture
def registry() -> ToolRegistry:
    builtin_tools()
    made = ToolRegistry()
    made.restore({name: entry for name in SEARCHERS if (entry := builtin.get_entry(name)) is not None})
    for number in range(200):
        toolset = f"mcp-server{number % 4}"
        add(made, f"mcp__brought_{number:03}", toolset=toolset, schema=parameters(text={"type": "string"}))
    for name in ("own_a", "own_b"):
        add(made, name, toolset="file", description="One of ours. " * 20)
    return made


@pytest.fixture
def definitions(registry: ToolRegistry) -> Definitions:
    return Definitions(registry, Toolsets(registry))


def _names(listed: list[dict[str, Any]]) -> list[str]:
    return [(one.get("function") or one)["name"] for one in listed]


def test_a_list_that_fits_has_all_tools_and_no_search(definitions: Definitions) -> None:
    names = _names(definitions.list(max_chars=1_000_000))
    assert len(names) == 202
    assert not set(SEARCHERS) & set(names)


def test_a_list_that_does_not_fit_has_what_fits_and_the_search(definitions: Definitions) -> None:
    listed = definitions.list(max_chars=5000)
    names = _names(listed)
    assert names[-3:] == SEARCHERS
    assert {"own_a", "own_b"} <= set(names), "ours are kept before those of servers"
    assert 5 < len(names) < 100
    assert sum(len(json.dumps(one)) for one in listed[:-3]) <= 5000


def test_what_is_left_out_can_still_be_called(definitions: Definitions) -> None:
    names = definitions.names()
    assert len(names) == 202 + len(SEARCHERS)


def test_the_search_says_how_much_there_is_to_find(definitions: Definitions) -> None:
    (search,) = [one["function"] for one in definitions.list(max_chars=0) if one["function"]["name"] == "tool_search"]
    assert search["description"].endswith(
        "Not in your list are 202 tools, of: server0 (50), server1 (50), server2 (50), server3 (50), file (2)."
    )


def test_what_was_used_most_stays(definitions: Definitions) -> None:
    definitions.uses = {"mcp__brought_150": 7, "mcp__brought_151": 3}
    names = _names(definitions.list(max_chars=600))
    assert "mcp__brought_150" in names
    assert "mcp__brought_151" in names
    assert "own_a" not in names


@pytest.mark.parametrize("enabled", [["file", "mcp-server1"], ["mcp-server1", "tool_search"]])
def test_the_search_is_there_whatever_was_enabled(definitions: Definitions, enabled: list[str]) -> None:
    assert set(SEARCHERS) <= set(_names(definitions.list(enabled, max_chars=1000)))


def test_whoever_does_not_want_a_search_gets_a_long_list(definitions: Definitions) -> None:
    names = _names(definitions.list(None, ["tool_search"], max_chars=1000))
    assert len(names) == 202
    assert not set(SEARCHERS) & definitions.names(None, ["tool_search"])


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic", "gemini", "mcp"])
def test_every_format_is_shortened(definitions: Definitions, format: Any) -> None:  # noqa: A002  the name of the parameter
    assert _names(definitions.list(max_chars=3000, format=format))[-3:] == SEARCHERS


def test_the_same_list_is_given_again(definitions: Definitions) -> None:
    assert definitions.list(max_chars=3000) == definitions.list(max_chars=3000)
    assert len(definitions.list(max_chars=6000)) > len(definitions.list(max_chars=3000))


def test_room_is_a_share_of_the_context() -> None:
    assert room(128_000, 0.1) == 51_200


def test_the_front_door_keeps_to_the_context_it_is_told(home: Path) -> None:
    everything = _names(model_tools.get_tool_definitions(quiet_mode=True))
    short = _names(model_tools.get_tool_definitions(quiet_mode=True, context_tokens=10_000))
    assert len(short) < len(everything)
    assert short[-3:] == SEARCHERS
    assert "read_file" in everything


def test_what_is_used_is_remembered_when_the_runtime_ends(home: Path) -> None:
    for _ in range(3):
        model_tools.run_tool_calls(
            [{"id": "1", "function": {"name": "read_file", "arguments": '{"path": "/proc/nowhere"}'}}]
        )
    model_tools.reset()
    assert remembered(USES_FILE)["read_file"] == 3
    assert model_tools.default()._definitions.uses["read_file"] == 3
