"""Calls that go straight to the pipe of a server that was started here, and those that cannot."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handrail.protocols import Decision
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.testing import RecordingApprover, ScriptedPerson
from handrail.types import CancelToken, Progress

from ..support import error_in, wait_until
from .conftest import Connect, hostile, script


@pytest.fixture(params=["auto", "handshake"])
def family(request: pytest.FixtureRequest) -> McpServerConfig:
    """The well-behaved server over stdio, in both families of the protocol."""
    return script("plain", protocol=request.param)


def said(outcome: Any) -> Any:
    return json.loads(outcome)


def test_one_server_does_all_that_it_does_by_http(
    connect: Connect, runtime: Runtime, family: McpServerConfig, tmp_path: Path
) -> None:
    """In one test: starting the server takes longer than all the calls."""
    tools = connect(plain=family)
    call = runtime.handle
    assert said(call("mcp__plain__add", {"a": 1, "b": 2})) == {"structured": {"result": 3}}
    assert said(call("mcp__plain__say", {"text": "ä\n\u2028"}))["content"] == "ä\n\u2028"
    failed = error_in(call("mcp__plain__fail", {"why": "no salt"}))
    assert "no salt" in failed["error"]
    assert "lost" not in failed

    with ThreadPoolExecutor(8) as threads:
        heard = threads.map(lambda n: said(call("mcp__plain__say", {"text": str(n)}))["content"], range(100))
        assert list(heard) == [str(number) for number in range(100)]
    heard_of: list[Progress] = []
    assert said(call("mcp__plain__steps", {}, on_progress=heard_of.append))["content"] == "done"
    assert [each.fraction for each in heard_of] == [0.5, 1.0]
    assert asyncio.run(_meeting(runtime)) == ["met"] * 20

    runtime.approver, runtime.person = RecordingApprover([Decision.ONCE]), ScriptedPerson(["soup", "yes"])
    assert said(call("mcp__plain__order", {}))["content"] == "soup, spicy"
    assert said(call("mcp__plain__order", {}))["content"] == "decline"

    pid = tools.connections.status()["plain"].pid
    for is_async in (False, True):
        mark = tmp_path / f"mark{is_async}"
        assert error_in(_cancelled(runtime, mark, is_async=is_async))["error_type"] == "cancelled"
        wait_until(mark.exists, timeout=30)
    status = tools.connections.status()["plain"]
    assert (status.pid, status.in_flight, status.faults) == (pid, 0, 0)


async def _meeting(runtime: Runtime) -> list[str]:
    calls = (runtime.ahandle("mcp__plain__meet", {"others": 20, "room": "a"}) for _ in range(20))
    return [said(each)["content"] for each in await asyncio.gather(*calls)]


def _cancelled(runtime: Runtime, mark: Path, *, is_async: bool) -> Any:
    cancel, begun = CancelToken(), mark.with_suffix(".begun")
    arguments = {"mark": str(mark), "begun": str(begun)}

    def stop() -> None:
        wait_until(begun.exists, timeout=30)
        cancel.cancel()

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        if is_async:
            return asyncio.run(runtime.ahandle("mcp__plain__wait", arguments, cancel=cancel))
        return runtime.handle("mcp__plain__wait", arguments, cancel=cancel)
    finally:
        stopper.join()


@pytest.mark.parametrize("way", ["wrong", "unkept", "own-error", "no-answer"])
def test_an_answer_that_is_wrong_does_not_end_the_connection(connect: Connect, runtime: Runtime, way: str) -> None:
    tools = connect(bad=hostile(way))
    pid = tools.connections.status()["bad"].pid
    for _ in range(2):
        error = error_in(runtime.handle("mcp__bad__go", {}))
        assert error["error_type"] == "tool_failed"
        assert "lost" not in error, error
    status = tools.connections.status()["bad"]
    assert (status.pid, status.faults) == (pid, 0)


def test_arguments_that_no_pipe_holds_go_through(connect: Connect, runtime: Runtime) -> None:
    connect(plain=hostile("size"))
    sizes = [300_000 + number for number in range(8)]
    with ThreadPoolExecutor(len(sizes)) as threads:
        counted = list(threads.map(lambda size: said(runtime.handle("mcp__plain__go", {"text": "x" * size})), sizes))
    assert counted == [{"content": str(size)} for size in sizes]


def test_numbers_that_come_back_as_text_are_understood(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("texts"))
    assert said(runtime.handle("mcp__bad__go", {})) == {"content": "went"}


def test_a_server_that_reads_nothing_costs_the_calls_their_time(connect: Connect, runtime: Runtime) -> None:
    connect(bad=hostile("deaf", timeout=0.3))
    for _ in range(2):
        outcome = runtime.handle("mcp__bad__go", {"text": "x" * 300_000})
        assert error_in(outcome)["error_type"] == "timeout"
