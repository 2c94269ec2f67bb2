"""Limits connections: idle clients and those that send too slowly are disconnected, sooner if others want to connect.

uvicorn limits neither the time to send a request's head nor the number of idle connections.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .endpoint import SECURITY_HEADERS

HEADER_SECONDS = 10.0
_MAX_CONNECTIONS = 2_000
_MAX_BACKLOG = 2_048
_REFUSAL_SECONDS = 2.0
_TEXT = b'{"error": "too many connections; try again in a few seconds", "error_type": "too_many"}'
_HEADERS = "".join(f"{name}: {value}\r\n" for name, value in SECURITY_HEADERS.items()).encode()
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\n"
    b"%scontent-length: %d\r\n\r\n%s" % (_HEADERS, len(_TEXT), _TEXT)
)


def max_connections() -> int:
    """Half of the files that this process may open: the calls need some, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(_MAX_CONNECTIONS, max(1, soft // 2))


def protocol(limit: int, *, header_seconds: float = HEADER_SECONDS) -> type[LimitedConnection]:
    """The connection class of one server. Over `limit`, a new connection replaces the one that has been idle longest."""
    values = {"limit": limit, "header_seconds": header_seconds, "idle": {}}
    return type("LimitedConnection", (LimitedConnection,), values)


class BacklogServer(uvicorn.Server):
    """A long backlog. asyncio has one number for it and for how many it accepts at once, which has to be small."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in [each for server in self.servers for each in server.sockets]:
            with bound.dup() as listener:
                listener.listen(_MAX_BACKLOG)


class LimitedConnection(H11Protocol):
    """A connection. `idle` are the server's connections without a request in progress, the longest idle first."""

    limit: ClassVar[int]
    header_seconds: ClassVar[float]
    idle: ClassVar[dict[LimitedConnection, None]]
    _waiting: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) <= self.limit:
            self._watch()
        elif self.idle:
            next(iter(self.idle)).hang_up()
            self._watch()
        else:  # send the reason and leave time to read it: it would be lost if we closed with unread data
            self._is_refused = True
            self.transport.write(_FULL)
            if len(self.connections) > self.limit + self.limit // 4:
                self.hang_up()
                return
            self.transport.write_eof()
            self._waiting = self.loop.call_later(_REFUSAL_SECONDS, self.hang_up)

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def hang_up(self) -> None:
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.close()

    def _watch(self) -> None:
        """Start the timer for the next head, unless a request is in progress."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None and not self.transport.is_closing():
            self._waiting = self.loop.call_later(self.header_seconds, self.hang_up)
            self.idle[self] = None

    def _stop_waiting(self) -> None:
        self.idle.pop(self, None)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's signature
        """What is not HTTP is answered here, with the headers of all other answers."""
        text = b'{"error": "this is not an HTTP request", "error_type": "bad_request"}'
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"%scontent-length: %d\r\n\r\n%s" % (_HEADERS, len(text), text)
        )
        self.transport.close()
