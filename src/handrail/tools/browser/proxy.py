"""The browser's proxy: it resolves every name itself and connects only where the guard allows.

Rules inside the browser would miss redirects, web sockets and names that change their address; this sees every connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from urllib.parse import urlsplit

from ...errors import HandrailError, ToolError
from ...net.url_guard import Guard, target_of

REFUSED_HEADER = "x-handrail-refused"
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 15.0
_HEAD_BYTES = 65_536
_PIECE_BYTES = 262_144


class GuardProxy:
    """Listens on loopback. `refusals` are the last connections that were not made: the host, and why."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.refusals: deque[tuple[str, ToolError]] = deque(maxlen=50)

    async def address(self) -> str:
        """Where it listens, from now on."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def refusal_of(self, host: str) -> ToolError | None:
        """Why the last connection to the host was not made."""
        return next((error for name, error in reversed(self.refusals) if name == host), None)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the browser sees that the connection is gone
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            method, url, rest = head.decode("latin-1").split(" ", 2)
            is_tunnel = method == "CONNECT"
            target = target_of(f"https://{url}/" if is_tunnel else url)
            server_reader, server_writer = await self._connect(target.host, target.port)
        except HandrailError as error:
            writer.write(_refusal(str(error)))
            await writer.drain()
            return
        except ValueError:
            return
        try:
            if is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server_writer.write(_direct(method, url, rest))
            await _join(reader, writer, server_reader, server_writer)
        finally:
            server_writer.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            addresses = await self._guard.addresses(host, port)
        except ToolError as error:
            self.refusals.append((host, error))
            raise
        problem: Exception | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(address, port, limit=_PIECE_BYTES)
            except (OSError, TimeoutError) as error:
                problem = error
        raise OSError(f"{host} cannot be connected to: {problem}")


def target_host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _direct(method: str, url: str, rest: str) -> bytes:
    """The request as the server expects it. The connection serves this request alone: the next may go to another host."""
    path = "/" + url.split("://", 1)[1].partition("/")[2] if "/" in url.split("://", 1)[1] else "/"
    version, *lines = rest.rstrip("\r\n").split("\r\n")
    kept = [line for line in lines if not line.lower().startswith(("proxy-", "connection:"))]
    return "\r\n".join([f"{method} {path} {version}", *kept, "Connection: close", "", ""]).encode("latin-1")


def _refusal(why: str) -> bytes:
    body = f"<title>Refused</title><p>{why.replace('&', '&amp;').replace('<', '&lt;')}</p>".encode()
    head = (
        f"HTTP/1.1 403 Forbidden\r\n{REFUSED_HEADER}: 1\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _join(
    client_reader: asyncio.StreamReader,
    client_writer: asyncio.StreamWriter,
    server_reader: asyncio.StreamReader,
    server_writer: asyncio.StreamWriter,
) -> None:
    """Relay both ways until the server is done or either side has closed."""
    up = asyncio.ensure_future(_relay(client_reader, server_writer))
    down = asyncio.ensure_future(_relay(server_reader, client_writer))
    try:
        await down
    finally:
        for one in (up, down):
            one.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
