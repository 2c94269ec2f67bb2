"""A server on the SDK with one tool. The SDK says that it could have resources and prompts too."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("bare")


@server.tool()
def go() -> str:
    """Go."""
    return "went"


server.run()
