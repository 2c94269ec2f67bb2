"""Our server under the protocol's own conformance suite, which wants tools of its own names."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.model_tools import default
from handrail.protocols import Action, ActionKind
from handrail.serve.address import Address
from handrail.serve.mcp.http import http_app
from handrail.serve.mcp.server import HandrailServer
from handrail.types import JsonDict, ToolContext

from ..mcp_servers.others import conformance
from ..mcp_servers.serving import listening, serving
from ..support import add, parameters

TOKEN = "a token"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
WITH_DEFS: JsonDict = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def picture(args: JsonDict, **_: Any) -> JsonDict:
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return {"_multimodal": True, "content": [part]}


def sound(args: JsonDict, **_: Any) -> JsonDict:
    part = {"type": "input_audio", "input_audio": {"data": SILENCE, "format": "wav"}}
    return {"_multimodal": True, "content": [part]}


def steps(args: JsonDict, context: ToolContext) -> str:
    for share in (0.0, 0.5, 1.0):
        context.progress("a step", share)
    return json.dumps({"done": True})


def fails(args: JsonDict, **_: Any) -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")


def asks(args: JsonDict, context: ToolContext) -> list[Action]:
    return [Action(ActionKind.TOOL, f"{context.tool} {args}", details={"destructive": True})]


@pytest.fixture
def url(default_registry: ToolRegistry) -> Iterator[str]:
    more: JsonDict = {"toolset": "suite"}
    add(default_registry, "test_simple_text", lambda args, **_: "This is a simple text response for testing.", **more)
    add(default_registry, "test_image_content", picture, **more)
    add(default_registry, "test_audio_content", sound, **more)
    add(default_registry, "test_tool_with_progress", steps, **more)
    add(default_registry, "test_error_handling", fails, **more)
    text = parameters(["message"], message={"type": "string"})
    add(default_registry, "test_elicitation", lambda args, **_: "asked", schema=text, actions=asks, **more)
    add(default_registry, "json_schema_2020_12_tool", schema=WITH_DEFS, **more)
    bound: socket.socket = listening()
    address = Address("127.0.0.1", bound.getsockname()[1])
    app = http_app(HandrailServer(default(), toolsets=["suite"]).build(), address, TOKEN)

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        """The suite has no way to send one."""
        if scope["type"] == "http":
            scope["headers"].append((b"authorization", f"Bearer {TOKEN}".encode()))
        await app(scope, receive, send)

    with serving(with_token, bound) as base:
        yield f"{base}/mcp"


def test_the_server_conforms(url: str, tmp_path: Path) -> None:
    ran = conformance("server", "--url", url, "--suite", "all", "--verbose", "-o", "out", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
