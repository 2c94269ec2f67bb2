"""The original's place for MCP servers' tools. Here it is `handrail.tools.mcp`."""

from ..base.lazy_module import lazy_module

__getattr__, __dir__, __all__ = lazy_module(
    __name__, {"handrail.tools.mcp.server_tools": "discover_mcp_tools McpTools"}
)
