"""Many calls to a server that is killed again and again. `HANDRAIL_SOAK_CALLS=10000` for the long one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

from handrail.runtime.dispatch import Runtime

from .conftest import Connect, script

CALLS = int(os.environ.get("HANDRAIL_SOAK_CALLS", "600"))
ROUND = 50
KILL_EVERY = 3  # rounds


def test_every_call_is_answered_once_and_nothing_leaks(connect: Connect, runtime: Runtime) -> None:
    tools = connect(plain=script("plain", timeout=60))
    connection = tools.connections._connections["plain"]
    before = _open_files()
    lost = 0
    for number in range(CALLS // ROUND):
        answers = asyncio.run(_round(runtime, connection, kill=number % KILL_EVERY == KILL_EVERY - 1))
        assert len(answers) == ROUND
        for index, answer in enumerate(answers):
            if "error" in answer:
                assert answer["error_type"] in ("tool_failed", "unavailable", "timeout"), answer
                lost += 1
            else:
                assert answer == {"content": str(index)}, "an answer belongs to its own call"
    assert lost < CALLS
    assert json.loads(runtime.handle("mcp__plain__say", {"text": "x"})) == {"content": "x"}  # type: ignore[arg-type]
    assert connection._in_flight == 0
    assert _open_files() <= before + 5
    process = connection._process
    assert process is not None
    tools.close()
    assert not os.path.exists(f"/proc/{process.child.pid}")


async def _round(runtime: Runtime, connection: Any, *, kill: bool) -> list[Any]:
    work = [asyncio.ensure_future(runtime.ahandle("mcp__plain__say", {"text": str(index)})) for index in range(ROUND)]
    if kill:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        os.kill(connection._process.child.pid, signal.SIGKILL)
    return [json.loads(await each) for each in work]  # type: ignore[arg-type]


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
