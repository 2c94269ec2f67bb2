"""The connection between the driver and its workers: calls of one object's methods, over a socket, with a key that both know.

Values cross it as pickles, which is safe only after both sides have proved that they have the key.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from multiprocessing.context import AuthenticationError
from typing import Any, NamedTuple, Protocol, cast

from ..base.workers import pool
from ..errors import HandrailError

log = logging.getLogger(__name__)
Handle = Callable[[str, str, tuple[Any, ...]], Any]


class Address(NamedTuple):
    """Where the driver listens, with the key that lets workers in."""

    host: str
    port: int
    key: bytes


class LinkLost(HandrailError):
    """The driver is gone, or cannot be reached."""


class Server:
    """Calls `handle(worker, method, arguments)` for what workers ask, and `lost(worker)` when a connection ends. Each
    connection has a thread."""

    def __init__(self, host: str, handle: Handle, lost: Callable[[str], object]) -> None:
        self._handle, self._lost = handle, lost
        self._listener = Listener((host, 0), "AF_INET", backlog=128)
        self._open: set[Connection] = set()
        self._closed = threading.Event()
        name, port = cast("tuple[str, int]", self._listener.address)
        self.address = Address(name, port, os.urandom(32))
        self._thread = threading.Thread(target=self._accept, name="handrail-batch-link", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        with contextlib.suppress(OSError), socket.create_connection(self.address[:2], timeout=5):
            pass  # wakes the thread that accepts
        self._thread.join()
        self._listener.close()
        for connection in tuple(self._open):
            _shut(connection)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connection = self._listener.accept()
            except OSError:
                continue
            if self._closed.is_set():
                connection.close()
                return
            pool.submit(lambda each=connection: self._serve(each))

    def _serve(self, connection: Connection) -> None:
        worker = ""
        self._open.add(connection)
        try:
            deliver_challenge(connection, self.address.key)
            answer_challenge(connection, self.address.key)
            _send_at_once(connection)
            worker = str(connection.recv())
            while True:
                method, arguments = connection.recv()
                connection.send(self._answered(worker, method, arguments))
        except (EOFError, OSError, AuthenticationError):
            pass
        finally:
            self._open.discard(connection)
            connection.close()
            if worker and not self._closed.is_set():
                self._lost(worker)

    def _answered(self, worker: str, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        try:
            return True, self._handle(worker, method, arguments)
        except HandrailError as error:
            return False, error
        except Exception as error:
            log.exception("the driver failed to %s for %s", method, worker)
            return False, HandrailError(f"{method} failed: {type(error).__name__}: {error}")


class Requests(Protocol):
    """What a worker needs of its driver."""

    def call(self, method: str, *arguments: Any) -> Any: ...


class Link:
    """A worker's side. One call at a time, from any thread."""

    def __init__(self, address: Address, worker: str) -> None:
        self._lock = threading.Lock()
        try:
            self._connection = Client(address[:2], "AF_INET", authkey=address.key)
            _send_at_once(self._connection)
            self._connection.send(worker)
        except (OSError, EOFError, AuthenticationError) as error:
            raise LinkLost(f"the driver at {address.host} cannot be reached: {error}") from None

    def call(self, method: str, *arguments: Any) -> Any:
        """What the driver's method returns or raises. Raises LinkLost."""
        try:
            with self._lock:
                self._connection.send((method, arguments))
                is_value, value = self._connection.recv()
        except (OSError, EOFError) as error:
            raise LinkLost(f"the driver is gone: {type(error).__name__}") from None
        if is_value:
            return value
        raise value

    def close(self) -> None:
        _shut(self._connection)


def _send_at_once(connection: Connection) -> None:
    """A long message is two writes, and the second would wait for the other side to have acknowledged the first."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _shut(connection: Connection) -> None:
    """Ends it also for a thread that waits for it, which then closes it."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)
