"""A server on the SDK that asks in the older way, during the call, and has instructions for the model."""

from __future__ import annotations

import asyncio
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel

server = MCPServer("older", instructions=" ".join(sys.argv[1:]) or None)


class Name(BaseModel):
    """What is asked for."""

    name: str


@server.tool(structured_output=False)
async def ask(context: Context) -> str:
    """Ask for a name."""
    answer = await context.elicit("What is your name?", Name)
    return f"{answer.action}: {answer.data.name if answer.action == 'accept' else ''}"


@server.tool(structured_output=False)
async def open_page(url: str, context: Context) -> str:
    """Have a page opened."""
    answer = await context.session.elicit_url("Log in there.", url, "one")
    return answer.action


@server.tool(structured_output=False)
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


if __name__ == "__main__":
    server.run()
