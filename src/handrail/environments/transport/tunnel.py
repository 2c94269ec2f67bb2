"""A tunnel: lets commands in a container, or on another host, reach the proxy of their task here.

A Python there listens on its loopback. Each connection that it accepts is carried through its input and output, and made here to
the proxy. The text of this module is what runs there, so both ends need nothing but Python 3.8:

    python3 -c TEXT 41234 60 /tmp/x.pem     listen on port 41234; end 60 seconds after the last frame (0: never); write the file

A frame is kind, number of the connection, length, body:

    O   a connection was accepted           D   a piece of its data
    A   a piece was passed on               E   no more data comes
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Callable  # noqa: UP035  Python 3.8 knows no other place

if TYPE_CHECKING:
    from .channel import Transport

_FRAME = struct.Struct(">cIi")
_SIZE = struct.Struct(">i")
_READY = b"\0handrail-tunnel\0"
_PIECE_BYTES, _PIECES = 1 << 15, 16  # so much of a connection is under way at most
_START_SECONDS = _SEND_SECONDS = 60.0
_MAX_NOISE_BYTES = 1 << 20
_KEEP_ALIVES_PER_TIMEOUT = 8


class Carrier:
    """One end. `receive` gives bytes, and none at the end; `connect` makes the connections that the other end has accepted."""

    def __init__(
        self,
        receive: Callable[[], bytes],
        send: Callable[[bytes], None],
        connect: Callable[[], socket.socket] | None = None,
    ) -> None:
        self._receive, self._send, self._connect = receive, send, connect
        self._sending, self._buffer = threading.Lock(), bytearray()
        self.streams: dict[int, _Stream] = {}

    def take(self, size: int) -> bytes:
        """Raises EOFError."""
        while len(self._buffer) < size:
            piece = self._receive()
            if not piece:
                raise EOFError
            self._buffer += piece
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def serve(self) -> None:
        """Until the other end is gone."""
        try:
            while True:
                kind, number, size = _FRAME.unpack(self.take(_FRAME.size))
                self._on_frame(kind, number, self.take(size))
        except (EOFError, OSError):
            for stream in list(self.streams.values()):
                stream.abandon()

    def _on_frame(self, kind: bytes, number: int, body: bytes) -> None:
        if kind == b"O" and self._connect is not None:
            try:
                self.add(number, self._connect())
            except OSError:
                self.send(b"E", number)
        stream = self.streams.get(number)
        if stream is None:
            return
        if kind == b"A":
            stream.room.release()
        elif kind in (b"D", b"E"):
            stream.arrived.put(body)

    def add(self, number: int, sock: socket.socket) -> None:
        self.streams[number] = stream = _Stream(self, number, sock)
        if self._connect is None:
            self.send(b"O", number)
        for work in (stream.read, stream.write):
            threading.Thread(target=work, name="handrail-tunnel", daemon=True).start()

    def send(self, kind: bytes, number: int, body: bytes = b"") -> None:
        with self._sending, contextlib.suppress(OSError):  # the receiver finds out
            self._send(_FRAME.pack(kind, number, len(body)) + body)


class _Stream:
    """A connection. Two threads carry its data, so that one that nobody reads holds up no other."""

    def __init__(self, carrier: Carrier, number: int, sock: socket.socket) -> None:
        self._carrier, self._number, self._sock = carrier, number, sock
        self.room = threading.Semaphore(_PIECES)
        self.arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._open_ways, self._lock = 2, threading.Lock()

    def read(self) -> None:
        piece = b"first"
        while piece:
            self.room.acquire()
            try:
                piece = self._sock.recv(_PIECE_BYTES)
            except OSError:
                piece = b""
            self._carrier.send(b"D" if piece else b"E", self._number, piece)
        self._end_way()

    def write(self) -> None:
        while piece := self.arrived.get():
            try:
                self._sock.sendall(piece)
            except OSError:  # it is not read any more, and the other end is told so
                self._shut(socket.SHUT_RDWR)
            self._carrier.send(b"A", self._number)
        self._shut(socket.SHUT_WR)
        self._end_way()

    def abandon(self) -> None:
        self._shut(socket.SHUT_RDWR)
        self.arrived.put(b"")
        self.room.release()

    def _shut(self, how: int) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(how)

    def _end_way(self) -> None:
        with self._lock:
            self._open_ways -= 1
        if not self._open_ways:
            self._sock.close()
            self._carrier.streams.pop(self._number, None)


class Tunnel:
    """This end. Raises Fatal if the other one cannot be started. `file` is written there, at `path`."""

    def __init__(self, transport: Transport, proxy: tuple[str, int], port: int, path: str, file: bytes) -> None:
        from ..shell_host.connection import Fatal, Lost
        from .session import keep_alive

        words = ("-I", "-S", "-c", _source(), str(port), f"{transport.client_timeout:g}", path)
        self._channel = channel = transport.open(words)
        end, noise, self.is_alive = time.monotonic() + _START_SECONDS, bytearray(), True
        try:
            channel.send(_SIZE.pack(len(file)) + file, end)
            while _READY not in noise and len(noise) < _MAX_NOISE_BYTES:
                noise += channel.receive(end)
        except Lost:
            failure = channel.failure(bytes(noise))
            channel.close()
            raise Fatal(f"no way out of {channel.where}: {failure}") from None

        def receive() -> bytes:
            try:
                return channel.receive(None)
            except Lost:
                self.is_alive = False
                return b""

        def send(data: bytes) -> None:
            try:
                channel.send(data, time.monotonic() + _SEND_SECONDS)
            except Lost as error:
                raise OSError(str(error)) from None

        carrier = Carrier(receive, send, lambda: socket.create_connection(proxy))
        threading.Thread(target=carrier.serve, name="handrail-tunnel", daemon=True).start()
        self._keep_alive = lambda: carrier.send(b"A", 0)
        if transport.client_timeout:
            keep_alive.add(self._keep_alive, every=transport.client_timeout / _KEEP_ALIVES_PER_TIMEOUT)

    def close_inherited(self) -> None:
        self._channel.close_inherited()

    def close(self) -> None:
        from .session import keep_alive

        keep_alive.remove(self._keep_alive)
        self._channel.close()


def _source() -> str:
    from importlib.resources import files  # not where the text itself runs

    return (files(__package__) / "tunnel.py").read_text(encoding="utf-8")


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main(port: int, seconds: float, path: str) -> None:
    """The other end. The file goes with it."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write("handrail-tunnel")

    def receive() -> bytes:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return os.read(0, 1 << 16)

    def end(*_: object) -> None:
        if path:
            os.unlink(path)
        os._exit(0)

    carrier = Carrier(receive, _write_all)
    (size,) = _SIZE.unpack(carrier.take(_SIZE.size))
    content = carrier.take(size)
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    if path:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    _write_all(_READY)

    def accept() -> None:
        number = 0
        while True:
            number += 1
            carrier.add(number, listener.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    carrier.serve()
    end()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
    except OSError as error:
        sys.exit(f"handrail: {error}")
