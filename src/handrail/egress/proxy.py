"""An HTTP proxy on loopback: the way out of a task's commands, and of its browser. It decides about every host, looks names up
itself and connects to the address that it has checked. In connections to hosts that have a key it ends TLS, and puts the key
in; into all others it cannot look."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hmac
import ipaddress
import os
import re
import secrets
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from ..errors import HandrailError
from ..net.url_guard import plain_host
from . import http_messages as http
from .http_messages import BadMessage, Head, Prepared, ReadBody, Server, Streams
from .keys import TaskKeys, check_host

if TYPE_CHECKING:
    from .certificates import Authority

REFUSED_HEADER = "x-handrail-refused"
_HEAD_SECONDS, _CONNECT_SECONDS, _HANDSHAKE_SECONDS = 30.0, 20.0, 20.0
_MAX_HEAD = 65_536
_USER, _HERE = "handrail", "127.0.0.1"
_HOP = ("proxy-authorization", "proxy-connection", "host")
_READY = b"HTTP/1.1 200 Connection established\r\n\r\n"
_FIRST_SECONDS = 1.0  # a client of TLS speaks first, and at once
_PIECE_BYTES = 1 << 18
_MAX_ENTRANCES = 64
_WATCHER = "handrail-fork"  # see effect_server.py

# Finds the name of the program that wants to connect, which takes a moment.
Program = Callable[[], str]


class Way(Protocol):
    """Who decides where connections go: `Questions`."""

    async def addresses(self, host: str, port: int, program: Program) -> list[str]:
        """Where a connection to the host may go now. Raises HandrailError."""

    async def misplaced(self, secret: str, host: str, port: int, program: Program) -> None: ...
    def refuse(self, why: str) -> None: ...


class Proxy:
    """Whoever uses it has to know its token, unless it `is_open`. `keys` and `authority` are given together, or neither."""

    def __init__(
        self,
        way: Way,
        keys: TaskKeys | None = None,
        authority: Authority | None = None,
        *,
        ca_file: str = "",
        is_open: bool = False,
        is_far: bool = False,
    ) -> None:
        self.way, self.keys, self.authority, self._ca_file = way, keys, authority, ca_file
        self.is_far = is_far  # whether its clients come through a tunnel, from where their programs cannot be seen
        self._login = "" if is_open else f"{_USER}:{secrets.token_urlsafe(18)}"
        # By where their connections are led, used last at the end: the port, and what accepts there.
        self._entrances: dict[tuple[str, int] | None, tuple[int, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._one_search = asyncio.Lock()

    async def start(self) -> str:
        """Its URL, with the token."""
        return f"http://{self._login and self._login + '@'}{self.entrance(None)}"

    def entrance(self, to: tuple[str, int] | None) -> str:
        """The address and port for connections of programs that ignore proxies, and mean this host and port."""
        found = self._entrances.pop(to, None)
        if found is None:
            listener = socket.create_server((_HERE, 0), backlog=128)
            listener.setblocking(False)
            accepting = self._keep(self._accept(listener, to))
            accepting.add_done_callback(lambda _: listener.close())
            found = listener.getsockname()[1], accepting
        self._entrances[to] = found
        if len(self._entrances) > _MAX_ENTRANCES:
            oldest = next(place for place in self._entrances if place is not None)
            self._entrances.pop(oldest)[1].cancel()
        return f"{_HERE}:{found[0]}"

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket, to: tuple[str, int] | None) -> None:
        while True:
            try:
                sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:  # too many open files: those that end make room
                await asyncio.sleep(0.05)
                continue
            self._keep(_Client(self, sock, to).serve())

    async def may_enter(self, head: Head | None, sock: socket.socket) -> bool:
        """A program that cannot be told the token, such as a JVM, still has it in its environment."""
        given = "".join(head.values("proxy-authorization")).partition(" ")[2].strip() if head is not None else ""
        if not self._login or hmac.compare_digest(base64.b64encode(self._login.encode()), given.encode()):
            return True
        host, port = sock.getpeername()
        if host != _HERE or given or self.is_far:
            return False
        async with self._one_search:  # it reads what every process has open
            found = await asyncio.to_thread(lambda: list(processes_at(port, sock.getsockname()[1])))
        return any(f"//{self._login}@".encode() in _read(f"/proc/{pid}/environ") for pid in found)

    async def connect(self, host: str, port: int, program: Program) -> socket.socket:
        """Raises HandrailError for what may not be reached, and OSError."""
        problem: Exception | None = None
        for address in await self.way.addresses(host, port, program):
            family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await asyncio.get_running_loop().sock_connect(sock, (address, port))
                return sock
            except BaseException as error:
                sock.close()
                if not isinstance(error, OSError):  # a timeout is one too
                    raise
                problem = error
        raise OSError(f"{host} cannot be connected to: {problem or 'it has no address'}")

    async def open_stream(self, server: Server, program: Program) -> Streams:
        sock = await self.connect(server.host, server.port, program)
        tls = {"ssl": self._upstream, "server_hostname": server.host} if server.is_tls else {}
        try:
            return await asyncio.open_connection(sock=sock, limit=http.PIECE_BYTES, **tls)  # type: ignore[arg-type]
        except ssl.SSLError as error:
            raise OSError(f"{server.host} has no certificate that is trusted here: {error.reason}") from None

    @functools.cached_property
    def _upstream(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._ca_file:
            context.load_verify_locations(self._ca_file)
        context.set_alpn_protocols(["http/1.1"])
        return context


class _Client:
    """One connection to a proxy."""

    def __init__(self, proxy: Proxy, sock: socket.socket, to: tuple[str, int] | None) -> None:
        self._proxy, self._sock, self._to = proxy, sock, to
        self._writer: asyncio.StreamWriter | None = None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _program(self) -> str:
        found = "" if self._proxy.is_far else program_of(self._sock.getpeername()[1])
        return found or "a command"

    async def serve(self) -> None:
        try:
            if self._to is not None:
                if await self._proxy.may_enter(None, self._sock):
                    await self._tunnel(*self._to, b"", ready=b"", may_look=await self._begins_with_tls())
                return
            data = b""
            async with asyncio.timeout(_HEAD_SECONDS):
                while b"\r\n\r\n" not in data:
                    more = await asyncio.get_running_loop().sock_recv(self._sock, _MAX_HEAD)
                    if not more or len(data) > _MAX_HEAD:
                        return
                    data += more
            await self._serve(data)
        except asyncio.IncompleteReadError:
            pass  # the client went away
        except (HandrailError, BadMessage, OSError, ValueError) as error:
            await self._fail(error)
        finally:
            if self._writer is not None:
                await http.close_stream(self._writer)
            self._sock.close()

    async def _begins_with_tls(self) -> bool:
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._sock, readable.set)
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await readable.wait()
            return self._sock.recv(2, socket.MSG_PEEK) == b"\x16\x03"
        except OSError:  # a timeout is one too: its server is to begin
            return False
        finally:
            loop.remove_reader(self._sock)

    async def _serve(self, data: bytes) -> None:
        raw, end, rest = data.partition(b"\r\n\r\n")
        head = http.parse_head(raw + end)
        method, target, _ = head.first.split(" ")
        if not await self._proxy.may_enter(head, self._sock):
            await self._send(_answer("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="handrail"'))
        elif method == "CONNECT":
            parts = urlsplit(f"//{target}")
            await self._tunnel(plain_host(parts.hostname or ""), parts.port or 443, rest)
        else:
            await self._exchange(await self._streams(data), None)

    async def _send(self, data: bytes) -> None:
        if self._writer is None:
            await asyncio.get_running_loop().sock_sendall(self._sock, data)
        else:
            self._writer.write(data)
            await self._writer.drain()

    async def _fail(self, error: Exception) -> None:
        """Say in the answer why there is none. A tunnel that has begun just ends, as does a connection that was led here."""
        if self._to is not None and self._writer is None:
            return
        status = "403 Forbidden" if isinstance(error, HandrailError) else "502 Bad Gateway"
        status = "400 Bad Request" if isinstance(error, BadMessage | ValueError) else status
        with contextlib.suppress(OSError, RuntimeError):
            await self._send(_answer(status, f"{REFUSED_HEADER}: 1", f"Handrail: {error}\n"))

    async def _tunnel(self, host: str, port: int, rest: bytes, *, ready: bytes = _READY, may_look: bool = True) -> None:
        proxy = self._proxy
        if not may_look or proxy.keys is None or proxy.authority is None or not proxy.keys.is_for(host, port):
            with await proxy.connect(host, port, self._program) as server:
                await asyncio.get_running_loop().sock_sendall(server, rest)
                await self._send(ready)
                await relay(self._sock, server)
            return
        await proxy.way.addresses(host, port, self._program)
        await self._send(ready)
        try:
            streams = await self._streams(rest, proxy.authority.context(host))
            await self._exchange(streams, Server(host, port, is_tls=True))
        except ssl.SSLError as error:
            if re.search("UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN", str(error.reason)):
                what = f"a program does not trust this task's authority for {host}, where a key is put in"
                proxy.way.refuse(f"{what}; let it use the certificates in $SSL_CERT_FILE")

    async def _exchange(self, streams: Streams, fixed: Server | None) -> None:
        proxy, keys = self._proxy, self._proxy.keys

        async def prepare(head: Head, read_body: ReadBody) -> Prepared:
            head, server = _direct(head) if fixed is None else (head, fixed)
            if keys is None:
                return Prepared(head, server)
            await refuse(keys.misplaced_in(head, server), server)
            if not server.is_tls:
                return Prepared(head, server)
            check_host(head, server.host)
            body = await read_body() if keys.needs_body(head, server) else None
            head, hidden = await keys.put_in(head, body, server)
            # Compressed, a value could not be found in the answer, nor in what a WebSocket gets.
            head = head.without("accept-encoding", "sec-websocket-extensions").plus("Accept-Encoding", "identity")
            return Prepared(head, server, hidden, body)

        async def inspect(server: Server, data: bytes) -> None:
            if keys is not None:
                await refuse(keys.misplaced(data, server), server)

        async def refuse(secret: str, server: Server) -> None:
            if secret:
                await proxy.way.misplaced(secret, server.host, server.port, self._program)

        async def connect(server: Server) -> Streams:
            return await proxy.open_stream(server, self._program)

        await http.Exchange(streams, prepare, connect, inspect).run()

    async def _streams(self, first: bytes, tls: ssl.SSLContext | None = None) -> Streams:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=http.PIECE_BYTES, loop=loop)
        if first and tls is not None:
            raise BadMessage("it has bytes after the head")
        reader.feed_data(first)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        seconds = None if tls is None else _HANDSHAKE_SECONDS
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, self._sock, ssl=tls, ssl_handshake_timeout=seconds
        )
        self._writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return reader, self._writer


def _direct(head: Head) -> tuple[Head, Server]:
    """A request whose first line has the whole URL, as its server gets it."""
    method, url, version = head.first.split(" ")
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise BadMessage("only http URLs come here; https goes through CONNECT")
    path = url.partition("://")[2].removeprefix(parts.netloc)
    first = f"{method} {path if path.startswith('/') else '/' + path} {version}"
    direct = Head(first, head.without(*_HOP).fields).plus("Host", parts.netloc.rpartition("@")[2])
    return direct, Server(plain_host(parts.hostname), parts.port or 80, is_tls=False)


def _answer(status: str, field: str, text: str = "") -> bytes:
    body = text.encode()
    kind = "Content-Type: text/plain; charset=utf-8\r\nConnection: close"
    return f"HTTP/1.1 {status}\r\n{field}\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def relay(client: socket.socket, server: socket.socket) -> None:
    """Until the server is done, or either is gone. Threads do it: an event loop takes longer for a piece than the kernel."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        up = Thread(target=_copy, args=(client, server), name="handrail-tunnel", daemon=True)
        up.start()
        _copy(server, client)
        _shut(client, server)
        up.join()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    for sock in (client, server):
        sock.setblocking(True)
    Thread(target=run, name="handrail-tunnel", daemon=True).start()
    try:
        await ended.wait()
    except asyncio.CancelledError:
        _shut(client, server)
        await ended.wait()  # the numbers of the sockets must not be given to others before
        raise


