"""The original's place for MCP servers' tools. Here it is `handrail.tools.mcp`."""

from ..base.lazy_module import lazy_module

_HOMES = dict.fromkeys(("discover_mcp_tools", "McpTools"), "handrail.tools.mcp.server_tools")
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
