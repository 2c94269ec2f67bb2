"""Talk to MCP servers. Nothing here knows of tools: `tools/mcp_tool.py` makes them of what a server offers."""
