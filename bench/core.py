"""Figures of the core: cold start, dispatch, registration, listing, parallel calls."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from handrail.core.registry import ToolRegistry, registry
from handrail.model_tools import ahandle_function_call, arun_tool_calls, default, handle_function_call, run_tool_calls
from handrail.runtime.definitions import Definitions
from handrail.toolsets import Toolsets

from . import samples
from .harness import Figure, alternating, microseconds, milliseconds, paired

_COLD_FLOOR = "import json, asyncio, subprocess, threading"
_COLD = """
from handrail.model_tools import get_tool_definitions, handle_function_call
from handrail.core.registry import registry
assert get_tool_definitions(quiet_mode=True)
registry.register(name='t', toolset='bench', schema={'description': 'x', 'parameters': {'type': 'object', 'properties': {}}},
                  handler=lambda args, **kw: 'ok')
assert handle_function_call('t', '{}') == 'ok'
"""
_COUNT_MODULES = "\nimport sys; print(len(sys.modules))"


def figures() -> Iterator[Figure]:
    yield from cold_start()
    default()
    for name, handler, is_async in (
        ("bench_sync", samples.handler, False),
        ("bench_async", samples.ahandler, True),
        ("bench_sleep", samples.sleeping, False),
        ("bench_asleep", samples.asleeping, True),
    ):
        registry.register(
            name=name, toolset="bench", schema=samples.schema(name), handler=handler, is_async=is_async, read_only=True
        )
    yield from dispatch()
    yield from many_tools()
    yield from parallel()


def cold_start() -> Iterator[Figure]:
    # Everybody's packages have their bytecode; where Python is told not to write it, ours would be compiled each time.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run(code: str) -> Callable[[], float]:
        def timed() -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
            return time.perf_counter() - start

        return timed

    ours, floor, ratio = alternating(run(_COLD), run(_COLD_FLOOR), rounds=15)
    peers = "hermes 18.8, pydantic-ai 10.6, smallest 3.0"
    yield Figure(
        "cold start: import, list all tools, call one", milliseconds(ours), milliseconds(floor), ratio, 2, peers
    )
    count = int(subprocess.run([sys.executable, "-c", _COLD + _COUNT_MODULES], capture_output=True, check=True).stdout)
    yield Figure("  modules imported then, of 250", str(count), "250", count / 250, 1, "hermes 900, pydantic-ai 678")


def dispatch() -> Iterator[Figure]:
    table = {"sync": samples.work, "async": samples.awork}
    text, loads, loop = samples.ARGUMENTS, json.loads, asyncio.new_event_loop()

    def ours(count: int) -> None:
        for _ in range(count):
            handle_function_call("bench_sync", text)

    def floor(count: int) -> None:
        for _ in range(count):
            table["sync"](**loads(text))

    runtime = default().runtime

    def as_agent(count: int) -> None:
        for _ in range(count):
            runtime.handle("bench_sync", text, "task", on_progress=_ignore)

    assert handle_function_call("bench_sync", text) == "ok"
    yield _micro("call a sync tool, validated", ours, floor, 4, "4.8 (unvalidated) to 514; hermes 11.8")
    yield _micro("  the same with task_id and on_progress, as an agent calls", as_agent, floor, 4, "")

    def ours_in_loop(count: int) -> None:
        async def go() -> None:
            for _ in range(count):
                await ahandle_function_call("bench_async", text)

        loop.run_until_complete(go())

    def floor_in_loop(count: int) -> None:
        async def go() -> None:
            for _ in range(count):
                await table["async"](**loads(text))  # type: ignore[misc]

        loop.run_until_complete(go())

    yield _micro("call an async tool, in a loop", ours_in_loop, floor_in_loop, 4, "best 7.3, hermes 211")
    yield from _in_messages(floor, loop)

    def ours_from_sync(count: int) -> None:
        for _ in range(count):
            handle_function_call("bench_async", text)

    def floor_from_sync(count: int) -> None:
        for _ in range(count):
            loop.run_until_complete(table["async"](**loads(text)))  # type: ignore[arg-type]

    yield _micro("call an async tool, from sync code", ours_from_sync, floor_from_sync, 1.5, "best 2.1")
    loop.close()


def _in_messages(floor: Callable[[int], None], loop: asyncio.AbstractEventLoop) -> Iterator[Figure]:
    """What an agent's turn really takes: a message with one call, whose sync tool runs on a worker thread, so that the loop
    stays free, and the call can be cancelled."""
    message = [{"id": "c", "function": {"name": "bench_sync", "arguments": samples.ARGUMENTS}}]

    def ours(count: int) -> None:
        async def go() -> None:
            for _ in range(count):
                await arun_tool_calls(message, "task", session_id="session", on_progress=_ignore)

        loop.run_until_complete(go())

    def floor_on_a_thread(count: int) -> None:
        async def go() -> None:
            for _ in range(count):
                await asyncio.to_thread(floor, 1)

        loop.run_until_complete(go())

    what = "call a sync tool in a message, as an agent's turn does"
    yield _micro(f"{what}, to a thread's hop", ours, floor_on_a_thread, 4, "")
    mine, base, ratio = paired(ours, floor)
    yield Figure("  the same, to a plain call", microseconds(mine), microseconds(base), ratio, None, "")


def _ignore(update: object) -> None:
    """The listener of a call whose progress nobody follows."""


def many_tools(number: int = 1000) -> Iterator[Figure]:
    names = [f"tool_{index}" for index in range(number)]
    schemas = {name: samples.schema(name) for name in names}
    distinct = {name: copy.deepcopy(schema) for name, schema in schemas.items()}
    for name, schema in distinct.items():
        schema["parameters"]["properties"]["path"]["description"] = f"Path for {name}"
    kept: list[Any] = []

    def register(from_schemas: dict[str, Any]) -> float:
        kept.clear()  # as the floor's table is gone before the next one is made
        table, ready = ToolRegistry(), list(from_schemas.values())
        start = time.perf_counter()
        for index, schema in enumerate(ready):
            table.register(name=f"tool_{index}", toolset="bench", schema=schema, handler=samples.handler)
        elapsed = time.perf_counter() - start
        kept[:] = [table]
        return elapsed

    def register_floor() -> float:
        table: dict[str, Any] = {}
        start = time.perf_counter()
        for index in range(number):
            table[f"tool_{index}"] = (samples.work, samples.SCHEMA)
        return time.perf_counter() - start

    ours, floor, ratio = alternating(lambda: register(schemas), register_floor, rounds=21)
    yield Figure(
        f"{number:,} tools: register from schema", milliseconds(ours), milliseconds(floor), ratio, 5, "hermes 7.5"
    )
    # Freeing a thousand compiled schemas gives memory back to the system, and the floor would pay for getting it again.
    several = statistics.median(register(distinct) for _ in range(5))
    what = "  the same, every schema another"
    yield Figure(what, milliseconds(several), milliseconds(floor), several / floor, None, "checked by none")

    def listing(again: bool) -> Callable[[], float]:
        def timed() -> float:
            register(schemas)
            definitions = Definitions(kept[0], Toolsets(kept[0]))
            if again:
                definitions.list(["bench"])
            start = time.perf_counter()
            listed = definitions.list(["bench"])
            elapsed = time.perf_counter() - start
            assert len(listed) == number
            return elapsed

        return timed

    def listing_floor() -> float:
        table = dict.fromkeys(names, (samples.work, samples.SCHEMA))
        start = time.perf_counter()
        listed = [
            {"type": "function", "function": {"name": name, "description": "Do nothing.", "parameters": value[1]}}
            for name, value in table.items()
        ]
        elapsed = time.perf_counter() - start
        assert len(listed) == number
        return elapsed

    ours, floor, ratio = alternating(listing(False), listing_floor, rounds=15)
    yield Figure("  list them, first time", milliseconds(ours), milliseconds(floor), ratio, 15, "hermes 85")
    ours, floor, ratio = alternating(listing(True), listing_floor, rounds=15)
    yield Figure(
        "  list them again, a copy each",
        milliseconds(ours),
        milliseconds(floor),
        ratio,
        8,
        "hermes 0.2, best other 0.7, shared dicts",
    )
    yield _growth()


def _growth() -> Figure:
    """Registering, listing and finding one tool: the cost a tool, at a hundred times as many."""

    def cost(number: int) -> float:
        table = ToolRegistry()
        start = time.perf_counter()
        for index in range(number):
            name = f"tool_{index}"
            table.register(name=name, toolset="bench", schema=samples.schema(name), handler=samples.handler)
        listed = Definitions(table, Toolsets(table)).list(["bench"])
        elapsed = time.perf_counter() - start
        assert len(listed) == number
        return elapsed / number

    ours, floor, ratio = alternating(lambda: cost(100_000), lambda: cost(1_000), rounds=1)
    return Figure("  a tool among 100,000, to one among 1,000", microseconds(ours), microseconds(floor), ratio, 2.5)


def parallel(number: int = 100) -> Iterator[Figure]:
    def calls(name: str, count: int) -> list[dict[str, Any]]:
        return [{"id": str(i), "function": {"name": name, "arguments": samples.ARGUMENTS}} for i in range(count)]

    def run(name: str, count: int) -> Callable[[], float]:
        message = calls(name, count)

        def timed() -> float:
            start = time.perf_counter()
            answers = run_tool_calls(message)
            elapsed = time.perf_counter() - start
            assert [answer["content"] for answer in answers] == ["ok"] * count
            return elapsed

        return timed

    def ideal() -> float:
        return samples.SLEEP_SECONDS

    for name, label, limit, peers in (
        ("bench_sleep", "sync", 1.5, "best 3.5, hermes 13"),
        ("bench_asleep", "async", 1.1, "best 1.05, hermes 13"),
    ):
        ours, floor, ratio = alternating(run(name, number), ideal, rounds=9)
        what = f"{number} parallel calls of 50 ms, {label} tools"
        yield Figure(what, milliseconds(ours), milliseconds(floor), ratio, limit, peers)

    async def in_flight(count: int) -> float:
        message = calls("bench_asleep", count)
        start = time.perf_counter()
        answers = await arun_tool_calls(message)
        assert len(answers) == count
        return (time.perf_counter() - start - samples.SLEEP_SECONDS) / count

    ours, floor, ratio = alternating(
        lambda: asyncio.run(in_flight(10_000)), lambda: asyncio.run(in_flight(1_000)), rounds=3
    )
    yield Figure("  overhead a call at 10,000 in flight, to 1,000", microseconds(ours), microseconds(floor), ratio, 2.5)


def _micro(what: str, ours: Any, floor: Any, limit: float, peers: str) -> Figure:
    mine, base, ratio = paired(ours, floor)
    return Figure(what, microseconds(mine), microseconds(base), ratio, limit, peers)
