"""Discovery of the configured MCP servers' tools."""

from __future__ import annotations

import sys
from pathlib import Path

from handrail.config.config_file import ConfigFile
from handrail.model_tools import default, reset
from handrail.tools.mcp_tool import discover_mcp_tools

from ...mcp_client.conftest import SCRIPTS


def test_discovery_registers_tools_returns_their_names_and_can_be_repeated(home: Path) -> None:
    settings = {"command": sys.executable, "args": [str(SCRIPTS / "plain.py")]}
    ConfigFile().set(("mcp_servers", "plain"), settings)
    reset()
    names = discover_mcp_tools()
    assert "mcp__plain__say" in names
    assert set(names) <= set(default().runtime.registry.get_all_tool_names())
    assert discover_mcp_tools() == names


def test_discovery_without_servers_finds_nothing(home: Path) -> None:
    reset()
    assert discover_mcp_tools() == []
