"""A well-behaved server, called in every way there is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.config import McpServerConfig
from handrail.mcp_client.config import Server
from handrail.mcp_client.connection import State
from handrail.runtime.dispatch import Runtime
from handrail.tools.registry import ToolRegistry
from handrail.types import CancelToken, Progress

from ..support import error_in, wait_until
from .conftest import SCRIPTS, Connect, OpenGate, script


def content(outcome: Any) -> Any:
    return json.loads(outcome)["content"]


@pytest.fixture(params=["auto", "handshake"])
def plain(request: pytest.FixtureRequest) -> McpServerConfig:
    """Both families of the protocol."""
    return script("plain", protocol=request.param)


def test_tools_are_called_by_name_and_give_data_text_and_pictures(
    connect: Connect, registry: ToolRegistry, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=plain)
    assert json.loads(runtime.handle("mcp__plain__add", {"a": "2", "b": 3})) == {"structured": {"result": 5}}  # type: ignore[arg-type]
    assert content(runtime.handle("mcp__plain__say", {"text": "é\n"})) == "é\n"
    (part,) = runtime.handle("mcp__plain__picture", {})["content"]  # type: ignore[index]
    assert part["image_url"]["url"].startswith("data:image/png;base64,")
    assert registry.get_toolset_for_tool("mcp__plain__add") == "mcp-plain"
    assert registry.get_toolset_alias_target("plain") == "mcp-plain"


def test_a_tools_own_error_is_no_fault_of_the_connection(
    connect: Connect, runtime: Runtime, plain: McpServerConfig
) -> None:
    tools = connect(plain=plain)
    for _ in range(6):
        error = error_in(runtime.handle("mcp__plain__fail", {"why": "it is Monday"}))
        assert error["error_type"] == "tool_failed"
        assert "it is Monday" in error["error"]
    assert tools.connections.status()["plain"].state is State.READY


def test_arguments_are_held_against_the_servers_schema(connect: Connect, runtime: Runtime) -> None:
    connect(plain=script("plain"))
    assert error_in(runtime.handle("mcp__plain__add", {"a": 1}))["error_type"] == "invalid_arguments"


def test_calls_to_one_server_run_at_once(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(runtime.ahandle("mcp__plain__meet", {"others": 20}) for _ in range(20)))

    assert {content(each) for each in asyncio.run(all_of_them())} == {"met"}


def test_progress_comes_through(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    heard: list[Progress] = []
    assert content(runtime.handle("mcp__plain__steps", {}, on_progress=heard.append)) == "done"
    assert [(each.message, each.fraction) for each in heard] == [("half", 0.5), ("whole", 1.0)]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_cancel_reaches_the_server(
    connect: Connect, runtime: Runtime, plain: McpServerConfig, tmp_path: Path, is_async: bool
) -> None:
    connect(plain=plain)
    cancel, mark = CancelToken(), tmp_path / "mark"
    more: Any = {"cancel": cancel, "on_progress": lambda news: cancel.cancel()}
    arguments = {"mark": str(mark)}
    if is_async:
        outcome = asyncio.run(runtime.ahandle("mcp__plain__wait", arguments, **more))
    else:
        outcome = runtime.handle("mcp__plain__wait", arguments, **more)
    assert error_in(outcome)["error_type"] == "cancelled"
    wait_until(mark.exists)


def test_a_server_that_was_killed_is_there_for_the_next_call(connect: Connect, runtime: Runtime) -> None:
    connect(plain=script("plain"))
    first = int(content(runtime.handle("mcp__plain__pid", {})))
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{first}"))
    second = int(content(runtime.handle("mcp__plain__pid", {})))
    assert second != first


def test_an_idle_server_is_parked_and_comes_back(connect: Connect, runtime: Runtime) -> None:
    tools = connect(plain=script("plain", idle_seconds=0.2))
    first = int(content(runtime.handle("mcp__plain__pid", {})))
    wait_until(lambda: tools.connections.status()["plain"].state is State.PARKED)
    assert not os.path.exists(f"/proc/{first}")
    assert int(content(runtime.handle("mcp__plain__pid", {}))) != first


def test_a_server_gets_few_variables_and_those_that_are_configured(
    connect: Connect, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    monkeypatch.setenv("WORD", "known")
    connect(plain=script("plain", env={"MINE": "${WORD} ${OTHER:-else}"}))
    names = set(content(runtime.handle("mcp__plain__variables", {})).split())
    assert "GITHUB_TOKEN" not in names
    assert {"PATH", "MINE"} <= names


def test_a_variable_that_is_not_set_is_named(connect: Connect) -> None:
    tools = connect(plain=script("plain", env={"KEY": "${NOT_SET_ANYWHERE}"}))
    assert "NOT_SET_ANYWHERE is not set" in tools.connections.status()["plain"].error


def test_only_the_tools_that_are_wanted_are_taken(connect: Connect, registry: ToolRegistry) -> None:
    connect(plain=script("plain", include=("add", "s*"), exclude=("steps",)))
    names = set(registry.get_tool_names_for_toolset("mcp-plain"))
    assert {"mcp__plain__add", "mcp__plain__say"} <= names
    assert not {"mcp__plain__steps", "mcp__plain__erase"} & names


def test_a_tool_that_comes_later_appears(
    connect: Connect, registry: ToolRegistry, runtime: Runtime, plain: McpServerConfig
) -> None:
    connect(plain=plain)
    runtime.handle("mcp__plain__grow", {})
    wait_until(lambda: registry.get_entry("mcp__plain__late") is not None)


def test_resources_and_prompts_are_tools_too(connect: Connect, runtime: Runtime, plain: McpServerConfig) -> None:
    connect(plain=plain)
    listed = json.loads(runtime.handle("mcp__plain__list_resources", {}))  # type: ignore[arg-type]
    assert listed["resources"][0]["uri"] == "notes://one"
    assert content(runtime.handle("mcp__plain__read_resource", {"uri": "notes://one"})) == "the note"
    prompt = json.loads(runtime.handle("mcp__plain__get_prompt", {"name": "greet", "arguments": {"who": "Ann"}}))  # type: ignore[arg-type]
    assert prompt["messages"][0]["content"]["text"] == "Say hello to Ann."


def test_what_a_tool_says_of_itself_can_make_it_ask(connect: Connect, runtime: Runtime, gate: OpenGate) -> None:
    connect(plain=script("plain"), careful=script("plain", ask="writes"))
    runtime.handle("mcp__plain__erase", {"what": "it"})
    runtime.handle("mcp__plain__add", {"a": 1, "b": 1})
    runtime.handle("mcp__careful__say", {"text": "x"})
    runtime.handle("mcp__careful__add", {"a": 1, "b": 1})
    assert [bool(each.details.get("destructive") or each.details.get("why")) for each in gate.seen] == [
        True,
        False,
        True,
        False,
    ]


@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SCRIPTS / "plain.py"), str(port)], stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


@pytest.mark.parametrize("protocol", ["auto", "handshake"])
def test_a_server_is_reached_by_http(connect: Connect, runtime: Runtime, address: str, protocol: Any) -> None:
    tools = connect(far=McpServerConfig(url=address, protocol=protocol))
    wait_until(lambda: tools.connections.status()["far"].state is State.READY, timeout=30)
    assert json.loads(runtime.handle("mcp__far__add", {"a": 2, "b": 3})) == {"structured": {"result": 5}}  # type: ignore[arg-type]
    assert "it is Monday" in error_in(runtime.handle("mcp__far__fail", {"why": "it is Monday"}))["error"]


_KILLED = """
import os, signal, sys
from handrail.config import McpServerConfig
from handrail.mcp_client.config import Server
from handrail.tools.mcp_tool import McpTools
settings = McpServerConfig(command=sys.executable, args=(sys.argv[1], "stubborn"), protocol="handshake")
tools = McpTools([Server("s", settings, "test")])
tools.start(60)
print(tools.connections._connections["s"]._process.child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_is_left_when_we_are_killed() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _KILLED, str(SCRIPTS / "hostile.py")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    wait_until(lambda: not os.path.exists(f"/proc/{int(ran.stdout)}") or _is_zombie(int(ran.stdout)), timeout=20)


def _is_zombie(pid: int) -> bool:
    """Ended, and nobody above it collects the ended, as in some containers."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_names_fit_what_models_may_use() -> None:
    from handrail.tools.mcp_tool import tool_name

    assert tool_name("a", "b") == "mcp__a__b"
    odd = [tool_name("a", "x.y"), tool_name("a", "x/y"), tool_name("a", "z" * 90), tool_name("a", "z" * 91)]
    assert len(set(odd)) == 4
    assert all(len(name) <= 64 for name in odd)


def test_a_name_that_would_mislead_is_refused() -> None:
    from handrail.mcp_client.config import problem_of

    assert problem_of(Server("a__b", McpServerConfig(command="x"), ""))
    assert problem_of(Server("a", McpServerConfig(), ""))
    assert problem_of(Server("a", McpServerConfig(command="x", url="http://y"), ""))
