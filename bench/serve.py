"""Figures of the server: what HTTP adds to a call, how soon a yes is heard, what watching costs, what waiting holds."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from .harness import Figure, milliseconds

_TOKEN = "a-token-for-the-bench-only"
_WAITING = 200


def figures() -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as work,
        _server(home, work) as (url, pid),
    ):
        with httpx.Client(base_url=url, headers={"authorization": f"Bearer {_TOKEN}"}, timeout=60) as client:
            yield from _overhead(18765)
            yield _approval(client, work)
        yield from _waiting(url, pid)
    yield _watched()


@contextmanager
def _server(home: str, work: str) -> Iterator[tuple[str, int]]:
    env = {**os.environ, "HANDRAIL_HOME": home, "HANDRAIL_SERVE_TOKEN": _TOKEN, "HOME": work}
    command = [sys.executable, "-m", "handrail", "serve", "--http", "18765", "--no-cron"]
    with _started(command, "http://127.0.0.1:18765", env=env, cwd=work) as pid:
        yield "http://127.0.0.1:18765", pid


@contextmanager
def _started(command: list[str], url: str, **options: Any) -> Iterator[int]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **options) as process:
        while True:
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                assert process.poll() is None, "the server ended"
                time.sleep(0.05)
        try:
            yield process.pid
        finally:
            process.terminate()


_BARE = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def nothing(request):
    await request.json()
    return JSONResponse({"result": {}})

app = Starlette(routes=[Route("/health", lambda _: JSONResponse({})), Route("/v1/calls", nothing, methods=["POST"])])
uvicorn.run(app, port=18766, log_level="warning", access_log=False, http="h11")
"""


def _overhead(port: int) -> Iterator[Figure]:
    """A call over HTTP, beside the same call in this process and the same request to an endpoint that does nothing."""
    from handrail import model_tools

    arguments = {"path": "/etc/hostname"}

    def direct() -> float:
        start = time.perf_counter()
        model_tools.handle_function_call("read_file", arguments)
        return time.perf_counter() - start

    with _started([sys.executable, "-c", _BARE], "http://127.0.0.1:18766"):
        ways = [_line(port, arguments), _line(18766, arguments), direct]
        taken = [[way() for way in ways] for _ in range(601)]
    # The quickest of each: what others do on this machine at the same time is in all the rest.
    ours, bare, here = (min(column) for column in zip(*taken[100:], strict=True))
    added = ours - bare - here
    yield Figure("HTTP API: what it adds to a call, of 2 ms", milliseconds(added), "2 ms", added / 0.002, 1)
    yield Figure(
        "  the call over HTTP, over one here and an empty endpoint",
        milliseconds(ours),
        f"{milliseconds(here)} + {milliseconds(bare)}",
        ours / (here + bare),
    )


def _line(port: int, arguments: dict[str, Any]) -> Callable[[], float]:
    """One connection, and how long an answer takes on it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"authorization": f"Bearer {_TOKEN}", "content-type": "application/json"}
    body = json.dumps({"tool": "read_file", "arguments": arguments})

    def ask() -> float:
        start = time.perf_counter()
        connection.request("POST", "/v1/calls", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        return time.perf_counter() - start

    return ask


def _approval(client: httpx.Client, work: str) -> Figure:
    stamp = Path(work) / "stamp"
    times = []
    for number in range(7):
        command = f"date +%s.%N > {stamp}; rm -rf ~/nothing-{number}"
        asked = threading.Thread(target=client.post, args=("/v1/calls",), kwargs={"json": _call(command)})
        asked.start()
        question = _until(lambda: client.get("/v1/approvals").json()["waiting"])[0]
        answered = time.time()
        client.post(f"/v1/approvals/{question['id']}", json={"decision": "once"})
        asked.join()
        times.append(float(stamp.read_text()) - answered)
    took = statistics.median(times)  # the first one starts the task's shell too
    return Figure("a yes over HTTP, to the command's start", milliseconds(took), "100 ms", took / 0.1, 1)


def _call(command: str) -> dict[str, Any]:
    return {"tool": "terminal", "arguments": {"command": command}}


def _until(found: Callable[[], Any]) -> Any:
    while True:
        value = found()
        if value:
            return value
        time.sleep(0.01)


def _waiting(url: str, pid: int) -> Iterator[Figure]:
    """Questions that wait: their memory, and the threads of the server."""
    before, threads = _memory(pid), _threads(pid)

    async def ask() -> tuple[int, int]:
        limits = httpx.Limits(max_connections=_WAITING + 10)
        headers = {"authorization": f"Bearer {_TOKEN}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120, limits=limits) as client:
            work = [
                asyncio.create_task(client.post("/v1/calls", json={**_call(f"rm -rf ~/{n}"), "task": f"t{n}"}))
                for n in range(_WAITING)
            ]
            while len((await client.get("/v1/approvals")).json()["waiting"]) < _WAITING:  # noqa: ASYNC110  another process
                await asyncio.sleep(0.1)
            held = _memory(pid), _threads(pid)
            for each in (await client.get("/v1/approvals")).json()["waiting"]:
                await client.post(f"/v1/approvals/{each['id']}", json={"decision": "deny"})
            await asyncio.gather(*work)
            return held

    memory, more = asyncio.run(ask())
    grown = (memory - before) / 1024
    yield Figure(f"{_WAITING} questions waiting: memory, of 20 MB", f"{grown:.1f} MB", "20 MB", grown / 20, 1)
    yield Figure("  threads more, of 40 shared ones", str(more - threads), "40", (more - threads) / 40, 1)


def _watched() -> Figure:
    """Measured in a process of its own, which is the server."""
    command = [sys.executable, "-m", "bench.watched"]
    with tempfile.TemporaryDirectory() as home:
        told = subprocess.run(command, env={**os.environ, "HANDRAIL_HOME": home}, capture_output=True, check=True)
    found = json.loads(told.stdout)
    what = f"{found['watchers']} watch {found['pace']} calls a second, one of them asleep: a call"
    return Figure(what, milliseconds(found["watched"]), milliseconds(found["alone"]), found["ratio"], 1.1)


def _memory(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))
