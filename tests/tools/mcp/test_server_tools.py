"""Discovery of the configured MCP servers' tools."""

from __future__ import annotations

from handrail.core.registry import ToolRegistry
from handrail.mcp_client.server_config import Server
from handrail.tools.mcp.server_tools import McpTools, discover_mcp_tools

from ...mcp_client.conftest import script


def test_discovery_registers_tools_returns_their_names_and_can_be_repeated() -> None:
    registry = ToolRegistry()
    tools = McpTools([Server("plain", script("plain"), "test")], registry)
    try:
        names = discover_mcp_tools(tools)
        assert "mcp__plain__say" in names
        assert set(names) <= set(registry.get_all_tool_names())
        pid = tools.connections.status()["plain"].pid
        assert discover_mcp_tools(tools) == names
        assert tools.connections.status()["plain"].pid == pid
    finally:
        tools.close()


def test_discovery_without_servers_finds_nothing() -> None:
    assert discover_mcp_tools(None) == []