def _copy(source: socket.socket, target: socket.socket) -> None:
    buffer = memoryview(bytearray(_PIECE_BYTES))
    try:
        while count := source.recv_into(buffer):
            target.sendall(buffer[:count])
        target.shutdown(socket.SHUT_WR)
    except OSError:  # one of them is gone
        _shut(source, target)


def _shut(*sockets: socket.socket) -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):  # it was closed
            sock.shutdown(socket.SHUT_RDWR)


def program_of(port: int, kind: str = "tcp") -> str:
    """The name of a program that has a socket at this local port; empty if that cannot be seen."""
    names = (_read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip() for pid in processes_at(port, kind=kind))
    return next((name for name in names if name != _WATCHER), "")


def processes_at(port: int, peer: int = 0, *, kind: str = "tcp") -> Iterator[str]:
    """The numbers of processes that have a socket at this local port, connected to the port of its `peer`. Several may share
    one, such as the effect watcher, which connects it."""
    wanted = {f"socket:[{inode}]" for inode in _sockets_at(port, peer, kind)}
    for pid in filter(str.isdigit, os.listdir("/proc") if wanted else ()):
        try:
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") in wanted for fd in os.listdir(f"/proc/{pid}/fd")):
                yield pid
        except OSError:  # it has ended, or is somebody else's
            continue


def _sockets_at(port: int, peer: int, kind: str) -> Iterator[str]:
    for table in (f"/proc/net/{kind}", f"/proc/net/{kind}6"):
        for row in (line.split() for line in _read(table).decode().splitlines()[1:]):
            mine, theirs = (int(each.rpartition(":")[2], 16) for each in row[1:3])
            # An address of IPv6 can hold one of IPv4.
            is_exact = theirs == peer and all(each.partition(":")[0].endswith("0100007F") for each in row[1:3])
            if mine == port and row[9] != "0" and (is_exact or not peer):
                yield row[9]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # the process has ended, or is somebody else's
        return b""
