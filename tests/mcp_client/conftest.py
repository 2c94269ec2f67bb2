"""Servers of our own, started for real, and their tools in a registry of the test's own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.mcp_client.server_config import Server
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.store.results import FileResultStore
from handrail.testing import OpenGate
from handrail.tools.mcp.server_tools import McpTools
from handrail.types import Gate

from .. import fork_server
from ..support import free_port, wait_until

SCRIPTS = Path(__file__).parents[1] / "mcp_servers"
Connect = Callable[..., McpTools]


def script(name: str, *args: str, **settings: Any) -> McpServerConfig:
    """A server on the SDK, whose import takes longer than most tests."""
    command, *words = fork_server.command(str(SCRIPTS / f"{name}.py"), *args)
    return McpServerConfig(command=command, args=tuple(words), **settings)


def hostile(way: str, *args: str, **settings: Any) -> McpServerConfig:
    words = (str(SCRIPTS / "hostile.py"), way, *args)
    # It does not know the newer revisions, and need not be asked.
    return McpServerConfig(command=sys.executable, args=words, **{"protocol": "handshake", **settings})


def has_ended(pid: int) -> bool:
    """Also when nobody above it has collected it yet, or ever does, as in some containers."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _served(way: str) -> Iterator[str]:
    """One process for all tests of a worker: starting one takes longer than most of them."""
    port = free_port()
    command, env = (str(SCRIPTS / "plain.py"), way, str(port)), {"PATH": os.environ["PATH"]}
    process = fork_server.start(*command, env=env, cwd=SCRIPTS, stderr=subprocess.DEVNULL)
    wait_until(lambda: _answers(port) or process.poll() is not None, timeout=60)
    yield f"http://127.0.0.1:{port}/{'sse' if way == 'sse' else 'mcp'}"
    process.kill()
    process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    yield from _served("http")


@pytest.fixture(scope="session")
def sse_address() -> Iterator[str]:
    yield from _served("sse")


@pytest.fixture(params=["auto", "handshake"])
def plain(request: pytest.FixtureRequest, address: str) -> McpServerConfig:
    """The well-behaved server, in both families of the protocol."""
    return McpServerConfig(url=address, protocol=request.param)


@pytest.fixture
def gate() -> OpenGate:
    return OpenGate()


@pytest.fixture
def runtime(registry: ToolRegistry, results: FileResultStore, gate: Gate) -> Runtime:
    return Runtime(registry, results=results, gate=gate)


@pytest.fixture
def connect(registry: ToolRegistry) -> Iterator[Connect]:
    """`connect(name=settings, ...)` connects to these servers and waits for them."""
    opened: list[McpTools] = []

    def open_servers(wait: float = 60, **servers: McpServerConfig) -> McpTools:
        tools = McpTools([Server(name, settings, "test") for name, settings in servers.items()], registry)
        opened.append(tools)
        tools.start(wait)
        return tools

    yield open_servers
    for tools in opened:
        tools.close()
