"""Reach a server by HTTP: streamable, or the older way with server-sent events."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .message_depth import without_depths
from .oauth import Logins, authorized
from .server_config import Server

if TYPE_CHECKING:
    from ..settings.services import McpServerConfig

Refuse = Callable[[str], None]


@contextlib.asynccontextmanager
async def http_transport(
    server: Server, settings: McpServerConfig, logins: Logins, *, refused: Refuse
) -> AsyncIterator[Any]:
    """The pair of streams that the SDK's client works on. `refused` is told why an answer is not taken."""
    import httpx2
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(settings.connect_timeout, read=settings.timeout + 10)
    headers = dict(settings.headers)
    has_token = any(name.lower() == "authorization" for name in headers)
    async with contextlib.AsyncExitStack() as stack:
        auth = None if has_token else await stack.enter_async_context(authorized(server, settings, logins))
        if server.way == "sse":
            factory = partial(_client, settings.max_message_bytes, refused)
            transport = sse_client(
                settings.url, headers=headers, timeout=settings.connect_timeout, httpx_client_factory=factory, auth=auth
            )
        else:
            client = await stack.enter_async_context(
                _client(settings.max_message_bytes, refused, headers=headers, timeout=timeout, auth=auth)
            )
            transport = streamable_http_client(
                settings.url, http_client=client, max_sse_event_size=settings.max_message_bytes
            )
        yield await stack.enter_async_context(transport)


def _client(limit: int, refused: Refuse, headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
    """A client that takes no answer above the limit, and none that grows when it is unpacked."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        def __init__(self, inner: Any, pieces: AsyncIterator[bytes]) -> None:
            self._inner, self._pieces = inner, pieces

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._pieces:
                    yield piece
            except _NotTaken as why:
                refused(str(why))
                raise httpx2.ReadError(str(why)) from None

        async def aclose(self) -> None:
            await self._inner.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            is_packed = response.headers.pop("content-encoding", "identity") != "identity"
            is_stream = "text/event-stream" in response.headers.get("content-type", "")
            pieces = (_events if is_stream else _whole)(response.stream, limit, is_packed=is_packed)
            response.stream = Limited(response.stream, pieces)
            return response

    headers = {**(headers or {}), "Accept-Encoding": "identity"}
    return httpx2.AsyncClient(transport=Transport(), headers=headers, timeout=timeout, auth=auth)


class _NotTaken(Exception):
    """Why an answer is not taken."""


async def _whole(inner: Any, limit: int, *, is_packed: bool) -> AsyncIterator[bytes]:
    _check_is_plain(is_packed)
    pieces, size = [], 0
    async for piece in inner:
        size += len(piece)
        _check(size, limit)
        pieces.append(piece)
    yield _readable(b"".join(pieces))


async def _events(inner: Any, limit: int, *, is_packed: bool) -> AsyncIterator[bytes]:
    """A stream of events goes on for as long as it likes; each event, which an empty line ends, has the limit."""
    _check_is_plain(is_packed)
    begun: list[bytes] = []  # of a line
    size = 0
    async for piece in inner:
        *ends, rest = piece.split(b"\n")
        lines = []
        for end in ends:
            line = b"".join([*begun, end])
            lines.append(b"data:" + _readable(line[5:]) if line.startswith(b"data:") else line)
            begun = []
            size = size + len(end) if line.strip() else 0
            _check(size, limit)
        size += len(rest)
        _check(size, limit)
        if rest:
            begun.append(rest)
        if lines:
            yield b"".join(line + b"\n" for line in lines)


def _check_is_plain(is_packed: bool) -> None:
    if is_packed:
        raise _NotTaken("its answer is packed, which was not asked for")


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise _NotTaken(f"its answer has more than {limit:,} bytes")


def _readable(message: bytes) -> bytes:
    """What lies too deep for the SDK's parser is cut off, so that the rest of the message can be read."""
    from pydantic_core import from_json

    try:
        from_json(message)
    except ValueError:
        return without_depths(message) or message
    return message
