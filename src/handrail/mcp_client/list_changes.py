"""Hear that a server's lists have changed, as the newer revisions tell of it: only to those who listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp import Client

_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
_REFUSALS = (-32600, -32601, -32602)  # as JSON-RPC counts: such a request it does not take


async def changes(client: Client) -> AsyncIterator[None]:
    """At every change, until the server tells of no more. Raises MCPError for a server that does not offer it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return
    pause, has_missed = _FIRST_PAUSE_SECONDS, False
    while True:
        try:
            async with client.listen(
                tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True
            ) as events:
                if has_missed:
                    yield  # what changed meanwhile is not told again
                pause, has_missed = _FIRST_PAUSE_SECONDS, False
                async for _ in events:
                    yield
            return
        except Exception as error:  # a line is cut in many ways
            if isinstance(error, MCPError) and error.code in _REFUSALS:
                raise
        has_missed = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
