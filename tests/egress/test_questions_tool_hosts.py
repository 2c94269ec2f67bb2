"""The network policy holds for web and browser tools and for MCP servers too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.egress.questions import why_denied
from handrail.mcp_client.server_config import Server
from handrail.protocols import Decision
from handrail.settings.schema import Config
from handrail.settings.services import McpServerConfig, NetworkConfig, WebConfig
from handrail.tools.mcp.server_tools import McpTools

from .conftest import MakeTask, Task
from .servers import HOST, OTHER, Recorded

WEB = WebConfig(allow_private=("127.0.0.1", HOST, OTHER))


def call(task: Task, tool: str, **arguments: Any) -> str:
    answer = task.app.handle_function_call(tool, arguments, task_id="t", session_id="s")
    return json.dumps(answer) if isinstance(answer, dict) else str(answer)


@pytest.mark.parametrize(
    ("tool", "argument", "program"),
    [("web_extract", "urls", "web_extract"), ("browser_navigate", "url", "the browser")],
)
def test_a_host_that_is_not_listed_is_asked_about(
    make_task: MakeTask, plain: Recorded, tool: str, argument: str, program: str
) -> None:
    task = make_task({"contain": "on"}, web=WEB)
    url = f"http://{OTHER}:{plain.port}/"
    arguments = {argument: [url] if argument == "urls" else url}

    refused = call(task, tool, **arguments)

    assert "not among your allowed hosts" in refused, refused
    assert task.asked.texts == [f"{program} wants {OTHER}:{plain.port}"]
    assert plain.requests == []
    task.asked.decision = Decision.ONCE
    call(task, tool, **arguments)
    assert len(plain.requests) >= 1


@pytest.mark.parametrize("contain", ["auto", "off", "on"])
def test_a_denied_host_is_denied_without_a_question(make_task: MakeTask, plain: Recorded, contain: str) -> None:
    task = make_task({"contain": contain, "deny": (OTHER,), "allow": (HOST,)}, web=WEB)

    refused = call(task, "web_extract", urls=[f"http://{OTHER}:{plain.port}/"])
    allowed = call(task, "web_extract", urls=[f"http://{HOST}:{plain.port}/"])

    assert "network.deny" in refused
    assert "error" not in allowed, allowed
    assert task.asked.requests == []
    assert len(plain.requests) == 1


def test_without_a_policy_web_tools_ask_nothing(make_task: MakeTask, plain: Recorded) -> None:
    task = make_task({"contain": "auto"}, web=WEB)

    call(task, "web_extract", urls=[f"http://127.0.0.1:{plain.port}/"])

    assert (task.asked.requests, len(plain.requests)) == ([], 1)


def test_an_mcp_server_at_a_denied_host_is_not_used() -> None:
    config = Config(network=NetworkConfig(deny=("*.evil.example",)))
    assert "network.deny" in why_denied("https://mcp.evil.example/mcp", config)
    assert why_denied("https://good.example/mcp", config) == ""
    assert "cloud metadata" in why_denied("http://169.254.169.254/mcp", config)
    assert why_denied("", config) == ""


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str]]]:
    """A port at which a login is wanted, of a server at the same port of another address; and who was connected to it."""
    asked: list[str] = []

    class Wants(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(f"{self.connection.getsockname()[0]}{self.path}")
            elsewhere = f"http://127.0.0.2:{self.server.server_address[1]}/where"
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Bearer resource_metadata="{elsewhere}"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815  the name that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("0.0.0.0", 0), Wants) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


@pytest.mark.parametrize("contain", ["on", "auto"])
def test_an_mcp_server_is_reached_at_listed_hosts_alone(listener: tuple[int, list[str]], contain: Any) -> None:
    """Not a byte goes to another one, nor to where a server says that its login is."""
    port, asked = listener

    def problem(address: str, *allow: str) -> str:
        config = Config(network=NetworkConfig(contain=contain, allow=allow, deny=("127.0.0.2",)))
        server = Server("s", McpServerConfig(url=f"http://{address}:{port}/mcp", connect_timeout=10), "test")
        tools = McpTools([server], ToolRegistry(), browse=lambda _: None, config=config)
        try:
            return tools.reach("s")
        finally:
            tools.close()

    assert "network.deny" in problem("127.0.0.2")
    if contain == "on":
        assert "network.allow" in problem("127.0.0.1")
        assert asked == []
    problem("127.0.0.1", "127.0.0.1")
    assert "127.0.0.1/mcp" in asked
    assert not [place for place in asked if place.startswith("127.0.0.2")]
