"""Call one tool of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .result_conversion import result_of

if TYPE_CHECKING:
    from mcp import Client

    from ..types import JsonDict, ToolContext
    from .manager import McpConnections
    from .tool_listing import Listed


class RemoteTool:
    """A server's tool."""

    def __init__(self, connections: McpConnections, server: str, listed: Listed) -> None:
        self._connections, self._server, self._name = connections, server, listed.name
        self._reads = listed.annotations.get("readOnlyHint") is True

    def call(self, args: JsonDict, context: ToolContext) -> Any:
        """Returns the result in sync code, an awaitable of it inside a running loop."""
        if context.effects is not None and not self._reads:
            context.effects.uncovered(f"{self._server}: {self._name}", "an MCP server does it, which is not watched")

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", progress / total if total else None)

        async def work(client: Client) -> JsonDict:
            on_progress = report if context.on_progress else None
            return result_of(await client.call_tool(self._name, args, progress_callback=on_progress))

        return self._connections.use(self._server, work, context)
