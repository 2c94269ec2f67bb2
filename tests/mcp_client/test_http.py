"""A server that is reached by HTTP and does one wrong thing. It speaks by hand: no SDK would let it."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig

from ..support import error_in
from .conftest import Connect

EMPTY = {"type": "object", "properties": {}}
DEEP = '{"type":"object","properties":{"x":' * 500 + '{"type":"string"}' + "}}" * 500
TOOLS = f'{{"tools":[{{"name":"deep","inputSchema":{DEEP}}},{{"name":"fine","inputSchema":{json.dumps(EMPTY)}}}]}}'


class Handler(BaseHTTPRequestHandler):
    """`way` says how answers come: as one JSON text, as an event, or packed."""

    protocol_version = "HTTP/1.1"
    way = "json"
    text = "went"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self._answer(202, "application/json", b"")
            return
        text = f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{self._outcome(message)}}}'.encode()
        packs = self.way == "packed" and message["method"] == "tools/call"
        if packs:
            text = gzip.compress(text)
        if self.way == "events":
            self._answer(200, "text/event-stream", b"event: message\ndata: " + text + b"\n\n")
        else:
            self._answer(200, "application/json", text, packed=packs)

    def do_GET(self) -> None:
        self._answer(405, "application/json", b"")

    do_DELETE = do_GET  # noqa: N815  the name that http.server calls

    def _outcome(self, message: dict[str, Any]) -> str:
        if message["method"] == "initialize":
            version, info = message["params"]["protocolVersion"], {"name": "bad", "version": "1"}
            return '"result":' + json.dumps(
                {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            )
        if message["method"] == "tools/list":
            return f'"result":{TOOLS}'
        if message["method"] == "tools/call":
            return '"result":' + json.dumps({"content": [{"type": "text", "text": self.text}]})
        return '"error":{"code":-32601,"message":"no such method"}'

    def _answer(self, status: int, kind: str, body: bytes, *, packed: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """It does not wait for clients that keep their connection."""

    daemon_threads = True


@contextmanager
def serving(way: str, text: str) -> Iterator[str]:
    handler = type("Handler", (Handler,), {"way": way, "text": text})
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("way", ["json", "events"])
def test_a_schema_that_no_parser_can_read_hurts_only_its_own_tool(
    connect: Connect, runtime: Runtime, registry: ToolRegistry, way: str
) -> None:
    with serving(way, "went") as address:
        tools = connect(bad=McpServerConfig(url=address, protocol="handshake"))
        assert "levels deep" in error_in(runtime.handle("mcp__bad__deep", {}))["error"]
        assert json.loads(runtime.handle("mcp__bad__fine", {})) == {"content": "went"}  # type: ignore[arg-type]
        tools.close()


@pytest.mark.parametrize(("way", "why"), [("json", "bytes"), ("events", "bytes"), ("packed", "compressed")])
def test_an_answer_above_the_limit_is_not_taken(connect: Connect, runtime: Runtime, way: str, why: str) -> None:
    with serving(way, "x" * 200_000) as address:
        settings = McpServerConfig(url=address, protocol="handshake", max_message_bytes=100_000, timeout=30)
        tools = connect(bad=settings)
        error = error_in(runtime.handle("mcp__bad__fine", {}))
        assert error["error_type"] == "tool_failed", error
        assert why in error["error"]
        tools.close()
