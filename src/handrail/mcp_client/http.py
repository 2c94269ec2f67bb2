"""Connect to a server by HTTP: streamable, or the older transport with server-sent events."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..settings.services import McpServerConfig
from .oauth import Logins, authorized
from .sdk import httpx2, pydantic_core, sse, streamable_http
from .server_config import Server
from .stdio import without_depths

Notify = Callable[[str], None]
# Why nothing may connect to the host of a URL; empty if it may.
WhyDenied = Callable[[str], str]


class Watch(NamedTuple):
    """`refused` gets the reason if an answer is rejected, or a host is, as that of a login may be; `answered` how each was
    answered: the status of an error, or the content type."""

    refused: Notify
    answered: Notify
    why_denied: WhyDenied


@contextlib.asynccontextmanager
async def http_transport(server: Server, settings: McpServerConfig, logins: Logins, watch: Watch) -> AsyncIterator[Any]:
    """The pair of streams that the SDK's client works on."""
    timeout = httpx2.Timeout(settings.connect_timeout, read=settings.timeout + 10)
    headers = dict(settings.headers)
    has_token = any(name.lower() == "authorization" for name in headers)
    made = partial(_client, settings, watch)
    async with contextlib.AsyncExitStack() as stack:
        auth = None if has_token else await stack.enter_async_context(authorized(server, settings, logins))
        if server.way == "sse":
            more: Any = {"timeout": settings.connect_timeout, "httpx_client_factory": made}
            transport = sse.sse_client(settings.url, headers=headers, auth=auth, **more)
        else:
            client = await stack.enter_async_context(made(headers=headers, timeout=timeout, auth=auth))
            more = {"http_client": client, "max_sse_event_size": settings.max_message_bytes}
            transport = streamable_http.streamable_http_client(settings.url, **more)
        yield await stack.enter_async_context(transport)


def _client(settings: McpServerConfig, watch: Watch, headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
    """A client that rejects answers above the limit, and compressed ones."""

    class Limited(httpx2.AsyncByteStream):
        def __init__(self, inner: Any, *, is_stream: bool, is_compressed: bool) -> None:
            self._inner, self._is_compressed = inner, is_compressed
            self._pieces = (_events if is_stream else _whole)(inner, settings.max_message_bytes)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                if self._is_compressed:
                    raise _Rejected("its answer is compressed, which was not requested")
                async for piece in self._pieces:
                    yield piece
            except _Rejected as why:
                watch.refused(str(why))
                raise httpx2.ReadError(str(why)) from None

        async def aclose(self) -> None:
            await self._inner.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: Any) -> Any:
            if why := watch.why_denied(str(request.url)):
                watch.refused(why)
                raise httpx2.ConnectError(why)
            response = await super().handle_async_request(request)
            is_compressed = response.headers.pop("content-encoding", "identity") != "identity"
            content_type = response.headers.get("content-type", "")
            is_error = response.status_code >= 400
            watch.answered(f"{response.status_code} {response.reason_phrase}" if is_error else content_type)
            is_stream = "text/event-stream" in content_type
            response.stream = Limited(response.stream, is_stream=is_stream, is_compressed=is_compressed)
            return response

    headers, transport = {**(headers or {}), "Accept-Encoding": "identity"}, Transport(verify=_tls(settings) or True)
    return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, auth=auth)


def _tls(settings: McpServerConfig) -> ssl.SSLContext | None:
    """With the certificates that are configured; None for the usual ones. Raises ConfigError."""
    if not (settings.ca_file or settings.tls_cert):
        return None
    context = ssl.create_default_context()
    try:
        if settings.ca_file:
            context.load_verify_locations(settings.ca_file)
        if settings.tls_cert:
            context.load_cert_chain(settings.tls_cert, settings.tls_key or None)
    except OSError as error:  # ssl's own errors among them
        files = " ".join(filter(None, (settings.ca_file, settings.tls_cert, settings.tls_key)))
        raise ConfigError(f"its certificates cannot be used ({files}): {error.strerror or error}") from None
    return context


class _Rejected(Exception):
    """Why an answer is rejected."""


async def _whole(inner: Any, limit: int) -> AsyncIterator[bytes]:
    pieces, size = [], 0
    async for piece in inner:
        size += len(piece)
        _check(size, limit)
        pieces.append(piece)
    yield _readable(b"".join(pieces))


async def _events(inner: Any, limit: int) -> AsyncIterator[bytes]:
    """A stream of events may be endless; the limit is per event, which ends with an empty line."""
    partial_line: list[bytes] = []
    size = 0
    async for piece in inner:
        *ends, rest = piece.split(b"\n")
        lines = []
        for end in ends:
            line = b"".join([*partial_line, end])
            lines.append(b"data:" + _readable(line[5:]) if line.startswith(b"data:") else line)
            partial_line = []
            size = size + len(end) if line.strip() else 0
            _check(size, limit)
        size += len(rest)
        _check(size, limit)
        if rest:
            partial_line.append(rest)
        if lines:
            yield b"".join(line + b"\n" for line in lines)


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise _Rejected(f"its answer has more than {limit:,} bytes")


def _readable(message: bytes) -> bytes:
    """The message without what is nested too deeply for the SDK's parser."""
    try:
        pydantic_core.from_json(message)
    except ValueError:
        return without_depths(message) or message
    return message
