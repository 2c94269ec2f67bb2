"""Many calls to a server that is killed again and again. The long one is in bench/mcp.py."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

from handrail.mcp_client.manager import McpConnections
from handrail.runtime.dispatch import Runtime

from ..support import wait_until
from .conftest import Connect, has_ended, hostile

ROUNDS, ROUND, KILL_EVERY = 12, 50, 4


def test_every_call_is_answered_once_and_nothing_leaks(connect: Connect, runtime: Runtime) -> None:
    tools = connect(plain=hostile("echo", timeout=60))
    before = _open_files()
    lost_in: set[int] = set()
    for number in range(ROUNDS):
        kill = number % KILL_EVERY == KILL_EVERY - 1
        answers = asyncio.run(_round(runtime, tools.connections, kill=kill))
        assert len(answers) == ROUND
        for index, answer in enumerate(answers):
            if "error" in answer:
                assert answer["lost"] is True, answer
                lost_in.add(number)
            else:
                assert answer == {"content": str(index)}, "an answer belongs to its own call"
    assert all(number % KILL_EVERY == KILL_EVERY - 1 for number in lost_in)
    assert json.loads(runtime.handle("mcp__plain__go", {"text": "x"})) == {"content": "x"}  # type: ignore[arg-type]
    status = tools.connections.status()["plain"]
    assert status.in_flight == 0
    wait_until(lambda: _open_files() <= before + 5)
    tools.close()
    assert status.pid is not None
    wait_until(lambda: has_ended(status.pid))


async def _round(runtime: Runtime, connections: McpConnections, *, kill: bool) -> list[Any]:
    work = [asyncio.ensure_future(runtime.ahandle("mcp__plain__go", {"text": str(index)})) for index in range(ROUND)]
    if kill:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        pid = connections.status()["plain"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(wait_until, lambda: has_ended(pid))
    return [json.loads(await each) for each in work]  # type: ignore[arg-type]


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
