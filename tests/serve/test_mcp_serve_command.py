"""`handrail mcp serve` as a process of its own: over stdio for whoever starts it, over HTTP for whoever has the token."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from mcp import Client

from ..support import wait_until


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_stdio_a_client_lists_calls_and_answers(home: Path, tmp_path: Path, mode: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "handrail", "mcp", "serve"], env=env, cwd=str(tmp_path)
    )

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"decision": "once"})

    async def session() -> Any:
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230  a test's own loop
            transport = stdio_client(command, errlog=nowhere)
            async with Client(transport, mode=mode, elicitation_callback=answer) as client:
                assert "terminal" in {tool.name for tool in (await client.list_tools()).tools}
                return await client.call_tool("terminal", {"command": f"rm -rf {victim}"})

    result = asyncio.run(session())
    assert not result.is_error, result
    assert not victim.exists()


class Served(NamedTuple):
    url: str
    token: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    process, port, log = _started(folder)
    found = re.search(r"it is (\S+)", log.read_text())
    assert found, log.read_text()
    yield Served(f"http://127.0.0.1:{port}/mcp", found[1])
    process.send_signal(signal.SIGINT)
    process.wait(60)


def _started(folder: Path) -> tuple[subprocess.Popen[bytes], int, Path]:
    """Again with another port, when somebody took it in the moment between."""
    log = folder / "log"
    env = {"HANDRAIL_HOME": str(folder / "home"), "PATH": os.environ["PATH"], "HOME": str(folder)}
    for _ in range(5):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with log.open("w") as file:
            command = [sys.executable, "-m", "handrail", "mcp", "serve", "--http", str(port), "--toolset", "terminal"]
            process = subprocess.Popen(command, env=env, cwd=folder, stderr=file)
        ready = lambda: _listens(port) or process.poll() is not None  # noqa: B023,E731  called at once
        wait_until(ready, timeout=120, otherwise=log.read_text)
        if process.poll() is None:
            return process, port, log
    raise AssertionError(log.read_text())


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def by_http(served: Served, mode: str, command: str) -> Any:
    async def session() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=30) as http,
            Client(streamable_http_client(served.url, http_client=http), mode=mode) as client,
        ):
            await client.call_tool("terminal", {"command": command})
            return await client.call_tool("terminal", {"command": "echo [$WHO]"})

    return asyncio.run(session())


def test_over_http_each_session_has_its_own_environment(served: Served) -> None:
    first = by_http(served, "legacy", "export WHO=first")
    second = by_http(served, "legacy", "true")
    assert "[first]" in first.structured_content["output"]
    assert "[]" in second.structured_content["output"]


def test_over_http_the_newer_revision_works_too(served: Served) -> None:
    assert "[" in by_http(served, "auto", "true").structured_content["output"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer {token}", "Origin": "http://evil.example"}, 403),
        ({"Authorization": "Bearer {token}", "Host": "evil.example"}, 421),
    ],
)
def test_over_http_strangers_are_turned_away(served: Served, headers: dict[str, str], status: int) -> None:
    sent = {name: value.format(token=served.token) for name, value in headers.items()}
    sent |= {"Accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert httpx2.post(served.url, json=message, headers=sent).status_code == status
