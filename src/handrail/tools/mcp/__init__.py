"""Tools of MCP servers: `server_tools` registers what `mcp_client` finds."""
