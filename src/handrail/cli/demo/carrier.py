"""A parcel service as an MCP server: a program of its own that speaks the protocol over its standard input and output."""

from typing import Annotated

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field


def quote(kg: Annotated[float, Field(gt=0, description="Weight in kilograms.")]) -> str:
    """What it costs to send a parcel."""
    return f"a parcel of {kg:g} kg costs {3.9 + kg:.2f}"


if __name__ == "__main__":
    server = MCPServer("carrier")
    server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)(quote)
    server.run()
