"""A double of public search engines at their wire: a proxy that ends the TLS of two of them and answers for them."""

from __future__ import annotations

import json
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_NAMES = "DNS:en.wikipedia.org,DNS:html.duckduckgo.com,DNS:duckduckgo.com"


class Engines(NamedTuple):
    """Where the proxy is, and the certificate by which its TLS is known. `asked` are the request lines that came."""

    proxy: str
    certificate: Path
    asked: list[str]


@contextmanager
def engines(folder: Path) -> Iterator[Engines]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=double".split(),
            "-addext",
            f"subjectAltName={_NAMES}",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            str(key),
            "-out",
            str(certificate),
        ],
        check=True,
        capture_output=True,
    )
    server = _Server(("127.0.0.1", 0), _Connection)
    server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.tls.load_cert_chain(certificate, key)
    server.tls.set_alpn_protocols(["http/1.1"])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Engines(f"http://127.0.0.1:{server.server_address[1]}", certificate, server.asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    tls: ssl.SSLContext

    def __init__(self, *given: object) -> None:
        self.asked: list[str] = []
        super().__init__(*given)  # type: ignore[arg-type]


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        host = _head(self.rfile)[0].split()[1].partition(":")[0]
        if host not in _NAMES:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with suppress(OSError), self.server.tls.wrap_socket(self.connection, server_side=True) as line:
            stream = line.makefile("rb")
            while head := _head(stream):
                size = next((int(one.partition(":")[2]) for one in head if one.lower().startswith("content-length")), 0)
                asked = f"{host} {head[0]} {stream.read(size).decode()}"
                self.server.asked.append(asked)
                kind, body = _answer(asked)
                told = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body.encode())}\r\n\r\n{body}"
                line.sendall(told.encode())


def _head(stream: object) -> list[str]:
    lines = []
    while (line := stream.readline().decode().strip()) or not lines:  # type: ignore[attr-defined]
        if not line:
            return []
        lines.append(line)
    return lines


def _answer(asked: str) -> tuple[str, str]:
    if "action=opensearch" in asked:
        return "application/json", json.dumps(["stairs", ["Stairs"], [""], ["https://en.wikipedia.org/wiki/Stairs"]])
    if "action=query" in asked:
        return "application/json", json.dumps({"query": {"pages": {"1": {"extract": "Stairs bridge a distance."}}}})
    return "text/html", (
        "<html><body><div class='links_main result__body'><h2>Stairs and rails</h2>"
        "<a href='https://rails.example/stairs'>All about stairs.</a></div></body></html>"
    )
