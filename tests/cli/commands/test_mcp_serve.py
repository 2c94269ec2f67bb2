"""`handrail mcp serve` as a process of its own: over stdio for whoever starts it, over HTTP for whoever has the token."""

from __future__ import annotations

import asyncio
import contextlib
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

from handrail.errors import ConfigError
from handrail.serve.mcp.http import TOKEN_VARIABLE
from handrail.serve.server import Address, given_token, listening
from mcp import Client
from tests import fork_server
from tests.support import free_port, wait_until


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_stdio_a_client_lists_calls_and_answers(home: Path, tmp_path: Path, mode: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    program, *words = fork_server.command("-m", "handrail", "mcp", "serve")
    command = StdioServerParameters(command=program, args=words, env=env, cwd=str(tmp_path))

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
    port = free_port()
    log = folder / "log"
    env = {"HANDRAIL_HOME": str(folder / "home"), "PATH": os.environ["PATH"], "HOME": str(folder)}
    with log.open("w") as file:
        command = ["-m", "handrail", "mcp", "serve", "--http", str(port), "--toolset", "terminal"]
        process = fork_server.start(*command, env=env, cwd=folder, stderr=file)
    wait_until(lambda: "serving on" in log.read_text() or process.poll() is not None, timeout=60)
    found = re.search(r"it is (\S+)", log.read_text())
    assert found, log.read_text()
    yield Served(f"http://127.0.0.1:{port}/mcp", found[1])
    process.send_signal(signal.SIGINT)
    process.wait(60)


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


def test_a_stream_that_was_cut_is_taken_up_again(served: Served, tmp_path: Path) -> None:
    go = tmp_path / "go"
    headers = {
        "Authorization": f"Bearer {served.token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }

    def message(method: str, number: int | None = None, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})}

    with httpx2.Client(headers=headers, timeout=60) as http:
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        begun = http.post(served.url, json=message("initialize", 1, **about))
        http.headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        http.post(served.url, json=message("notifications/initialized"))
        command = f"until [ -e {go} ]; do sleep 0.1; done; echo late"
        call = message("tools/call", 2, name="terminal", arguments={"command": command})
        with http.stream("POST", served.url, json=call) as stream:
            last = next(line.partition(": ")[2] for line in stream.iter_lines() if line.startswith("id:"))
        go.touch()
        with http.stream("GET", served.url, headers={"Last-Event-ID": last}) as stream:
            rest = next(line for line in stream.iter_lines() if line.startswith("data:") and '"id":2' in line)
    assert "late" in rest


def test_what_the_tools_run_does_not_find_the_token(home: Path) -> None:
    """With it, it could call as another client, and answer the questions itself."""
    port = free_port()
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HANDRAIL_MCP_TOKEN": "a token of the operator's"}
    command = [sys.executable, "-m", "handrail", "mcp", "serve", "--http", str(port), "--toolset", "terminal"]
    process = subprocess.Popen([*command, "--host", "tools.example"], env=env, cwd=home, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, timeout=60)
        served = Served(f"http://127.0.0.1:{port}/mcp", "a token of the operator's")
        with contextlib.suppress(PermissionError):  # root alone may look at all
            assert b"operator" not in Path(f"/proc/{process.pid}/environ").read_bytes()
        assert "[]" in by_http(served, "auto", "WHO=$HANDRAIL_MCP_TOKEN").structured_content["output"]
        assert _status(served, {"Host": "tools.example"}) not in (401, 403, 421)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_a_token_that_can_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "abc")
    with pytest.raises(ConfigError, match="HANDRAIL_MCP_TOKEN: is too short"):
        given_token(TOKEN_VARIABLE)


def _status(served: Served, headers: dict[str, str]) -> int:
    sent = {"Authorization": f"Bearer {served.token}", **headers, "Accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    return httpx2.post(served.url, json=message, headers=sent).status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_over_http_strangers_are_turned_away(served: Served, headers: dict[str, str], status: int) -> None:
    assert _status(served, headers) == status


def test_an_address_that_is_taken_is_told() -> None:
    told = pytest.raises(ConfigError, match="cannot listen at 127")
    with listening(Address("127.0.0.1", 0)) as (_, taken), told, listening(taken):
        pass
