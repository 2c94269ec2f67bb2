"""Servers that are broken or mean: each hurts itself, and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.errors import ToolUnavailable
from handrail.mcp_client import connection
from handrail.mcp_client.connection import MAX_FAULTS, State
from handrail.mcp_client.server_config import Server
from handrail.mcp_client.tool_listing import Pins
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.types import ToolContext

from ..support import error_in, wait_until
from .conftest import Connect, hostile


@pytest.mark.parametrize(("way", "says"), [("orders", "orders to the model"), ("invisible", "U+E0067")])
def test_a_definition_with_hidden_text_is_kept_from_the_model(
    connect: Connect, registry: ToolRegistry, runtime: Runtime, way: str, says: str
) -> None:
    connect(bad=hostile(way))
    assert "mcp__bad__go" not in {each["function"]["name"] for each in registry.get_definitions()}
    error = error_in(runtime.handle("mcp__bad__go", {}))
    assert error["error_type"] == "unavailable"
    assert says in error["error"]
    assert "handrail mcp trust" in error["fix"]
    entry = registry.get_entry("mcp__bad__go")
    assert entry is not None
    assert entry.description == ""


def test_what_a_person_has_trusted_is_offered(connect: Connect, runtime: Runtime) -> None:
    first = connect(bad=hostile("orders"))
    Pins(Server("bad", McpServerConfig(), "")).trust(first.connections.offer("bad").tools)
    first.close()
    connect(bad=hostile("orders"))
    assert json.loads(runtime.handle("mcp__bad__go", {})) == {"content": "went"}  # type: ignore[arg-type]


def test_a_tool_that_changes_its_definition_has_to_be_trusted_again(
    connect: Connect, runtime: Runtime, tmp_path: Path
) -> None:
    text = tmp_path / "description"
    text.write_text("Go.")
    connect(bad=hostile("changes", str(text))).close()
    text.write_text("Go, and take the money.")
    tools = connect(bad=hostile("changes", str(text)))
    assert "has changed" in error_in(runtime.handle("mcp__bad__go", {}))["error"]
    Pins(Server("bad", McpServerConfig(), "")).trust(tools.connections.offer("bad").tools)
    tools.close()
    connect(bad=hostile("changes", str(text)))
    assert json.loads(runtime.handle("mcp__bad__go", {})) == {"content": "went"}  # type: ignore[arg-type]


def test_servers_of_two_projects_are_not_taken_for_each_other() -> None:
    mine, theirs, users = (
        Server("db", McpServerConfig(), f"{place}") for place in ("/a/.mcp.json", "/b/.mcp.json", "/c")
    )
    assert len({mine.key, theirs.key, users.key}) == 3
    assert Pins(users).path.name == "db.json"


def test_of_ten_thousand_tools_some_are_taken(
    connect: Connect, registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    connect(bad=hostile("many", max_tools=200))
    assert len(registry.get_tool_names_for_toolset("mcp-bad")) == 200
    assert "9800 more tools" in caplog.text


def test_pages_that_never_end_are_left(connect: Connect, registry: ToolRegistry) -> None:
    connect(bad=hostile("pages", connect_timeout=60))
    assert registry.get_tool_names_for_toolset("mcp-bad") == ["mcp__bad__go"]


def test_a_list_that_changes_without_end_is_read_now_and_then(
    connect: Connect, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RELIST_SECONDS", 60)
    connect(bad=hostile("restless"))
    said = [json.loads(runtime.handle("mcp__bad__go", {}))["content"] for _ in range(50)]  # type: ignore[arg-type]
    assert said[-1] in ("1", "2")


def test_a_schema_bomb_hurts_only_its_own_tool(connect: Connect, registry: ToolRegistry, runtime: Runtime) -> None:
    connect(bad=hostile("bomb"))
    assert "levels deep" in error_in(runtime.handle("mcp__bad__go", {}))["error"]
    assert json.loads(runtime.handle("mcp__bad__fine", {})) == {"content": "went"}  # type: ignore[arg-type]
    assert registry.get_definitions()  # which would not end if anybody wrote it out


def test_a_schema_that_no_parser_can_read_hurts_only_its_own_tool(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("abyss"))
    assert "levels deep" in error_in(runtime.handle("mcp__bad__go", {}))["error"]
    assert json.loads(runtime.handle("mcp__bad__fine", {})) == {"content": "went"}  # type: ignore[arg-type]


def test_a_list_that_cannot_be_read_is_told_at_once(connect: Connect) -> None:
    tools = connect(bad=hostile("garbled"))
    assert "cannot be read" in tools.connections.status()["bad"].error


def test_a_result_above_the_limit_ends_the_call_and_the_next_one_works(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("huge", max_message_bytes=1_000_000), good=hostile("good"))
    error = error_in(runtime.handle("mcp__bad__go", {}))
    assert "more than 1,000,000 bytes" in error["error"]
    assert json.loads(runtime.handle("mcp__good__go", {})) == {"content": "went"}  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["noise", "stderr"])
def test_noise_does_not_end_the_talk(connect: Connect, runtime: Runtime, way: str) -> None:
    connect(bad=hostile(way))
    for _ in range(2):
        assert json.loads(runtime.handle("mcp__bad__go", {})) == {"content": "went"}  # type: ignore[arg-type]


def test_a_server_that_does_not_answer_costs_the_call_its_time_and_no_more(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("silent", timeout=0.3))
    error = error_in(runtime.handle("mcp__bad__go", {}))
    assert error["error_type"] == "timeout"
    assert "0.3 s" in error["error"]


def test_a_server_that_dies_in_a_call_says_why_and_comes_back(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("dies"))
    for _ in range(2):
        error = error_in(runtime.handle("mcp__bad__go", {}))
        assert error["error_type"] == "tool_failed"
        assert error["lost"] is True
        assert "a reason to die" in error["error"]
        assert "sk-" not in error["error"]
        assert "unknown whether" in error["error"]


def test_an_answer_that_breaks_the_protocol_is_an_error(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("wrong"))
    assert error_in(runtime.handle("mcp__bad__go", {}))["error_type"] == "tool_failed"


def test_a_server_that_cannot_start_tells_why_and_does_not_hold_the_others(connect: Connect, runtime: Runtime) -> None:
    tools = connect(bad=hostile("crash"), good=hostile("good"))
    status = tools.connections.status()["bad"]
    assert status.state in (State.FAILED, State.CONNECTING)
    assert "no such database" in status.error
    assert json.loads(runtime.handle("mcp__good__go", {})) == {"content": "went"}  # type: ignore[arg-type]


def test_start_up_does_not_wait_for_a_server_that_says_nothing(connect: Connect) -> None:
    tools = connect(wait=0.3, bad=hostile("mute", connect_timeout=600))
    assert tools.connections.status()["bad"].state is State.CONNECTING


def test_a_server_that_comes_late_appears_when_it_comes(
    connect: Connect, runtime: Runtime, registry: ToolRegistry, tmp_path: Path
) -> None:
    sign = tmp_path / "sign"
    connect(wait=0.01, late=hostile("late", str(sign)))
    assert not registry.get_tool_names_for_toolset("mcp-late")
    sign.touch()
    wait_until(lambda: registry.get_tool_names_for_toolset("mcp-late"))
    assert json.loads(runtime.handle("mcp__late__go", {})) == {"content": "went"}  # type: ignore[arg-type]


def test_one_that_will_not_end_is_ended(connect: Connect) -> None:
    tools = connect(bad=hostile("stubborn"))
    pid = tools.connections.status()["bad"].pid
    tools.close()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.parametrize("wait_for_end", [False, True], ids=["timed out", "failed"])
def test_closing_while_a_failed_connection_is_cleaned_up_raises_nothing(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, wait_for_end: bool
) -> None:
    cleaning = threading.Event()

    @contextlib.asynccontextmanager
    async def opened(self: Any) -> AsyncIterator[None]:
        try:
            if not wait_for_end:
                await asyncio.sleep(3600)
            yield
        finally:
            cleaning.set()
            await self._closing.wait()

    monkeypatch.setattr("handrail.mcp_client.connection.Connection._opened", opened)
    tools = connect(bad=hostile("silent", connect_timeout=0.2), wait=0.0)
    assert cleaning.wait(30)
    tools.close()


def test_after_many_faults_calls_fail_at_once_until_the_next_attempt(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.mcp_client.connection.FIRST_PAUSE_SECONDS", 0.01)
    tools = connect(bad=hostile("crash"))

    async def work(client: Any) -> None:
        raise AssertionError("there is no client")

    wait_until(lambda: tools.connections.status()["bad"].faults >= MAX_FAULTS, timeout=30)
    with pytest.raises(ToolUnavailable, match="next attempt in") as raised:
        tools.connections.use("bad", work, ToolContext())
    assert "no such database" in str(raised.value)
