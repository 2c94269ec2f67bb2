"""Our server over standard input and output: pipes as clients give them, and files."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from mcp import Client

from ...support import PATIENCE_SECONDS

SERVER = """
import asyncio, os, sys
from handrail.model_tools import default
from handrail.serve.mcp.server import HandrailServer, serve_stdio
from handrail.core.registry import registry
def loud(args, **context):
    print("this is no message", flush=True)
    os.system("echo neither is this")
    return {"read": sys.stdin.read(), "text": "x" * args["size"]}
number = {"type": "object", "properties": {"size": {"type": "integer"}}}
registry.register(name="loud", toolset="t", schema={"description": "Loud.", "parameters": number}, handler=loud)
here = default()
asyncio.run(serve_stdio(HandrailServer(here, toolsets=["t"]).build()))
"""


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"]}


def test_what_a_handler_prints_or_reads_is_not_the_clients(env: dict[str, str]) -> None:
    """And an answer that no pipe holds at once comes whole."""
    command = StdioServerParameters(command=sys.executable, args=["-c", SERVER], env=env)

    async def session() -> list[Any]:
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230  a test's own loop
            async with Client(stdio_client(command, errlog=nowhere)) as client:
                return await asyncio.gather(*(client.call_tool("loud", {"size": 90_000}) for _ in range(3)))

    for answer in asyncio.run(session()):
        assert answer.structured_content == {"read": "", "text": "x" * 90_000}


def test_a_client_that_closes_its_sockets_ends_it_quietly(env: dict[str, str]) -> None:
    """Node.js gives its children sockets in place of pipes."""
    theirs, ours = socket.socketpair(), socket.socketpair()
    with theirs[0], theirs[1], ours[0], ours[1]:
        child = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=theirs[1], stdout=ours[1], stderr=subprocess.PIPE, text=True, env=env
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "s", "version": "1"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        theirs[0].sendall(json.dumps(message).encode() + b"\n")
        assert b"serverInfo" in ours[0].recv(100_000)
        for each in (ours[0], theirs[0]):
            each.shutdown(socket.SHUT_RDWR)
            each.close()
        _, printed = child.communicate(timeout=PATIENCE_SECONDS)
    assert "Traceback" not in printed, printed
    assert child.returncode == 0


def test_files_instead_of_pipes_work_too(env: dict[str, str], tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "file", "version": "1"}}
    (tmp_path / "in").write_text(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    )
    with (tmp_path / "in").open() as reads, (tmp_path / "out").open("w") as writes:
        command = [sys.executable, "-c", SERVER]
        subprocess.run(command, stdin=reads, stdout=writes, stderr=subprocess.DEVNULL, env=env, check=True)
    assert json.loads((tmp_path / "out").read_text())["result"]["serverInfo"]["name"] == "handrail"
