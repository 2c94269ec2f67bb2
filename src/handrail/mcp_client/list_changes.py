"""Notice that a server's lists have changed, in newer protocol revisions, where a client must subscribe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_import

if TYPE_CHECKING:
    from mcp.shared import exceptions
    from mcp_types import version

    from mcp import Client
else:
    exceptions, version = lazy_import("mcp.shared.exceptions"), lazy_import("mcp_types.version")

_FIRST_PAUSE_SECONDS = 1.0
_MAX_PAUSE_SECONDS = 60.0
_REFUSALS = (-32600, -32601, -32602)  # JSON-RPC codes of a server that does not support the request


async def changes(client: Client) -> AsyncIterator[None]:
    """Yields at every change until the server ends the stream. Raises MCPError for a server that does not support it."""
    if client.protocol_version not in version.MODERN_PROTOCOL_VERSIONS:
        return
    pause, has_missed = _FIRST_PAUSE_SECONDS, False
    while True:
        try:
            async with client.listen(
                tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True
            ) as events:
                if has_missed:
                    yield  # changes in between are not reported again
                pause, has_missed = _FIRST_PAUSE_SECONDS, False
                async for _ in events:
                    yield
            return
        except Exception as error:  # a connection breaks in many ways
            if isinstance(error, exceptions.MCPError) and error.code in _REFUSALS:
                raise
        has_missed = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
