"""The way out of a task's commands: an HTTP and SOCKS5 proxy on loopback.

It decides about every host, looks names up itself and connects to the address that it has checked. In connections to hosts that
have a key it ends TLS, and puts the key in; all others it cannot look into.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hmac
import ipaddress
import secrets
import socket
import ssl
from collections.abc import Awaitable
from urllib.parse import urlsplit

from ..errors import HandrailError
from .certificates import Authority
from .hosts import plain_host
from .http_messages import PIECE_BYTES, BadMessage, Exchange, Head, Prepared, ReadBody, Server, Streams, parse_head
from .keys import TaskKeys, check_host
from .programs import program_of
from .questions import Questions
from .relay import join

_HEAD_SECONDS, _CONNECT_SECONDS, _HANDSHAKE_SECONDS = 30.0, 20.0, 20.0
_MAX_HEAD = 65_536
_USER = "handrail"
_HOP = ("proxy-authorization", "proxy-connection", "proxy-authenticate")
_SOCKS, _SOCKS_FAILED = b"\x05", b"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"


class Proxy:
    """Of one task. Whoever uses it has to know its `token`. `keys` and `authority` are given together, or neither."""

    def __init__(
        self, questions: Questions, keys: TaskKeys | None = None, authority: Authority | None = None, ca_file: str = ""
    ) -> None:
        self.token = secrets.token_urlsafe(18)
        self._questions, self._keys, self._authority, self._ca_file = questions, keys, authority, ca_file
        self._listener: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Its URL, with the token."""
        self._listener = listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        listener.setblocking(False)
        self._keep(self._accept(listener))
        return f"http://{_USER}:{self.token}@127.0.0.1:{listener.getsockname()[1]}"

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()

    def _keep(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        assert isinstance(task, asyncio.Task)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError:  # too many open files: those that end make room
                await asyncio.sleep(0.05)
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._keep(_Client(self, sock).serve())

    # What its clients need

    def may_enter(self, head: Head) -> bool:
        given = "".join(head.values("proxy-authorization")).partition(" ")[2]
        return self.knows(base64.b64encode(f"{_USER}:{self.token}".encode()).decode(), given.strip())

    def knows(self, expected: str, given: str) -> bool:
        return hmac.compare_digest(expected.encode(), given.encode())

    async def connect(self, host: str, port: int, program: str) -> socket.socket:
        """Raises HandrailError for what may not be, or cannot be, reached."""
        problem: Exception | None = None
        for address in await self._questions.addresses(host, port, program):
            family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await asyncio.get_running_loop().sock_connect(sock, (address, port))
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            except (OSError, TimeoutError) as error:
                problem = error
                sock.close()
            except BaseException:
                sock.close()
                raise
        raise OSError(f"{host} cannot be connected to: {problem or 'it has no address'}")

    async def check(self, host: str, port: int, program: str) -> None:
        await self._questions.addresses(host, port, program)

    def ends_tls(self, host: str, port: int) -> bool:
        return self._keys is not None and self._keys.is_for(host, port)

    def context_for(self, host: str) -> ssl.SSLContext:
        assert self._authority is not None
        return self._authority.context(host)

    async def open_stream(self, server: Server, program: str) -> Streams:
        sock = await self.connect(server.host, server.port, program)
        tls = {"ssl": self._upstream, "server_hostname": server.host} if server.is_tls else {}
        try:
            return await asyncio.open_connection(sock=sock, limit=PIECE_BYTES, **tls)  # type: ignore[arg-type]
        except ssl.SSLError as error:
            raise OSError(f"{server.host} has no certificate that is trusted here: {error.reason}") from None

    @functools.cached_property
    def _upstream(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._ca_file:
            context.load_verify_locations(self._ca_file)
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def prepared(self, head: Head, read_body: ReadBody, server: Server, program: str) -> Prepared:
        """The request as the server gets it. Raises HandrailError, or BadMessage."""
        if self._keys is None:
            return Prepared(head, server)
        await self._refuse_misplaced(self._keys.misplaced_in(head, server.host, server.port), server, program)
        if not server.is_tls:
            return Prepared(head, server)
        check_host(head, server.host)
        body = await read_body() if self._keys.needs_body(head, server.host, server.port) else None
        head, hidden = await self._keys.put_in(head, body, server.host, server.port)
        # Compressed, a value could not be found in the answer.
        return Prepared(head.without("accept-encoding").plus("Accept-Encoding", "identity"), server, hidden, body)

    async def inspect(self, server: Server, data: bytes, program: str) -> None:
        if self._keys is not None:
            await self._refuse_misplaced(self._keys.misplaced(data, server.host, server.port), server, program)

    async def _refuse_misplaced(self, secret: str, server: Server, program: str) -> None:
        if secret:
            await self._questions.misplaced(secret, server.host, server.port, program)

    def tell(self, why: str) -> None:
        self._questions.refuse(why)


class _Client:
    """One connection of a command."""

    def __init__(self, proxy: Proxy, sock: socket.socket) -> None:
        self._proxy, self._sock = proxy, sock
        self._writer: asyncio.StreamWriter | None = None

    @functools.cached_property
    def _program(self) -> str:
        return program_of(self._sock.getpeername()[1]) or "a command"

    async def serve(self) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                data = await self._receive(b"")
                while data and not data.startswith(_SOCKS) and b"\r\n\r\n" not in data:
                    data = await self._receive(data)
            if data.startswith(_SOCKS):
                await self._socks()
            elif data:
                await self._http(data)
        except (HandrailError, BadMessage, OSError, ValueError) as error:
            await self._fail(error)
        except (TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            if self._writer is not None:
                self._writer.close()
            self._sock.close()

    async def _receive(self, before: bytes) -> bytes:
        more = await asyncio.get_running_loop().sock_recv(self._sock, _MAX_HEAD)
        if len(before) + len(more) > _MAX_HEAD:
            raise BadMessage("its head is too long")
        return before + more if more else b""

    async def _send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._sock, data)

    async def _fail(self, error: Exception) -> None:
        """Say in the answer why there is none. A tunnel that has begun just ends."""
        status = "403 Forbidden" if isinstance(error, HandrailError) else "502 Bad Gateway"
        status = "400 Bad Request" if isinstance(error, BadMessage | ValueError) else status
        body = f"Handrail: {error}\n".encode()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Handrail-Refused: 1\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        with contextlib.suppress(OSError, RuntimeError):
            if self._writer is None:
                await self._send(head.encode() + body)
            else:
                self._writer.write(head.encode() + body)
                await self._writer.drain()

    async def _http(self, data: bytes) -> None:
        raw, _, rest = data.partition(b"\r\n\r\n")
        head = parse_head(raw + b"\r\n\r\n")
        method, target, _ = head.first.split(" ")
        if not self._proxy.may_enter(head):
            await self._send(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n"
                b'Proxy-Authenticate: Basic realm="handrail"\r\n\r\n'
            )
            return
        if method == "CONNECT":
            parts = urlsplit(f"//{target}")
            host, port = plain_host(parts.hostname or ""), parts.port or 443
            await self._tunnel(host, port, b"HTTP/1.1 200 Connection established\r\n\r\n", rest)
            return
        streams = await self._streams(data)
        await Exchange(streams, self._plain, self._open, self._inspect).run()

    async def _tunnel(self, host: str, port: int, ready: bytes, rest: bytes) -> None:
        proxy, target = self._proxy, Server(host, port, is_tls=True)
        if not proxy.ends_tls(host, port):
            with await proxy.connect(host, port, self._program) as server:
                await asyncio.get_running_loop().sock_sendall(server, rest)
                await self._send(ready)
                with contextlib.suppress(OSError):
                    await join(self._sock, server)
            return
        if rest:
            raise BadMessage("it has bytes after the head")
        await proxy.check(host, port, self._program)
        await self._send(ready)
        try:
            streams = await self._streams(b"", proxy.context_for(host))
        except (ssl.SSLError, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            proxy.tell(
                f"{self._program} does not trust this task's authority for {host}, where a key is put in ({reason}); "
                "its certificates are in $SSL_CERT_FILE"
            )
            return

        async def prepare(head: Head, read_body: ReadBody) -> Prepared:
            return await proxy.prepared(head, read_body, target, self._program)

        await Exchange(streams, prepare, self._open, self._inspect).run()

    async def _plain(self, head: Head, read_body: ReadBody) -> Prepared:
        """A request of plain HTTP, whose first line has the whole URL."""
        method, url, version = head.first.split(" ")
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise BadMessage("only http URLs come here; https goes through CONNECT")
        server = Server(plain_host(parts.hostname), parts.port or 80, is_tls=False)
        path = url.split("://", 1)[1].partition("/")[2]
        direct = Head(f"{method} /{path} {version}", head.without(*_HOP, "host").fields)
        direct = direct.plus("Host", parts.netloc.rpartition("@")[2])
        return await self._proxy.prepared(direct, read_body, server, self._program)

    async def _open(self, server: Server) -> Streams:
        return await self._proxy.open_stream(server, self._program)

    async def _inspect(self, server: Server, data: bytes) -> None:
        await self._proxy.inspect(server, data, self._program)

    async def _streams(self, first: bytes, tls: ssl.SSLContext | None = None) -> Streams:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=PIECE_BYTES, loop=loop)
        if first:
            reader.feed_data(first)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        seconds = _HANDSHAKE_SECONDS if tls is not None else None
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, self._sock, ssl=tls, ssl_handshake_timeout=seconds
        )
        self._writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return reader, self._writer

    async def _socks(self) -> None:
        """SOCKS5 with the token as password. Its greeting has been received."""
        await self._send(b"\x05\x02")
        login = await self._received(2)
        user = await self._received(login[1])
        password = await self._received((await self._received(1))[0])
        if user.decode() != _USER or not self._proxy.knows(self._proxy.token, password.decode()):
            await self._send(b"\x01\x01")
            return
        await self._send(b"\x01\x00")
        _, command, _, kind = await self._received(4)
        if kind == 3:
            host = (await self._received((await self._received(1))[0])).decode()
        else:
            host = str(ipaddress.ip_address(await self._received(4 if kind == 1 else 16)))
        port = int.from_bytes(await self._received(2), "big")
        try:
            if command != 1:
                raise ValueError("only connections are made")
            await self._tunnel(plain_host(host), port, b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", b"")
        except (HandrailError, OSError, ValueError):
            with contextlib.suppress(OSError):
                await self._send(_SOCKS_FAILED)

    async def _received(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = await asyncio.get_running_loop().sock_recv(self._sock, size - len(data))
            if not more:
                raise ConnectionResetError("it ended early")
            data += more
        return data
