"""Each common way in which a server cannot be used has a sentence that says what to do."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig

from ..support import wait_until
from .conftest import Connect
from .test_http import Handler


def why(connect: Connect, settings: McpServerConfig) -> str:
    return connect(broken=settings).absent()["broken"]


def test_a_program_that_prints_no_messages(connect: Connect) -> None:
    noisy = McpServerConfig(command="sh", args=("-c", "echo Starting the server; cat >/dev/null"), connect_timeout=3)
    problem = why(connect, noisy)
    assert "did not answer within 3 s: it printed 'Starting the server' to its standard output" in problem
    assert "stdio mode" in problem


def test_a_program_that_neither_answers_nor_ends(connect: Connect) -> None:
    silent = McpServerConfig(command="sleep", args=("100",), connect_timeout=0.5)
    assert connect(broken=silent, wait=0).reach("broken") == "it did not answer within 0.5 s"


def test_what_it_prints_is_said_before_its_time_is_over(connect: Connect) -> None:
    """The doctor and the list wait for less long than a connection may take; what it logs does not hide it."""
    noisy = McpServerConfig(command="sh", args=("-c", "echo loading >&2; echo Listening on 3000; cat >/dev/null"))
    tools = connect(broken=noisy, wait=0)
    wait_until(lambda: "3000" in tools.absent()["broken"])
    assert tools.absent()["broken"].startswith(
        "it has not answered yet: it printed 'Listening on 3000' to its standard"
    )


@pytest.mark.parametrize(
    ("said", "package"),
    [
        ("ModuleNotFoundError: No module named 'fastmcp'", "fastmcp"),
        ("/usr/bin/python3: No module named mcp_server_x", "mcp_server_x"),
        ("Error: Cannot find module '@scope/tool'", "@scope/tool"),
        ("npm error 404  '@scope/nothing@*' is not in this registry.", "@scope/nothing"),
        ("ERROR: No matching distribution found for mcp-nothing", "mcp-nothing"),
        ("  Because mcp-nothing was not found in the package registry", "mcp-nothing"),
    ],
)
def test_a_program_whose_package_is_missing(connect: Connect, said: str, package: str) -> None:
    program = f"import sys; sys.stderr.write({said!r} + chr(10)); sys.exit(1)"
    problem = why(connect, McpServerConfig(command=sys.executable, args=("-c", program)))
    assert problem.startswith(f"it ended with code 1: the package {package} is missing; install it")


def test_an_address_where_nobody_is(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    problem = why(connect, McpServerConfig(url=f"http://127.0.0.1:{port}/mcp"))
    assert problem.startswith(f"nobody answers at http://127.0.0.1:{port}/mcp (")


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {"Content-Type": "application/json"}, "is no MCP server: it sent something other than MCP messages"),
        (404, {}, "there is no MCP server at"),
        (401, {}, "mcp_servers.broken.headers.Authorization"),
        (403, {}, "answered 403 Forbidden; your login or token has no right there"),
        (503, {}, "answered 503 Service Unavailable; try later"),
        (200, {"Content-Type": "text/html"}, "is no MCP server: it sent text/html; check the path"),
        (401, {"WWW-Authenticate": 'Bearer resource_metadata="https://x/y"'}, "`handrail mcp login broken`"),
    ],
)
def test_an_address_that_answers_otherwise(
    connect: Connect, status: int, headers: dict[str, str], expected: str
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815  the name that http.server calls

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        problem = why(connect, McpServerConfig(url=f"http://127.0.0.1:{server.server_port}/mcp"))
        server.shutdown()
    assert expected in problem
    assert ("headers.Authorization" in problem) == (status in (401, 403) and not headers)


@pytest.mark.parametrize("way", ["http", "sse"])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, "there is no MCP server at http://127.0.0.1"),
        (401, "answered 401 Unauthorized; it does not accept the token that you send"),
        (503, "answered 503 Service Unavailable; try later"),
    ],
)
def test_a_token_that_is_not_accepted_and_the_older_transport(
    connect: Connect, status: int, expected: str, way: Literal["http", "sse"]
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815  the name that http.server calls

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        problem = why(connect, McpServerConfig(url=url, type=way, headers={"Authorization": "Bearer old"}))
        server.shutdown()
    assert expected in problem


def test_an_address_that_does_not_speak_tls(connect: Connect) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        problem = why(connect, McpServerConfig(url=f"https://127.0.0.1:{server.server_port}/mcp"))
        server.shutdown()
    assert "does not speak TLS; write http:// in place of https://" in problem


def test_a_folder_or_a_file_that_is_not_there(connect: Connect, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    problem = why(connect, McpServerConfig(command=sys.executable, cwd=nowhere))
    assert problem == f"{sys.executable} cannot be started: there is no folder {nowhere}, which its cwd names"
    trace = "Error: Cannot find module '/nowhere/x.js'" + "\n    at somewhere" * 20
    program = f"import sys; sys.stderr.write({trace!r}); sys.exit(1)"
    problem = why(connect, McpServerConfig(command=sys.executable, args=("-c", program)))
    assert problem == "it ended with code 1: there is no file /nowhere/x.js; correct it in the command"


def test_a_program_that_never_stops_printing(connect: Connect) -> None:
    problem = why(connect, McpServerConfig(command="yes", args=("no message " * 100,), connect_timeout=3))
    assert "did not answer within 3 s: it printed 'no message no message" in problem
    assert len(problem) < 400


def _certificate(folder: Path, name: str, issuer: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """Writes NAME.pem with the certificate and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer, signer_key = issuer or (None, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer.subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    )
    certificate = builder.sign(signer_key, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    return certificate, key


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """The address of a server that wants a certificate of its client, and has one of its own authority."""
    authority = _certificate(tmp_path, "authority", None)
    for name in ("server", "client"):
        _certificate(tmp_path, name, authority)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "authority.pem"))
    context.load_cert_chain(tmp_path / "server.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()


def test_own_certificates_are_used_on_both_sides(
    connect: Connect, runtime: Runtime, guarded: str, tmp_path: Path
) -> None:
    _certificate(tmp_path, "stranger", None)
    known: dict[str, Any] = {"url": guarded, "protocol": "handshake", "connect_timeout": 30}
    ours = {"ca_file": str(tmp_path / "authority.pem"), "tls_cert": str(tmp_path / "client.pem")}
    tools = connect(
        both=McpServerConfig(**known, **ours),
        neither=McpServerConfig(**known),
        anonymous=McpServerConfig(**known, ca_file=ours["ca_file"]),
        absent=McpServerConfig(**known, ca_file=str(tmp_path / "none.pem")),
        stranger=McpServerConfig(**known, ca_file=ours["ca_file"], tls_cert=str(tmp_path / "stranger.pem")),
        wrong=McpServerConfig(**known, ca_file=str(tmp_path / "stranger.pem")),
    )
    absent = tools.absent()
    assert absent.keys() == {"neither", "anonymous", "absent", "stranger", "wrong"}, absent
    assert all(f"mcp_servers.{each}.ca_file names its authority" in absent[each] for each in ("neither", "wrong"))
    assert all(f"mcp_servers.{each}.tls_cert names yours" in absent[each] for each in ("anonymous", "stranger")), absent
    assert "none.pem" in absent["absent"]
    assert "went" in str(runtime.handle("mcp__both__fine", {}))
