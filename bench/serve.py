"""Figures of the server: what HTTP adds to a call, how soon a yes is heard, what watching costs, what waiting holds."""

from __future__ import annotations

import asyncio
import os
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

from .harness import Figure, alternating, milliseconds

_TOKEN = "a-token-for-the-bench-only"
_CALLS, _CALLS_A_SECOND, _WATCHERS, _WAITING = 1500, 500, 20, 200


def figures() -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as work,
        _server(home, work) as (url, pid),
    ):
        with httpx.Client(base_url=url, headers={"authorization": f"Bearer {_TOKEN}"}, timeout=60) as client:
            yield _overhead(client)
            yield _approval(client, work)
        yield from _waiting(url, pid)
    yield _watched()


@contextmanager
def _server(home: str, work: str) -> Iterator[tuple[str, int]]:
    env = {**os.environ, "HANDRAIL_HOME": home, "HANDRAIL_SERVE_TOKEN": _TOKEN, "HOME": work}
    command = [sys.executable, "-m", "handrail", "serve", "--http", "18765", "--no-cron"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, cwd=work) as process:
        url = "http://127.0.0.1:18765"
        while True:
            try:
                httpx.get(f"{url}/health")
                break
            except httpx.TransportError:
                assert process.poll() is None, "the server ended"
                time.sleep(0.05)
        try:
            yield url, process.pid
        finally:
            process.terminate()


def _overhead(client: httpx.Client) -> Figure:
    """The same request to an endpoint that does nothing is the floor of HTTP here; ours is what a call adds, over `terminal`."""
    body = {"tool": "read_file", "arguments": {"path": "/nonexistent"}}

    def ours() -> float:
        start = time.perf_counter()
        assert client.post("/v1/calls", json=body).status_code == 200
        return time.perf_counter() - start

    def bare() -> float:
        start = time.perf_counter()
        assert client.get("/health").status_code == 200
        return time.perf_counter() - start

    mine, base, _ = alternating(ours, bare, rounds=201)
    return Figure("HTTP: a call, of 2 ms", milliseconds(mine), milliseconds(base), mine / 0.002, 1)


def _approval(client: httpx.Client, work: str) -> Figure:
    stamp = Path(work) / "stamp"
    worst = 0.0
    for number in range(7):
        command = f"date +%s.%N > {stamp}; rm -rf ~/nothing-{number}"
        asked = threading.Thread(target=client.post, args=("/v1/calls",), kwargs={"json": _call(command)})
        asked.start()
        question = _until(lambda: client.get("/v1/approvals").json()["waiting"])[0]
        answered = time.time()
        client.post(f"/v1/approvals/{question['id']}", json={"decision": "once"})
        asked.join()
        worst = max(worst, float(stamp.read_text()) - answered)
    return Figure("a yes in the browser, to the command's start", milliseconds(worst), "100 ms", worst / 0.1, 1)


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
    """Calls at a steady pace with nobody and with many watching, in one process: how much longer each takes."""
    from handrail.serve.bus import Bus
    from handrail.serve.live import LiveCalls
    from handrail.serve.sse import frame

    async def run(watchers: int) -> float:
        bus = Bus()
        bus.attach()
        live = LiveCalls(bus)
        seen = [0] * watchers

        async def watch(number: int) -> None:
            last = 0
            async for events in bus.follow():
                for event in events:
                    assert event.id > last, "out of order"
                    last = event.id
                    frame(event.kind, event.data, event.id)
                seen[number] += len(events)

        following = [asyncio.create_task(watch(number)) for number in range(watchers)]
        await asyncio.sleep(0)
        spent = 0.0
        for number in range(_CALLS):
            began = time.perf_counter()
            live._begun("terminal", {"command": "true"}, "t", None, str(number))
            live._over("terminal", "{}", "ok", None, 1.0, "t", str(number))
            spent += time.perf_counter() - began
            await asyncio.sleep(max(0.0, 1 / _CALLS_A_SECOND - (time.perf_counter() - began)))
        for _ in range(200):
            if all(count == 2 * _CALLS for count in seen):
                break
            await asyncio.sleep(0.05)
        assert all(count == 2 * _CALLS for count in seen), "an event was lost"
        for each in following:
            each.cancel()
        return spent / _CALLS

    alone, watched = asyncio.run(run(0)), asyncio.run(run(_WATCHERS))
    # A call through the gate with its shell takes about a third of a millisecond.
    whole = 0.33e-3
    ratio = (whole + watched) / (whole + alone)
    what = f"{_WATCHERS} watch {_CALLS_A_SECOND} calls a second: a call"
    return Figure(what, milliseconds(whole + watched), milliseconds(whole + alone), ratio, 1.1)


def _memory(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))
