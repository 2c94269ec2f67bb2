"""A well-behaved server on the SDK, with one tool for everything that a client has to bear."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, Image, ListRoots, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

server = MCPServer("plain")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
rooms: dict[str, list[asyncio.Event]] = {}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
def say(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool(structured_output=False)
async def meet(others: int, room: str) -> str:
    """Return when so many calls are in the room at once."""
    here = rooms.setdefault(room, [])
    here.append(asyncio.Event())
    if len(here) >= others:
        for each in here:
            each.set()
    await here[-1].wait()
    return "met"


@server.tool(structured_output=False)
async def steps(context: Context) -> str:
    """Tell of two steps."""
    await context.report_progress(1, 2, "half")
    await context.report_progress(2, 2, "whole")
    return "done"


@server.tool(structured_output=False)
async def wait(mark: str, context: Context, begun: str = "") -> str:
    """Wait until cancelled, and write the mark then."""
    await context.report_progress(0, 1, "waiting")
    if begun:
        Path(begun).write_text("begun")  # noqa: ASYNC240  nobody else is waiting
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        Path(mark).write_text("cancelled")  # noqa: ASYNC240  nobody else is waiting
        raise
    return "waited"


@server.tool(structured_output=False)
def die() -> str:
    """End in the middle of the call."""
    os._exit(3)


@server.tool(structured_output=False)
def picture() -> Image:
    """One pixel."""
    return Image(data=PIXEL, format="png")


@server.tool(structured_output=False, annotations=ToolAnnotations(destructive_hint=True))
def erase(what: str) -> str:
    """Erase something."""
    return f"erased {what}"


@server.tool(structured_output=False)
async def grow(name: str, context: Context) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: "late", name=name, description="It came later.")
    await _tell(context)
    return "grown"


async def _tell(context: Context) -> None:
    """Those who listen, as the newer revisions do, and whoever made the call, as the older ones do."""
    await context.notify_tools_changed()
    with contextlib.suppress(Exception):
        await context.session.send_tool_list_changed()


class Order(BaseModel):
    """What a guest is asked for."""

    dish: str
    spicy: bool = False


async def _asked() -> Elicit[Order]:
    return Elicit("What would you like?", Order)


@server.tool(structured_output=False)
async def order(answer: Annotated[ElicitationResult[Order], Resolve(_asked)]) -> str:
    """Ask the guest something."""
    if answer.action != "accept":
        return answer.action
    return f"{answer.data.dish}, {'spicy' if answer.data.spicy else 'mild'}"


async def _thought() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(text="What is the weather?"))
    return Sample([question], max_tokens=50, system_prompt="Be brief.")


@server.tool(structured_output=False)
async def think(said: Annotated[CreateMessageResult, Resolve(_thought)]) -> str:
    """Ask the model something."""
    return f"{said.model}: {said.content.text}"  # type: ignore[union-attr]


async def _places() -> ListRoots:
    return ListRoots()


@server.tool(structured_output=False)
async def places(found: Annotated[ListRootsResult, Resolve(_places)]) -> str:
    """Where to work."""
    return " ".join(str(root.uri) for root in found.roots)


@server.resource("notes://one", name="one", description="A note.")
def note() -> str:
    return "the note"


@server.resource("notes://by/{who}", name="by", description="A note of somebody.")
def note_of(who: str) -> str:
    return f"the note of {who}"


@server.prompt()
def greet(who: str) -> str:
    """Greet someone."""
    return f"Say hello to {who}."


if __name__ == "__main__":
    if sys.argv[1:]:
        way, port = sys.argv[1:]
        server.run(transport="sse" if way == "sse" else "streamable-http", host="127.0.0.1", port=int(port))
    else:
        server.run()
