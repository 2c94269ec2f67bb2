"""Servers on loopback for the tests of the network: plain HTTP and TLS, with certificates of an authority of their own."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "api.example.test"
OTHER = "other.example.test"


class Recorded(http.server.ThreadingHTTPServer):
    """`requests` are the method, path, headers and body of each request."""

    daemon_threads = True

    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was sent: headers and body as JSON; /big gives megabytes, /chunked its answer in pieces."""

    protocol_version = "HTTP/1.1"
    server: Recorded

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def _handle(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if "chunked" not in self.headers.get("transfer-encoding", "") else self._chunks()
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        path = urlsplit(self.path).path
        if path.startswith("/big/"):
            self._answer(b"x" * int(path.split("/")[2]))
            return
        echoed = json.dumps({"path": self.path, "headers": dict(self.headers), "body": body.decode("latin-1")}).encode()
        if path == "/chunked":
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for at in range(0, len(echoed), 7):
                piece = echoed[at : at + 7]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            return
        if path == "/gzip":
            import gzip

            self._answer(gzip.compress(echoed), encoding="gzip")
            return
        self._answer(echoed)

    do_GET = do_POST = do_PUT = do_HEAD = _handle  # noqa: N815  the names that the server looks for

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().strip(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, body: bytes, encoding: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if encoding:
            self.send_header("content-encoding", encoding)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def serving(
    context: ssl.SSLContext | None = None, handler: type[http.server.BaseHTTPRequestHandler] = Echo
) -> Iterator[Recorded]:
    with Recorded(handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def certified(folder: Path, *hosts: str) -> tuple[ssl.SSLContext, Path]:
    """A server's context for these hosts, and the file with the authority that signed it."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")]),
    )
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([*names, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "server.pem", folder / "server.key"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, private)
    return context, pem
