"""What an MCP client finds at our server, asked by the official SDK's client over memory: both families of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, ElicitResult

from handrail import Config, Handrail
from handrail.approval.gate import STORE_NAME
from handrail.config.paths import state_dir
from handrail.core.registry import ToolRegistry
from handrail.environments.errors import UnknownEnvironment
from handrail.model_tools import default
from handrail.protocols import Answer, Decision
from handrail.serve.mcp.client_requests import ClientRequest
from handrail.serve.mcp.server import DEFAULT_TOOLSETS, HandrailServer
from handrail.store.approvals import ApprovalStore
from handrail.types import JsonDict, Progress, ToolContext
from mcp import Client

from ...environments.conftest import naps
from ...services.docker import Docker
from ...support import add, wait_until

Session = Callable[[Client], Coroutine[Any, Any, Any]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both families of the protocol."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _inside_the_test_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def talk(
    work: Session, *, mode: str, toolsets: tuple[str, ...] = DEFAULT_TOOLSETS, backend: str = "", **client: Any
) -> Any:
    server = HandrailServer(default(), toolsets=toolsets, backend=backend).build()

    async def session() -> Any:
        async with Client(server, mode=mode, **client) as connected:
            return await work(connected)

    return asyncio.run(session())


def test_what_is_reported_after_the_server_has_ended_is_dropped(recwarn: pytest.WarningsRecorder) -> None:
    async def begin() -> ClientRequest:
        context, params = SimpleNamespace(protocol_version="2025-11-25"), SimpleNamespace(input_responses=None)
        return ClientRequest(context, params, ())

    request = asyncio.run(begin())
    request.report(Progress("terminal", "late"))
    request.log("info", "late")
    assert [str(each.message) for each in recwarn if "never awaited" in str(each.message)] == []


def test_tools_are_listed_with_schemas_and_hints(mode: str) -> None:
    async def work(client: Client) -> Any:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    tools = talk(work, mode=mode)
    assert {"read_file", "write_file", "terminal"} <= tools.keys()
    assert tools["read_file"].annotations.read_only_hint is True
    assert "path" in tools["read_file"].input_schema["properties"]


def test_a_call_gives_text_and_data_and_marks_a_failure(tmp_path: Path, mode: str) -> None:
    (tmp_path / "note.txt").write_text("hello\n")

    async def work(client: Client) -> Any:
        good = await client.call_tool("read_file", {"path": str(tmp_path / "note.txt")})
        bad = await client.call_tool("read_file", {"path": str(tmp_path / "none.txt")})
        with pytest.raises(MCPError, match="Unknown tool: todo") as other:
            await client.call_tool("todo", {})
        return good, bad, other.value

    good, bad, other = talk(work, mode=mode, toolsets=("file",))
    assert "hello" in good.structured_content["content"]
    assert not good.is_error
    assert bad.is_error
    assert other.code == INVALID_PARAMS, "it is not in the toolset"


def test_pictures_are_pictures(default_registry: ToolRegistry, mode: str) -> None:
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    add(default_registry, "draw", lambda args, **_: {"_multimodal": True, "content": [part]}, toolset="art")

    async def work(client: Client) -> Any:
        return await client.call_tool("draw", {})

    (block,) = talk(work, mode=mode, toolsets=("art",)).content
    assert (block.type, block.mime_type, block.data) == ("image", "image/png", PIXEL)


def test_news_of_a_call_reach_the_client(default_registry: ToolRegistry, mode: str) -> None:
    def steps(args: JsonDict, context: ToolContext) -> str:
        context.progress("half", 0.5)
        context.progress("whole", 1.0)
        return json.dumps({"done": True})

    add(default_registry, "steps", steps, toolset="art")
    heard: list[tuple[float, str | None]] = []

    async def work(client: Client) -> Any:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, message))

        return await client.call_tool("steps", {}, progress_callback=hear)

    assert not talk(work, mode=mode, toolsets=("art",)).is_error
    assert heard == [(0.5, "half"), (1.0, "whole")]


def test_a_client_that_cancels_ends_the_command(mode: str) -> None:
    async def work(client: Client) -> None:
        call = asyncio.ensure_future(client.call_tool("terminal", {"command": "sleep 600.25"}))
        await asyncio.to_thread(wait_until, lambda: "sleep 600.25" in naps())
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.to_thread(wait_until, lambda: "sleep 600.25" not in naps())

    talk(work, mode=mode, toolsets=("terminal",))


class Asked:
    """A person at the client who always says the same."""

    def __init__(self, **answer: Any) -> None:
        self.questions: list[str] = []
        self._answer = answer

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        return ElicitResult(**self._answer)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    return folder


def remove(folder: Path) -> Session:
    async def work(client: Client) -> Any:
        return await client.call_tool("terminal", {"command": f"rm -rf {folder}"})

    return work


def test_a_yes_at_the_client_lets_it_happen(victim: Path, mode: str) -> None:
    asked = Asked(action="accept", content={"decision": "once"})
    result = talk(remove(victim), mode=mode, elicitation_callback=asked)
    assert not result.is_error, result
    assert not victim.exists()
    (question,) = asked.questions
    assert f"rm -rf {victim}" in question


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            {"action": "accept", "content": {"decision": "deny", "why": "move it instead"}},
            "mcp client: move it instead",
        ),
        ({"action": "accept", "content": {"decision": "whatever"}}, "mcp client."),
        ({"action": "decline"}, "mcp client: the question was declined"),
        ({"action": "cancel"}, "mcp client: the question was closed"),
    ],
)
def test_anything_else_at_the_client_is_a_no_with_its_reason(victim: Path, mode: str, answer: Any, why: str) -> None:
    result = talk(remove(victim), mode=mode, elicitation_callback=Asked(**answer))
    assert result.is_error
    assert result.structured_content["error_type"] == "denied"
    assert f"denied by {why}" in result.structured_content["error"]
    assert victim.exists()


def test_the_client_sees_what_would_be_written_and_all_of_it_on_request(tmp_path: Path, mode: str) -> None:
    target = tmp_path / ".git/hooks/pre-commit"
    target.parent.mkdir(parents=True)
    content = "#!/bin/sh\n" + "".join(f"echo {number}\n" for number in range(100))
    seen: list[tuple[str, list[str]]] = []

    async def look_first(_: Any, params: Any) -> ElicitResult:
        offered = params.requested_schema["properties"]["decision"]["enum"]
        seen.append((params.message, offered))
        return ElicitResult(action="accept", content={"decision": "view" if "view" in offered else "once"})

    async def work(client: Client) -> Any:
        return await client.call_tool("write_file", {"path": str(target), "content": content})

    result = talk(work, mode=mode, elicitation_callback=look_first)
    assert not result.is_error, result
    (first, _), (second, offered) = seen
    assert "+echo 1\n" in first
    assert "+echo 99" not in first
    assert "+echo 99" in second
    assert "view" not in offered
    assert target.read_text() == content


def test_a_client_that_cannot_ask_is_denied(victim: Path, mode: str) -> None:
    result = talk(remove(victim), mode=mode)
    assert result.structured_content["error_type"] == "denied"
    assert "nobody is there to ask" in result.structured_content["error"]
    assert victim.exists()


def test_a_question_that_the_client_cannot_show_waits_in_the_queue(home: Path, victim: Path, mode: str) -> None:
    (home / "config.yaml").write_text("approvals: {headless: queue, timeout: 60}")

    def answer() -> None:
        """Somebody at another terminal, as `handrail approvals answer` does it."""
        path = state_dir() / STORE_NAME
        wait_until(path.exists, timeout=30)
        with contextlib.closing(ApprovalStore(path)) as store:
            wait_until(store.pending, timeout=30)
            store.answer(store.pending()[0].request.id, Answer(Decision.ONCE, "somebody"))

    other = threading.Thread(target=answer)
    other.start()
    try:
        result = talk(remove(victim), mode=mode)
    finally:
        other.join()
    assert not result.is_error, result
    assert not victim.exists()


def test_a_place_that_does_not_exist_is_told_at_once() -> None:
    with pytest.raises(UnknownEnvironment, match="docker"):
        HandrailServer(default(), backend="dokcer")


@pytest.mark.parametrize("mode", ["auto"])
def test_commands_run_where_the_server_says(
    home: Path, docker_service: Docker, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    for name, value in docker_service.env.items():
        monkeypatch.setenv(name, value)
    settings = {"image": docker_service.image, "network": "none"}
    (home / "config.yaml").write_text(json.dumps({"terminal": {"backends": {"docker": settings}}}))

    async def work(client: Client) -> Any:
        return await client.call_tool("terminal", {"command": "ls /.dockerenv"})

    result = talk(work, mode=mode, toolsets=("terminal",), backend="docker")
    assert "/.dockerenv" in result.structured_content["output"], result


def test_a_client_has_a_limited_number_of_calls_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are answered with an error at once, and there is room again when one has ended."""
    monkeypatch.setattr("handrail.serve.mcp.server.MAX_OPEN_CALLS", 3)
    release, begun = threading.Event(), threading.Semaphore(0)

    def wait(args: dict[str, Any], **_: Any) -> dict[str, bool]:
        begun.release()
        release.wait(60)
        return {"ended": True}

    async def scenario(app: Handrail) -> None:
        async with Client(HandrailServer(app, toolsets=["flood"]).build()) as client:
            waiting = [asyncio.create_task(client.call_tool("wait", {})) for _ in range(3)]
            for _ in waiting:
                await asyncio.to_thread(begun.acquire, timeout=60)
            refused = await asyncio.gather(*(client.call_tool("wait", {}) for _ in range(20)))
            assert {each.structured_content["error_type"] for each in refused} == {"too_many_calls"}
            release.set()
            assert all(each.structured_content == {"ended": True} for each in await asyncio.gather(*waiting))
            assert (await client.call_tool("wait", {})).structured_content == {"ended": True}

    with Handrail(Config()) as app:
        add(app.registry, "wait", wait, toolset="flood")
        asyncio.run(scenario(app))
