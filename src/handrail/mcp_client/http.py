"""Reach a server by HTTP: streamable, or the older way with server-sent events."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Any

from .config import Server
from .oauth import Logins, authorized

if TYPE_CHECKING:
    from ..config.services import McpServerConfig


@contextlib.asynccontextmanager
async def http_transport(server: Server, settings: McpServerConfig, logins: Logins) -> AsyncIterator[Any]:
    """The pair of streams that the SDK's client works on."""
    import httpx2
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(settings.connect_timeout, read=settings.timeout + 10)
    headers = dict(settings.headers)
    has_token = any(name.lower() == "authorization" for name in headers)
    async with contextlib.AsyncExitStack() as stack:
        auth = None if has_token else await stack.enter_async_context(authorized(server, settings, logins))
        if server.way == "sse":
            factory = partial(_client, settings)
            transport = sse_client(
                settings.url, headers=headers, timeout=settings.connect_timeout, httpx_client_factory=factory, auth=auth
            )
        else:
            client = await stack.enter_async_context(_client(settings, headers=headers, timeout=timeout, auth=auth))
            transport = streamable_http_client(
                settings.url, http_client=client, max_sse_event_size=settings.max_message_bytes
            )
        yield await stack.enter_async_context(transport)


def _client(settings: McpServerConfig, headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
    """A client that takes no answer above the limit."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        def __init__(self, inner: Any, *, events: bool) -> None:
            self._inner, self._events = inner, events

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in self._inner:
                size += len(piece)
                # A stream of events goes on for as long as it likes; each event has its own limit.
                if size > settings.max_message_bytes and not self._events:
                    raise httpx2.ReadError(f"the answer has more than {settings.max_message_bytes:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            events = "text/event-stream" in response.headers.get("content-type", "")
            response.stream = Limited(response.stream, events=events)
            return response

    return httpx2.AsyncClient(transport=Transport(), headers=headers, timeout=timeout, auth=auth)
