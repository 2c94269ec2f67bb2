"""What a client that stays connected is told: that tools came or went, that a resource has changed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.core.registry import ToolRegistry
from handrail.serve.mcp import server as server_module
from handrail.serve.mcp.server import HandrailServer
from handrail.settings.schema import Config
from handrail.settings.services import McpServerConfig
from mcp import Client

from ...support import PATIENCE_SECONDS, add, parameters
from .test_server import talk

PLAIN = str(Path(__file__).parents[2] / "mcp_servers" / "plain.py")


def test_a_client_of_the_handshake_family_is_told_of_new_tools(default_registry: ToolRegistry) -> None:
    add(default_registry, "first", toolset="art")
    heard = asyncio.Event()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async def work(client: Client) -> Any:
        before = [tool.name for tool in (await client.list_tools()).tools]
        add(default_registry, "second", toolset="art")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await heard.wait()
            heard.clear()
            add(default_registry, "second", toolset="art", schema=parameters(size={"type": "integer"}))
            await heard.wait()
        return before, sorted(tool.name for tool in (await client.list_tools()).tools)

    before, after = talk(work, mode="legacy", toolsets=("art",), message_handler=hear)
    assert (before, after) == (["first"], ["first", "second"])


def test_a_client_is_told_when_a_tool_becomes_available(
    default_registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.core.availability.KEPT_SECONDS", 0.0)
    usable, heard = [False], asyncio.Event()
    add(default_registry, "first", toolset="art")
    add(default_registry, "second", toolset="art", check_fn=lambda: usable[0])

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async def work(client: Client) -> Any:
        before = [tool.name for tool in (await client.list_tools()).tools]
        usable[0] = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            await heard.wait()
        return before, sorted(tool.name for tool in (await client.list_tools()).tools)

    before, after = talk(work, mode="legacy", toolsets=("art",), message_handler=hear)
    assert (before, after) == (["first"], ["first", "second"])


def test_a_client_that_listens_is_told_of_new_tools_and_of_changed_resources(
    default_registry: ToolRegistry, home: Path
) -> None:
    add(default_registry, "first", toolset="art")
    folder = home / "skills" / "git-release"
    folder.mkdir(parents=True)
    text = "---\nname: git-release\ndescription: How to release.\n---\n"
    (folder / "SKILL.md").write_text(text)
    uri = "handrail://skills/git-release"

    async def work(client: Client) -> Any:
        kinds = set()
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as events,
        ):
            changing = asyncio.ensure_future(_keep_changing(default_registry, folder / "SKILL.md", text))
            async for event in events:
                kinds.add(type(event).__name__)
                if len(kinds) == 2:
                    break
            changing.cancel()
        return kinds

    assert talk(work, mode="auto", toolsets=("art", "skills")) == {"ToolsListChanged", "ResourceUpdated"}


async def _keep_changing(registry: ToolRegistry, file: Path, text: str) -> None:
    """The server looks now and then: what it has not seen yet has not changed."""
    for number in range(1000):
        add(registry, f"more{number}", toolset="art")
        file.write_text(f"{text}{number}\n")  # noqa: ASYNC240  nobody else is waiting
        await asyncio.sleep(0.5)


def test_the_first_list_waits_for_a_slow_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "FIRST_LIST_SECONDS", PATIENCE_SECONDS)
    slow = McpServerConfig(command="sh", args=("-c", f"sleep 3; exec {sys.executable} {PLAIN}"))

    async def work(server: Any) -> Any:
        async with Client(server) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, await client.call_tool("mcp__slow__say", {"text": "hello"})

    with Handrail(Config(mcp_servers={"slow": slow}), home=tmp_path) as app:
        names, said = asyncio.run(work(HandrailServer(app, toolsets=["slow"]).build()))
    assert "mcp__slow__add" in names
    # As the server behind ours gave it.
    assert (said.structured_content, said.content[0].text) == (None, "hello")
