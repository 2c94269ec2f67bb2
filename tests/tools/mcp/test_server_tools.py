"""Discovery of the configured MCP servers' tools."""

from __future__ import annotations

from pathlib import Path

from handrail.config.config_file import ConfigFile
from handrail.model_tools import default, reset
from handrail.tools.mcp_tool import discover_mcp_tools

from ... import fork_server
from ...mcp_client.conftest import SCRIPTS


def test_discovery_registers_tools_returns_their_names_and_can_be_repeated(home: Path) -> None:
    command, *words = fork_server.command(str(SCRIPTS / "plain.py"))
    ConfigFile().set(("mcp_servers", "plain"), {"command": command, "args": words})
    reset()
    names = discover_mcp_tools()
    assert "mcp__plain__say" in names
    assert set(names) <= set(default().runtime.registry.get_all_tool_names())
    assert discover_mcp_tools() == names


def test_discovery_without_servers_finds_nothing(home: Path) -> None:
    reset()
    assert discover_mcp_tools() == []
