"""Long calls as tasks: our client at our server, and a client that comes back later."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from handrail.core.registry import ToolRegistry
from handrail.mcp_client.tasks import EXTENSION, TaskExtension, send
from handrail.model_tools import default
from handrail.serve.mcp.server import HandrailServer
from handrail.types import JsonDict, ToolContext
from mcp import Client

from ...support import PATIENCE_SECONDS, add


@pytest.fixture
def long(default_registry: ToolRegistry) -> threading.Event:
    """`long` runs until the event is set, or it is cancelled. It runs in a loop of its own, as tools of others do in a server."""
    go = threading.Event()

    async def wait(args: JsonDict, context: ToolContext) -> str:
        while not go.is_set():  # noqa: ASYNC110  set in another loop
            await asyncio.sleep(0.01)
        return "done"

    add(default_registry, "long", wait, toolset="art", is_async=True)
    return go


def connected(server: Any, extension: Any) -> Client:
    return Client(server, extensions=[extension])


async def started(client: Client) -> str:
    """The id of a task that the server has made of a call."""
    created = await client.session.call_tool("long", {}, allow_claimed=True)
    assert type(created).__name__ == "Created", created
    return str(created.task_id)  # type: ignore[union-attr]


async def polled(client: Client, task: str, method: str = "tasks/get") -> JsonDict:
    return await send(client.session, method, task)


def server() -> Any:
    return HandrailServer(default(), toolsets=["art"]).build()


def test_our_client_waits_for_the_task_that_a_long_call_becomes(long: threading.Event) -> None:
    async def work() -> Any:
        extension = TaskExtension({})
        async with connected(server(), extension) as client:
            call = asyncio.ensure_future(client.call_tool("long", {}))
            other = await started(client)  # it has taken as long by now
            assert (await polled(client, other))["status"] == "working"
            long.set()
            return await asyncio.wait_for(call, PATIENCE_SECONDS)

    assert asyncio.run(work()).content[0].text == "done"


def test_a_task_survives_its_client_and_is_there_for_the_next(long: threading.Event) -> None:
    async def work() -> Any:
        ours, extension = server(), TaskExtension({})
        async with connected(ours, extension) as client:
            task = await started(client)
        long.set()
        async with connected(ours, extension) as client, asyncio.timeout(PATIENCE_SECONDS):
            while (found := await polled(client, task))["status"] == "working":  # noqa: ASYNC110  it is made to be polled
                await asyncio.sleep(0.01)
            with pytest.raises(MCPError) as unknown:
                await polled(client, "another")
            return found, unknown.value.code

    found, code = asyncio.run(work())
    assert found["result"]["content"][0]["text"] == "done"
    assert code == INVALID_PARAMS


def test_a_cancelled_task_ends_its_call(long: threading.Event) -> None:
    async def work() -> Any:
        ours = server()
        async with connected(ours, TaskExtension({})) as client:
            task = await started(client)
            await polled(client, task, "tasks/cancel")
            await polled(client, task, "tasks/cancel")
            return await polled(client, task)

    assert asyncio.run(work())["status"] == "cancelled"


def test_a_client_that_does_not_know_tasks_waits_for_the_result(long: threading.Event) -> None:
    async def work() -> Any:
        async with connected(server(), advertise("com.example/other")) as client:
            asyncio.get_running_loop().call_later(1.0, long.set)
            result = await client.call_tool("long", {})
            with pytest.raises(MCPError) as refused:
                await polled(client, "any")
            return result, refused.value

    result, refused = asyncio.run(work())
    assert result.content[0].text == "done"
    assert refused.code == -32021
    assert EXTENSION in refused.data["requiredCapabilities"]["extensions"]
