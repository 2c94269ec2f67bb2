"""Figures of MCP: our calls to a server against the SDK's own, and our server against the SDK's own."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from handrail.approval.gate import ApprovalGate
from handrail.core.registry import ToolRegistry
from handrail.mcp_client.server_config import Server
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.tools.mcp.server_tools import McpTools

from .harness import Figure, alternating, microseconds, milliseconds

_CALLS, _TOGETHER = 50, 200
_ROUNDS = 15
_ARGUMENTS = {"text": "x"}
Work = Callable[[], Awaitable[object]]
_SERVER = """
import sys
from mcp.server import MCPServer
server = MCPServer("bench")
@server.tool(structured_output=False)
def noop(text: str) -> str:
    "Nothing."
    return text
server.run()
"""
_SLOWEST_SECONDS = 2.0
_SOAK_CALLS, _SOAK_ROUND = 10_000, 100
_KILL_EVERY = 5  # rounds
_LIGHT = """
import json, sys, time
time.sleep(float(sys.argv[1]))
def send(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number = message["method"], message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "light", "version": "1"}
        send(number, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        send(number, {"tools": [{"name": "noop", "inputSchema": schema}]})
    elif method == "tools/call":
        send(number, {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
    elif number is not None:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
"""
_BARE = """
import asyncio, sys
from anyio.to_thread import run_sync
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
async def listed(context, params):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return ListToolsResult(tools=[Tool(name="noop", description="Nothing.", input_schema=schema)])
async def called(context, params):
    noop = lambda: params.arguments["text"]
    return CallToolResult(content=[TextContent(text=await run_sync(noop) if "thread" in sys.argv else noop())])
async def main():
    server = Server("bench", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reads, writes):
        await server.run(reads, writes, server.create_initialization_options())
asyncio.run(main())
"""
_OURS = """
import asyncio, sys
from handrail.model_tools import default
from handrail.serve.mcp.server import HandrailServer, serve_stdio
from handrail.core.registry import registry
here = default()
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
def noop(args, **context):
    return args["text"]
async def anoop(args, **context):
    return args["text"]
in_thread = "thread" in sys.argv
registry.register(name="noop", toolset="bench", schema={"description": "Nothing.", "parameters": schema},
                  handler=noop if in_thread else anoop, is_async=not in_thread)
asyncio.run(serve_stdio(HandrailServer(here, toolsets=["bench"]).build()))
"""


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        usual, bare, served, light = (Path(folder, f"{name}.py") for name in ("usual", "bare", "served", "light"))
        light.write_text(_LIGHT)
        usual.write_text(_SERVER)
        bare.write_text(_BARE)
        served.write_text(_OURS)
        yield from client(usual)
        yield from connecting(light)
        yield from soak(light)
        yield from server(served, bare)


def client(script: Path) -> Iterator[Figure]:
    registry = ToolRegistry()
    runtime = Runtime(registry, gate=ApprovalGate())
    tools = McpTools([_server("bench", script)], registry)
    tools.start(60)

    async def call() -> None:  # as an agent does
        outcome = await runtime.ahandle("mcp__bench__noop", _ARGUMENTS, "bench", on_progress=lambda _: None)
        assert outcome == '{"content": "x"}'

    async def one_by_one() -> None:
        for _ in range(_CALLS):
            await call()

    async def together() -> None:
        await asyncio.gather(*(call() for _ in range(_TOGETHER)))

    async def compare() -> list[Figure]:
        async with _sdk(script) as theirs:
            one = await _paired(one_by_one, lambda: _calls(theirs), _CALLS)
            many = await _paired(together, lambda: _calls_together(theirs), _TOGETHER)
        # A throughput of 0.9 is a time of 1 / 0.9.
        return [
            _figure("client: one stdio call", one, 1.15),
            _figure(f"  {_TOGETHER} in flight to one server, a call", many, 1.11),
        ]

    try:
        yield from asyncio.run(compare())
    finally:
        tools.close()


def server(served: Path, bare: Path) -> Iterator[Figure]:
    """The SDK's own client calls both. A tool that is no coroutine has a thread of its own on either side."""

    async def compare(what: str, *args: str) -> Figure:
        async with _sdk(served, *args) as ours, _sdk(bare, *args) as theirs:
            return _figure(what, await _paired(lambda: _calls(ours), lambda: _calls(theirs), _CALLS), 1.2)

    yield asyncio.run(compare("server: tools/call of a no-op"))
    yield asyncio.run(compare("  of a no-op on a thread", "thread"))


def soak(script: Path) -> Iterator[Figure]:
    """Calls to a server that is killed every 500: each is answered once, and nothing is left behind."""
    registry = ToolRegistry()
    runtime = Runtime(registry, gate=ApprovalGate())
    children = _children()
    tools = McpTools([_server("soak", script, "0")], registry)
    tools.start(60)
    asyncio.run(_round(runtime, tools, 1, kill=False))
    before, answered, lost, wrong = _held(tools), 0, 0, 0
    try:
        for number in range(_SOAK_CALLS // _SOAK_ROUND):
            kill = number % _KILL_EVERY == _KILL_EVERY - 1
            answers = asyncio.run(_round(runtime, tools, _SOAK_ROUND, kill=kill))
            answered += len(answers)
            for index, answer in enumerate(answers):
                lost += answer.get("lost") is True
                wrong += answer.get("lost") is not True and answer != {"content": str(index)}
        asyncio.run(_round(runtime, tools, 1, kill=False))
        left = max(0, _held(tools) - before)
    finally:
        tools.close()
    left += len(_children() - children)
    told = f"{answered:,} answered, {lost:,} of them lost"
    wrong += _SOAK_CALLS - answered
    yield Figure("  soak: calls without their one answer", str(wrong), told, float(wrong), 0.0, "")
    yield Figure("    files, tasks and processes that are left", str(left), "", float(left), 0.0, "")


async def _round(runtime: Runtime, tools: McpTools, count: int, *, kill: bool) -> list[Any]:
    work = [asyncio.ensure_future(runtime.ahandle("mcp__soak__noop", {"text": str(n)})) for n in range(count)]
    if kill:  # in the middle of the calls
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        pid = tools.connections.status()["soak"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    return [json.loads(str(await each)) for each in work]


def _held(tools: McpTools) -> int:
    """Open files, and tasks of the loop that the connections live on."""
    return len(os.listdir("/proc/self/fd")) + len(asyncio.all_tasks(tools.connections.loop))


def _children() -> set[str]:
    return {child for path in Path("/proc/self/task").glob("*/children") for child in path.read_text().split()}


def connecting(script: Path) -> Iterator[Figure]:
    """Servers that wait before they answer, as those do that load something or are far away. (Twenty that compute while
    they start would share two cores, whoever connects to them.)"""

    def connect(count: int) -> float:
        start = time.perf_counter()
        waits = [_SLOWEST_SECONDS * (number + 1) / count for number in range(count)]
        tools = McpTools([_server(f"s{n}", script, str(wait)) for n, wait in enumerate(waits)], ToolRegistry())
        tools.start(120)
        elapsed = time.perf_counter() - start
        tools.close()
        return elapsed

    mine, base, ratio = alternating(lambda: connect(20), lambda: connect(1), rounds=1)
    yield Figure("  20 servers connect, to the slowest one", milliseconds(mine), milliseconds(base), ratio, 1.5, "")


def _server(name: str, script: Path, *args: str) -> Server:
    light = ("-S",) if args else ()
    settings = McpServerConfig(command=sys.executable, args=(*light, str(script), *args), connect_timeout=120)
    return Server(name, settings, "bench")


@contextlib.asynccontextmanager
async def _sdk(script: Path, *args: str) -> AsyncIterator[Any]:
    """The SDK's own client of a server."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from mcp import Client

    env = {"HANDRAIL_HOME": os.environ["HANDRAIL_HOME"]}
    transport: Any = stdio_client(StdioServerParameters(command=sys.executable, args=[str(script), *args], env=env))
    async with Client(transport) as connected:
        yield connected


async def _calls(connected: Any) -> None:
    for _ in range(_CALLS):
        await connected.call_tool("noop", _ARGUMENTS)


async def _calls_together(connected: Any) -> None:
    await asyncio.gather(*(connected.call_tool("noop", _ARGUMENTS) for _ in range(_TOGETHER)))


async def _paired(ours: Work, floor: Work, count: int) -> tuple[float, float, float]:
    """Seconds a call of ours, of the floor's, and the median of their ratios round by round: both stay connected."""
    await ours(), await floor()
    mine, base = [], []
    for _ in range(_ROUNDS):
        gc.collect()
        base.append(await _timed(floor) / count)
        mine.append(await _timed(ours) / count)
    ratios = [one / other for one, other in zip(mine, base, strict=True)]
    return statistics.median(mine), statistics.median(base), statistics.median(ratios)


async def _timed(work: Work) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def _figure(what: str, measured: tuple[float, float, float], limit: float) -> Figure:
    mine, base, ratio = measured
    return Figure(what, microseconds(mine), microseconds(base), ratio, limit, "")
