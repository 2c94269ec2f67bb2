"""Servers that we start: their lives, and how they are reached."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.mcp_client.connection import State
from handrail.mcp_client.server_config import Server
from handrail.mcp_client.stdio import Watchdog, stdio_transport
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig

from ..support import PATIENCE_SECONDS, wait_until
from .conftest import SCRIPTS, Connect, has_ended, hostile, script


def content(outcome: Any) -> Any:
    return json.loads(outcome)["content"]


def test_a_server_that_was_killed_is_there_for_the_next_call(connect: Connect, runtime: Runtime) -> None:
    connect(plain=hostile("pid"))
    first = int(content(runtime.handle("mcp__plain__go", {})))
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: has_ended(first))
    second = int(content(runtime.handle("mcp__plain__go", {})))
    assert second != first


def test_a_server_whose_time_is_over_while_it_is_started_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the SDK takes longer to import than a server may take to connect. The server has started others by then."""
    words = f"sh -c 'echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec cat'; true"
    settings = McpServerConfig(command="sh", args=("-c", words))
    create = asyncio.create_subprocess_exec

    async def enter() -> None:
        async with stdio_transport(settings, watchdog=Watchdog(), started=lambda _: None, ended=lambda: None):
            await asyncio.Event().wait()

    async def cancelled() -> None:
        entering = asyncio.ensure_future(enter())

        def cancel() -> None:
            wait_until((tmp_path / "pid").exists)  # in the loop, as an import is
            entering.cancel()

        async def create_and_cancel(*words: str, **how: Any) -> Any:
            asyncio.get_running_loop().call_soon(cancel)  # the program runs by then, and its pipes are not connected
            return await create(*words, **how)

        monkeypatch.setattr(asyncio, "create_subprocess_exec", create_and_cancel)
        _, late = await asyncio.wait({entering}, timeout=PATIENCE_SECONDS)
        assert not late

    asyncio.run(cancelled())
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_an_idle_server_is_parked_and_comes_back(connect: Connect, runtime: Runtime) -> None:
    tools = connect(plain=hostile("pid", idle_seconds=0.2))
    first = int(content(runtime.handle("mcp__plain__go", {})))
    wait_until(lambda: tools.connections.status()["plain"].state is State.PARKED)
    wait_until(lambda: has_ended(first))
    assert int(content(runtime.handle("mcp__plain__go", {}))) != first


def test_a_server_gets_few_variables_and_those_that_are_configured(
    connect: Connect, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    monkeypatch.setenv("WORD", "known")
    connect(plain=hostile("variables", env={"MINE": "${WORD} ${OTHER:-else}"}))
    names = set(content(runtime.handle("mcp__plain__go", {})).split())
    assert "GITHUB_TOKEN" not in names
    assert {"PATH", "MINE"} <= names


def test_a_server_is_told_who_we_are(connect: Connect, runtime: Runtime) -> None:
    connect(plain=hostile("client"))
    assert content(runtime.handle("mcp__plain__go", {})) == "handrail"


def test_a_variable_that_is_not_set_is_named(connect: Connect) -> None:
    tools = connect(plain=script("plain", env={"KEY": "${NOT_SET_ANYWHERE}"}))
    assert "NOT_SET_ANYWHERE is not set" in tools.connections.status()["plain"].error


_KILLED = """
import os, signal, sys
from handrail.settings.services import McpServerConfig
from handrail.mcp_client.server_config import Server
from handrail.tools.mcp.server_tools import McpTools
settings = McpServerConfig(command=sys.executable, args=(sys.argv[1], "stubborn"), protocol="handshake")
tools = McpTools([Server("s", settings, "test")])
tools.start(60)
print(tools.connections.status()["s"].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_when_we_are_killed() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _KILLED, str(SCRIPTS / "hostile.py")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    wait_until(lambda: has_ended(int(ran.stdout)))


def test_names_fit_what_models_may_use() -> None:
    from handrail.tools.mcp.server_tools import tool_name

    assert tool_name("a", "b") == "mcp__a__b"
    odd = [tool_name("a", "x.y"), tool_name("a", "x/y"), tool_name("a", "z" * 90), tool_name("a", "z" * 91)]
    assert len(set(odd)) == 4
    assert all(len(name) <= 64 for name in odd)


def test_a_name_that_would_mislead_is_refused() -> None:
    from handrail.mcp_client.server_config import problem_of

    assert problem_of(Server("a__b", McpServerConfig(command="x"), ""))
    assert problem_of(Server("a", McpServerConfig(), ""))
    assert problem_of(Server("a", McpServerConfig(command="x", url="http://y"), ""))
