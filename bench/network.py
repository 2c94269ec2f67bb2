"""Figures of the proxy that commands go through, and of connections that wait for an answer."""

from __future__ import annotations

import multiprocessing
import os
import socket
import ssl
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

from handrail.app import Handrail
from handrail.egress.certificates import Authority
from handrail.egress.networks import Networks
from handrail.net.url_guard import parse_hosts
from handrail.protocols import ApprovalRequest, Decision
from handrail.settings.schema import Config
from handrail.settings.services import NetworkConfig

from .harness import Figure, alternating, milliseconds

_HOST = "files.example.test"
_MEGABYTES, _REQUESTS = 100, 1000
_ANSWERS = 11


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder, _site() as (port, trusted):
        (ca := Path(folder) / "ca.pem").write_bytes(trusted)
        networks = Networks(Config(network=NetworkConfig(contain="on", allow=(_HOST,), resolve={_HOST: "127.0.0.1"})))
        try:
            variables = networks.variables("bench", asks=True)
            big, small = f"https://{_HOST}:{port}/big", f"https://{_HOST}:{port}/small?[1-{_REQUESTS}]"

            def download(url: str, *, through: bool) -> float:
                words = [
                    "curl",
                    "-sSf",
                    "--cacert",
                    str(ca),
                    "-o",
                    "/dev/null",
                    "--resolve",
                    f"{_HOST}:{port}:127.0.0.1",
                    url,
                ]
                env = {"PATH": os.environ["PATH"], **(variables if through else {})}
                start = time.perf_counter()
                subprocess.run(words, env=env, check=True)
                return time.perf_counter() - start

            for what, url, limit in (
                (f"a download of {_MEGABYTES} MB through the proxy", big, 1.2),
                (f"{_REQUESTS} small requests through the proxy", small, 1.5),
            ):
                ours, floor = partial(download, url, through=True), partial(download, url, through=False)
                mine, base, ratio = alternating(ours, floor)
                yield Figure(what, milliseconds(mine), milliseconds(base), ratio, limit)
        finally:
            networks.close()
    yield _answered()


def _answered() -> Figure:
    """From the approver's yes until a connection that waited in the kernel has arrived."""
    times, answered = [], 0.0

    class Person:
        name = "person"

        def decide(self, _: ApprovalRequest) -> Decision:
            nonlocal answered
            answered = time.perf_counter()
            return Decision.ONCE

    with socket.create_server(("127.0.0.1", 0)) as server, Handrail(Config(), approver=Person()) as app:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        for _ in range(_ANSWERS):
            call = threading.Thread(target=app.handle_function_call, args=("terminal", {"command": connect}, "t"))
            call.start()
            server.accept()[0].close()
            times.append(time.perf_counter() - answered)
            call.join()
    took = statistics.median(times)
    return Figure("a yes, to the connection that waited", milliseconds(took), "100 ms", took / 0.1, 1)


@contextmanager
def _site() -> Iterator[tuple[int, bytes]]:
    """A server in a process of its own: its port, and whom to trust."""
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        yield mine.recv()
    finally:
        server.kill()
        server.join()


class _Files(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        is_big = self.path.startswith("/big")
        self.send_response(200)
        self.send_header("content-length", str(_MEGABYTES << 20 if is_big else 200))
        self.end_headers()
        if is_big:
            piece = bytes(1 << 20)
            for _ in range(_MEGABYTES):
                self.wfile.write(piece)
        else:
            self.wfile.write(b"x" * 200)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def _serve(connection: Connection) -> None:
    authority = Authority(parse_hosts([_HOST], "bench"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    context: ssl.SSLContext = authority.context(_HOST)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    connection.send((server.server_address[1], authority.pem))
    server.serve_forever()
