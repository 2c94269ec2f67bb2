"""Serve an app by HTTP on this machine, for as long as a test takes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import uvicorn

from ..support import wait_until


def listening() -> socket.socket:
    """A socket on a port that nobody else has."""
    return socket.create_server(("127.0.0.1", 0))


@contextlib.contextmanager
def serving(app: Any, bound: socket.socket | None = None) -> Iterator[str]:
    """The address that the app answers at, without a slash at its end."""
    bound = bound or listening()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        bound.close()
