"""Connections are bounded: who says nothing, or says it letter by letter, is hung up on, sooner when others want to come in.

uvicorn has no limit for the time that a request's head takes, nor for connections that ask for nothing.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
_MAX_CONNECTIONS = 2_000
_MAX_AT_THE_DOOR = 2_048
_GOODBYE_SECONDS = 2.0
_TEXT = b'{"error": "too many are connected; try again in some seconds", "error_type": "too_many"}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_TEXT), _TEXT)
)


def most_connections() -> int:
    """Half of the files that this process may open: the calls that are asked for need some, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(_MAX_CONNECTIONS, max(1, soft // 2))


def protocol(most: int, *, header_seconds: float = HEADER_SECONDS) -> type[Impatient]:
    """For one server. Who comes when `most` are there takes the place of the one that is idle for longest."""
    return type("Impatient", (Impatient,), {"most": most, "header_seconds": header_seconds, "idle": {}})


class PatientServer(uvicorn.Server):
    """Lets many wait at the door. asyncio has one number for them and for how many it lets in at once, which has to be small."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in [each for server in self.servers for each in server.sockets]:
            with listening.dup() as door:
                door.listen(_MAX_AT_THE_DOOR)


class Impatient(H11Protocol):
    """A connection. `idle` are those of the same server without a request under way, the longest first."""

    most: ClassVar[int]
    header_seconds: ClassVar[float]
    idle: ClassVar[dict[Impatient, None]]
    _waiting: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) <= self.most:
            self._look()
        elif self.idle:
            next(iter(self.idle)).hang_up()
            self._look()
        else:
            self._refuse()

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)
            self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def hang_up(self) -> None:
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.close()

    def _look(self) -> None:
        """Wait for a head, unless a request is under way."""
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

    def _refuse(self) -> None:
        """Say why, and leave some time to read it: what is closed with unread words in it is lost on the way."""
        self._is_refused = True
        self.transport.write(_FULL)
        if len(self.connections) > self.most + self.most // 4:
            self.hang_up()
            return
        self.transport.write_eof()
        self._waiting = self.loop.call_later(_GOODBYE_SECONDS, self.hang_up)
