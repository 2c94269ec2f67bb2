"""Who holds connections without asking for anything holds nobody else."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from handrail.serve.connection_limits import protocol

from ..support import wait_until

MOST = 8


class Listening:
    """A server whose answers to `/slow` end when `over` is set."""

    def __init__(self, **limits: Any) -> None:
        self.over = threading.Event()
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.address = listening.getsockname()
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            http=protocol(MOST, **limits),
            lifespan="off",
            log_level="critical",
            timeout_keep_alive=600,
        )
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self._thread.start()
        wait_until(lambda: self.server.started, timeout=30)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        import asyncio

        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        if scope["path"] == "/slow":
            await send({"type": "http.response.body", "body": b"o", "more_body": True})
            while not self.over.is_set():  # noqa: ASYNC110  set by another thread
                await asyncio.sleep(0.01)
            await send({"type": "http.response.body", "body": b"k"})
        else:
            await send({"type": "http.response.body", "body": b"ok"})

    def connect(self, said: bytes = b"") -> socket.socket:
        made = socket.create_connection(self.address, timeout=30)
        made.sendall(said)
        return made

    def asked(self, path: str) -> socket.socket:
        """Somebody whose question came in time, and whose answer has begun."""
        while True:
            line = self.connect(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            said = b""
            while (piece := line.recv(65536)) and not (said := said + piece).partition(b"\r\n\r\n")[2]:
                pass
            if said.endswith((b"o", b"ok")):
                return line
            line.close()

    def is_served(self) -> bool:
        with self.connect(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n") as line:
            return _all_of(line).endswith(b"ok")

    def close(self) -> None:
        self.over.set()
        self.server.should_exit = True
        self._thread.join()


hurried = pytest.mark.parametrize("listening", [{"header_seconds": 0.2}], indirect=True)


@pytest.fixture
def listening(request: pytest.FixtureRequest) -> Iterator[Listening]:
    made = Listening(**getattr(request, "param", {}))
    yield made
    made.close()


def _all_of(line: socket.socket) -> bytes:
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := line.recv(65536):
            said += piece
    return said


@hurried
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: "])
def test_who_does_not_come_to_the_point_is_hung_up_on(listening: Listening, said: bytes) -> None:
    with listening.connect(said) as line:
        assert _all_of(line) == b""


@hurried
def test_a_second_request_has_no_more_time_than_the_first(listening: Listening) -> None:
    with listening.asked("/") as line:
        with contextlib.suppress(OSError):
            line.sendall(b"GET / HTTP/1.1\r\n")
        assert b"200" not in _all_of(line)


@hurried
def test_letters_one_by_one_buy_no_time(listening: Listening) -> None:
    with listening.connect(b"GET / HTTP/1.1\r\nx-slow: ") as line:
        line.settimeout(0.02)

        def is_over() -> bool:
            try:
                line.sendall(b"a")
                return line.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        wait_until(is_over, timeout=30)


@hurried
def test_who_was_answered_slowly_was_not_idle(listening: Listening) -> None:
    with listening.asked("/slow") as line:
        with listening.connect() as idle:
            assert _all_of(idle) == b""  # its time was over, and the other's was not
        listening.over.set()
        assert line.recv(1) == b"k"


def test_any_number_of_silent_ones_keeps_nobody_out(listening: Listening) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20 * MOST):
            stack.enter_context(listening.connect(b"GET / HTTP"))
        assert listening.is_served()
        assert len(listening.server.server_state.connections) <= MOST + 1


def test_who_comes_when_all_are_busy_is_told_so(listening: Listening) -> None:
    with contextlib.ExitStack() as stack:
        busy = [stack.enter_context(listening.asked("/slow")) for _ in range(MOST)]
        with listening.connect(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n") as late:
            head, _, text = _all_of(late).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in head
        assert json.loads(text)["error_type"] == "too_many"
        listening.over.set()
        assert all(line.recv(1) == b"k" for line in busy)
    wait_until(listening.is_served, timeout=30)
