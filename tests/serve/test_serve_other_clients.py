"""Our server, asked by clients that others wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .. import fork_server
from ..mcp_servers.others import fastmcp_python, program

SERVE = [sys.executable, "-m", "handrail", "mcp", "serve"]


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {**os.environ, "HANDRAIL_HOME": str(home)}


def test_the_inspector_lists_and_calls_our_tools(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("found it")
    serve = fork_server.command("-m", "handrail", "mcp", "serve")
    inspect = [program("mcp-inspector"), "--cli", *serve, "--method"]

    def ask(*args: str) -> Any:
        done = subprocess.run([*inspect, *args], capture_output=True, text=True, env=env, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert "read_file" in {tool["name"] for tool in ask("tools/list")["tools"]}
    answer = ask("tools/call", "--tool-name", "read_file", "--tool-arg", f"path={tmp_path / 'note.txt'}")
    assert "found it" in answer["structuredContent"]["content"]


FASTMCP = """
import asyncio, json, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
async def answer(message, response_type, params, context):
    return {"decision": "once"}
async def main(folder, command):
    transport = StdioTransport(command[0], command[1:], env=json.loads(sys.argv[2]), cwd=folder)
    async with Client(transport, elicitation_handler=answer) as client:
        names = [tool.name for tool in await client.list_tools()]
        done = await client.call_tool("terminal", {"command": f"rm -rf {folder}/victim"}, raise_on_error=False)
        print(json.dumps({"names": names, "is_error": done.is_error, "data": done.structured_content}))
asyncio.run(main(sys.argv[1], sys.argv[3:]))
"""


def test_fastmcps_client_lists_calls_and_answers(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    given = {name: env[name] for name in ("HANDRAIL_HOME", "PATH", "HOME")}
    command = [fastmcp_python(), "-c", FASTMCP, str(tmp_path), json.dumps(given), *SERVE]
    ran = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert "terminal" in said["names"]
    assert not said["is_error"], said
    assert not (tmp_path / "victim").exists()
