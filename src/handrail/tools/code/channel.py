"""The connection to a running script: a Unix socket where it can be reached, else its process's own input and log. A token that
only the script's process was given authenticates the other end; what comes before the token is noise."""

import contextlib
import hmac
import os
import secrets
import select
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from typing import Self

from ...base.temporary_folders import make_folder
from ...environments.base import BackgroundProcess, ProcessState
from ...environments.errors import InputRefused
from ...errors import ToolFailed
from ...types import CancelToken
from .script_host.supervisor import FRAME

Frame = tuple[bytes, int, bytes]

# A packet to the job supervisor has 128 kB, and a byte takes up to six characters there.
_WRITE_BYTES = 16 << 10
_TEXT_BYTES = 48 << 10  # of printable ASCII, of which a byte takes two at most
_WRITE_SECONDS = 10.0
_PAUSE_SECONDS = 0.002
_READ_BYTES = 1 << 20
_POLL_SECONDS = 0.02
_START_SECONDS = 30.0
# Who has connected says the token next; a busy machine may let it wait in between.
_TOKEN_SECONDS = 10.0
_NOISE_BYTES = 4000
MAX_FRAME_BYTES = 16 << 20


class ScriptGone(Exception):
    """The connection has ended."""


class Channel:
    """Frames to and from the script. Any thread may send, one receives."""

    def __init__(self, transport: "SocketTransport | LogTransport", received: bytes = b"") -> None:
        self._transport, self._buffer = transport, bytearray(received)
        self._sending = threading.Lock()

    def frames(self, timeout: float) -> Iterator[Frame]:
        """The complete frames that arrive within `timeout` seconds. Raises ScriptGone."""
        self._buffer += self._transport.receive(timeout)
        while len(self._buffer) >= FRAME.size:
            kind, number, length = FRAME.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise ScriptGone
            if len(self._buffer) < FRAME.size + length:
                return
            data = bytes(self._buffer[FRAME.size : FRAME.size + length])
            del self._buffer[: FRAME.size + length]
            yield kind, number, data

    def send(self, kind: bytes, number: int, data: bytes) -> None:
        """Does nothing when the script has gone: the receiver notices."""
        with self._sending, contextlib.suppress(OSError, InputRefused):
            self._transport.send(FRAME.pack(kind, number, len(data)) + data)


class Listener:
    """Waits for a script to connect. `with_socket`: the script sees the paths of this machine."""

    def __init__(self, *, with_socket: bool) -> None:
        self.token = secrets.token_hex(16)
        self.path = ""
        self._folder: str | None = None
        self._listener: socket.socket | None = None
        self._accepted: socket.socket | None = None
        if not with_socket:
            return
        folder = self._folder = make_folder("code")
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(os.path.join(folder, "code"))
        except OSError:  # the path is too long for a socket: the log is used instead
            return
        self._listener.listen()
        self.path = os.path.join(folder, "code")

    def open(self, process: BackgroundProcess, bundle: bytes, *, cancel: CancelToken) -> Channel:
        """The channel to the script that runs in `process`. Raises ToolFailed when it does not connect."""
        log = LogTransport(process)
        with contextlib.suppress(InputRefused):  # what it printed before it ended says why
            log.send(bundle, piece_bytes=_TEXT_BYTES)
        received, token = b"", self.token.encode()
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            cancel.raise_if_cancelled()
            try:
                if (caller := self._caller()) is not None:
                    return Channel(caller)
                received += log.receive(0.0 if self.path else _POLL_SECONDS)
            except ScriptGone:
                if (caller := self._caller()) is not None:  # it connected, and was done, since the last poll
                    return Channel(caller)
                raise ToolFailed(_not_started(received)) from None
            if token in received:
                return Channel(log, received.partition(token)[2])
        why = "Python takes too long there, or the machine has too much to do"
        raise ToolFailed(f"the script did not start in time: {why}")

    def _caller(self) -> "SocketTransport | None":
        if not self.path or self._listener is None or not _is_ready(self._listener, _POLL_SECONDS):
            return None
        caller, _ = self._listener.accept()
        caller.settimeout(_TOKEN_SECONDS)
        received = b""
        with contextlib.suppress(OSError):
            while len(received) < len(self.token) and (piece := caller.recv(len(self.token) - len(received))):
                received += piece
        if not hmac.compare_digest(received, self.token.encode()):
            caller.close()
            return None
        self._accepted = caller
        return SocketTransport(caller)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._listener, self._accepted):
            if end is not None:
                end.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class SocketTransport:
    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._end.settimeout(None)

    def receive(self, timeout: float) -> bytes:
        """What has arrived; empty after the timeout. Raises ScriptGone."""
        if not _is_ready(self._end, timeout):
            return b""
        try:
            data = self._end.recv(_READ_BYTES)
        except OSError:
            data = b""
        if not data:
            raise ScriptGone
        return data

    def send(self, data: bytes) -> None:
        self._end.sendall(data)


class LogTransport:
    """The input and the log of the script's process: works wherever a process can be started."""

    def __init__(self, process: BackgroundProcess) -> None:
        self._process, self._offset = process, 0

    def receive(self, timeout: float) -> bytes:
        piece = self._process.read(self._offset, max_bytes=_READ_BYTES, timeout=timeout)
        if piece.offset > self._offset:
            raise ScriptGone  # the log overflowed: the frames that follow cannot be read
        if not piece.data and self._process.poll().state is not ProcessState.RUNNING:
            piece = self._process.read(self._offset, max_bytes=_READ_BYTES)
            if not piece.data:
                raise ScriptGone
        self._offset += len(piece.data)
        return piece.data

    def send(self, data: bytes, *, piece_bytes: int = _WRITE_BYTES) -> None:
        end = time.monotonic() + _WRITE_SECONDS
        for at in range(0, len(data), piece_bytes):
            while True:
                try:
                    self._process.write(data[at : at + piece_bytes])
                    break
                except InputRefused:  # it has gone, or has not read the previous data yet
                    if time.monotonic() > end or self._process.poll().state is not ProcessState.RUNNING:
                        raise
                    time.sleep(_PAUSE_SECONDS)


def _is_ready(end: socket.socket, timeout: float) -> bool:
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(timeout * 1000))


def _not_started(printed: bytes) -> str:
    words = printed[-_NOISE_BYTES:].decode("utf-8", "replace").strip()
    if "not found" in words or "No such file" in words:
        cure = "install Python 3.8 or newer there, or set code.python"
        return f"Python is missing where the task's commands run; {cure} ({words})"
    return f"the script could not be started: {words or 'its process ended without output'}"
