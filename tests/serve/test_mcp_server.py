"""`handrail mcp serve`, asked by the official SDK's client."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from mcp import Client

from ..support import wait_until

Session = Callable[[Client], Coroutine[Any, Any, Any]]


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both families of the protocol."""
    return str(request.param)


def talk(work: Session, *, home: Path, cwd: Path, mode: str, args: tuple[str, ...] = (), **client: Any) -> Any:
    """Start a server over stdio, do something with it, and end it."""
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(cwd)}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "handrail", "mcp", "serve", *args], env=env, cwd=str(cwd)
    )

    async def session() -> Any:
        with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230  a test's own loop
            async with Client(stdio_client(command, errlog=nowhere), mode=mode, **client) as connected:
                return await work(connected)

    return asyncio.run(session())


def test_tools_are_listed_with_schemas_and_hints(home: Path, tmp_path: Path, mode: str) -> None:
    async def work(client: Client) -> Any:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = talk(work, home=home, cwd=tmp_path, mode=mode)
    assert {"read_file", "write_file", "terminal"} <= tools.keys()
    assert tools["read_file"].annotations.read_only_hint is True
    assert "path" in tools["read_file"].input_schema["properties"]


def test_a_call_gives_text_and_data_and_marks_a_failure(home: Path, tmp_path: Path, mode: str) -> None:
    (tmp_path / "note.txt").write_text("hello\n")

    async def work(client: Client) -> Any:
        good = await client.call_tool("read_file", {"path": str(tmp_path / "note.txt")})
        bad = await client.call_tool("read_file", {"path": str(tmp_path / "none.txt")})
        other = await client.call_tool("todo", {})
        return good, bad, other

    good, bad, other = talk(work, home=home, cwd=tmp_path, mode=mode, args=("--toolset", "file"))
    assert "hello" in good.structured_content["content"]
    assert not good.is_error
    assert bad.is_error
    assert other.is_error, "it is not in the toolset"


class Asked:
    """A person at the client who always says the same."""

    def __init__(self, **answer: Any) -> None:
        self.questions: list[str] = []
        self._answer = answer

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        return ElicitResult(**self._answer)


def remove(folder: Path) -> Session:
    async def work(client: Client) -> Any:
        return await client.call_tool("terminal", {"command": f"rm -rf {folder}"})

    return work


def test_a_yes_at_the_client_lets_it_happen(home: Path, tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "victim"
    folder.mkdir()
    asked = Asked(action="accept", content={"decision": "once"})
    result = talk(remove(folder), home=home, cwd=tmp_path, mode=mode, elicitation_callback=asked)
    assert not result.is_error, result
    assert not folder.exists()
    (question,) = asked.questions
    assert f"rm -rf {folder}" in question


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept", "content": {"decision": "deny"}},
        {"action": "accept", "content": {"decision": "whatever"}},
        {"action": "decline"},
        {"action": "cancel"},
    ],
)
def test_anything_else_at_the_client_is_a_no(home: Path, tmp_path: Path, mode: str, answer: Any) -> None:
    folder = tmp_path / "victim"
    folder.mkdir()
    result = talk(remove(folder), home=home, cwd=tmp_path, mode=mode, elicitation_callback=Asked(**answer))
    assert result.is_error
    assert result.structured_content["error_type"] == "denied"
    assert folder.exists()


def test_a_client_that_cannot_ask_is_denied(home: Path, tmp_path: Path, mode: str) -> None:
    folder = tmp_path / "victim"
    folder.mkdir()
    result = talk(remove(folder), home=home, cwd=tmp_path, mode=mode)
    assert result.structured_content["error_type"] == "denied"
    assert folder.exists()


class Served(NamedTuple):
    url: str
    token: str


@pytest.fixture
def served(home: Path, tmp_path: Path) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "log"
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with log.open("w") as file:
        command = [sys.executable, "-m", "handrail", "mcp", "serve", "--http", str(port), "--toolset", "terminal"]
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stderr=file)
    wait_until(lambda: _listens(port) or process.poll() is not None, timeout=60, otherwise=log.read_text)
    found = re.search(r"it is (\S+)", log.read_text())
    assert found, log.read_text()
    yield Served(f"http://127.0.0.1:{port}/mcp", found[1])
    process.send_signal(signal.SIGINT)
    process.wait(20)


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
