"""Our server under the protocol's own conformance suite, with a plugin that offers what its scenarios expect."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.serve.mcp.http import http_app
from handrail.serve.mcp.server import HandrailServer
from handrail.serve.server import Address

from ..mcp_servers.others import REVISIONS, conformance
from ..mcp_servers.serving import listening, serving
from ..support import trust_plugins

TOKEN = "a token"
PLUGIN = Path(__file__).parents[1] / "mcp_servers" / "suite_plugin"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    home = tmp_path / "home"
    shutil.copytree(PLUGIN, home / "plugins" / "suite", ignore=shutil.ignore_patterns("__pycache__"))
    trust_plugins(home)
    bound: socket.socket = listening()
    address = Address("127.0.0.1", bound.getsockname()[1])
    with Handrail(home=home) as app:
        inner = http_app(HandrailServer(app, toolsets=["suite"]).build(), address, TOKEN)

        async def with_token(scope: Any, receive: Any, send: Any) -> None:
            """The suite has no way to send one."""
            if scope["type"] == "http":
                scope["headers"].append((b"authorization", f"Bearer {TOKEN}".encode()))
            await inner(scope, receive, send)

        with serving(with_token, bound) as base:
            yield f"{base}/mcp"


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_conforms(revision: str, url: str, tmp_path: Path) -> None:
    found = conformance("server", revision, "--url", url, "-o", "out", cwd=tmp_path)
    problems = found.unexpected("server", revision)
    assert not problems, "\n".join(problems)
