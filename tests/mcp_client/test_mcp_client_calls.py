"""A well-behaved server, called in every way there is, by HTTP."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.mcp_client.connection import State
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.testing import OpenGate
from handrail.types import CancelToken, Progress

from ..serve.gateway.line import Line
from ..support import error_in, wait_until
from .conftest import Connect, script


def content(outcome: Any) -> Any:
    return json.loads(outcome)["content"]


def test_tools_are_called_by_name_and_give_data_text_and_pictures(
    connect: Connect, registry: ToolRegistry, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=plain)
    assert json.loads(runtime.handle("mcp__plain__add", {"a": "2", "b": 3})) == {"structured": {"result": 5}}  # type: ignore[arg-type]
    assert content(runtime.handle("mcp__plain__say", {"text": "é\n"})) == "é\n"
    (part,) = runtime.handle("mcp__plain__picture", {})["content"]  # type: ignore[index]
    assert part["image_url"]["url"].startswith("data:image/png;base64,")
    assert registry.get_toolset_for_tool("mcp__plain__add") == "mcp-plain"
    assert registry.get_toolset_alias_target("plain") == "mcp-plain"


def test_a_tools_own_error_is_no_fault_of_the_connection(
    connect: Connect, runtime: Runtime, plain: McpServerConfig
) -> None:
    tools = connect(plain=plain)
    for _ in range(6):
        error = error_in(runtime.handle("mcp__plain__fail", {"why": "it is Monday"}))
        assert error["error_type"] == "tool_failed"
        assert "it is Monday" in error["error"]
    assert tools.connections.status()["plain"].state is State.READY


def test_arguments_are_held_against_the_servers_schema(
    connect: Connect, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=plain)
    assert error_in(runtime.handle("mcp__plain__add", {"a": 1}))["error_type"] == "invalid_arguments"


def test_calls_to_one_server_run_at_once(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    room = uuid.uuid4().hex

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(
            *(runtime.ahandle("mcp__plain__meet", {"others": 20, "room": room}) for _ in range(20))
        )

    assert {content(each) for each in asyncio.run(all_of_them())} == {"met"}


def test_progress_comes_through(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    heard: list[Progress] = []
    assert content(runtime.handle("mcp__plain__steps", {}, on_progress=heard.append)) == "done"
    assert [(each.message, each.fraction) for each in heard] == [("half", 0.5), ("whole", 1.0)]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cancel_reaches_the_server(
    connect: Connect, runtime: Runtime, plain: McpServerConfig, tmp_path: Path, is_async: bool
) -> None:
    connect(plain=plain)
    cancel, mark = CancelToken(), tmp_path / "mark"
    more: Any = {"cancel": cancel, "on_progress": lambda news: cancel.cancel()}
    arguments = {"mark": str(mark)}
    if is_async:
        outcome = asyncio.run(runtime.ahandle("mcp__plain__wait", arguments, **more))
    else:
        outcome = runtime.handle("mcp__plain__wait", arguments, **more)
    assert error_in(outcome)["error_type"] == "cancelled"
    wait_until(mark.exists)


def test_only_the_tools_that_are_wanted_are_taken(connect: Connect, registry: ToolRegistry, address: str) -> None:
    connect(plain=McpServerConfig(url=address, include=("add", "s*"), exclude=("steps",)))
    names = set(registry.get_tool_names_for_toolset("mcp-plain"))
    assert {"mcp__plain__add", "mcp__plain__say"} <= names
    assert not {"mcp__plain__steps", "mcp__plain__erase"} & names


def test_a_tool_that_comes_later_appears(
    connect: Connect, registry: ToolRegistry, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=plain)
    name = f"late{uuid.uuid4().hex}"
    runtime.handle("mcp__plain__grow", {"name": name})
    wait_until(lambda: registry.get_entry(f"mcp__plain__{name}") is not None)


def test_a_tool_that_comes_while_the_line_is_cut_appears_too(
    connect: Connect, registry: ToolRegistry, runtime: Runtime, address: str
) -> None:
    line, name = Line(address.removesuffix("/mcp")), f"late{uuid.uuid4().hex}"
    try:
        connect(far=McpServerConfig(url=f"{line.url}/mcp"), near=McpServerConfig(url=address))
        assert registry.get_entry("mcp__far__add") is not None
        line.cut()
        runtime.handle("mcp__near__grow", {"name": name})
        line.mend()
        wait_until(lambda: registry.get_entry(f"mcp__far__{name}") is not None)
    finally:
        line.close()


def test_only_what_a_server_has_becomes_a_tool(connect: Connect, registry: ToolRegistry, address: str) -> None:
    """Many say that they could have resources and prompts, and have none."""
    connect(bare=script("bare"), full=McpServerConfig(url=address))
    names = {name: set(registry.get_tool_names_for_toolset(f"mcp-{name}")) for name in ("bare", "full")}
    assert names["bare"] == {"mcp__bare__go"}
    assert {"mcp__full__list_resources", "mcp__full__get_prompt"} <= names["full"]


def test_resources_and_prompts_are_tools_too(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    listed = json.loads(runtime.handle("mcp__plain__list_resources", {}))  # type: ignore[arg-type]
    assert listed["resources"][0]["uri"] == "notes://one"
    assert listed["resource_templates"][0]["uri_template"] == "notes://by/{who}"
    assert content(runtime.handle("mcp__plain__read_resource", {"uri": "notes://by/Ann"})) == "the note of Ann"
    assert content(runtime.handle("mcp__plain__read_resource", {"uri": "notes://one"})) == "the note"
    prompt = json.loads(runtime.handle("mcp__plain__get_prompt", {"name": "greet", "arguments": {"who": "Ann"}}))  # type: ignore[arg-type]
    assert prompt["messages"][0]["content"]["text"] == "Say hello to Ann."


def test_what_a_tool_says_of_itself_can_make_it_ask(
    connect: Connect, runtime: Runtime, gate: OpenGate, address: str
) -> None:
    connect(plain=McpServerConfig(url=address), careful=McpServerConfig(url=address, ask="writes"))
    runtime.handle("mcp__plain__erase", {"what": "it"})
    runtime.handle("mcp__plain__add", {"a": 1, "b": 1})
    runtime.handle("mcp__careful__say", {"text": "x"})
    runtime.handle("mcp__careful__add", {"a": 1, "b": 1})
    assert [bool(each.details.get("destructive") or each.details.get("why")) for each in gate.actions] == [
        True,
        False,
        True,
        False,
    ]


def test_a_server_is_reached_the_old_way_by_sse(connect: Connect, runtime: Runtime, sse_address: str) -> None:
    connect(far=McpServerConfig(url=sse_address, type="sse"))
    assert json.loads(runtime.handle("mcp__far__add", {"a": 2, "b": 3})) == {"structured": {"result": 5}}  # type: ignore[arg-type]
    assert "it is Monday" in error_in(runtime.handle("mcp__far__fail", {"why": "it is Monday"}))["error"]
