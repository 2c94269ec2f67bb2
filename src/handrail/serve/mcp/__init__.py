"""Give the tools to any MCP client, with the same toolsets, approval and limits as everywhere."""
