"""A tool or hook that tries to end the program ends its own call, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ..support import trust_plugins, wait_until
from .conftest import Server

PLUGIN = """
import asyncio, sys, threading
from pathlib import Path
from handrail import hookimpl

async def exits(args, **_): sys.exit(3)
async def interrupts(args, **_): raise KeyboardInterrupt
async def generator_exit(args, **_): raise GeneratorExit
async def stops_the_loop(args, **_):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(30)
async def cancels_everything(args, **_):
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(30)
async def child_task_exits(args, **_):
    async def child(): sys.exit(4)
    await asyncio.gather(asyncio.create_task(child()))
def sync_exits(args, **_): sys.exit(3)
def sync_interrupts(args, **_): raise KeyboardInterrupt
def sync_generator_exit(args, **_): raise GeneratorExit
def sync_stops_the_loop(args, **_):
    asyncio.get_running_loop().stop()
    return "stopped"

TOOLS = [exits, interrupts, generator_exit, stops_the_loop, cancels_everything, child_task_exits,
         sync_exits, sync_interrupts, sync_generator_exit, sync_stops_the_loop]

def register(api):
    for tool in TOOLS:
        api.register_tool(
            name=tool.__name__, toolset="bad", handler=tool, is_async=asyncio.iscoroutinefunction(tool),
            schema={"description": "Bad.", "parameters": {"type": "object", "properties": {}}},
        )

def pre_tool_call(tool_name, args):
    if tool_name == "read_file" and args.get("path") == "/hook/interrupts":
        raise KeyboardInterrupt
    if tool_name == "read_file" and args.get("path") == "/hook/exits":
        sys.exit(5)

async def post_tool_call(tool_name, args):
    if args.get("path", "").startswith("/hook/"):
        (Path(__file__).parents[2] / Path(args["path"]).name).touch()
    if args.get("path") == "/hook/stops":
        asyncio.get_running_loop().stop()
    if args.get("path") == "/hook/cancels":
        for task in asyncio.all_tasks():
            task.cancel()
    if args.get("path") == "/hook/leaves":
        raise GeneratorExit
"""
TOOLS = [
    "exits", "interrupts", "generator_exit", "stops_the_loop", "cancels_everything", "child_task_exits",
    "sync_exits", "sync_interrupts", "sync_generator_exit", "sync_stops_the_loop",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home, work = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("work")
    plugin: Path = home / "plugins" / "bad"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(PLUGIN)
    trust_plugins(home)
    made = Server(home, work)
    yield made
    made.stop()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_handler_ends_its_own_call_and_nothing_else(server: Server, tool: str, tmp_path: Path) -> None:
    wait = f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo sibling"
    with ThreadPoolExecutor(1) as pool:
        sibling = pool.submit(server.call, "terminal", command=wait)
        wait_until((tmp_path / "begun").exists)
        answer = server.call(tool)
        assert isinstance(answer, dict), answer
        assert answer["error_type"] in ("tool_failed", "cancelled")
        (tmp_path / "go").touch()
        assert sibling.result()["output"].strip() == "sibling"
    assert server.process.poll() is None


@pytest.mark.parametrize("path", ["/hook/interrupts", "/hook/exits", "/hook/stops", "/hook/cancels", "/hook/leaves"])
def test_a_hook_ends_nothing(server: Server, path: str) -> None:
    assert "error" in json.dumps(server.call("read_file", path=path))
    wait_until((server.home / Path(path).name).exists)
    assert server.call("terminal", command="echo here")["output"].strip() == "here"
    assert server.process.poll() is None
