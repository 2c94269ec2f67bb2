"""What the tests of messages share: a mail server, a server that takes whatever is posted, and the tool itself."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.policy import default as default_policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from handrail.config.config_file import ConfigFile
from handrail.model_tools import handle_function_call, reset
from tests.support import free_port

Send = Callable[..., dict[str, Any]]


@pytest.fixture
def target(home: Path) -> Callable[..., None]:
    """Configure a target: `target("boss", kind="email", ...)`."""

    def configure(name: str, **settings: Any) -> None:
        ConfigFile().set(("messages", "targets", name), settings)
        reset()

    return configure


@pytest.fixture
def send() -> Send:
    def call(target: str, message: str = "hello", **more: Any) -> dict[str, Any]:
        outcome = handle_function_call("send_message", {"target": target, "message": message, **more})
        assert isinstance(outcome, str)
        answer: dict[str, Any] = json.loads(outcome)
        return answer

    return call


class Mailbox:
    """Keeps the letters that come; refuses whoever is called nobody."""

    def __init__(self) -> None:
        self.letters: list[Any] = []

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802  named as the library calls it
        if address.startswith("nobody@"):
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802  named as the library calls it
        self.letters.append(message_from_bytes(envelope.content, policy=default_policy))
        return "250 OK"


class Mail:
    """A mail server that runs."""

    def __init__(self, controller: Controller, box: Mailbox) -> None:
        self.port, self.host = controller.port, controller.hostname
        self.letters = box.letters


def _allows(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    return AuthResult(success=isinstance(data, LoginPassword) and data.password == b"sesame", handled=False)


@pytest.fixture
def mail() -> Iterator[Mail]:
    box = Mailbox()
    controller = Controller(box, "127.0.0.1", free_port(), authenticator=_allows, auth_require_tls=False)
    controller.start()
    yield Mail(controller, box)
    controller.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine, and its key in the same file."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", path, "-out", path],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return path


@pytest.fixture(params=["starttls", "tls"])
def secure_mail(request: pytest.FixtureRequest, certificate: Path) -> Iterator[tuple[str, Mail]]:
    """A mail server that encrypts, and how."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    box = Mailbox()
    how: dict[str, Any] = {"authenticator": _allows}
    if request.param == "starttls":
        how |= {"tls_context": context, "require_starttls": True}
    else:
        how |= {"ssl_context": context, "auth_require_tls": False}
    controller = Controller(box, "127.0.0.1", free_port(), **how)
    controller.start()
    yield request.param, Mail(controller, box)
    controller.stop()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class Posted:
    """Takes requests, and answers with what `answers` says for their path, or with an empty object."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: list[tuple[int, Any]] = []
        self.held: threading.Event | None = None
        posted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Tests print nothing."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                posted.requests.append({"path": self.path, "headers": headers, "body": body})
                if posted.held is not None:
                    posted.held.wait(60)
                status, answer = posted.answers.pop(0) if posted.answers else (200, {})
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(data)))
                    self.send_header("location", "http://127.0.0.1:9/elsewhere")
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True  # the client has gone away

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def bodies(self) -> list[Any]:
        return [json.loads(request["body"]) for request in self.requests]

    def close(self) -> None:
        if self.held is not None:
            self.held.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def posted() -> Iterator[Posted]:
    server = Posted()
    yield server
    server.close()
