"""Long calls as tasks: our client at our server, and a client that comes back later."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.client.extension import advertise
from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from handrail.config.paths import state_dir
from handrail.core.registry import ToolRegistry
from handrail.mcp_client.connection import MAX_FAULTS
from handrail.mcp_client.server_config import Server
from handrail.mcp_client.tasks import EXTENSION, Followed, TaskExtension
from handrail.model_tools import default
from handrail.runtime.dispatch import Runtime
from handrail.serve.mcp import tasks
from handrail.serve.mcp.http import http_app
from handrail.serve.mcp.server import HandrailServer
from handrail.serve.server import Address
from handrail.settings.services import McpServerConfig
from handrail.testing import OpenGate
from handrail.tools.mcp.server_tools import McpTools
from handrail.types import CancelToken, JsonDict, ToolContext
from mcp import Client

from ...mcp_servers.serving import listening, serving
from ...support import PATIENCE_SECONDS, add, error_in, wait_until


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
    return await Followed(client.session, task, None).send(method)


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


def test_a_result_survives_the_server(long: threading.Event) -> None:
    async def work() -> Any:
        async with connected(server(), TaskExtension({})) as client:
            task = await started(client)
            long.set()
            while (await polled(client, task))["status"] == "working":  # noqa: ASYNC110  it is made to be polled
                await asyncio.sleep(0.01)
        async with connected(server(), TaskExtension({})) as client, asyncio.timeout(PATIENCE_SECONDS):
            found = await polled(client, task)
            await polled(client, task, "tasks/cancel")  # it is over: nothing to do
            with pytest.raises(MCPError):
                await polled(client, task, "tasks/update")
            return found, await polled(client, task)

    found, again = asyncio.run(work())
    assert found["result"]["content"][0]["text"] == "done"
    assert again == found
    assert "owner" not in found


def test_another_server_knows_what_runs_and_cannot_cancel_it(long: threading.Event) -> None:
    async def work() -> None:
        async with connected(server(), TaskExtension({})) as client:
            task = await started(client)
            async with connected(server(), TaskExtension({})) as other:
                assert (await polled(other, task))["status"] == "working"
                with pytest.raises(MCPError, match="runs in another server"):
                    await polled(other, task, "tasks/cancel")
                long.set()
                while (found := await polled(other, task))["status"] == "working":  # noqa: ASYNC110  it is made to be polled
                    await asyncio.sleep(0.01)
            assert found["result"]["content"][0]["text"] == "done"

    asyncio.run(work())


def test_old_tasks_are_forgotten_and_the_files_tell_nobody_the_ids(
    long: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = state_dir(default().config.home) / "mcp" / "tasks"

    async def work() -> None:
        async with connected(server(), TaskExtension({})) as client:
            task = await started(client)
            assert [task in each.name for each in folder.iterdir()] == [False]
            long.set()
            while (await polled(client, task))["status"] == "working":  # noqa: ASYNC110  it is made to be polled
                await asyncio.sleep(0.01)
            long.clear()
            monkeypatch.setattr(tasks, "_TTL_SECONDS", -1)
            other = await started(client)
            with pytest.raises(MCPError, match="no task"):
                await polled(client, task)
            await polled(client, other, "tasks/cancel")

    asyncio.run(work())
    assert folder.stat().st_mode & 0o077 == 0


class Relay:
    """Between a client and a server: passes on what they send, until the connections are cut."""

    def __init__(self) -> None:
        self.bound = listening()
        self.port = self.bound.getsockname()[1]
        self.to, self.polls = 0, 0
        self.call: socket.socket | None = None  # what the last call came over
        self.streaming: list[socket.socket | None] = []  # where answers have begun
        self._open: list[socket.socket] = []
        self._is_cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.bound.accept()
            except OSError:
                return
            if self._is_cut.is_set():
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.to))
            self._open += [near, far]
            if self._is_cut.is_set():  # meanwhile
                self.cut()
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.polls += b"mcp-method: tasks/get" in data.lower()
                self.call = source if b"tools/call" in data else self.call
                target.sendall(data)
                if b"content-type: text/event-stream" in data:
                    self.streaming.append(target)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes who waits for more of it; closing would not
            each.close()

    def cut(self) -> None:
        self._is_cut.set()
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut.clear()


@pytest.fixture
def far(long: threading.Event) -> Iterator[tuple[Relay, McpTools, Callable[..., Any]]]:
    """A server behind a relay, our client of it, and a function that calls `long` there."""
    relay = Relay()
    app = http_app(HandrailServer(default(), toolsets=["art"]).build(), Address("127.0.0.1", relay.port), "t")
    settings = McpServerConfig(url=f"http://127.0.0.1:{relay.port}/mcp", headers={"Authorization": "Bearer t"})
    registry = ToolRegistry()
    tools = McpTools([Server("far", settings, "test")], registry)
    with serving(app) as url, concurrent.futures.ThreadPoolExecutor() as pool:
        relay.to = int(url.rpartition(":")[2])
        try:
            tools.start(PATIENCE_SECONDS)
            handle = Runtime(registry, gate=OpenGate()).handle
            yield relay, tools, lambda **more: pool.submit(handle, "mcp__far__long", {}, **more)
        finally:
            long.set()
            relay.mend()
            tools.close()
            relay.bound.close()


def test_our_client_takes_its_tasks_up_again_when_the_connection_was_lost(far: Any, long: threading.Event) -> None:
    relay, tools, call = far
    calls = [call(), call()]
    wait_until(lambda: relay.polls >= 2)
    relay.cut()
    # As long as a server takes that is started again: calls that begin now fail, these go on.
    wait_until(lambda: tools.connections.status()["far"].faults >= MAX_FAULTS)
    assert not any(each.done() for each in calls)
    relay.mend()
    long.set()
    assert ["done" in each.result(PATIENCE_SECONDS) for each in calls] == [True, True]


def test_a_task_that_is_cancelled_while_the_server_is_away_is_cancelled_when_it_is_back(far: Any, home: Path) -> None:
    relay, tools, call = far
    stop = CancelToken()
    made = call(cancel=stop)
    wait_until(lambda: relay.polls)
    relay.cut()
    wait_until(lambda: tools.connections.status()["far"].faults)
    stop.cancel("enough")
    assert "enough" in made.result(PATIENCE_SECONDS)
    relay.mend()
    [kept] = (state_dir(default().config.home) / "mcp" / "tasks").glob("*.json")
    wait_until(lambda: json.loads(kept.read_text())["status"] == "cancelled")


class Older:
    """Our client of a server of 2025-11-25, which may be started again at the same address. Its tool waits for `go`."""

    def __init__(self, port: int) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        settings = McpServerConfig(url=f"http://127.0.0.1:{port}/mcp", protocol="handshake")
        registry = ToolRegistry()
        self.tools = McpTools([Server("far", settings, "test")], registry)
        self.greet = partial(Runtime(registry, gate=OpenGate()).handle, "mcp__far__greet", {})

    def app(self) -> Any:
        async def greet() -> str:
            self.begun.set()
            await asyncio.to_thread(self.go.wait)
            return "hi"

        server = MCPServer("far")
        server.add_tool(greet)
        return server.streamable_http_app(host="0.0.0.0")  # which checks no names


def test_an_answer_that_is_cut_off_is_a_lost_connection() -> None:
    relay = Relay()
    older = Older(relay.port)
    with serving(older.app()) as url, concurrent.futures.ThreadPoolExecutor() as pool:
        relay.to = int(url.rpartition(":")[2])
        try:
            older.tools.start(PATIENCE_SECONDS)
            call = pool.submit(older.greet)
            wait_until(lambda: older.begun.is_set() and relay.call in relay.streaming)
            assert relay.call is not None
            relay.call.shutdown(socket.SHUT_RDWR)
            assert "it is unknown whether the call took effect" in error_in(call.result(PATIENCE_SECONDS))["error"]
            older.go.set()
            assert "hi" in older.greet()
        finally:
            older.go.set()
            older.tools.close()
            relay.bound.close()


def test_a_server_that_forgot_the_session_is_asked_again_in_a_new_one() -> None:
    bound = listening()
    port = bound.getsockname()[1]
    older = Older(port)
    older.go.set()
    try:
        with serving(older.app(), bound):
            older.tools.start(PATIENCE_SECONDS)
            assert "hi" in older.greet()
        with serving(older.app(), socket.create_server(("127.0.0.1", port))):
            assert "hi" in older.greet()
    finally:
        older.tools.close()


def test_a_server_that_was_killed_during_the_call_says_so_when_it_is_back(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, asked, send = tmp_path / "begun", threading.Event(), Followed.send

    def noted(self: Followed, *args: Any, **more: Any) -> Any:
        asked.set()
        return send(self, *args, **more)

    monkeypatch.setattr(Followed, "send", noted)
    settings = McpServerConfig(
        command=sys.executable, args=("-m", "handrail", "mcp", "serve", "--toolset", "terminal"),
        env={"HANDRAIL_HOME": str(home)}, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    registry = ToolRegistry()
    tools = McpTools([Server("ours", settings, "test")], registry)
    try:
        tools.start(PATIENCE_SECONDS)
        runtime = Runtime(registry, gate=OpenGate())
        with concurrent.futures.ThreadPoolExecutor() as pool:
            command = {"command": f"touch {begun}; sleep 1000"}
            call = pool.submit(runtime.handle, "mcp__ours__terminal", command)
            wait_until(begun.exists)
            assert asked.wait(PATIENCE_SECONDS)  # the client knows that the call goes on as a task
            first = tools.connections.status()["ours"].pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            error = error_in(call.result(PATIENCE_SECONDS))
        assert "it is unknown whether the call took effect" in error["error"]
        assert tools.connections.status()["ours"].pid != first
        assert "hi" in runtime.handle("mcp__ours__terminal", {"command": "echo hi"})
    finally:
        tools.close()


def test_a_task_whose_server_ended_while_it_asked_has_failed(tmp_path: Path) -> None:
    gone = subprocess.run(
        [sys.executable, "-c", "from handrail.base.own_process import runtime_id; print(runtime_id())"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    ours = tasks.Tasks(tmp_path)
    kept = {"owner": gone, "taskId": "t", "status": "input_required", "inputRequests": {"1": {}}}
    ours._file("t").write_text(json.dumps(kept))
    found = ours._kept("t")
    assert found is not None
    assert found["status"] == "failed"
    assert "inputRequests" not in found
