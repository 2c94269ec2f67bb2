"""Our client under the protocol's own conformance suite, logins too."""

from __future__ import annotations

import json
import re
import shlex
import socketserver
import threading
import traceback
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.mcp_client.server_config import Server
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.testing import OpenGate
from handrail.tools.mcp.server_tools import McpTools, tool_name

from ..mcp_servers.others import REVISIONS, conformance
from ..support import PYTHON

ARGUMENTS: dict[str, Any] = {"add_numbers": {"a": 2, "b": 3}}
# Where the suite expects a document about the client to be; nothing fetches it.
METADATA = "https://conformance-test.local/client-metadata.json"
STARTED = Path(__file__).parents[1] / "mcp_servers" / "suite_client.py"


class Scenarios(socketserver.ThreadingUnixStreamServer):
    """Plays the client's part in each scenario, as its starter asks for it."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _Scenario)


class _Scenario(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        url, scenario, context = json.loads(self.rfile.readline())
        try:
            folder = Path(str(self.server.server_address)).parent
            answer = play(url, scenario, json.loads(context or "{}"), folder)
        except Exception:
            answer = traceback.format_exc()
        self.wfile.write(answer.encode())


def play(url: str, scenario: str, context: dict[str, Any], folder: Path) -> str:
    """Connect, log in where it is wanted, and call every tool."""
    known: dict[str, Any] = {key: str(context[key]) for key in ("client_id", "client_secret") if key in context}
    if scenario.startswith("auth/client-credentials"):
        known["login"] = "client_credentials"
    if "private_key_pem" in context:
        known["client_key"] = str(folder / f"{uuid.uuid4()}.pem")
        Path(known["client_key"]).write_text(context["private_key_pem"])
    settings = McpServerConfig(url=url, connect_timeout=75, timeout=75, client_metadata_url=METADATA, **known)
    name = re.sub(r"[^a-z0-9]", "-", scenario)[-32:]
    registry = ToolRegistry()
    runtime = Runtime(registry, gate=OpenGate())
    tools = McpTools([Server(name, settings, "test")], registry, browse=browse)
    try:
        tools.start(80)
        if problem := tools.reach(name):
            return problem
        for listed in tools.connections.offer(name).tools:
            arguments = ARGUMENTS.get(listed.name) or _least(listed.schema)
            if listed.name == "json_schema_echo":  # it wants another tool's schema as the model would have it
                entry = registry.get_entry(tool_name(name, "json_schema_2020_12_tool"))
                arguments = {"schema": entry.schema["parameters"] if entry else None}
            if listed.name not in {each["name"] for each in context.get("toolCalls", ())}:
                runtime.handle(tool_name(name, listed.name), arguments)
        for each in context.get("toolCalls", ()):
            runtime.handle(tool_name(name, each["name"]), each["arguments"])
    finally:
        tools.close()
    return "done"


def _least(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a tool takes, with nothing in them."""
    nothing = {"string": "x", "integer": 1, "number": 1, "boolean": True, "object": {}, "array": []}
    properties = schema.get("properties", {})
    return {name: nothing.get(properties.get(name, {}).get("type")) for name in schema.get("required", ())}


def browse(url: str) -> None:
    """The suite's login page lets everybody in, and leads back at once."""
    threading.Thread(target=lambda: urllib.request.urlopen(url).read()).start()


@pytest.fixture
def scenarios(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "s"
    with Scenarios(str(path)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield path
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_client_conforms(revision: str, scenarios: Path, tmp_path: Path) -> None:
    command = f"{PYTHON} -IS {shlex.quote(str(STARTED))} {scenarios}"
    found = conformance("client", revision, "--command", command, "--timeout", "90000", "-o", "out", cwd=tmp_path)
    problems = found.unexpected("client", revision)
    assert not problems, "\n".join(problems)
